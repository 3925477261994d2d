"""Plans for service classes on the built-in nodes: the paper's size, growth to 100,000 files, and SciPy on one step."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.sparse import csr_matrix, kron

from ecjax import optimize, precision
from ecjax.optimize import Problem
from ecjax.optimize.classes.alternate import ClassPlan, Settings, plan_classes
from ecjax.optimize.classes.model import (
    ClassModel,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    other_work,
    state,
    tolls,
)
from ecjax.optimize.classes.scheduling import Fixed, Goal, schedule
from ecjax.optimize.classes.start import start_plan
from ecjax.problem import arrays, builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.rows import Settings as BenchSettings
from ecjax.studies.bench.run import peak_rss_bytes, side_by_side
from ecjax.tables.read import read_input

EPS = 0.01  # of the paper
TARGET_S, TARGET_ITERATIONS = 3.0, 175
TARGET_LARGE_S = 300.0
LOAD = 0.6
SCIPY_FILES = 10
# ratio of the rates of the classes, order, and C: those of the paper
CASES = {
    "priority": ([1.0, 22.0], "lexicographic", (1.0, 1.0)),
    "weighted": ([1.0, 1.0], "joint", (1.0, 0.4)),
}


def rows(settings: BenchSettings) -> list[Row]:
    """1000 files of two classes from two starts under either queue; one step of ten files beside SciPy."""
    precision.use_compilation_cache()
    files = 100 if settings.quick else 1000
    found = [
        _planned(files, queue, how, settings, None if settings.quick else TARGET_S)
        for queue in CASES
        for how in ("certified", "uniform")
    ]
    return [*found, *_beside_scipy(4 if settings.quick else SCIPY_FILES, settings)]


def large(settings: BenchSettings) -> list[Row]:
    """Growth: 10,000 and 100,000 files, once each after a first run that compiles."""
    precision.use_compilation_cache()
    sizes = (200, 400) if settings.quick else (10_000, 100_000)
    once = BenchSettings(repeats=1, quick=settings.quick, seed=settings.seed)
    return [
        _planned(files, queue, "certified", once, None if settings.quick else TARGET_LARGE_S)
        for files in sizes
        for queue in CASES
    ]


def _problem(files: int, ratio: list[float], seed: int) -> tuple[Problem, np.ndarray]:
    """Files of 100 MB with (7, 4) codes in two classes, and their classes."""
    options = ClusterOptions(files=files, k=[4, 4], rates=ratio, bytes=100e6, load=LOAD, seed=seed)
    nodes = read_input(builtin.nodes(options), "nodes")
    table = read_input(builtin.files(options), "files", constants={"min_extra_chunks": 3})
    problem = optimize.prepare(arrays.nodes_arrays(nodes), arrays.files_arrays(table))
    return problem, table["service_class"].to_numpy() - 1


def _planned(files: int, queue: str, how: str, settings: BenchSettings, target_s: float | None) -> Row:
    ratio, order, importance = CASES[queue]
    problem, of_file = _problem(files, ratio, settings.seed)
    plans: list[ClassPlan] = []
    first: list[float] = []

    def run() -> float:
        began = time.perf_counter()
        model = class_model(problem, of_file, len(ratio), queue)
        start = start_plan(problem, 0.0, how, settings.seed)
        plans.append(plan_classes(model, start, Settings(order, importance, eps=EPS)))
        jax.block_until_ready(plans[-1].probabilities)
        first.append(time.perf_counter() - began)
        return first[-1]

    times = side_by_side({"ecjax": run}, settings.repeats)["ecjax"]
    plan = plans[-1]
    gaps = ", ".join(f"{gap:.1e}" for gap in plan.gaps)
    return Row(
        variant=f"ecjax {queue}",
        size=f"{files:,} files x {problem.nodes.count}, 2 classes, start {how}",
        **times._asdict(),
        rows=files,
        nodes=problem.nodes.count,
        lanes=1,
        dtype="float64",
        compile_s=max(first[0] - times.median_s, 0.0),
        peak_rss_bytes=peak_rss_bytes(),
        objective=plan.objective,
        iterations=plan.iterations,
        target_s=target_s,
        note=f"{order}, eps {EPS:g}, with the start; {plan.iterations} outer iterations of {TARGET_ITERATIONS} asked "
        f"for; scheduling gaps by class {gaps}",
    )


def _beside_scipy(files: int, settings: BenchSettings) -> list[Row]:
    """The scheduling step of weighted queues, convex: the same objective, constraints and start, z following."""
    ratio, _, importance = CASES["weighted"]
    problem, of_file = _problem(files, ratio, settings.seed)
    model = class_model(problem, of_file, len(ratio), "weighted")
    start = start_plan(problem, 0.0, "uniform", settings.seed)
    other = other_work(model, start.stored)
    weights = even_weights(model, class_work(model, kind_reads(model, start.probabilities), other))
    kept, reading = tolls(model, 0.0)
    unlimited, everyone = jnp.full(model.classes, jnp.inf), jnp.ones(problem.rows, bool)
    goal = Goal(model.share * jnp.asarray(importance), unlimited, kept, reading, everyone)
    fixed = Fixed(start.stored, other, weights)
    z = jnp.zeros(model.classes)
    objective = _objective(model, goal, fixed)
    value: dict[str, float] = {}

    def by_ecjax() -> float:
        began = time.perf_counter()
        point = start.probabilities
        for _ in range(5):  # further rounds of the same program, to SciPy's tolerance
            point = schedule(model, goal, fixed, point, z).probabilities
        jax.block_until_ready(point)
        taken = time.perf_counter() - began
        value["ecjax"] = objective(np.asarray(point).ravel())[0]
        return taken

    def by_scipy(method: str, options: dict[str, float]) -> Callable[[], float]:
        def run() -> float:
            began = time.perf_counter()
            sums = kron(csr_matrix(np.eye(problem.rows)), np.ones((1, problem.nodes.count)))
            k = np.asarray(problem.k)
            found = minimize(
                objective,
                np.asarray(start.probabilities).ravel(),
                jac=True,
                method=method,
                bounds=Bounds(0.0, np.asarray(start.stored, float).ravel()),
                constraints=[LinearConstraint(sums.toarray(), k, k)],
                options=options,
            )
            value[method] = objective(np.clip(found.x, 0, 1))[0]
            return time.perf_counter() - began

        return run

    variants = {
        "ecjax": by_ecjax,
        "SLSQP": by_scipy("SLSQP", {"ftol": 1e-10, "maxiter": 500}),
    }
    times = side_by_side(variants, 1)
    return [
        Row(
            variant="ecjax weighted, scheduling" if name == "ecjax" else f"scipy {name}",
            size=f"{files} files x {problem.nodes.count}, one scheduling step to convergence",
            **times[name]._asdict(),
            rows=files,
            nodes=problem.nodes.count,
            dtype="float64",
            objective=value[name],
            note="same objective, start and gradient; compiled",
        )
        for name in variants
    ]


def _objective(
    model: ClassModel, goal: Goal, fixed: Fixed
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    shape = (model.problem.rows, model.problem.nodes.count)

    @jax.jit
    @jax.value_and_grad
    def value_and_slope(flat: jax.Array) -> jax.Array:
        reads = kind_reads(model, flat.reshape(shape))
        found = state(model, reads, fixed.other, fixed.weights, jnp.zeros(model.classes))
        return jnp.sum(goal.coefficient * found.latency)

    def call(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = value_and_slope(jnp.asarray(flat))
        return float(value), np.asarray(slope)

    return call
