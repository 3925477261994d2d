"""Algorithms JLOP and JLWO of the differentiated-latency paper (Fig. 3 and 4), for any number of classes.

Steps in turn, each of which never raises the objective in force: shares of the nodes (weighted queues), the spread of
reads (convex for fixed z and placement), placement by matching, z. The objective in force is

- ``lexicographic``: class after class, share_k L_k + theta cost / r, where a class may not raise the latency of one
  before it by more than eps beyond the least that that class has reached;
- ``joint``: sum_k C_k share_k L_k + theta cost / r over all classes at once,

with share_k L_k = T_k, the part of class k in the mean latency of all reads ((16) of the paper with its rates).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.classes.certificate import scheduling_gap
from ecjax.planning.classes.matching import place
from ecjax.planning.classes.model import (
    ClassModel,
    class_work,
    even_weights,
    kind_reads,
    other_work,
    state,
    tolls,
)
from ecjax.planning.classes.relief import Start, relieved
from ecjax.planning.classes.scheduling import STOPPING, Fixed, Goal, schedule
from ecjax.planning.classes.together import Call, alone
from ecjax.planning.classes.weights import weigh
from ecjax.planning.descent import Stopping
from ecjax.programs import program

# after the last placement reads are spread until no more than this can be gained class by class, or so often
_SMALL_GAP = 1e-5
_LITTLE = 0.01  # or until a round gains no more than this part of eps
_MOST_ROUNDS = 10


@dataclass(frozen=True)
class Settings:
    """How classes are planned.

    Attributes:
        order: "lexicographic" or "joint"; weighted queues are planned jointly.
        importance: (K,) C_k, what a second of class k counts.
        theta: s per dollar of mean cost per file.
        eps: an outer iteration that changes no objective in force relatively by more than this is the last; also how
            much a class may raise the latency of one before it.
        max_iterations: limit of outer iterations.
        weights: (K,) or (K, m) shares that stay fixed; None where they are planned.
        placement: (R,) bool, rows whose chunks may move; None for all.
        limits: (K,) s that L_k should not exceed; None for none.
        seed: of the order in which rows are placed.
        stopping: of the descents on probabilities.
    """

    order: str
    importance: tuple[float, ...]
    theta: float = 0.0
    eps: float = 0.01
    max_iterations: int = 175
    weights: np.ndarray | None = None
    placement: np.ndarray | None = None
    limits: tuple[float, ...] | None = None
    seed: int = 0
    stopping: Stopping = STOPPING


class Step(NamedTuple):
    """One step of the alternation."""

    iteration: int
    name: str  # start, weights, scheduling or placement
    in_force: int | None  # class whose objective is in force; None where all are
    objective: (
        float | None
    )  # s, the objective in force after the step; None while prices of limits are searched
    latency: np.ndarray  # (K,) s, L_k after the step
    gap: float | None  # proven: how much better reads could be spread, relative to the objective in force


class ClassPlan(NamedTuple):
    """A plan for service classes."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool
    weights: jax.Array  # (K, m); of no meaning under priority
    latency: jax.Array  # (K,) s, L_k with one z per class; infinite where some class is not stable
    z: jax.Array  # (K,) s
    objective: float  # s, sum_k C_k T_k + theta cost / r, in whatever order classes were planned
    gaps: (
        np.ndarray
    )  # (K,) proven: how much better the reads of each class could be spread; nan without a proof
    joint_gap: float  # the same for all classes at once
    steps: list[Step]
    iterations: int
    converged: bool


def plan_classes(
    model: ClassModel,
    start: Start,
    settings: Settings,
    advance: Callable[[Step], None] | None = None,
    call: Call = alone,
) -> ClassPlan:
    """Plan by alternation from a start; where the start is not stable it comes back with infinite latencies.

    Args:
        model: classes, queues and the problem.
        start: placement and reads.
        settings: objective and stopping.
        advance: called with every step.
        call: runs the steps.
    """
    return Alternation(model, start, settings, advance, call).run()


