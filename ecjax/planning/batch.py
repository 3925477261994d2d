"""Many problems of one shape as one compiled program: theta, rate and size scalings are lanes of a vmap."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.model import Evaluation
from ecjax.planning import jlcm, limits, starts
from ecjax.planning.certified import Settings, is_convex, nearby_bound, plan_lanes
from ecjax.planning.descent import Stopping
from ecjax.planning.fused import choosing
from ecjax.planning.jlcm import Jlcm, Solution
from ecjax.planning.problem import Problem, evaluate, scaled, usable
from ecjax.planning.projection import project_hypersimplex
from ecjax.precision import device_name
from ecjax.programs import program
from ecjax.progress import detail
from ecjax.stopwatch import Stopwatch

_Result = TypeVar("_Result")
METHODS = ("certified", "published", "oblivious_lb", "random_cp", "max_ec")
STARTS = {"uniform": starts.uniform, "proportional": starts.proportional}

# Arrays of the size of the probabilities that a lane holds at its peak (measured at 10^5 files), with some room.
_ARRAYS_PER_LANE = 30
# The certified method compares itself with the published one, if nobody asked, on problems up to this many entries.
_MOST_TO_DESCEND_TWICE = 2_000_000
# Gaps above it are said beside those of nearby plans, whose bounds are searched for as finely.
_WIDE_GAP = 2e-3


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Lanes:
    """What differs between the problems of a batch; NumPy or JAX arrays."""

    theta: jax.Array  # (L,) s per dollar of mean cost per file
    rate_scale: jax.Array  # (L,)
    size_scale: jax.Array  # (L,)

    @property
    def count(self) -> int:
        """Number of lanes L."""
        return len(self.theta)

    def take(self, index: np.ndarray) -> "Lanes":
        """Some of the lanes."""
        return jax.tree.map(lambda values: values[index], self)


@dataclass(frozen=True)
class Plans:
    """Solutions of a batch by method, each with a leading lane axis, and what they took."""

    by_method: dict[str, Solution]
    # (L, m) node loads at the start of the descent, or of the certified plan without one
    start_load: jax.Array
    # (L,) s, below every plan's objective; None where the certified method did not run
    lower_bound: np.ndarray | None
    # (L,) s, below the objective of plans near the certified one; NaN where the gap needs no such words
    nearby_bound: np.ndarray | None
    # by method, of all lanes: baselines without the published plan that they build on; certified with the published
    # one where nobody asked for that
    solve_s: dict[str, float]
    compile_s: float
    device: dict[str, str]  # what computed each method's plans
    compared: bool  # whether the published method ran for the certified one only


@dataclass(frozen=True)
class BatchSettings:
    """How a batch is solved.

    Attributes:
        methods: of ``METHODS``; the baselines but ``max_ec`` build on the published plan of their lane. Where the
            certified method leaves a gap it takes the published plan if that is better.
        start: "uniform" or "proportional"; ignored where a start is given.
        settings: of the published method.
        certified: of the certified method.
        dtype: of the descent; plans are always evaluated, and bounds computed, in float64.
        seed: of the perturbed start and the random placement.
    """

    methods: tuple[str, ...] = ("published",)
    start: str = "uniform"
    settings: Jlcm = field(default_factory=Jlcm)
    dtype: str = "float64"
    seed: int = 0
    certified: Settings = field(default_factory=Settings)


def lanes_per_batch(problem: Problem, memory_bytes: float, dtype: str) -> int:
    """How many lanes fit in ``memory_bytes``, at least one."""
    lane = problem.rows * problem.nodes.count * np.dtype(dtype).itemsize * _ARRAYS_PER_LANE
    return max(1, int(memory_bytes // lane))


def solve(
    problem: Problem, lanes: Lanes, how: BatchSettings, start_plan: tuple[jax.Array, jax.Array] | None = None
) -> Plans:
    """Plan every lane.

    A lane for which no plan with all node loads below 1 was found has an infinite objective.

    Args:
        problem: the problem before scaling.
        lanes: what to multiply and to trade.
        how: methods and settings.
        start_plan: (R, m) probabilities to start from, and (R, m) bool where that plan keeps chunks.
    """
    plans, lower_bound, timer = {}, None, _Timer(how.methods)
    device = {name: device_name() for name in how.methods}
    others = tuple(name for name in how.methods if name != "certified")
    if "certified" in how.methods:
        plans["certified"], lower_bound, device["certified"] = timer.host(
            "certified", certified_lanes, problem, lanes, how.certified, start_plan
        )
        gap = plans["certified"].evaluation.objective - lower_bound
        # a plan that breaks a limit may cost less than any that keeps it
        open_ = ~(gap <= how.certified.gap * np.abs(lower_bound)) | _breaking(problem, plans["certified"])
        # where nobody asked for it, only for the lanes with a gap: no lane's plan depends on the other lanes
        compared = open_ | bool(others)
        if others and "published" not in others:
            others = ("published", *others)
        if not others and open_.any() and problem.rows * problem.nodes.count <= _MOST_TO_DESCEND_TWICE:
            others = ("published",)
    compared_only = bool(others) and how.methods == ("certified",)
    if others:
        start = None if start_plan is None else start_plan[0]
        descended, start_load = _descended(problem, lanes, replace(how, methods=others), start, timer)
        if "certified" in plans and "published" in descended:
            plans["certified"] = _better(plans["certified"], descended["published"], compared, problem)
        plans |= {name: plan for name, plan in descended.items() if name in how.methods}
    else:
        start_load = plans["certified"].evaluation.load
    nearby = None
    if lower_bound is not None:
        nearby = timer.host(
            "certified", _nearby_bounds, problem, lanes, plans["certified"], lower_bound, how.certified.gap
        )
    return Plans(
        plans, start_load, lower_bound, nearby, timer.solve_s, timer.compile_s, device, compared_only
    )


def _descended(
    problem: Problem, lanes: Lanes, how: BatchSettings, probabilities: jax.Array | None, timer: "_Timer"
):
    """Plans of the published method and its baselines, and the node loads they start from."""
    lanes = jax.tree.map(jnp.asarray, lanes)
    seed = np.int64(how.seed)
    published = start_load = None
    if set(how.methods) != {_OF_PROBLEM}:
        published, start_load = _published_plans(problem, lanes, how, probabilities, timer)
    descended = {}
    for name in how.methods:
        if published is not None and name == "published":
            plan = published.probabilities, published.stored
            evaluation = timer.run(name, _EVALUATED, problem, lanes, *plan)
            descended[name] = published._replace(evaluation=evaluation)
        else:
            reads, stored = timer.run(name, _PLACED[name], problem, lanes, published, seed)
            evaluation = timer.run(name, _EVALUATED, problem, lanes, reads, stored)
            descended[name] = Solution(
                reads,
                stored,
                evaluation=evaluation,
                iterations=jnp.zeros(lanes.count, jnp.int32),
                converged=jnp.isfinite(evaluation.objective),
                history=evaluation.objective[:, None],
            )
    return descended, evaluation.load if start_load is None else start_load


def _published_plans(
    problem: Problem, lanes: Lanes, how: BatchSettings, probabilities: jax.Array | None, timer: "_Timer"
) -> tuple[Solution, jax.Array]:
    """Plans of the published method, to be evaluated, and the node loads they start from."""
    # one program, which cannot be asked how far it is: a callback would keep it out of the compilation cache
    most, plans = (
        how.settings.stopping.max_iterations,
        f"{lanes.count} plans at once" if lanes.count > 1 else "a plan",
    )
    detail(f"published method: {plans}, at most {most:,} iterations")
    descent = _Descent(how.settings, how.dtype)
    start, overloaded = timer.run(
        "published", _STARTS, problem, lanes, probabilities, np.int64(how.seed), how.start, descent
    )
    if bool(jnp.any(overloaded)):
        # a lane whose start is good keeps it, whatever the other lanes of its batch need
        spread = timer.run("published", _BALANCED, problem, lanes, start, descent)
        start = jnp.where(overloaded[:, None, None], spread, start)
    by_kernel = choosing.suits(problem, how.settings.stopping)
    program = _PUBLISHED_BY_KERNEL if by_kernel else _PUBLISHED
    return timer.run("published", program, problem, lanes, start, descent)


def _breaking(problem: Problem, plans: Solution) -> np.ndarray:
    """Which lanes' certified plans break a limit, (L,) bool: that of a node, as they keep all others."""
    if problem.capacity is None:
        return np.zeros(len(plans.stored), bool)
    return np.array([not limits.keeps(problem, stored) for stored in plans.stored])


