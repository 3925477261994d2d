"""JLCM on the built-in cluster: one theta, nine thetas, a million files, and SciPy on the same objective."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import LinearConstraint

from ecjax import planning, programs
from ecjax.planning import BatchSettings, Lanes, Plans, Problem, starts
from ecjax.planning.problem import node_work, prices, shared_latency
from ecjax.problem import arrays, builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner
from ecjax.studies.bench.setups import scipy_rivals
from ecjax.tables.read import read_input

BETA = 10.0
PAPER_EPS, TARGET_ITERATIONS = 0.01, 250
THETA = 100.0
SCIPY = {"SLSQP": {"ftol": 1e-7, "maxiter": 500}, "trust-constr": {"gtol": 1e-5, "maxiter": 500}}


def planned(
    runner: Runner,
    files: int,
    thetas: tuple[float, ...],
    name: str,
    eps: float = PAPER_EPS,
    most_iterations: int = 1000,
) -> Iterator[Row]:
    """Plans for some thetas as one batch, at the paper's tolerance, or by a number of iterations of each descent."""
    programs.use_compilation_cache()  # so that repeats do not compile again
    problem = _cluster(files, runner.seed)
    outcome = runner.time(partial(_solve, problem, thetas, eps, most_iterations))
    plan = outcome.value.by_method["published"]
    iterations = int(np.max(plan.iterations))
    if eps:
        note = (
            f"eps {eps:g} as in the paper, which took 202 s on 8 cores; "
            f"{iterations} iterations of {TARGET_ITERATIONS} asked for"
        )
    else:
        many = most_iterations
        note = f"at most {many} iterations for the placement and {many} for the probabilities after it"
    yield Row(
        "ecjax",
        f"{files:,} files x {problem.nodes.count}, {name}",
        *outcome.timing,
        rows=files,
        node_count=problem.nodes.count,
        lanes=len(thetas),
        dtype="float64",
        compile_s=outcome.first.value.compile_s,
        objective=float(plan.evaluation.objective[0]) if len(thetas) == 1 else None,
        iterations=iterations,
        note=note,
    )


def beside_scipy(runner: Runner, files: int) -> Iterator[Row]:
    """The same continuous objective (shared-z latency and log surrogate of the cost) from the same start."""
    problem = _cluster(files, runner.seed)
    start = starts.uniform(problem, jax.random.key(0))
    objective = _objective(problem, start.shape)
    constraints = _constraints(problem, start.shape)

    def by_ecjax() -> Clocked:
        plans, seconds = _solve(problem, (THETA,), 1e-7, 5000)
        history = np.asarray(plans.by_method["published"].history[0])
        values = history[~np.isnan(history)]
        return Clocked((float(values[-1]), len(values) - 1), seconds)

    by_ecjax()  # compiles; the objective for SciPy is compiled here too
    objective(np.asarray(start).ravel())
    variants: dict[str, Callable[[], Any]] = {"ecjax": by_ecjax}
    for method, options in SCIPY.items():
        variants[f"scipy {method}"] = partial(
            scipy_rivals.minimised, objective, start, 1.0, constraints, method, options
        )
    for name, outcome in runner.race(variants).items():
        value, iterations = outcome.value
        how = (
            "before the final plan, whose time is included" if name == "ecjax" else "compiled, with gradient"
        )
        yield Row(
            name,
            f"{files} files x {problem.nodes.count}, to convergence",
            *outcome.timing,
            rows=files,
            node_count=problem.nodes.count,
            lanes=1,
            dtype="float64",
            objective=value,
            iterations=iterations,
            note=f"objective with the log surrogate of the cost, {how}",
        )


def _cluster(files: int, seed: int) -> Problem:
    options = ClusterOptions(hardware="tahoe", files=files, seed=seed)
    nodes = read_input(builtin.nodes(options), "nodes")
    table = read_input(builtin.files(options), "files")
    return planning.prepare(arrays.nodes_arrays(nodes), arrays.files_arrays(table))


def _solve(problem: Problem, thetas: tuple[float, ...], eps: float, max_iterations: int) -> Clocked:
    """Plans, and the time that solving took without compilation."""
    how = BatchSettings(settings=planning.settings(BETA, eps, max_iterations, "merged"))
    unit = jnp.ones(len(thetas))
    plans: Plans = planning.solve(problem, Lanes(jnp.asarray(thetas), unit, unit), how)
    return Clocked(plans, plans.solve_s["published"])


def _objective(problem: Problem, shape: tuple[int, ...]) -> scipy_rivals.Objective:
    price = THETA / problem.files.count * prices(problem)

    def value(probabilities: jax.Array) -> jax.Array:
        latency, _ = shared_latency(problem, probabilities, jnp.ones_like(probabilities))
        return latency + jnp.sum(price * jnp.log1p(BETA * probabilities)) / math.log(BETA)

    return scipy_rivals.with_slope(value, shape)


def _constraints(problem: Problem, shape: tuple[int, ...]) -> list[LinearConstraint]:
    """Rows sum to k; node loads, which are linear in the probabilities, stay below 1."""
    nodes = shape[1]
    everywhere = jnp.ones(shape)
    load = jax.jacobian(lambda p: node_work(problem, p, everywhere)[0])(jnp.zeros(shape)).reshape(nodes, -1)
    base = np.asarray(node_work(problem, jnp.zeros(shape), everywhere)[0])
    return [
        scipy_rivals.rows_sum_to_k(problem),
        LinearConstraint(np.asarray(load), -np.inf, 0.999 - base),
    ]
