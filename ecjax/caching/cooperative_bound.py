"""No plan of several edges saves more than this: capacities relaxed into prices.

For prices p_f >= 0 of a chunk at edge f, a plan that fits saves no more than

    D(p) = sum_f p_f C_f + sum_m max over plans of item m (saved by it - sum_f p_f chunks at f),

because what it pays is at most sum_f p_f C_f. Items are independent, each is solved exactly (``cooperative_items``).
D is convex and piecewise linear; C_f less the chunks at f is a slope of it. The least D is found by cutting planes in
F dimensions (Kelley, "The Cutting-Plane Method for Solving Convex Programs", J. SIAM 8, 1960), in a box around the best
prices so far that grows after a step that lowers D and shrinks after one that does not.

The least D is what plans save at best that may be mixed with weights, and in some such mixture at most F items are
mixed: what lies between D and the best plan is at most what F items are worth, little when there are many.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from ecjax.caching.cooperative_items import Items, best_at_prices, by_price

_CLOSE = 1e-6  # relative: the least D is known so well
_MOST = 200  # evaluations of D
_SMALLEST = 0.1  # half width of the box, relative
_UNLIMITED = 1 << 60


class Prices(NamedTuple):
    """The least D, and where."""

    price: np.ndarray  # (F,) seconds saved per second, per chunk
    bound_per_s: float
    net: np.ndarray  # (M,) what items save less what they pay, there
    levels: np.ndarray  # (M, E) int64, their levels


def least_bound(rate: np.ndarray, items: Items, capacity: np.ndarray, start: np.ndarray) -> Prices:
    """Prices of the least upper bound.

    Args:
        rate: (E, M) reads per second.
        items: as the edges see them.
        capacity: (F,) chunks that each edge can keep.
        start: (F,) prices to begin with.
    """
    most = (rate * items.level_s[:, :, 0].T).sum(axis=0)  # that items can save
    scale, highest = float(most.sum()), float(most.max())  # nobody pays more for a chunk
    every = np.arange(rate.shape[1])
    levels = np.zeros_like(items.levels)
    if scale == 0.0:
        return Prices(np.zeros(len(capacity)), 0.0, np.zeros(len(every)), levels)
    unit = scale / capacity.sum()
    slopes: list[np.ndarray] = []
    heights: list[float] = []
    best = Prices(start, np.inf, np.zeros(len(every)), levels)
    price = np.clip(start, 0.0, highest)
    box = 0.5
    for _ in range(_MOST):
        room = np.full(len(capacity), _UNLIMITED)
        net, _ = best_at_prices(rate, items, by_price(price), every, room, levels)
        slope = capacity - (_UNLIMITED - room)
        height = float(price @ capacity + net.sum())
        slopes.append(slope)
        heights.append(height - slope @ price)
        if height < best.bound_per_s:
            best = Prices(price, height, net, levels.copy())
            box *= 2.0
        else:
            box = max(0.5 * box, _SMALLEST)
        lowest = np.maximum(best.price * (1.0 - box), 0.0)
        largest = np.minimum(best.price * (1.0 + box) + box * unit, highest)
        model = linprog(
            np.append(np.zeros(len(capacity)), 1.0),
            A_ub=np.column_stack([np.array(slopes) * (unit / scale), -np.ones(len(slopes))]),
            b_ub=-np.array(heights) / scale,
            bounds=[*np.column_stack([lowest, largest]) / unit, (None, None)],
        )
        if model.x is None or best.bound_per_s - model.fun * scale <= _CLOSE * best.bound_per_s:
            break
        price = np.clip(model.x[:-1] * unit, lowest, largest)
    return best
