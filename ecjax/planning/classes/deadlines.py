"""The cheapest plan whose classes keep deadlines on their mean latency, or which class misses its own by how much.

What is cheapest is sum prices . stored + reading prices . probabilities, for given code lengths. Classes are looked at
in order: the latency of one that is late is lowered while those before it keep their deadlines (or stay as they are,
where they cannot); only when all keep theirs is the cost lowered. The plan is the best that was found; no bound proves
that there is none better.

Deadlines are on what ``measure`` says of a plan: a bound with one z per file, or an estimate. Plans are searched for
with L_k, one z per class, limited by D_k L_k / measure_k at the plan that the search starts from, again and again;
only plans that were measured count.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.planning import limits, placement
from ecjax.planning.classes.alternate import Alternation, ClassPlan, Point, Settings, Step
from ecjax.planning.classes.deadlines_exchange import exchange
from ecjax.planning.classes.deadlines_search import POWERS, Candidate, Search
from ecjax.planning.classes.model import ClassModel
from ecjax.planning.classes.scheduling import Goal
from ecjax.planning.classes.search import search_start
from ecjax.planning.classes.start import Start, start_plan
from ecjax.planning.problem import Problem, of_files, prices, reading_prices

_MEASURES = 4  # times that limits are set anew
_APART = 0.05  # relative: limits that differ by more are searched for anew
_SETTLED = 1e-4  # relative: a cost that falls less is the last
_OTHERS = 1e-3  # what classes count for which no division of the nodes is searched for, beside those for which one is
_PRICES = (0.03, 0.1, 0.3, 1.0, np.inf)  # of deadlines, where divisions of the nodes are searched for
_SPREADS = 5  # at the end
_SMALL_GAP = 1e-5
_MARGIN = 0.01  # relative: how far below its deadline a class is brought at first
_ROUNDING = 1e-9  # relative: a deadline that is missed by no more is kept


@dataclass(frozen=True)
class Deadlines:
    """What classes are promised.

    Attributes:
        most: (K,) s, infinite where nothing is promised.
        measure: mean latency of the classes in a plan, (K,) s, above 0; None for L_k.
    """

    most: np.ndarray
    measure: Callable[[Point], np.ndarray] | None = None


class Kept(NamedTuple):
    """A plan for deadlines."""

    plan: ClassPlan
    latency: np.ndarray  # (K,) s, as measured
    late: np.ndarray  # (K,) s, 0 where a deadline is kept; nan where there is none
    alone: np.ndarray  # (K,) s, of classes that are late: the least found with no other deadline; else nan

    @property
    def met(self) -> bool:
        """Whether all deadlines are kept."""
        return not np.any(self.late > 0)


def plan_deadlines(
    model: ClassModel,
    start: Start,
    settings: Settings,
    deadlines: Deadlines,
    advance: Callable[[Step], None] | None = None,
) -> Kept:
    """Plan for deadlines; where no start is stable it comes back with infinite latencies.

    Args:
        model: classes, queues and the problem.
        start: placement and reads.
        settings: importance says what is made of latency that costs nothing; theta, order and limits are left aside.
        deadlines: at least one is finite.
        advance: called with every step.
    """
    return _Planning(model, start, replace(settings, theta=0.0, limits=None), deadlines, advance).run()


def lateness(latency: np.ndarray, most: np.ndarray) -> np.ndarray:
    """How far above its deadline each class is, (K,) s: 0 where it is kept, nan where there is none.

    Args:
        latency: (K,) s.
        most: (K,) s, infinite where nothing is promised.
    """
    over = latency - most
    return np.where(np.isfinite(most), np.where(over > _ROUNDING * most, over, 0.0), np.nan)


def cheapest_start(problem: Problem, seed: int) -> Start:
    """The ``floor`` cheapest nodes of every row, as far as limits let them, with reads that the nodes can stand."""
    cheap = placement.ranks(placement.chunk_prices(problem)) < problem.floor.astype(jnp.int32)[:, None]
    stored = limits.within_limits(problem, placement.even(problem, cheap), cheap)
    reads = placement.proportional(problem, stored)
    return start_plan(problem, 0.0, "certified", seed, (reads, stored))


def _beyond_cheapest(problem: Problem) -> Problem:
    """The problem with prices above those of the ``floor`` cheapest nodes, which cost no more wherever reads go."""
    each = prices(problem) / problem.price_chunks[:, None]
    last = jnp.take_along_axis(jnp.sort(each, axis=1), problem.floor.astype(jnp.int32)[:, None] - 1, axis=1)
    nodes = replace(
        problem.nodes,
        cost_per_chunk=jnp.zeros_like(problem.nodes.cost_per_chunk),
        cost_per_byte=jnp.zeros_like(problem.nodes.cost_per_byte),
    )
    return replace(problem, nodes=nodes, surcharge=of_files(problem, jnp.maximum(each - last, 0.0)))


def _stable(point: Point) -> bool:
    """Whether every class has a finite latency."""
    return bool(np.isfinite(np.asarray(point.latency)).all())


class _Planning:
    """One run."""

    def __init__(
        self,
        model: ClassModel,
        start: Start,
        settings: Settings,
        deadlines: Deadlines,
        advance: Callable[[Step], None] | None,
    ) -> None:
        self.model, self.most, self.own_measure = model, np.asarray(deadlines.most, float), deadlines.measure
        self.run_of, self.start = Alternation(model, start, settings, advance), start
        self.divided: dict[bytes, Point | None] = {}  # starts by classes that they are for
        starts = [cheapest_start(model.problem, settings.seed)]
        if self._divisible:
            starts += self._divisions(start, starts[0])
        others = [Alternation(model, each, settings, None).point for each in starts]
        self.starts = [others[0], self.run_of.point, *others[1:]]

    @property
    def _divisible(self) -> bool:
        """Whether classes may divide the nodes among them."""
        return (
            self.model.queue == "weighted" and self.run_of.settings.weights is None and self.model.classes > 1
        )

    def _divisions(self, start: Start, cheap: Start) -> list[Start]:
        """Starts that divide the nodes among the classes as is good for the deadlines at several prices of them."""
        model, settings = self.model, self.run_of.settings
        # what all deadlines together are worth at a price of 1 is the cost
        cost = float(jnp.sum(jnp.where(cheap.stored, prices(model.problem), 0.0))) / model.problem.files.count
        parts = 1 / (self.most * np.asarray(model.share))
        model = replace(model, problem=_beyond_cheapest(model.problem))
        starts = []
        for price in _PRICES:
            finite = np.isfinite(price)
            importance = tuple((parts * (price * cost if finite else 1.0)).tolist())
            theta = 1.0 if finite else 0.0
            starts.append(search_start(model, start, importance, theta, settings.seed))
        return starts

    def _divided_for(self, classes: np.ndarray) -> Point | None:
        """A start that divides the nodes for some classes, (K,) bool; None without a stable one that keeps limits."""
        if not self._divisible:
            return None
        if classes.tobytes() not in self.divided:
            model, settings = self.model, self.run_of.settings
            parts = np.where(classes, 1 / (self.most * np.asarray(model.share)), np.inf)
            importance = np.where(classes, parts, _OTHERS * parts.min())
            start = search_start(model, self.start, tuple(importance.tolist()), 0.0, settings.seed)
            point = Alternation(model, start, settings, None).point
            good = _stable(point) and limits.keeps(model.problem, point.stored)
            self.divided[classes.tobytes()] = point if good else None
        return self.divided[classes.tobytes()]

    def run(self) -> Kept:
        """Keep deadlines class by class, then lower the cost."""
        run, nothing = self.run_of, np.full(self.model.classes, np.nan)
        run.note(0, "start", None, run.overall(), None)
        run.searching = True
        stable = [point for point in self.starts if _stable(point)]
        if not stable:
            return Kept(run.result(0, False), nothing, nothing, nothing)
        # limits are repaired greedily: the start that breaks some may be the cheapest, and is no plan
        stable = [point for point in stable if limits.keeps(self.model.problem, point.stored)] or stable
        stable = [Search(run, self._cost(), self._scaled(point, self.most)).settle(point) for point in stable]
        point = self._reach(min(stable, key=lambda point: self._lateness(self._measure(point))))
        late = self._late(self._measure(point))
        if np.any(late > 0):
            alone = nothing.copy()
            for number in np.flatnonzero(late > 0):
                latency = self._measure(self._alone(point, int(number)))[number]
                alone[number] = min(latency, self._measure(point)[number])
            settled = True
        else:
            alone = nothing
            point, settled = self._cheapen(point, stable)
        self._spread(point)
        latencies, iterations = self._measure(run.point), run.steps[-1].iteration
        return Kept(run.result(iterations, settled), latencies, self._late(latencies), alone)

    def _measure(self, point: Point) -> np.ndarray:
        return np.asarray(point.latency) if self.own_measure is None else self.own_measure(point)

    def _late(self, latencies: np.ndarray) -> np.ndarray:
        return lateness(latencies, self.most)

    def _lateness(self, latencies: np.ndarray) -> tuple[float, ...]:
        """Relative lateness in the order of the classes."""
        return tuple(np.maximum(latencies / self.most - 1, 0.0).tolist())

    def _cost(self) -> Goal:
        """What chunks and reads cost, in dollars per period."""
        problem = self.model.problem
        storing, reading = prices(problem), reading_prices(problem)
        nobody, everyone = jnp.zeros(self.model.classes), jnp.ones(problem.rows, bool)
        return Goal(
            nobody,
            nobody + jnp.inf,
            storing,
            jnp.zeros_like(storing) if reading is None else reading,
            everyone,
        )

    def _only(self, number: int) -> Goal:
        """The latency of one class."""
        alone = jnp.zeros(self.model.classes).at[number].set(1.0)
        free = jnp.zeros((self.model.problem.rows, self.model.problem.nodes.count))
        everyone = jnp.ones(self.model.problem.rows, bool)
        return Goal(alone, jnp.full(self.model.classes, jnp.inf), free, free, everyone)

    def _reach(self, point: Point) -> Point:
        """Lower the latency of classes that are late, one after the other."""
        most = self.most.copy()
        for number in np.flatnonzero(np.isfinite(most)):
            for _ in range(_MEASURES):
                latencies = self._measure(point)
                if latencies[number] <= most[number]:
                    break
                better = self._lower(point, most, int(number))
                if self._measure(better)[number] >= latencies[number] * (1 - _SETTLED):
                    break
                point = better
            # those that come next must not make it worse
            most[number] = max(most[number], self._measure(point)[number] * (1 + _ROUNDING))
        return point

    def _lower(self, point: Point, most: np.ndarray, number: int) -> Point:
        """The latency of a class lowered until it keeps its deadline, those before it kept as they must be."""
        before = np.arange(len(most)) < number
        scaled = self._scaled(point, most)
        target = scaled[number] * (1 - _MARGIN)
        search = Search(self.run_of, self._only(number), np.where(before, scaled, np.inf), target)
        search.meet(point)
        search.find()
        # no small step leads from one division of the nodes to another
        divided = self._divided_for((before | (np.arange(len(most)) == number)) & np.isfinite(self.most))
        if divided is not None and not search.finished:
            search.descend(divided)
        assert search.best is not None
        search.fall(search.best.point)
        lowered = search.best.point
        return lowered if np.all(self._measure(lowered)[before] <= most[before] * (1 + _ROUNDING)) else point

    def _scaled(self, point: Point, most: np.ndarray) -> np.ndarray:
        """Limits on L_k that stand for limits on what is measured, as the two are at a plan."""
        return most * (np.asarray(point.latency) / self._measure(point)) * (1 + _ROUNDING)

    def _alone(self, point: Point, number: int) -> Point:
        """The least latency that is found of a class, whatever becomes of the others."""
        search = Search(self.run_of, self._only(number), np.full(self.model.classes, np.inf))
        search.meet(point)
        search.find()
        divided = self._divided_for(np.arange(self.model.classes) == number)
        if divided is not None:
            search.descend(divided)
        assert search.best is not None
        search.fall(search.best.point)
        return search.best.point

    def _searched(self, goal: Goal, floor: float, limit: np.ndarray, starts: list[Point]) -> Search:
        """A search by prices, and ways from each of the starts to the limits."""
        search = Search(self.run_of, goal, limit, floor)
        for each in starts:
            search.meet(each)
        search.find()
        if search.best is not None:
            search.fall(search.best.point)
        for each in starts[1:]:
            risen = search.rise(each)
            for power in POWERS:
                search.fall(risen, power)
        if reading_prices(self.model.problem) is None:
            exchange(search)
        return search

    def _cheapen(self, point: Point, others: list[Point]) -> tuple[Point, bool]:
        """The cheapest plan found that keeps all deadlines, from one that does; and whether nothing more was found."""
        goal = self._cost()
        problem, bound = self.model.problem, np.isfinite(self.most)
        ascending = np.sort(np.asarray(placement.chunk_prices(problem)), axis=1)
        cheapest = np.arange(problem.nodes.count) < np.asarray(problem.floor)[:, None]
        floor = float(np.sum(ascending[cheapest])) * (1 + _ROUNDING)
        best = Candidate(float(goal.value(point.latency, point.probabilities, point.stored)), point)
        limit = self._scaled(point, self.most)
        search = self._searched(goal, floor, limit, [point, *others])
        for turn in range(_MEASURES):
            candidate = search.best
            if candidate is None:
                return best.point, False
            good = not np.any(self._late(self._measure(candidate.point)) > 0)
            fall = best.value - candidate.value
            best = candidate if good and fall > 0 else best
            if self.own_measure is None or best.value <= floor:
                return best.point, not search.exhausted
            # what was found to be too slow is so at these limits too
            before, limit = limit, self._scaled(candidate.point, self.most)
            limit = limit if good else limit * (1 - _MARGIN * (turn + 1) / _MEASURES)
            if np.any(np.abs(limit[bound] / before[bound] - 1) > _APART):
                search = self._searched(goal, floor, limit, [best.point, candidate.point, *others])
            elif good and fall <= _SETTLED * abs(best.value):
                return best.point, not search.exhausted
            else:
                search.limit(limit, candidate.point)
                search.fall(candidate.point)
        return best.point, False

    def _spread(self, point: Point) -> None:
        """Make the best of latency that costs nothing: shares and reads for the importance of the classes."""
        run, bound = self.run_of, np.isfinite(self.most)
        run.searching = False
        run.point = point
        most = np.maximum(self._measure(point), self.most)[bound] * (1 + _ROUNDING)
        iteration = run.steps[-1].iteration
        goal = run.together(jnp.where(bound, point.latency, jnp.inf))
        if reading_prices(self.model.problem) is None:
            run.weigh(iteration, None, goal)
            for _ in range(_SPREADS):
                run.spread(iteration, None, goal)
                if np.all(run.gaps <= _SMALL_GAP):
                    break
            if np.all(self._measure(run.point)[bound] <= most):
                return
            run.point = point
        # gaps of objectives that are not in force any more
        run.gaps, run.joint_gap = np.full_like(run.gaps, np.nan), np.nan
