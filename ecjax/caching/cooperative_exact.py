"""The best plan of a few edges that serve each other, where items are few and their chunks too.

What an item saves depends on which of its chunks are where; what matters to the others is only how many there are at
each edge. So of all its 2^(F K) plans the best one is kept for each numbers of chunks, and only if none saves as much
with fewer. At the prices of the upper bound D, a plan of an item that saves, less what it pays, d less than the item's
best one is part of no plan that saves more than D - d: where a plan is known that saves so much, it is left out. There
remains a choice of one per item under F capacities, given to a solver of integer programs.
"""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from ecjax.caching.cooperative_bound import Prices
from ecjax.machine_code import njit

_MOST_BITS = 16  # F K
_MOST_PLANS = 1 << 22  # of single items, all together
_MOST_COLUMNS = 20_000
_NODES = 200  # of the search, after which the best plan so far and its bound are taken
_SCALE = 1e4  # of the bound in the solver, whose tolerances are absolute
_ROUNDING = 1e-9  # relative


def is_small(stores: int, items: int, k: int) -> bool:
    """Whether ``improved_exactly`` takes so many edges, items and chunks."""
    return stores * k <= _MOST_BITS and items << (stores * k) <= _MOST_PLANS


def improved_exactly(
    contents: np.ndarray,
    value: float,
    prices: Prices,
    rates: np.ndarray,
    latency_s: np.ndarray,
    between_s: np.ndarray,
    capacity: np.ndarray,
) -> tuple[np.ndarray, float]:
    """A plan at least as good as the given one, and a bound: its own value where it is proven best.

    Args:
        contents: (F, M, K) bool, a plan.
        value: that it saves, s/s.
        prices: and the bound.
        rates: (E, M) reads per second.
        latency_s: (E, M, K) s.
        between_s: (E, F) s.
        capacity: (F,) chunks.
    """
    stores, items, k = contents.shape
    saved, which = _best_by_counts(rates, latency_s, between_s)
    shape = (k + 1,) * stores
    number = np.stack(np.unravel_index(np.arange(saved.shape[1]), shape))  # (F, plans)
    paid = prices.price @ number
    spare = prices.bound_per_s - value + _ROUNDING * prices.bound_per_s
    candidates = (saved - paid >= prices.net[:, None] - spare) & _undominated(saved, shape)
    item, plan = np.nonzero(candidates)
    if len(item) > _MOST_COLUMNS:
        return contents, prices.bound_per_s
    column = np.arange(len(item))
    one = csr_array((np.ones(len(item)), (item, column)), shape=(items, len(item)))
    scale = _SCALE / prices.bound_per_s
    solution = milp(
        -saved[item, plan] * scale,
        integrality=np.ones(len(item)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(one, 1, 1),
            LinearConstraint(number[:, plan].astype(float), -np.inf, capacity.astype(float)),
        ],
        options={"mip_rel_gap": 0.0, "node_limit": _NODES},
    )
    if solution.mip_dual_bound is None or not np.isfinite(solution.mip_dual_bound):
        return contents, prices.bound_per_s
    bound = min(prices.bound_per_s, max(value, -solution.mip_dual_bound / scale))
    if solution.x is None:
        return contents, bound
    selection = column[solution.x > 0.5]
    fits = (number[:, plan[selection]].sum(axis=1) <= capacity).all()
    if not fits or saved[item[selection], plan[selection]].sum() <= value:
        return contents, bound
    code = which[item[selection], plan[selection]]
    bits = (code[:, None] >> np.arange(stores * k)) & 1 == 1
    better = np.zeros_like(contents)
    better[:, item[selection], :] = bits.reshape(-1, stores, k).transpose(1, 0, 2)
    return better, bound


@njit()
def _best_by_counts(rates, latency_s, between_s):
    """What each item saves at best (M, plans) with each numbers of chunks at the edges, and where the chunks are.

    A column is the numbers n_0, ..., n_{F-1} in a row-major grid; bit f K + j of the second: edge f keeps chunk j.
    """
    readers, items, k = latency_s.shape
    stores = between_s.shape[1]
    saved = np.full((items, (k + 1) ** stores), -np.inf)
    which = np.zeros(saved.shape, np.int64)
    for m in range(items):
        for code in range(1 << (stores * k)):
            column = 0
            for f in range(stores):
                chunks = 0
                for j in range(k):
                    chunks += code >> (f * k + j) & 1
                column = column * (k + 1) + chunks
            value = 0.0
            for e in range(readers):
                farthest = slowest = 0.0
                for j in range(k):
                    time = latency_s[e, m, j]
                    farthest = max(farthest, time)
                    for f in range(stores):
                        if code >> (f * k + j) & 1:
                            time = min(time, between_s[e, f])
                    slowest = max(slowest, time)
                value += rates[e, m] * (farthest - slowest)
            if value > saved[m, column]:
                saved[m, column] = value
                which[m, column] = code
    return saved, which


def _undominated(saved: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Whether a plan of an item saves more than those with fewer chunks at one edge and no more elsewhere."""
    grid = saved.reshape(-1, *shape)
    upto = grid
    for axis in range(1, grid.ndim):
        upto = np.maximum.accumulate(upto, axis=axis)
    best = np.ones(grid.shape, bool)
    for axis in range(1, grid.ndim):
        later = [slice(None)] * grid.ndim
        before = later.copy()
        later[axis], before[axis] = slice(1, None), slice(None, -1)
        best[tuple(later)] &= grid[tuple(later)] > upto[tuple(before)]
    return best.reshape(saved.shape)
