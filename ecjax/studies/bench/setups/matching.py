"""Matchings of 12 chunks to 12 nodes beside SciPy's, and whole passes of placement for service classes."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from optax.assignment import hungarian_algorithm
from scipy.optimize import linear_sum_assignment

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.planning.classes.matching import place
from ecjax.planning.classes.model import (
    ClassModel,
    State,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    other_work,
    state,
    tolls,
)
from ecjax.planning.classes.scheduling import Fixed, Goal
from ecjax.planning.placement import proportional, random_nodes
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, compiled
from ecjax.studies.bench.setups.random_problem import random_problem

NODES, CLASSES = 12, 2
EXTRA_CHUNKS = 3
LOAD = 0.4


def matchings(runner: Runner, count: int) -> Iterator[Row]:
    """Matchings as one batch, and in a loop over SciPy's."""
    costs = np.random.default_rng(runner.seed).normal(size=(count, NODES, NODES))
    program, compile_s = compiled(jax.vmap(hungarian_algorithm), jnp.asarray(costs))

    def loop() -> list[tuple[np.ndarray, np.ndarray]]:
        return [linear_sum_assignment(cost) for cost in costs]

    outcomes = runner.race({"ecjax_matchings": program, "scipy": loop})
    ours, theirs = outcomes["ecjax_matchings"], outcomes["scipy"]
    rows, columns = (np.asarray(part) for part in ours.value)
    totals = costs[np.arange(count)[:, None], rows, columns].sum(axis=1)
    scipy_totals = np.array([cost[pair].sum() for cost, pair in zip(costs, theirs.value, strict=True)])
    size = f"{count:,} of {NODES} x {NODES}"
    note = f"costs differ by at most {np.abs(totals - scipy_totals).max():.1e}"
    name = "ecjax_matchings"
    yield Row(name, size, *ours.timing, node_count=NODES, lanes=count, compile_s=compile_s, note=note)
    yield Row("scipy", size, *theirs.timing, node_count=NODES, lanes=1)


def one_pass(runner: Runner, files: int, mixed_sizes: bool = False) -> Iterator[Row]:
    """One pass over all rows, from random nodes with reads by speed; classes of equal importance under priority."""
    problem = random_problem(files, NODES, LOAD, mixed_sizes, runner.seed)
    model = class_model(problem, np.arange(files) % CLASSES, CLASSES, "priority")
    key = jax.random.key(runner.seed)
    stored = random_nodes(problem, key, (problem.k + EXTRA_CHUNKS).astype(jnp.int32))
    probabilities = proportional(problem, stored)
    goal, fixed, start = jax.jit(_start)(model, probabilities, stored)
    program, compile_s = compiled(place, model, goal, fixed, probabilities, start.z, key)
    outcome = runner.time(program)
    before = float(goal.value(start.latency, probabilities, stored))
    yield Row(
        "ecjax_pass_sizes" if mixed_sizes else "ecjax_pass",
        f"{files:,} x {NODES}",
        *outcome.timing,
        rows=files,
        node_count=NODES,
        compile_s=compile_s,
        objective=float(outcome.value.value),
        note=f"from {before:.4g} s; {int(outcome.value.moved):,} rows moved",
    )


def _start(model: ClassModel, probabilities: jax.Array, stored: jax.Array) -> tuple[Goal, Fixed, State]:
    reads, other = kind_reads(model, probabilities), other_work(model, stored)
    weights = even_weights(model, class_work(model, reads, other))
    storing, reading = tolls(model, 0.0)
    free = jnp.full(model.classes, jnp.inf)
    goal = Goal(model.share, free, storing, reading, jnp.ones(model.problem.rows, bool))
    start = state(model, reads, other, weights, jnp.zeros(model.classes))
    return goal, Fixed(stored, other, weights), start
