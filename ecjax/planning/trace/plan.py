"""A plan for the arrivals of a log, a bound on all plans, and whether placement can help against its bursts."""

from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.trace.data import Traced, accesses_of_rows, merged_bins
from ecjax.planning.trace.relax import Relaxed, descend, stored_with, wait_of, wait_of_work, work_of
from ecjax.planning.trace.rounding import round_off
from ecjax.planning.trace.spreading import spread_out

_STEPS = 600
_BOUND = 0.2  # part of the gap to which the relaxation is solved


class TracePlan(NamedTuple):
    """A plan.

    Attributes:
        probabilities: (R, m).
        stored: (R, m) bool.
        objective: s, mean wait by J, or an order-statistic form, slower service and theta times dollars.
        wait: s, mean wait of a chunk by J.
        bound: s, no plan has a smaller objective.
        whole_wait: s, wait of the best plan found in which every read of a row uses the same k nodes.
        blind_wait: s, wait of such a plan that was made for mean rates, and sees no bursts.
        uneven: the ratio of that to the wait of spread reads if all files came and went together.
        spread_wait: s, wait where the reads of all rows spread over all nodes: the least possible.
        steady_wait: s, the same if all arrived at constant rates.
        least_wait: s, ``spread_wait`` where chunks beyond need that are written do not count among those that waits are
            divided by, as in the objective: for plans with other numbers of chunks.
        iterations: of descents, and rounds of chunks added.
    """

    probabilities: np.ndarray
    stored: np.ndarray
    objective: float
    wait: float
    bound: float
    whole_wait: float
    blind_wait: float
    uneven: float
    spread_wait: float
    steady_wait: float
    least_wait: float
    iterations: int


def relaxation(data: Traced, gap: float, start: np.ndarray | None = None) -> Relaxed:
    """Reads in any proportion, storage in parts of chunks: the bound, and what plans are rounded from.

    Args:
        data: the problem.
        gap: relative distance to the bound that plans may have.
        start: (R, m) probabilities to start from, as those of the same log at another theta; None: nearly even.
    """
    return descend(data, _uneven(data) if start is None else start, _BOUND * gap, _STEPS)


def plan_trace(
    data: Traced, gap: float, start: np.ndarray | None = None, waits: Traced | None = None
) -> TracePlan:
    """A plan of least objective, with a proof of how near it is to the best one.

    Args:
        data: the problem.
        gap: (objective - bound) / bound that is good enough.
        start: (R, m) probabilities of a relaxation to start from; None: nearly even.
        waits: the same problem with the mean wait as its objective, which waits are taken of; None: it has that.
    """
    waits = data if waits is None else waits
    relaxed = relaxation(data, gap, start)
    kinds = round_off(data, relaxed.probabilities, relaxed.stored)
    whole, placed = (kinds == HOT).astype(float), kinds != NONE
    spread = spread_out(data, whole, placed, relaxed.bound, gap)
    even, blind = even_spread(waits), _blind(waits, relaxed)
    stored = spread.placed.astype(float)
    wait = mean_wait_of(waits, spread.probabilities, stored)
    even_wait, relaxed_wait = (
        wait_of(waits, *each)
        for each in ((even, stored_with(waits, even)), (relaxed.probabilities, relaxed.stored))
    )
    return TracePlan(
        probabilities=spread.probabilities,
        stored=spread.placed,
        objective=spread.point.objective,
        wait=wait,
        bound=spread.bound,
        whole_wait=mean_wait_of(waits, whole, placed.astype(float)),
        blind_wait=blind[0],
        uneven=blind[1],
        spread_wait=min(even_wait, relaxed_wait, wait),
        steady_wait=_steady_wait(waits, relaxed),
        least_wait=min(even_wait, relaxed_wait, wait_of(waits, spread.probabilities, stored)),
        iterations=relaxed.iterations + spread.rounds,
    )


def mean_wait_of(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> float:
    """Mean wait of a chunk by J where writes bring a chunk to all that are stored, s.

    The objective divides by the chunks of the least code lengths, so that it is convex in the plan.

    Args:
        data: with the mean wait as its objective.
        probabilities: (R, m).
        stored: (R, m), 0 to 1.
    """
    more = accesses_of_rows(data.writes, data.bins) @ (stored.sum(axis=1) - data.rows.length)
    return wait_of(data, probabilities, stored) * data.chunks / (data.chunks + float(more))


def even_spread(data: Traced) -> np.ndarray:
    """The same share of a row's reads on every allowed node: (R, m)."""
    rows = data.rows
    return np.where(rows.allowed, rows.hot[:, None] / rows.allowed.sum(axis=1, keepdims=True), 0.0)


def _uneven(data: Traced) -> np.ndarray:
    """The even spread, shifted a little from row to row so that like rows do not stay alike: (R, m)."""
    draws = np.random.default_rng(0).uniform(-0.1, 0.1, data.keep.shape)
    return np.where(data.rows.allowed, even_spread(data) + draws, 0.0)


def _blind(data: Traced, relaxed: Relaxed) -> tuple[float, float]:
    """Wait of whole choices that balance the work of the whole log as if it arrived at constant rates, s; and by how
    much it would be above that of spread reads if all files came and went together: what few or unequal files cannot
    balance, which bursts beyond capacity multiply.
    """
    even, constant = even_spread(data), merged_bins(data, 1)
    cold = stored_with(data, even)
    kinds = round_off(constant, even, cold)
    whole, placed = (kinds == HOT).astype(float), (kinds != NONE).astype(float)
    least = min(_together_wait(data, even, cold), _together_wait(data, relaxed.probabilities, relaxed.stored))
    uneven = _together_wait(data, whole, placed) / least if least > 0 else 1.0
    return mean_wait_of(data, whole, placed), uneven


def _together_wait(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> float:
    """Wait if every node had its part of the work of the log in every bin, s."""
    work = work_of(data, probabilities, stored)
    by_bin = work.sum(axis=1)
    return wait_of_work(data, np.outer(by_bin / by_bin.sum(), work.sum(axis=0)))


def _steady_wait(data: Traced, relaxed: Relaxed) -> float:
    """Wait at constant rates, s: c rho / (1 - rho) of the work at every node."""
    work, length = relaxed.point.work, data.bins.width.sum()
    load = work.sum(axis=0) / length
    wait = np.where(load < 1, data.c * load / np.where(load < 1, 1 - load, 1.0), np.inf)
    return float(np.sum(data.weight * load * length * np.where(load > 0, wait, 0.0)))