class Point(NamedTuple):
    """A plan on the way."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool
    weights: jax.Array  # (K, m)
    latency: jax.Array  # (K,) s
    z: jax.Array  # (K,) s


class Alternation:
    """The state of one run."""

    def __init__(
        self,
        model: ClassModel,
        start: Start,
        settings: Settings,
        advance: Callable[[Step], None] | None,
        call: Call = alone,
    ) -> None:
        self.model, self.settings, self.advance, self.call = model, settings, advance, call
        nodes, classes = model.problem.nodes.count, model.classes
        shares = None
        if model.queue == "weighted" and settings.weights is not None:
            shares = np.asarray(settings.weights, float)
            shares = np.broadcast_to(shares[:, None] if shares.ndim == 1 else shares, (classes, nodes))
            start = relieved(model.problem, start, np.asarray(model.row_class), shares)
        self.reads, self.stored = jnp.asarray(start.probabilities, float), jnp.asarray(start.stored)
        self.other = other_work(model, self.stored)
        even = even_weights(model, class_work(model, kind_reads(model, self.reads), self.other))
        self.weights = even if shares is None else jnp.asarray(shares)
        self.storing, self.reading = tolls(model, settings.theta)
        self.importance = jnp.asarray(settings.importance, float)
        limits = np.full(classes, np.inf) if settings.limits is None else np.asarray(settings.limits, float)
        self.limits = jnp.asarray(limits)
        self.steps: list[Step] = []
        self.state = call(_STATE, model, self.reads, self.other, self.weights, jnp.zeros(classes))
        self.key = jax.random.key(settings.seed)
        self.gaps, self.joint_gap = np.full(classes, np.nan), np.nan
        self.least = jnp.full(classes, jnp.inf)  # L_k that each class has reached
        # prices of limits: objectives are in dollars, or of one class, and others at every step
        self.searching = False

    @property
    def point(self) -> Point:
        """Where the run is; it goes on from any other point that is put here."""
        return Point(self.reads, self.stored, self.weights, self.state.latency, self.state.z)

    @point.setter
    def point(self, point: Point) -> None:
        self.reads, self.stored, self.weights = point.probabilities, point.stored, point.weights
        self.other = other_work(self.model, self.stored)
        self.state = self.state._replace(latency=point.latency, z=point.z)

    def move_to(self, plan: "ClassPlan") -> None:
        """Go on from a plan, which may have been made at other rates, prices or importances."""
        self.point = self.reached(plan, self.call)

    def reached(self, plan: "ClassPlan", call: Call) -> Point:
        """Such a plan, as it is here."""
        other = other_work(self.model, plan.stored)
        at = call(_STATE, self.model, plan.probabilities, other, plan.weights, plan.z)
        return Point(plan.probabilities, plan.stored, plan.weights, at.latency, at.z)

    def worth(self, point: Point) -> float:
        """sum_k C_k T_k + theta cost / r of a point, s."""
        goal = self.together(self.limits)
        return float(goal.value(point.latency, point.probabilities, point.stored))

    def goals(self) -> Iterator[tuple[int | None, Goal]]:
        """The objectives in force, one after the other."""
        model, unlimited = self.model, jnp.full(self.model.classes, jnp.inf)
        if self.settings.order == "joint":
            yield None, self.together(self.limits)
            return
        for number in range(model.classes):
            alone = jnp.arange(model.classes) == number
            before = jnp.arange(model.classes) < number
            guarded = jnp.where(before, self.least * (1 + self.settings.eps), unlimited)
            yield (
                number,
                Goal(
                    jnp.where(alone, model.share, 0.0),
                    jnp.minimum(guarded, self.limits),
                    self.storing,
                    self.reading,
                    model.row_class == number,
                ),
            )
            self.least = jnp.where(alone, jnp.minimum(self.least, self.state.latency), self.least)

    def run(self) -> ClassPlan:
        """Alternate until nothing changes any more."""
        settings = self.settings
        converged, iteration = False, 0
        self.note(0, "start", None, self.overall(), None)
        if not np.isfinite(np.asarray(self.state.latency)).all():
            return self.result(0, False)
        earlier: dict[int | None, float] = {}
        while iteration < settings.max_iterations and not converged:
            iteration += 1
            reached: dict[int | None, float] = {}
            for number, goal in self.goals():
                self.improve(iteration, number, goal)
                reached[number] = self.value(goal)
            converged = all(
                number in earlier and abs(earlier[number] - value) <= settings.eps * abs(value)
                for number, value in reached.items()
            )
            earlier = reached
        self.finish(iteration)
        return self.result(iteration, converged)

    def finish(self, iteration: int) -> None:
        """What all classes gain from, and a proof of how well the reads are spread.

        A class sees the residual work of those after it, which only they can move out of its way: planned one by one
        they do not, so at the end all move at once, in one round, and none may come out slower.
        """
        goal = self.together(self.limits)
        if self.settings.order == "lexicographic":
            self.improve(iteration, None, self.together(self.state.latency))
            goal = self.together(self.state.latency)
        value, rounds, settled = self.value(goal), 0, False
        while not settled and rounds < _MOST_ROUNDS:
            self.spread(iteration, None, goal)
            fall, value, rounds = value - self.value(goal), self.value(goal), rounds + 1
            settled = fall <= _LITTLE * self.settings.eps * value or bool(np.all(self.gaps <= _SMALL_GAP))

    def together(self, limit: jax.Array) -> Goal:
        """The objective of all classes, sum_k C_k T_k + theta cost / r, with their latencies limited."""
        everyone = jnp.ones(self.model.problem.rows, bool)
        return Goal(self.importance * self.model.share, limit, self.storing, self.reading, everyone)

    def spread(self, iteration: int, number: int | None, goal: Goal) -> None:
        """Spread the reads, and prove how far from the best spread they are."""
        model = self.model
        fixed = Fixed(self.stored, self.other, self.weights)
        stopping = self.settings.stopping
        scheduled = self.call(schedule, model, goal, fixed, self.reads, self.state.z, stopping=stopping)
        self.reads = scheduled.probabilities
        self.state = self.state._replace(latency=scheduled.latency, z=scheduled.z)
        reached = self.reads, self.state.z, scheduled.multiplier
        gaps = self.call(scheduling_gap, model, goal, fixed, *reached)
        self.gaps = np.array(gaps.by_class)
        self.joint_gap = float(gaps.joint)
        gap = self.joint_gap if number is None else float(self.gaps[number])
        self.note(iteration, "scheduling", number, self.value(goal), gap if np.isfinite(gap) else None)

    def weigh(self, iteration: int, number: int | None, goal: Goal) -> None:
        """Plan the shares of the nodes, where queues have some that may change."""
        model = self.model
        if model.queue != "weighted" or self.settings.weights is not None:
            return
        reads = kind_reads(model, self.reads)
        at = self.other, self.weights, self.state.z
        shares = self.call(weigh, model, goal.coefficient, goal.limit, reads, *at)
        self.weights = shares.weights
        self.state = self.state._replace(latency=shares.latency, z=shares.z)
        self.note(iteration, "weights", number, self.value(goal), None)

    def improve(self, iteration: int, number: int | None, goal: Goal) -> None:
        """Weights, reads, placement and z, one after the other."""
        model, settings = self.model, self.settings
        self.weigh(iteration, number, goal)
        self.spread(iteration, number, goal)
        if settings.placement is None or settings.placement.any():
            movable = goal.movable if settings.placement is None else goal.movable & settings.placement
            moving = Goal(goal.coefficient, goal.limit, goal.storing, goal.reading, movable)
            self.key, key = jax.random.split(self.key)
            fixed = Fixed(self.stored, self.other, self.weights)
            placed = self.call(place, model, moving, fixed, self.reads, self.state.z, key)
            self.reads, self.stored = placed.probabilities, placed.stored
            self.other = other_work(model, self.stored)
            self.state = self.call(_STATE, model, self.reads, self.other, self.weights, self.state.z)
            self.note(iteration, "placement", number, self.value(goal), None)

    def value(self, goal: Goal) -> float:
        """The objective in force, s."""
        return float(goal.value(self.state.latency, self.reads, self.stored))

    def overall(self) -> float:
        """sum_k C_k T_k + theta cost / r, s."""
        return self.worth(self.point)

    def note(self, iteration: int, name: str, number: int | None, value: float, gap: float | None) -> None:
        """Keep a step; a start that overloads a node has no objective."""
        objective = None if self.searching or not np.isfinite(value) else value
        step = Step(iteration, name, number, objective, np.asarray(self.state.latency), gap)
        self.steps.append(step)
        if self.advance is not None:
            self.advance(step)

    def result(self, iterations: int, converged: bool) -> ClassPlan:
        """What was found."""
        return ClassPlan(
            self.reads,
            self.stored,
            self.weights,
            self.state.latency,
            self.state.z,
            self.overall(),
            self.gaps,
            self.joint_gap,
            self.steps,
            iterations,
            converged,
        )


@program
def _STATE(model, reads, other, weights, z):
    return state(model, kind_reads(model, reads), other, weights, z)
