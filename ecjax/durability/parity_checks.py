"""What a code with some sparse parity checks decodes: the best that coefficients can do.

A set of losses is decodable exactly if its columns of the parity-check matrix are independent. Coefficients are drawn
at random from a large prime field: a set is then decodable, but for a chance of 1e-8, if it is for some coefficients at
all (Schwartz, Zippel). Such a code is maximally recoverable for its checks; others of the same shape decode less.
"""

import itertools
import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

_PRIME = 2**31 - 1
MOST_SETS = 500_000  # of losses that are looked at
_AT_ONCE = 50_000


def sets_of_losses(n: int, k: int) -> int:
    """How many sets of up to n - k losses there are."""
    return sum(math.comb(n, lost) for lost in range(n - k + 1))


@lru_cache(maxsize=64)
def decodable_shares(n: int, k: int, checks: tuple[tuple[int, ...], ...]) -> tuple[float, ...]:
    """[n - k + 1] share of the sets of f lost chunks that are decodable, f = 0, ..., n - k.

    Args:
        n: chunks
        k: data chunks
        checks: chunks of each sparse check, at most n - k; the others hold all chunks

    Raises:
        ValueError: more than ``MOST_SETS`` sets.
    """
    if sets_of_losses(n, k) > MOST_SETS:
        raise ValueError(f"{sets_of_losses(n, k)} sets of losses, at most {MOST_SETS} are looked at")
    matrix = _matrix(n, k, checks)
    shares = [1.0]
    for lost in range(1, n - k + 1):
        decodable = sum(
            int(_independent(matrix[:, np.array(some)].transpose(1, 0, 2)).sum())
            for some in _batches(itertools.combinations(range(n), lost))
        )
        shares.append(decodable / math.comb(n, lost))
    return tuple(shares)


def follows_from_data(n: int, k: int, checks: tuple[tuple[int, ...], ...]) -> bool:
    """Whether data of any values have parity chunks, and no others: those are decodable if all of them are lost.

    Args:
        n: chunks
        k: data chunks, the first
        checks: as of ``decodable_shares``
    """
    return bool(_independent(_matrix(n, k, checks)[None, :, k:])[0])


def _matrix(n: int, k: int, checks: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Parity-check matrix with drawn coefficients, (n - k, n)."""
    matrix = np.random.default_rng(0).integers(1, _PRIME, (n - k, n))
    for row, check in enumerate(checks):
        matrix[row, np.setdiff1d(np.arange(n), check)] = 0
    return matrix


def _batches(sets: Iterable[tuple[int, ...]]) -> Iterable[list[tuple[int, ...]]]:
    iterator = iter(sets)
    while some := list(itertools.islice(iterator, _AT_ONCE)):
        yield some


def _independent(columns: np.ndarray) -> np.ndarray:
    """Whether the columns of each matrix are independent modulo the prime, (N,), by elimination; (N, rows, columns)."""
    left = columns.copy()
    number = np.arange(len(left))
    full = np.ones(len(left), bool)
    for place in range(left.shape[2]):
        pivot = place + (left[:, place:, place] != 0).argmax(axis=1)
        full &= left[number, pivot, place] != 0
        swapped = left[number, pivot].copy()
        left[number, pivot] = left[:, place]
        left[:, place] = swapped
        # without divisions: pivot * row - entry * pivot row
        below = left[:, place + 1 :]
        factor = swapped[:, None, place : place + 1]
        entry = below[:, :, place : place + 1]
        left[:, place + 1 :] = (below * factor % _PRIME - entry * swapped[:, None] % _PRIME) % _PRIME
    return full
