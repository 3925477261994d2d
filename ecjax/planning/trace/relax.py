"""The relaxed problem: reads spread in any proportion. An accelerated projected gradient, and a bound on all plans.

J is convex in the plan, so that its tangent at any loads a0 is below it:

    objective >= sum_j w_j (J_j(a0) - <p_j, a0_j - base_j>) + sum_i min over choices of row i of what it costs at prices

for every plan, whatever its code lengths: the minimum is exact, row by row.
"""

from typing import NamedTuple

import numpy as np

from ecjax.planning.trace import loops
from ecjax.planning.trace.data import Traced
from ecjax.traffic.lindley import backward, forward

_LEAST_SHARE = 1e-3
_GROWTH = 1.5
_CHECK = 5  # iterations between two bounds


class Point(NamedTuple):
    """What the objective is at a plan, and what it costs to change it.

    Attributes:
        wait: s, the part of J: mean wait of a chunk, or what an order-statistic form bounds.
        tolls: s, the other part: slower service, dollars.
        read: (R, m) s, price of the row's reads at a node: derivative by pi.
        store: (R, m) s, price of keeping a chunk: derivative by s.
        work: (B, m) s.
        workload: (B, m) s.
    """

    wait: float
    tolls: float
    read: np.ndarray
    store: np.ndarray
    work: np.ndarray
    workload: np.ndarray

    @property
    def objective(self) -> float:
        """Wait and tolls, s."""
        return self.wait + self.tolls


class Relaxed(NamedTuple):
    """The end of a descent.

    Attributes:
        probabilities: (R, m).
        stored: (R, m), 0 to 1.
        point: there.
        bound: s, the best lower bound met.
        iterations: done.
    """

    probabilities: np.ndarray
    stored: np.ndarray
    point: Point
    bound: float
    iterations: int


