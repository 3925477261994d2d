"""Matchings of 12 chunks to 12 nodes beside SciPy's, and whole passes of placement for service classes."""

import jax
import jax.numpy as jnp
import numpy as np
from optax.assignment import hungarian_algorithm
from scipy.optimize import linear_sum_assignment

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.optimize.classes.matching import place
from ecjax.optimize.classes.model import (
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
from ecjax.optimize.classes.scheduling import Fixed, Goal
from ecjax.optimize.placement import proportional, random_nodes
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import compiled, side_by_side, timed
from ecjax.studies.bench.setups.random_problem import random_problem

NODES, CLASSES = 12, 2
EXTRA_CHUNKS = 3
LOAD = 0.4
MATCHINGS, TARGET_MATCHINGS_S = 1000, 0.025
TARGET_PASS_S = {1000: 0.3, 100_000: 30.0}
MANY = 10_000  # files, from which one repeat has to do


def rows(settings: Settings) -> list[Row]:
    """1,000 matchings as one batch and in a loop over SciPy's; a pass of ``place`` at several numbers of files."""
    if settings.quick:
        return [*_matchings(settings), _one_pass(200, False, settings)]
    passes = [_one_pass(files, False, settings) for files in TARGET_PASS_S]
    return [*_matchings(settings), *passes, _one_pass(max(TARGET_PASS_S), True, settings)]


def _matchings(settings: Settings) -> list[Row]:
    cost = np.random.default_rng(settings.seed).normal(size=(MATCHINGS, NODES, NODES))
    program, compile_s = compiled(jax.vmap(hungarian_algorithm), jnp.asarray(cost))

    def loop() -> list[tuple[np.ndarray, np.ndarray]]:
        return [linear_sum_assignment(own) for own in cost]

    times = side_by_side(
        {"ecjax_matchings": timed(program, jnp.asarray(cost)), "scipy": timed(loop)}, settings.repeats
    )
    lanes = np.arange(MATCHINGS)[:, None]
    batch = tuple(np.asarray(part) for part in program(jnp.asarray(cost)))
    ours = cost[lanes, batch[0], batch[1]].sum(axis=1)
    theirs = np.array([own[pair].sum() for own, pair in zip(cost, loop(), strict=True)])
    size = f"{MATCHINGS:,} of {NODES} x {NODES}"
    return [
        Row(
            variant="ecjax_matchings",
            size=size,
            **times["ecjax_matchings"]._asdict(),
            nodes=NODES,
            lanes=MATCHINGS,
            compile_s=compile_s,
            target_s=None if settings.quick else TARGET_MATCHINGS_S,
            note=f"costs differ by at most {np.abs(ours - theirs).max():.1e}",
        ),
        Row(variant="scipy", size=size, **times["scipy"]._asdict(), nodes=NODES, lanes=1),
    ]


def _one_pass(files: int, mixed_sizes: bool, settings: Settings) -> Row:
    """One pass over all rows, from random nodes with reads by speed; classes of equal importance under priority."""
    problem = random_problem(files, NODES, LOAD, mixed_sizes, settings.seed)
    model = class_model(problem, np.arange(files) % CLASSES, CLASSES, "priority")
    key = jax.random.key(settings.seed)
    stored = random_nodes(problem, key, (problem.k + EXTRA_CHUNKS).astype(jnp.int32))
    probabilities = proportional(problem, stored)
    goal, fixed, start = jax.jit(_start)(model, probabilities, stored)
    arguments = (model, goal, fixed, probabilities, start.z, key)
    program, compile_s = compiled(place, *arguments)
    repeats = 1 if files > MANY else settings.repeats
    times = side_by_side({"ecjax_pass": timed(program, *arguments)}, repeats)["ecjax_pass"]
    placed = program(*arguments)
    before = float(goal.value(start.latency, probabilities, stored))
    target = None if settings.quick or mixed_sizes else TARGET_PASS_S[files]
    return Row(
        variant="ecjax_pass_sizes" if mixed_sizes else "ecjax_pass",
        size=f"{files:,} x {NODES}",
        **times._asdict(),
        rows=files,
        nodes=NODES,
        compile_s=compile_s,
        objective=float(placed.value),
        target_s=target,
        note=f"from {before:.4g} s; {int(placed.moved):,} rows moved",
    )


def _start(model: ClassModel, probabilities: jax.Array, stored: jax.Array) -> tuple[Goal, Fixed, State]:
    reads, other = kind_reads(model, probabilities), other_work(model, stored)
    weights = even_weights(model, class_work(model, reads, other))
    kept, reading = tolls(model, 0.0)
    free = jnp.full(model.classes, jnp.inf)
    goal = Goal(model.share, free, kept, reading, jnp.ones(model.problem.rows, bool))
    start = state(model, reads, other, weights, jnp.zeros(model.classes))
    return goal, Fixed(stored, other, weights), start
