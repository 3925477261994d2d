"""A placement improved for failures: a local search over single chunks.

Reads are rescheduled in every scenario, so that what all scenarios share is the placement. The search guarantees one
thing: the plan that comes back is no worse than the one that it starts from. There is no bound on what is left.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.planning import moves
from ecjax.planning.descent import Stopping
from ecjax.planning.moves import Limits
from ecjax.planning.problem import Problem, node_work, prices, reading_prices
from ecjax.planning.rescheduling import load_norm, nearest, reschedule
from ecjax.planning.scenarios import (
    Outcomes,
    disturbed,
    evaluate_scenarios,
    in_batches,
    scenarios_at_once,
    unconstrained,
)
from ecjax.planning.slopes import latency_slopes
from ecjax.programs import program
from ecjax.progress import detail

WEIGHTS = ("mean", "worst")

_TOLERANCE = 1e-7  # relative; less is no improvement but the rounding of a descent
_FIRST = 8  # the first trial moves a chunk of one row in so many
_FEWER = 4  # after a failure so many times fewer
_NORM = 16.0
# Scenarios within about this relative distance of the slowest have a say in where "worst" moves chunks.
_NEAR_WORST = 0.01
_TRIAL = Stopping(eps=1e-6, max_iterations=50)
_MOST_DESCENTS = 20


@dataclass(frozen=True)
class Robust:
    """What the search found; NumPy arrays."""

    probabilities: np.ndarray  # (R, m), for no node down
    stored: np.ndarray  # (R, m) bool
    before: Outcomes
    after: Outcomes
    objective_before: (
        float  # s, weighted latency of the scenarios + theta * mean cost per file; inf where one is
    )
    objective_after: float  # s
    chunks_changed: int  # chunks that are where none was, or gone without another, over all files
    trials: int


class _Lanes(NamedTuple):
    """The scenarios and, last, no node down."""

    points: jax.Array  # (S, R, m) probabilities in every scenario
    by_probability: jax.Array  # (S, R, m)
    by_stored: jax.Array | None  # (S, R, m)
    latency: (
        jax.Array
    )  # (S,) one z for all files; inf where a node is overloaded, nan where no read is served
    max_load: jax.Array  # (S,)
    converged: jax.Array  # (S,) bool


class _Value(NamedTuple):
    """Compared in this order: first no node is overloaded in any scenario, then the objective."""

    overload: float  # sum of the largest loads of the scenarios with an overloaded node
    objective: float  # of the other scenarios

    @property
    def reported(self) -> float:
        return np.inf if self.overload else self.objective

    def below(self, other: "_Value") -> bool:
        if not np.isclose(self.overload, other.overload, rtol=_TOLERANCE, atol=0.0):
            return self.overload < other.overload
        return self.objective < other.objective - _TOLERANCE * abs(other.objective)


def robust_improve(
    problem: Problem,
    probabilities: ArrayLike,
    stored: ArrayLike,
    down: ArrayLike,
    theta: float,
    weight: str = "mean",
    trials: int = 30,
    rebuild: ArrayLike | None = None,
    memory_bytes: float = 1e9,
) -> Robust:
    """Move, add and drop chunks while that lowers weight(latency of the scenarios) + theta * cost / files.

    The latency of a scenario is that of the reads that it serves, rescheduled to the least bound with one z for all
    files. Every trial takes the moves that promise most to first order (``moves.best_moves``), evaluates all scenarios
    with them, and keeps them if the objective falls; else fewer are tried, down to one by one. No file becomes
    unavailable in a scenario in which it is available.

    Constraints of the problem (nodes allowed, chunks per site, capacity) bind every move; what breaks them at the
    start stays. Reads that cost something are charged as they go without failures.

    Where a scenario overloads a node even after rescheduling, the search first brings down those loads.

    Args:
        problem: the problem.
        probabilities: (R, m) of the plan to start from.
        stored: (R, m) bool.
        down: (S, m) bool; a row without any node down counts as a scenario like all others.
        theta: s per dollar of mean cost per file.
        weight: "mean" over the scenarios that serve reads, or the "worst" of them.
        trials: how many sets of moves are evaluated, at most.
        rebuild: (R,) chunks that rebuild a file; ``problem.k`` where absent.
        memory_bytes: so many scenarios are computed at once as fit in here.

    Raises:
        ValueError: an unknown weight.
    """
    if weight not in WEIGHTS:
        raise ValueError(f"weight: found {weight!r}; allowed: {', '.join(WEIGHTS)}")
    start, before_stored = np.asarray(probabilities), np.asarray(stored, bool)
    scenarios = np.asarray(down, bool)
    # one more without failures, which only tells how the plan is read from
    many = np.concatenate([scenarios, np.zeros_like(scenarios[:1])])
    width = scenarios_at_once(problem, len(many), memory_bytes)
    price = theta / problem.files.count * np.asarray(prices(problem))
    chunks = np.asarray(problem.price_chunks)
    k, floor, limits = np.asarray(problem.k), np.asarray(problem.floor), _limits(problem)
    least = k if rebuild is None else np.asarray(rebuild, k.dtype)
    plain, toll = unconstrained(problem), reading_prices(problem)
    if toll is not None:
        toll = theta / problem.files.count * toll

    def charged(probabilities: np.ndarray, placement: np.ndarray) -> float:
        """Cost in the objective, s."""
        reads = 0.0 if toll is None else np.sum(np.asarray(toll) * probabilities)
        return float(np.sum(price[placement]) + reads)

    def settled(points: jax.Array, placement: np.ndarray, only_last: bool) -> _Lanes:
        for _ in range(_MOST_DESCENTS):
            lanes = _lanes(plain, points, placement, many, toll, least, width)
            points = lanes.points
            if lanes.converged[-1] and (only_last or np.all(lanes.converged)):
                break
        return lanes

    def value(lanes: _Lanes, placement: np.ndarray) -> _Value:
        cost = charged(np.asarray(lanes.points[-1]), placement)
        return _weighed(lanes.latency[:-1], lanes.max_load[:-1], weight, cost)

    def value_of(outcomes: Outcomes, probabilities: np.ndarray, placement: np.ndarray) -> _Value:
        cost = charged(probabilities, placement)
        return _weighed(outcomes.latency_shared_z, outcomes.max_load, weight, cost)

    def outcomes_of(points: np.ndarray, placement: np.ndarray) -> Outcomes:
        return evaluate_scenarios(
            problem, points, placement, scenarios, rebuild=least, memory_bytes=memory_bytes
        )

    # else the first trials would be credited with what a longer descent finds
    same = jnp.broadcast_to(jnp.asarray(start), (len(many), *start.shape))
    current, lanes = before_stored, settled(same, before_stored, False)
    best = value(lanes, current)
    size = -(-len(start) // _FIRST)
    tried, best_moves = 0, None
    while tried < trials:
        if best_moves is None:
            move_prices = _prices(lanes, weight, price, ~scenarios)
            best_moves = moves.best_moves(move_prices, current, k, floor, limits, least)
            order = np.argsort(-best_moves.gain, kind="stable")
            order = order[best_moves.gain[order] > 0]
        rows = order[:size]
        if not rows.size:
            break
        candidate = moves.apply(best_moves, rows, current, chunks, limits)
        if np.array_equal(candidate, current):
            order = order[len(rows) :]  # nodes without room
            continue
        tried += 1
        detail(f"robust: trial {tried} of {trials}")
        trial = _lanes(plain, lanes.points, candidate, many, toll, least, width)
        worth = value(trial, candidate)
        if worth.below(best):
            current, lanes, best, best_moves = candidate, trial, worth, None
            size = min(2 * size, len(start))
        elif len(rows) == 1:
            order = order[1:]  # the estimate was wrong for this one: the next
        else:
            size = max(1, len(rows) // _FEWER)
    before = outcomes_of(start, before_stored)
    first = value_of(before, start, before_stored)
    unchanged = Robust(start, before_stored, before, before, first.reported, first.reported, 0, tried)
    if np.array_equal(current, before_stored):
        return unchanged
    point = np.asarray(settled(lanes.points, current, True).points[-1])
    after = outcomes_of(point, current)
    last = value_of(after, point, current)
    if not last.below(first):
        return unchanged
    changed = np.maximum((current & ~before_stored).sum(axis=1), (before_stored & ~current).sum(axis=1))
    return Robust(point, current, before, after, first.reported, last.reported, int(changed @ chunks), tried)


def _prices(lanes: _Lanes, weight: str, price: np.ndarray, up: np.ndarray) -> moves.Prices:
    """Derivatives by reads and chunks of what the search lowers next."""
    share = _shares(lanes, weight)
    read = np.asarray(lanes.by_probability)[:-1] * share[:, None, None]
    storing = price
    if lanes.by_stored is not None:
        storing = price + np.einsum("sij,s,sj->ij", np.asarray(lanes.by_stored)[:-1], share, up)
    return moves.Prices(read, storing, up)


def _limits(problem: Problem) -> Limits:
    """The constraints of the problem as host arrays, sites numbered from 0."""

    def host(values: jax.Array | None) -> np.ndarray | None:
        return None if values is None else np.asarray(values)

    site = None if problem.site is None else np.unique(np.asarray(problem.site), return_inverse=True)[1]
    return Limits(host(problem.allowed), site, problem.per_site, host(problem.capacity))


def _shares(lanes: _Lanes, weight: str) -> np.ndarray:
    """Weight of every scenario in the first-order estimates; only of overloaded ones where there are any."""
    latency = np.asarray(lanes.latency)[:-1]
    served, overloaded = ~np.isnan(latency), np.isinf(latency)
    if overloaded.any():
        return overloaded.astype(float)
    if weight == "mean" or not served.any():
        return served / max(served.sum(), 1)
    top = latency[served].max()
    near = np.where(served, np.exp((np.where(served, latency, 0.0) / top - 1) / _NEAR_WORST), 0.0)
    return near / near.sum()


def _weighed(latency, max_load, weight: str, cost: float) -> _Value:
    """Value of a plan from the latencies of the scenarios (nan where no read is served) and their largest loads."""
    values = np.asarray(latency)
    overloaded = np.isinf(values)
    finite = values[np.isfinite(values)]
    overload = float(np.sum(np.asarray(max_load)[overloaded]))
    if not finite.size:
        return _Value(overload, cost)
    return _Value(overload, float(finite.mean() if weight == "mean" else finite.max()) + cost)


def _lane(
    problem: Problem,
    stored: jax.Array,
    start: jax.Array,
    down: jax.Array,
    toll: jax.Array | None,
    rebuild: jax.Array,
) -> _Lanes:
    served_problem, survivors = disturbed(problem, stored, down, rebuild)
    final = reschedule(served_problem, nearest(served_problem, start, survivors), survivors, _TRIAL, toll)
    mask = survivors.astype(start.dtype)
    slopes = latency_slopes(served_problem, final.point, mask, final.aux)
    by_load = jax.grad(load_norm, argnums=(1, 2))(served_problem, final.point, mask, _NORM)
    overloaded = jnp.isinf(slopes.value)
    load = node_work(served_problem, final.point, mask)[0]
    served = served_problem.share.sum() > 0
    return _Lanes(
        points=final.point,
        by_probability=jnp.where(overloaded, by_load[0], slopes.by_probability),
        by_stored=None if slopes.by_stored is None else jnp.where(overloaded, by_load[1], slopes.by_stored),
        latency=jnp.where(served, slopes.value, jnp.nan),
        max_load=jnp.max(jnp.where(down, 0.0, load)),
        converged=final.converged | overloaded,
    )


@partial(program, quick=True, static_argnums=6)
def _lanes(problem, starts, stored, down, toll, rebuild, width) -> _Lanes:
    """All scenarios, each from its own start; the last one pays the toll."""

    def one(each: tuple[jax.Array, jax.Array, jax.Array]) -> _Lanes:
        start, without, pays = each
        return _lane(problem, stored, start, without, None if toll is None else pays * toll, rebuild)

    pays = (jnp.arange(len(down)) == len(down) - 1).astype(starts.dtype)
    return in_batches(one, (starts, down, pays), width)