def work_of(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Work arriving at every node in every bin, (B, m) s."""
    bins = data.bins
    rate = np.zeros((len(bins.edge) - 1, probabilities.shape[1]))
    rate += data.background
    loops.add_work(data.reads, data.slope, probabilities, rate)
    if len(data.writes.block):
        loops.add_work(data.writes, data.slope, stored, rate)
    return np.repeat(rate, np.diff(bins.edge), axis=0) * bins.width[:, None]


def wait_of(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> float:
    """Mean wait of a chunk by J, or what an order-statistic form bounds, s."""
    return wait_of_work(data, work_of(data, probabilities, stored))


def wait_of_work(data: Traced, work: np.ndarray) -> float:
    """The same of the work that arrives at the nodes in every bin, (B, m) s."""
    return data.offset + float(
        data.weight @ forward(data.bins.width, work, data.c, data.penalty, np.empty_like(work))
    )


def evaluate(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> Point:
    """Value and prices at a plan, or between plans.

    Args:
        data: the problem.
        probabilities: (R, m) pi.
        stored: (R, m) s, 0 to 1.
    """
    bins = data.bins
    work = work_of(data, probabilities, stored)
    workload, price = np.empty_like(work), np.empty_like(work)
    value = forward(bins.width, work, data.c, data.penalty, workload)
    backward(bins.width, workload, data.c, data.penalty, price)
    by_block = np.add.reduceat(price * bins.width[:, None], bins.edge[:-1], axis=0) * data.weight
    read, store = np.empty_like(probabilities), data.keep
    loops.price_rows(data.reads, data.slope, by_block, read)
    read += data.toll
    if len(data.writes.block):
        written = np.empty_like(probabilities)
        loops.price_rows(data.writes, data.slope, by_block, written)
        store = store + written
    tolls = float(np.sum(data.toll * probabilities) + np.sum(data.keep * stored))
    return Point(data.offset + float(data.weight @ value), tolls, read, store, work, workload)


def tangent(
    data: Traced, probabilities: np.ndarray, stored: np.ndarray, point: Point
) -> tuple[float, np.ndarray, np.ndarray]:
    """Lower bound by the tangent at a point, s; the cheapest choices (R, m) there; and how far each row is above (R,).

    Infinite where a row has no choice.
    """
    kinds = np.empty(point.read.shape, np.int8)
    least = np.empty(data.number)
    loops.cheapest(data.rows, point.read + point.store, point.store, kinds, least)
    costs = np.sum(point.read * probabilities + point.store * stored, axis=1)
    above = costs - least
    return point.objective - float(np.sum(above)), kinds, above


def stored_with(data: Traced, probabilities: np.ndarray) -> np.ndarray:
    """Chunks for given reads, 0 to 1: those read, and cold ones for the durability floor, spread over all nodes."""
    rows = data.rows
    extra = (rows.length - rows.hot).astype(float)
    free = rows.allowed.sum(axis=1) - rows.hot
    part = np.where(free > 0, extra / np.maximum(free, 1), 0.0)[:, None]
    return np.where(rows.allowed, part + (1 - part) * probabilities, 0.0)


def descend(
    data: Traced,
    start: np.ndarray,
    gap: float,
    most: int,
    placed: np.ndarray | None = None,
    bound: float = -np.inf,
) -> Relaxed:
    """Reads of least objective: of all spreads, or over the chunks of a placement.

    Args:
        data: the problem.
        start: (R, m) probabilities.
        gap: relative distance of objective and bound that ends it.
        most: iterations.
        placed: (R, m) bool chunks, or None: of all spreads.
        bound: s, known lower bound.
    """
    rows = data.rows
    mask = rows.allowed if placed is None else placed
    per_site = rows.per_site if placed is None else 0
    fixed = None if placed is None else placed.astype(float)
    scale = _scale(data)

    def stored_of(point: np.ndarray) -> np.ndarray:
        return stored_with(data, point) if fixed is None else fixed

    def slope_of(at: Point) -> np.ndarray:
        if fixed is not None:
            return at.read
        free = rows.allowed.sum(axis=1) - rows.hot
        part = np.where(free > 0, (rows.length - rows.hot) / np.maximum(free, 1), 0.0)[:, None]
        return at.read + (1 - part) * at.store

    def projected(values: np.ndarray) -> np.ndarray:
        result = np.empty_like(values)
        loops.project(values, rows, mask, per_site, result)
        return result

    best = projected(start)
    at_best = evaluate(data, best, stored_of(best))
    ahead, at_ahead, momentum = best, at_best, 1.0
    step = _first_step(slope_of(at_best), scale)
    iteration = 0
    for iteration in range(1, most + 1):
        slope = slope_of(at_ahead)
        while True:
            trial = projected(ahead - step * slope / scale)
            move = trial - ahead
            at_trial = evaluate(data, trial, stored_of(trial))
            linear = float(np.sum(slope * move))
            square = float(np.sum(scale * move * move))
            limit = at_ahead.objective + linear + 0.5 * square / step
            if at_trial.objective <= limit + 1e-12 * abs(limit) or square == 0.0:
                break
            step *= 0.5
        if fixed is None and (iteration % _CHECK == 0 or iteration == most):
            bound = max(bound, tangent(data, trial, stored_of(trial), at_trial)[0])
        if at_trial.objective > at_best.objective:
            if momentum == 1.0:
                break
            ahead, at_ahead, momentum = best, at_best, 1.0
            continue
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        change = (momentum - 1) / following * (trial - best)
        settled = at_best.objective - at_trial.objective
        best, at_best, momentum = trial, at_trial, following
        ahead = best + change
        at_ahead = at_best if momentum == 1.0 else evaluate(data, ahead, stored_of(ahead))
        step *= _GROWTH
        if np.isfinite(bound) and at_best.objective - bound <= gap * abs(bound):
            break
        if fixed is not None and iteration > _CHECK and settled <= 1e-2 * gap * at_best.objective:
            break
    stored = stored_of(best)
    if fixed is None:
        bound = max(bound, tangent(data, best, stored, at_best)[0])
    return Relaxed(best, stored, at_best, bound, iteration)


def _scale(data: Traced) -> np.ndarray:
    """Inverse steps: the share of each row in all work, (R, 1)."""
    counts = data.reads
    mean = data.slope.mean(axis=1)
    lengths = np.add.reduceat(data.bins.width, data.bins.edge[:-1])
    work = (mean[0] * counts.rate + mean[1] * counts.bytes) * lengths[counts.block]
    row = np.repeat(np.arange(data.number), np.diff(counts.start))
    share = np.bincount(row, work, data.number) / max(work.sum(), 1e-300)
    return np.maximum(share, _LEAST_SHARE / data.number)[:, None]


def _first_step(slope: np.ndarray, scale: np.ndarray) -> float:
    spread = (slope.max(axis=1) - slope.min(axis=1)) / scale[:, 0]
    return 0.1 / max(float(np.sum(spread * scale[:, 0]) / scale.sum()), 1e-300)