def _better(certified: Solution, other: Solution, compared: np.ndarray, problem: Problem) -> Solution:
    """The certified plan of each lane, or the other one where it is compared, keeps all limits, and is better.

    It is, too, where the certified one breaks a limit.
    """
    objective = np.asarray(other.evaluation.objective)
    breaking = _breaking(problem, certified) & np.isfinite(objective)
    take = compared & (breaking | (objective < np.asarray(certified.evaluation.objective)))
    for lane in np.flatnonzero(take):
        take[lane] = limits.keeps(problem, other.stored[lane])
    if not take.any():
        return certified

    def choose(mine, theirs):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        return np.where(take.reshape(-1, *(1,) * (mine.ndim - 1)), theirs, mine)

    # the history, of another length, stays that of the certified method
    both = jax.tree.map(choose, certified, other._replace(history=certified.history))
    return both._replace(iterations=certified.iterations)


def _nearby_bounds(
    problem: Problem, lanes: Lanes, plans: Solution, lower_bound: np.ndarray, gap: float
) -> np.ndarray:
    """Lower bounds (L,) s of plans near the certified ones; NaN where they have no gap that is worth it, or no load."""
    bounds = np.full(lanes.count, np.nan)
    objective = np.asarray(plans.evaluation.objective)
    wide = objective > lower_bound + max(gap, _WIDE_GAP) * np.abs(lower_bound)
    if is_convex(problem) or problem.rows * problem.nodes.count > _MOST_TO_DESCEND_TWICE:
        return bounds
    for lane in np.flatnonzero(wide & np.isfinite(objective)):
        detail(f"how much better plans near the one of lane {lane + 1} can be")
        plan = jax.tree.map(lambda leaf, lane=lane: leaf[lane], plans)
        scales = float(lanes.rate_scale[lane]), float(lanes.size_scale[lane])
        bounds[lane] = nearby_bound(scaled(problem, *scales), float(lanes.theta[lane]), plan, _WIDE_GAP)
    # what holds for all plans holds for these
    return np.maximum(bounds, lower_bound)


