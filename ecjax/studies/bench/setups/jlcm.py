"""JLCM on the built-in cluster: one theta, nine thetas, a million files, and SciPy on the same objective."""

import math
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import LinearConstraint, minimize
from scipy.sparse import csr_matrix, kron

from ecjax import optimize, precision
from ecjax.optimize import BatchSettings, Lanes, Plans, Problem, starts
from ecjax.optimize.problem import node_work, prices, shared_latency
from ecjax.problem import arrays, builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import peak_rss_bytes, side_by_side
from ecjax.tables.read import read_input

BETA = 10.0
PAPER_EPS = 0.01
THETA = 100.0
THETAS = (3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
TARGET_S, TARGET_ITERATIONS = 0.5, 250
TARGET_NINE_S = 2.0
TARGET_MILLION_S, TARGET_MILLION_BYTES = 40.0, 4_000_000_000
SCIPY_FILES = 10


def rows(settings: Settings) -> list[Row]:
    """One and nine thetas at the paper's size and tolerance, then a small problem beside SciPy."""
    precision.use_compilation_cache()  # so that repeats do not compile again
    files = 100 if settings.quick else 1000
    return [
        _sweep("one theta", files, (THETA,), TARGET_S, settings),
        _sweep("nine thetas", files, THETAS, TARGET_NINE_S, settings),
        *_beside_scipy(4 if settings.quick else SCIPY_FILES, settings),
    ]


def million(settings: Settings) -> list[Row]:
    """A million files, 50 iterations divided over the two descents, once; with the peak memory of the process."""
    files = 10_000 if settings.quick else 1_000_000
    problem = _cluster(files, settings.seed)
    plans = _solve(problem, (THETA,), 0.0, 25)
    iterations = int(plans.by_method["published"].iterations[0])
    return [
        Row(
            variant="ecjax",
            size=f"{files:,} files x {problem.nodes.count}, one theta",
            median_s=plans.solve_s,
            min_s=plans.solve_s,
            repeats=1,
            rows=files,
            nodes=problem.nodes.count,
            lanes=1,
            dtype="float64",
            compile_s=plans.compile_s,
            peak_rss_bytes=peak_rss_bytes(),
            objective=float(plans.by_method["published"].evaluation.objective[0]),
            iterations=iterations,
            target_s=None if settings.quick else TARGET_MILLION_S,
            target_bytes=None if settings.quick else TARGET_MILLION_BYTES,
            note="at most 25 iterations for the placement and 25 for the probabilities after it",
        )
    ]


def _cluster(files: int, seed: int) -> Problem:
    options = ClusterOptions(files=files, seed=seed)
    nodes = read_input(builtin.nodes(options), "nodes")
    table = read_input(builtin.files(options), "files")
    return optimize.prepare(arrays.nodes_arrays(nodes), arrays.files_arrays(table))


def _solve(problem: Problem, thetas: tuple[float, ...], eps: float, max_iterations: int) -> Plans:
    how = BatchSettings(settings=optimize.settings(BETA, eps, max_iterations, "merged"))
    unit = jnp.ones(len(thetas))
    return optimize.solve(problem, Lanes(jnp.asarray(thetas), unit, unit), how)


def _sweep(what: str, files: int, thetas: tuple[float, ...], target_s: float, settings: Settings) -> Row:
    problem = _cluster(files, settings.seed)
    plans: list[Plans] = []

    def run() -> float:
        plans.append(_solve(problem, thetas, PAPER_EPS, 1000))
        return plans[-1].solve_s

    times = side_by_side({"ecjax": run}, settings.repeats)["ecjax"]
    plan = plans[-1].by_method["published"]
    iterations = int(np.max(plan.iterations))
    return Row(
        variant="ecjax",
        size=f"{files:,} files x {problem.nodes.count}, {what}",
        **times._asdict(),
        rows=files,
        nodes=problem.nodes.count,
        lanes=len(thetas),
        dtype="float64",
        compile_s=plans[0].compile_s,
        objective=float(plan.evaluation.objective[0]) if len(thetas) == 1 else None,
        iterations=iterations,
        target_s=None if settings.quick else target_s,
        note=f"eps {PAPER_EPS:g} as in the paper, which took 202 s on 8 cores; "
        f"{iterations} iterations of {TARGET_ITERATIONS} asked for",
    )


def _beside_scipy(files: int, settings: Settings) -> list[Row]:
    """The same continuous objective (shared-z latency and log surrogate of the cost) from the same start."""
    problem = _cluster(files, settings.seed)
    start = starts.uniform(problem, jax.random.key(0))
    objective = _objective(problem, start.shape)
    found: dict[str, tuple[float, int]] = {}

    def by_ecjax() -> float:
        plans = _solve(problem, (THETA,), 1e-7, 5000)
        history = np.asarray(plans.by_method["published"].history[0])
        value = history[~np.isnan(history)]
        found["ecjax"] = float(value[-1]), len(value) - 1
        return plans.solve_s

    def by_scipy(method: str, options: dict[str, float]) -> Callable[[], float]:
        def run() -> float:
            began = time.perf_counter()
            result = minimize(
                objective,
                np.asarray(start).ravel(),
                jac=True,
                method=method,
                bounds=[(0.0, 1.0)] * start.size,
                constraints=_constraints(problem, start.shape),
                options=options,
            )
            found[method] = float(objective(np.clip(result.x, 0, 1))[0]), int(result.nit)
            return time.perf_counter() - began

        return run

    by_ecjax()  # compiles; the objective for SciPy is compiled here too
    objective(np.asarray(start).ravel())
    methods = {
        "ecjax": by_ecjax,
        "SLSQP": by_scipy("SLSQP", {"ftol": 1e-7, "maxiter": 500}),
        "trust-constr": by_scipy("trust-constr", {"gtol": 1e-5, "maxiter": 500}),
    }
    seconds = {name: run() for name, run in methods.items()}
    return [
        Row(
            variant=name if name == "ecjax" else f"scipy {name}",
            size=f"{files} files x {problem.nodes.count}, to convergence",
            median_s=seconds[name],
            min_s=seconds[name],
            repeats=1,
            rows=files,
            nodes=problem.nodes.count,
            lanes=1,
            dtype="float64",
            objective=found[name][0],
            iterations=found[name][1],
            note="objective with the log surrogate of the cost"
            + (
                ", before the final plan, whose time is included"
                if name == "ecjax"
                else ", compiled, with gradient"
            ),
        )
        for name in methods
    ]


def _objective(problem: Problem, shape: tuple[int, ...]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    price = THETA / problem.files.count * prices(problem)

    @jax.jit
    @jax.value_and_grad
    def value_and_slope(flat: jax.Array) -> jax.Array:
        probabilities = flat.reshape(shape)
        latency, _ = shared_latency(problem, probabilities, jnp.ones_like(probabilities))
        return latency + jnp.sum(price * jnp.log1p(BETA * probabilities)) / math.log(BETA)

    def call(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = value_and_slope(jnp.asarray(flat))
        return float(value), np.asarray(slope)

    return call


def _constraints(problem: Problem, shape: tuple[int, ...]) -> list[LinearConstraint]:
    """Rows sum to k; node loads, which are linear in the probabilities, stay below 1."""
    count, nodes = shape
    sums = kron(csr_matrix(np.eye(count)), np.ones((1, nodes)))
    kept = jnp.ones(shape)
    load = jax.jacobian(lambda p: node_work(problem, p, kept)[0])(jnp.zeros(shape)).reshape(nodes, -1)
    base = np.asarray(node_work(problem, jnp.zeros(shape), kept)[0])
    k = np.asarray(problem.k)
    return [
        LinearConstraint(sums.toarray(), k, k),
        LinearConstraint(np.asarray(load), -np.inf, 0.999 - base),
    ]
