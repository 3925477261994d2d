"""Code lengths: more chunks for the rows whose reads lose most by having few, as far as they pay for themselves.

By the tangent at a plan, objective - lower bound is a sum over rows of what each is above its cheapest choice at the
plan's prices. The rows with the largest of these get chunks on the nodes where reads are cheapest; all reads are spread
anew; and chunks that gain less than they cost are dropped.
"""

from typing import NamedTuple

import numpy as np

from ecjax.planning.trace.data import Traced
from ecjax.planning.trace.few_rows import fits, improved
from ecjax.planning.trace.pruning import prune
from ecjax.planning.trace.relax import Point, Relaxed, descend, tangent

_ROUNDS = 16
_STEPS = 40  # of a descent over one placement
_FINE = 0.2  # parts of the gap: to which reads are spread, and which rows may keep
_DOMINANT = 0.02  # share of all that is to be gained from which a row gets several chunks at once
_PRICES = (30.0, 10.0, 3.0, 1.0, 0.3)  # of a chunk that costs nothing, in even shares of the gap
_LEAST_GAIN = 1e-2  # of the distance to the bound, which a round must gain


class Spread(NamedTuple):
    """A placement with its reads.

    Attributes:
        probabilities: (R, m).
        placed: (R, m) bool.
        point: there.
        bound: s, lower bound on all plans.
        rounds: of chunks added.
    """

    probabilities: np.ndarray
    placed: np.ndarray
    point: Point
    bound: float
    rounds: int


def spread_out(data: Traced, start: np.ndarray, placed: np.ndarray, bound: float, gap: float) -> Spread:
    """Reads spread over chunks, and more chunks, until the objective is near the bound or no chunk pays.

    Args:
        data: the problem.
        start: (R, m) probabilities.
        placed: (R, m) bool chunks, within the limits of sites and nodes.
        bound: s, lower bound on all plans.
        gap: relative distance of objective and bound that is good enough.
    """

    def read(start: np.ndarray, placed: np.ndarray, fine: float) -> Spread:
        relaxed = descend(data, start, fine * gap, _STEPS, placed, bound)
        return Spread(relaxed.probabilities, placed, relaxed.point, bound, 0)

    charged = bool(np.any(data.keep > 0)) or len(data.writes.block) > 0
    best = read(start, placed, _FINE)
    current = best
    rounds = 0
    while rounds < _ROUNDS:
        rounds += 1
        below, _, above = tangent(data, current.probabilities, current.placed.astype(float), current.point)
        bound = max(bound, below)
        if best.point.objective - bound <= gap * abs(bound):
            break
        more = _added(data, current, above, _FINE * gap * abs(bound))
        if not np.any(more & ~current.placed):
            break
        spread = read(current.probabilities, more, _FINE)
        if charged:
            spread = read(*prune(data, spread.probabilities, spread.placed), _FINE)
        least = _LEAST_GAIN * (best.point.objective - bound)
        current = spread
        if best.point.objective - spread.point.objective < least:
            if spread.point.objective < best.point.objective:
                best = spread
            break
        best = spread
    if best.point.objective - bound > gap * abs(bound):
        best = _searched(data, best, bound, gap)
    if not charged:
        best = _with_fewer_chunks(data, best, bound, gap)
    return best._replace(bound=bound, rounds=rounds)


def _searched(data: Traced, plan: Spread, bound: float, gap: float) -> Spread:
    """The plan, or where rows are few a better one that single chunks lead to."""
    relaxed = Relaxed(plan.probabilities, plan.placed.astype(float), plan.point, bound, 0)
    placed, relaxed = improved(data, plan.placed, relaxed, _FINE * gap, _STEPS)
    return plan._replace(probabilities=relaxed.probabilities, placed=placed, point=relaxed.point)


def _with_fewer_chunks(data: Traced, plan: Spread, bound: float, gap: float) -> Spread:
    """Where storage costs nothing: the plan without chunks that gain little, if it stays as near the bound.

    A chunk is worth a part of what the objective may be above the bound; the largest part that leads there counts.
    """
    for price in _PRICES:
        nearly = data._replace(keep=np.full_like(data.keep, price * gap * abs(bound) / data.keep.size))
        probabilities, placed = prune(nearly, plan.probabilities, plan.placed)
        if np.array_equal(placed, plan.placed):
            continue
        less = descend(data, probabilities, _FINE * gap, _STEPS, placed, bound)
        if less.point.objective <= max(plan.point.objective, bound + gap * abs(bound)):
            return Spread(less.probabilities, placed, less.point, bound, plan.rounds)
    return plan


def _added(data: Traced, plan: Spread, above: np.ndarray, rest: float) -> np.ndarray:
    """The placement with more chunks for rows that are far above their cheapest choice: (R, m) bool.

    Args:
        data: the problem.
        plan: the placement, its reads and prices.
        above: (R,) s.
        rest: s, how much all rows together that get none may be above.
    """
    rows, point = data.rows, plan.point
    used = plan.placed & (plan.probabilities > 0)
    dearest = np.where(used, point.read, -np.inf).max(axis=1, keepdims=True)
    score = np.where(rows.allowed & ~plan.placed, dearest - point.read - point.store, -np.inf)
    order = np.argsort(-above, kind="stable")
    total = float(np.sum(above))
    enough = int(np.searchsorted(np.cumsum(above[order]), total - rest)) + 1
    placed = plan.placed.copy()
    room = rows.capacity - rows.chunks @ placed
    for i in order[:enough]:
        most = int(rows.hot[i]) if above[i] > _DOMINANT * total else 1
        for j in np.argsort(-score[i], kind="stable")[:most]:
            if score[i, j] > 0 and fits(rows, placed[i], i, j, room):
                placed[i, j] = True
                room[j] -= rows.chunks[i]
    return placed