def certified_lanes(
    problem: Problem, lanes: Lanes, settings: Settings, start_plan: tuple[jax.Array, jax.Array] | None
) -> tuple[Solution, np.ndarray, str]:
    """Certified plans and lower bounds of all lanes, close to a given plan if there is one, and what computed them."""
    start = None if start_plan is None else _choices(problem, *map(np.asarray, start_plan))
    theta, rate, size = (
        np.asarray(values, float) for values in (lanes.theta, lanes.rate_scale, lanes.size_scale)
    )
    return plan_lanes(problem, theta, rate, size, settings, start)


def _choices(problem: Problem, probabilities: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Whole choices like a given plan's: the k most read chunks hot, its others cold as far as the floor needs them.

    Rows that fall short of the floor or crowd a site there are left to be placed anew, as zeros.
    """
    k, floor = (np.asarray(values).astype(int)[:, None] for values in (problem.k, problem.floor))
    usable_chunks = stored & np.asarray(usable(problem))
    rank = np.argsort(
        np.argsort(-(usable_chunks + probabilities * usable_chunks), axis=1, kind="stable"), axis=1
    )
    kept = usable_chunks & (rank < floor)
    complete = usable_chunks.sum(axis=1) >= floor[:, 0]
    if problem.per_site is not None:
        complete &= limits.most_at_a_site(problem, kept) <= problem.per_site
    kept &= complete[:, None]
    return np.where(kept & (rank < k), 2, kept).astype(np.int8)


class _Timer:
    """Runs the programs of methods; compilation apart.

    Args:
        methods: that were asked for; what another one takes is that of the certified one, which needs it.
    """

    def __init__(self, methods: tuple[str, ...]) -> None:
        self.solve_s = dict.fromkeys(methods, 0.0)
        self.compile_s = 0.0

    def run(self, method: str, program: Any, *arguments: Any) -> Any:
        return self.host(method, lambda: jax.block_until_ready(program(*arguments)))

    def host(self, method: str, function: Callable[..., _Result], *arguments: Any) -> _Result:
        with Stopwatch(of_process=True) as stopwatch:
            result = function(*arguments)
        self._count(method, stopwatch.own_s, stopwatch.compile_s)
        return result

    def _count(self, method: str, solve_s: float, compile_s: float) -> None:
        self.compile_s += compile_s
        if method not in self.solve_s and "certified" in self.solve_s:
            method = "certified"
        if method in self.solve_s:
            self.solve_s[method] += solve_s


def _as(dtype: str, tree):
    def cast(leaf: jax.Array) -> jax.Array:
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, tree)


def _lane_problem(problem: Problem, lane: Lanes) -> Problem:
    return scaled(problem, lane.rate_scale, lane.size_scale)


@dataclass(frozen=True)
class _Descent:
    """What programs of the published method are compiled for; the rest of ``BatchSettings`` changes none of them."""

    settings: Jlcm
    dtype: str


def _start(
    problem: Problem, lane: Lanes, probabilities: jax.Array | None, seed: jax.Array, start: str, how: _Descent
) -> tuple[jax.Array, jax.Array]:
    """The start of a lane and whether it overloads a node."""
    lane_problem = _as(how.dtype, _lane_problem(problem, lane))
    if probabilities is None:
        point = STARTS[start](lane_problem, jax.random.key(seed))
    else:
        point = starts.nearest(lane_problem, probabilities.astype(how.dtype))
    return point, jnp.any(jlcm.surrogate_load(lane_problem, point, how.settings) >= 1)


def _balanced(problem: Problem, lane: Lanes, start: jax.Array, how: _Descent) -> jax.Array:
    return jlcm.balanced(_as(how.dtype, _lane_problem(problem, lane)), start, how.settings)


def _published(
    problem: Problem, lane: Lanes, start: jax.Array, how: _Descent, by_kernel: bool = False
) -> tuple[Solution, jax.Array]:
    """The published plan of a lane, in float64, to be evaluated; and the node loads it started from."""
    exact = _lane_problem(problem, lane)
    rounded, theta = _as(how.dtype, exact), lane.theta.astype(how.dtype)
    plan = jlcm.published(rounded, theta, start, how.settings, by_kernel)
    if how.dtype != "float64":
        probabilities = project_hypersimplex(plan.probabilities.astype("float64"), exact.k, mask=plan.stored)
        plan = plan._replace(probabilities=probabilities)
    return plan, jlcm.surrogate_load(rounded, start, how.settings)


def _by_kernel(
    problem: Problem, lanes: Lanes, starts: jax.Array, how: _Descent
) -> tuple[Solution, jax.Array]:
    """The published plans of all lanes, one after the other: each of them fills a GPU."""
    return jax.lax.map(
        lambda lane: _published(problem, lane[0], lane[1], how, by_kernel=True), (lanes, starts)
    )


def _evaluated(problem: Problem, lane: Lanes, probabilities: jax.Array, stored: jax.Array) -> Evaluation:
    return evaluate(_lane_problem(problem, lane), probabilities, stored, lane.theta)


def _balancing(problem: Problem, lane: Lanes, plan: Solution, seed: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jlcm.oblivious_load_balancing(_lane_problem(problem, lane), plan)


def _random(problem: Problem, lane: Lanes, plan: Solution, seed: jax.Array) -> tuple[jax.Array, jax.Array]:
    key = jax.random.fold_in(jax.random.key(seed), 1)
    return jlcm.random_placement(_lane_problem(problem, lane), plan, key)


def _longest(
    problem: Problem, lane: Lanes, plan: Solution | None, seed: jax.Array
) -> tuple[jax.Array, jax.Array]:
    return jlcm.maximum_code(_lane_problem(problem, lane))


# Made once, so that the batches of a study and the studies of a process share compiled programs.
_STARTS = program(jax.vmap(_start, (None, 0, None, None, None, None)), static_argnums=(4, 5), quick=True)
_BALANCED = program(jax.vmap(_balanced, (None, 0, 0, None)), static_argnums=3, quick=True)
_PUBLISHED = program(jax.vmap(_published, (None, 0, 0, None)), static_argnums=3, quick=True)
_PUBLISHED_BY_KERNEL = jax.jit(_by_kernel, static_argnums=3)
_EVALUATED = program(jax.vmap(_evaluated, (None, 0, 0, 0)))
_OF_PROBLEM = "max_ec"  # the baseline that takes nothing of the published plan
# probabilities and chunks of the baselines from the published plan
_PLACED = {
    name: program(jax.vmap(place, (None, 0, 0, None)))
    for name, place in (("oblivious_lb", _balancing), ("random_cp", _random), ("max_ec", _longest))
}


def settings(beta: float, eps: float, max_iterations: int, loop: str) -> Jlcm:
    """Settings of the published method from plain values."""
    return replace(Jlcm(), beta=beta, stopping=Stopping(eps, max_iterations, merged=loop == "merged"))
