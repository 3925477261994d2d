"""Plans for service classes on the built-in nodes: the paper's size, growth, a sweep, and SciPy on one step."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import planning, programs
from ecjax.planning import Problem
from ecjax.planning.classes.alternate import ClassPlan, Settings, plan_classes
from ecjax.planning.classes.model import (
    ClassModel,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    other_work,
    state,
    tolls,
)
from ecjax.planning.classes.scheduling import Fixed, Goal, schedule
from ecjax.planning.classes.search import search_start
from ecjax.planning.classes.start import start_plan
from ecjax.planning.classes.together import Call, run_together, width_of
from ecjax.problem import arrays, builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups import scipy_rivals
from ecjax.tables.read import read_input

EPS = 0.01  # of the paper
TARGET_ITERATIONS = 175
LOAD = 0.6
# ratio of the rates of the classes, order, and C: those of the paper
QUEUES = {
    "priority": ([1.0, 22.0], "lexicographic", (1.0, 1.0)),
    "weighted": ([1.0, 1.0], "joint", (1.0, 0.4)),
}
SLSQP = {"ftol": 1e-10, "maxiter": 500}
LEAST_IMPORTANCE = 0.05  # of the second class, in a sweep


def planned(runner: Runner, files: int, queue: str, start: str) -> Iterator[Row]:
    """Files of two classes, from a start under a queue."""
    programs.use_compilation_cache()
    ratio, order, importance = QUEUES[queue]
    problem, of_file = _problem(files, ratio, runner.seed)

    def plan_once() -> ClassPlan:
        model = class_model(problem, of_file, len(ratio), queue)
        first = start_plan(problem, 0.0, start, runner.seed)
        plan = plan_classes(model, first, Settings(order, importance, eps=EPS))
        jax.block_until_ready(plan.probabilities)
        return plan

    outcome = runner.time(plan_once)
    plan: ClassPlan = outcome.value
    gaps = ", ".join(f"{gap:.1e}" for gap in plan.gaps)
    yield Row(
        f"ecjax {queue}",
        f"{files:,} files x {problem.nodes.count}, 2 classes, start {start}",
        *outcome.timing,
        rows=files,
        node_count=problem.nodes.count,
        lanes=1,
        dtype="float64",
        compile_s=max(outcome.first.seconds - outcome.timing.median_s, 0.0),
        objective=plan.objective,
        iterations=plan.iterations,
        note=f"{order}, eps {EPS:g}, with the start; {plan.iterations} outer iterations of {TARGET_ITERATIONS} "
        f"asked for; scheduling gaps by class {gaps}",
    )


def side_by_side(runner: Runner, files: int, lanes: int) -> Iterator[Row]:
    """A sweep of the importance of the second class of weighted queues, each plan with its own search for a start."""
    programs.use_compilation_cache()
    ratio, order, _ = QUEUES["weighted"]
    problem, of_file = _problem(files, ratio, runner.seed)
    importances = [(1.0, float(second)) for second in np.geomspace(LEAST_IMPORTANCE, 1.0, lanes)]
    balanced = start_plan(problem, 0.0, "certified", runner.seed)

    def plan_one(importance: tuple[float, float], call: Call) -> ClassPlan:
        model = class_model(problem, of_file, len(ratio), "weighted")
        start = search_start(model, balanced, importance, 0.0, runner.seed, call)
        return plan_classes(model, start, Settings(order, importance, eps=EPS), call=call)

    def sweep(width: int) -> list[ClassPlan]:
        plans = run_together([partial(plan_one, importance) for importance in importances], width)
        jax.block_until_ready([plan.probabilities for plan in plans])
        return plans

    widths = {"one after the other": 1, "side by side": width_of(lanes, lanes)}
    outcomes = runner.race({name: partial(sweep, width) for name, width in widths.items()})
    objective = {
        name: np.array([plan.objective for plan in outcome.value]) for name, outcome in outcomes.items()
    }
    apart = float(np.max(np.abs(objective["side by side"] / objective["one after the other"] - 1)))
    for name, outcome in outcomes.items():
        yield Row(
            f"ecjax weighted, {name}",
            f"{files:,} files x {problem.nodes.count}, 2 classes, {lanes} importances",
            *outcome.timing,
            rows=files,
            node_count=problem.nodes.count,
            lanes=lanes,
            dtype="float64",
            compile_s=max(outcome.first.seconds - outcome.timing.median_s, 0.0),
            note=f"with the search for a start; objectives of the two ways {apart:.1e} apart at most",
        )


def beside_scipy(runner: Runner, files: int) -> Iterator[Row]:
    """The scheduling step of weighted queues, convex: the same objective, constraints and start, z following."""
    programs.use_compilation_cache()
    ratio, _, importance = QUEUES["weighted"]
    problem, of_file = _problem(files, ratio, runner.seed)
    model = class_model(problem, of_file, len(ratio), "weighted")
    start = start_plan(problem, 0.0, "uniform", runner.seed)
    other = other_work(model, start.stored)
    weights = even_weights(model, class_work(model, kind_reads(model, start.probabilities), other))
    storing, reading = tolls(model, 0.0)
    unlimited, everyone = jnp.full(model.classes, jnp.inf), jnp.ones(problem.rows, bool)
    goal = Goal(model.share * jnp.asarray(importance), unlimited, storing, reading, everyone)
    fixed = Fixed(start.stored, other, weights)
    objective = _objective(model, goal, fixed)
    upper = np.asarray(start.stored, float).ravel()

    def by_ecjax() -> jax.Array:
        point = start.probabilities
        for _ in range(5):  # further rounds of the same program, to SciPy's tolerance
            point = schedule(model, goal, fixed, point, jnp.zeros(model.classes)).probabilities
        return point

    def by_scipy() -> tuple[float, int]:
        sums = scipy_rivals.rows_sum_to_k(problem)
        return scipy_rivals.minimised(objective, start.probabilities, upper, [sums], "SLSQP", SLSQP)

    outcomes = runner.race({"ecjax": by_ecjax, "scipy": by_scipy})
    ours, scipy = outcomes["ecjax"], outcomes["scipy"]
    row = partial(
        Row,
        rows=files,
        node_count=problem.nodes.count,
        dtype="float64",
        note="same objective, start and gradient; compiled",
    )
    size = f"{files} files x {problem.nodes.count}, one scheduling step to convergence"
    value = objective(np.asarray(ours.value).ravel())[0]
    yield row("ecjax weighted, scheduling", size, *ours.timing, objective=value)
    yield row("scipy SLSQP", size, *scipy.timing, objective=scipy.value[0])


def _problem(files: int, ratio: list[float], seed: int) -> tuple[Problem, np.ndarray]:
    """Files of 100 MB with (7, 4) codes in two classes, and their classes."""
    options = ClusterOptions(
        hardware="tahoe", files=files, k=[4, 4], rates=ratio, bytes=[100e6], load=LOAD, seed=seed
    )
    nodes = read_input(builtin.nodes(options), "nodes")
    table = read_input(builtin.files(options), "files", constants={"min_extra_chunks": 3})
    problem = planning.prepare(arrays.nodes_arrays(nodes), arrays.files_arrays(table))
    return problem, table["service_class"].to_numpy() - 1


def _objective(model: ClassModel, goal: Goal, fixed: Fixed) -> scipy_rivals.Objective:
    def value(probabilities: jax.Array) -> jax.Array:
        reads = kind_reads(model, probabilities)
        latency = state(model, reads, fixed.other, fixed.weights, jnp.zeros(model.classes)).latency
        return jnp.sum(goal.coefficient * latency)

    return scipy_rivals.with_slope(value, (model.problem.rows, model.problem.nodes.count))
