"""Newton's step where there are many more nodes than rows: blocks of sites less a product of few columns.

With B the blocks of sites and the diagonal, X (c, m) the roots of c / 2 rows:

    (B - X^T X)^(-1) = B^(-1) + B^(-1) X^T (1 - X B^(-1) X^T)^(-1) X B^(-1)   (Woodbury),

c^2 m operations and c^3 instead of m^3. The colder, the worse is the matrix in the middle conditioned: residuals tell
whether the solution is good, and improve it in a round or two where it is not.
"""

import numpy as np
from scipy import linalg

_ROUNDS = 4
_RESIDUAL = 1e-10  # relative, that ends the rounds
_USELESS = 1e-6  # relative: more than that is no solution


def solve_low_rank(
    blocks: np.ndarray,
    sites: tuple[np.ndarray, np.ndarray],
    roots: np.ndarray,
    diagonal: np.ndarray,
    right: np.ndarray,
) -> np.ndarray | None:
    """Solution x (m,) of (blocks + diagonal - roots^T roots) x = right; None where rounding does not allow it.

    Args:
        blocks: (m, g) of each node with those of its site, in their order.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        roots: (c, m).
        diagonal: (m,), positive.
        right: (m,).
    """
    order, start = sites
    count, width = np.diff(start), blocks.shape[1]
    site = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(order)) - start[site]
    inside = np.zeros((len(count), width, width))
    inside[site, place] = np.where(np.arange(width) < count[site, None], blocks[order], 0.0)
    every = np.arange(width)
    inside[:, every, every] += np.where(every < count[:, None], 0.0, 1.0)  # places without a node
    inside[site, place, place] += diagonal[order]
    inverse = np.linalg.inv(inside)

    def by_site(matrices: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Products of the matrices of all sites with columns (m, n)."""
        padded = np.zeros((len(count), width, columns.shape[1]))
        padded[site, place] = columns[order]
        result = np.empty_like(columns)
        result[order] = (matrices @ padded)[site, place]
        return result

    spread = by_site(inverse, roots.T)
    middle = -(roots @ spread)
    middle[np.arange(len(middle)), np.arange(len(middle))] += 1.0
    try:
        factors = linalg.cho_factor(middle, check_finite=False)
    except linalg.LinAlgError:
        return None
    solution, rest = np.zeros_like(right), right
    size = float(np.abs(right).max())
    for _ in range(_ROUNDS):
        first = by_site(inverse, rest[:, None])[:, 0]
        solution = solution + first + spread @ linalg.cho_solve(factors, roots @ first, check_finite=False)
        rest = right - by_site(inside, solution[:, None])[:, 0] + roots.T @ (roots @ solution)
        if np.abs(rest).max() <= _RESIDUAL * size:
            break
    return solution if np.abs(rest).max() <= _USELESS * size else None
