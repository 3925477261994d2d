"""Latencies of service classes by kinds of files, against the same formulas file by file in NumPy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning.classes.plain_classes import (
    Plain,
    charges,
    class_problem,
    latencies,
    plain_classes,
    stable,
    work,
)
from problems import FILES, NODES, Case, of_files, random_plan

import ecjax.planning.classes.model as module
from ecjax.planning import evaluate
from ecjax.planning.classes.model import (
    QUEUES,
    ClassModel,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    latencies_at,
    of_rows_by_kind,
    other_work,
    state,
    tolls,
)
from ecjax.planning.classes.scheduling import Goal
from ecjax.programs import program

STATE = program(state)
AT = program(latencies_at)
SLOPES = program(jax.jacrev(latencies_at, argnums=(1, 2, 3)))
EVALUATE = program(evaluate)

HALVES = np.arange(FILES) % 2
Z = np.array([3.0, 5.0])
# files of class 0 have k = 1 in ``idle`` (its other files have k = 2 or one chunk on every node)
ALONE = np.where(np.resize([1, 2, NODES, 1], FILES) == 1, 0, 1)
GROUPS = np.array([0, 1, 0, 1, 0, 1, 0, 2, 0, 1, 2, 0])  # files of one group are of one class
# several cases of one shape share a compiled program
CASES = {
    "sizes": (problems.mixed, np.arange(FILES) % 2),
    "background": (problems.fixed, np.arange(FILES) // 6),
    "affine": (problems.affine, np.arange(FILES) // 7),
    "one chunk": (problems.idle, ALONE),
    "one chunk each": (problems.replicated, np.arange(FILES) % 2),
    "one size": (problems.alike, np.arange(FILES) % 3),
    "groups and writes": (problems.grouped, GROUPS),
}


def shares_of_nodes(plain: Plain, done: np.ndarray, seed: int) -> np.ndarray:
    """Weights above the loads, the rest split at random, (K, m)."""
    random = np.random.default_rng(seed)
    parts = random.uniform(0.2, 1.0, done[0].shape)
    return done[0] + (1 - done[0].sum(axis=0)) * parts / parts.sum(axis=0)


def setting(case: Case, of_class: np.ndarray, queue: str, seed: int = 0):
    """A model, a plan by rows (probabilities, stored) that is stable, weights, and the plain problem."""
    model = class_problem(case, of_class, queue)
    probabilities, stored = random_plan(case, model.problem.rows, seed)
    plain = plain_classes(case, of_class, queue)
    done = work(plain, of_files(case, probabilities), of_files(case, stored))
    assert done[0].sum(axis=0).max() < 0.97
    return model, probabilities, stored, shares_of_nodes(plain, done, seed), plain


def told(model: ClassModel, probabilities: np.ndarray, stored: np.ndarray, weights: np.ndarray):
    reads = kind_reads(model, jnp.asarray(probabilities))
    other = other_work(model, jnp.asarray(stored > 0))
    return STATE(model, reads, other, jnp.asarray(weights), jnp.zeros(model.classes))


def slopes(model, probabilities, stored, weights) -> list[np.ndarray]:
    """Derivatives of the latencies at Z by reads (K, C, m), other work (K, 3, K, m) and weights (K, K, m)."""
    reads = kind_reads(model, jnp.asarray(probabilities))
    other = other_work(model, jnp.asarray(stored > 0))
    return [np.asarray(part) for part in SLOPES(model, reads, other, jnp.asarray(weights), jnp.asarray(Z))]


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("name", CASES)
def test_latencies_and_z_are_those_of_the_files_one_by_one(name, queue):
    make, of_class = CASES[name]
    case = make().at_load(0.45)
    model, probabilities, stored, weights, plain = setting(case, of_class, queue)
    found = told(model, probabilities, stored, weights)
    own, kept = of_files(case, probabilities), of_files(case, stored)
    expected, z = latencies(plain, own, kept, weights)
    np.testing.assert_allclose(found.latency, expected, rtol=1e-9)
    finite = np.isfinite(z)
    # the bound is flat at its minimum: z is found to the root of the precision of the bound
    np.testing.assert_allclose(np.asarray(found.z)[finite], z[finite], rtol=1e-4)
    np.testing.assert_array_equal(np.asarray(found.z)[~finite], 0.0)
    several = (plain.k > 1) & (plain.rate > 0)
    np.testing.assert_array_equal(finite, [several[of_class == k].any() for k in range(plain.classes)])


@pytest.mark.parametrize("queue", QUEUES)
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), load=st.floats(0.05, 0.5), z=st.floats(-5.0, 30.0))
def test_latencies_at_a_given_z(queue, seed, load, z):
    case = problems.mixed(1).at_load(load)
    of_class = np.arange(FILES) % 2
    model, probabilities, stored, weights, plain = setting(case, of_class, queue, seed)
    reads = kind_reads(model, jnp.asarray(probabilities))
    other = other_work(model, jnp.asarray(stored > 0))
    at = np.array([z, z / 2])
    found = AT(model, reads, other, jnp.asarray(weights), jnp.asarray(at))
    np.testing.assert_allclose(found, latencies(plain, probabilities, stored, weights, at)[0], rtol=1e-10)
    best = told(model, probabilities, stored, weights)
    assert np.all(np.asarray(best.latency) <= np.asarray(found) * (1 + 1e-12))


@pytest.mark.parametrize("queue", QUEUES)
def test_slopes_are_differences_of_the_plain_latencies(queue):
    model, probabilities, stored, weights, plain = setting(problems.written().at_load(0.4), HALVES, queue)
    random = np.random.default_rng(5)
    move, push = random.normal(size=probabilities.shape), random.normal(size=weights.shape)
    more = random.uniform(0, 1, plain.background.shape)

    def moved(step: float) -> np.ndarray:
        """More of everything: reads, background work (served with the last class) and shares of nodes."""
        other = replace(plain, background=plain.background + step * more)
        return latencies(other, probabilities + step * move, stored, weights + step * push, Z)[0]

    by_reads, by_other, by_weight = slopes(model, probabilities, stored, weights)
    along = np.einsum("lcj,cj->l", by_reads, np.asarray(kind_reads(model, jnp.asarray(move))))
    along += np.einsum("lnj,nj->l", by_other[:, :, -1], more)
    if queue == "weighted":
        along += np.einsum("lkj,kj->l", by_weight, push)
    else:
        assert not by_weight.any()
    step = 1e-5
    np.testing.assert_allclose((moved(step) - moved(-step)) / (2 * step), along, rtol=1e-6)


@pytest.mark.parametrize("queue", QUEUES)
def test_slopes_where_a_class_is_not_read(queue):
    # a class without work at a node: its first chunk delays the others as much as the next ones
    model, probabilities, stored, weights, plain = setting(problems.written().at_load(0.4), HALVES, queue)
    probabilities[1::2, 3] = 0.0  # not feasible, which derivatives do not mind
    probabilities[::2, 4] = 0.0
    stored = np.zeros_like(stored)
    move = np.random.default_rng(2).uniform(0, 1, probabilities.shape)
    by_reads = slopes(model, probabilities, stored, weights)[0]
    along = np.einsum("lcj,cj->l", by_reads, np.asarray(kind_reads(model, jnp.asarray(move))))
    step = 1e-5
    near, far, farther = (
        latencies(plain, probabilities + size * move, stored, weights, Z)[0] for size in (0, step, 2 * step)
    )
    np.testing.assert_allclose((4 * far - 3 * near - farther) / (2 * step), along, rtol=1e-6)


def test_slopes_by_row_are_those_by_kind_with_groups():
    case = problems.grouped().at_load(0.4)
    model = class_problem(case, GROUPS, "priority")
    random = np.random.default_rng(0)
    p, by_kind = (
        random.normal(size=(model.problem.rows, NODES)),
        random.normal(size=(len(model.kind_bytes), NODES)),
    )
    forward = np.sum(np.asarray(kind_reads(model, jnp.asarray(p))) * by_kind)
    back = np.sum(np.asarray(of_rows_by_kind(model, jnp.asarray(by_kind))) * p)
    assert forward == pytest.approx(back, rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_many_kinds_take_another_path_to_the_same(grouped, monkeypatch):
    files = 80
    table = problems.mixed_files(0, files)
    of_class = np.arange(files) % 2
    if grouped:
        table = table.assign(k=3, group=[f"g{i % 6}" if i < 48 else None for i in range(files)])
    case = Case(problems.moment_nodes(), table).at_load(0.4)
    model, probabilities, stored, weights, plain = setting(case, of_class, "priority")
    assert model.mix is None and len(model.kind_bytes) > 64
    monkeypatch.setattr(module, "_MOST_DENSE", files)
    dense = class_problem(case, of_class, "priority")
    assert dense.mix is not None
    points = jnp.asarray(probabilities)
    by_kind = jnp.asarray(np.random.default_rng(0).normal(size=(files, NODES)))
    np.testing.assert_allclose(kind_reads(model, points), kind_reads(dense, points), rtol=1e-12)
    np.testing.assert_allclose(of_rows_by_kind(model, by_kind), of_rows_by_kind(dense, by_kind), rtol=1e-12)
    if not grouped:
        return  # the rest is the same program
    found = told(model, probabilities, stored, weights)
    expected = latencies(plain, of_files(case, probabilities), of_files(case, stored), weights)[0]
    np.testing.assert_allclose(found.latency, expected, rtol=1e-9)


def test_one_class_is_first_come_first_served():
    case = problems.written().at_load(0.45)
    model, probabilities, stored, weights, _ = setting(case, np.zeros(FILES, int), "priority")
    found = told(model, probabilities, stored, weights)
    reference = EVALUATE(model.problem, jnp.asarray(probabilities), jnp.asarray(stored > 0), jnp.zeros(()))
    np.testing.assert_allclose(found.latency[0], reference.latency_shared_z, rtol=1e-12)
    np.testing.assert_allclose(found.z[0], reference.z, rtol=1e-9)


@pytest.mark.parametrize("queue", QUEUES)
def test_an_unstable_class_makes_all_latencies_infinite(queue):
    case = problems.mixed().at_load(0.45)
    of_class = np.arange(FILES) % 2
    model, probabilities, stored, weights, plain = setting(case, of_class, queue)
    done = work(plain, probabilities, stored)
    if queue == "priority":
        case = case.scaled(rate=1.01 / done[0].sum(axis=0).max())
        model, plain = class_problem(case, of_class, queue), plain_classes(case, of_class, queue)
    else:
        weights[1, 2] = 0.99 * done[0][1, 2]
        weights[0, 2] = 1 - weights[1, 2]
    assert not stable(plain, work(plain, probabilities, stored), weights)
    assert np.all(np.isinf(told(model, probabilities, stored, weights).latency))


def test_objective_has_latencies_and_charges():
    case = problems.mixed().at_load(0.45)
    of_class = np.arange(FILES) % 2
    model, probabilities, stored, weights, plain = setting(case, of_class, "priority")
    random = np.random.default_rng(0)
    surcharge, reading = random.uniform(0, 2, (2, FILES, NODES))
    plain = replace(plain, price=plain.price + surcharge, reading=reading)
    problem = replace(model.problem, surcharge=jnp.asarray(surcharge), reading=jnp.asarray(reading))
    kept, by_reading = tolls(replace(model, problem=problem), 0.3)
    coefficient = np.array([0.7, 0.0])
    goal = Goal(jnp.asarray(coefficient), jnp.full(2, jnp.inf), kept, by_reading, jnp.ones(FILES, bool))
    latency = told(model, probabilities, stored, weights).latency
    expected = coefficient @ latencies(plain, probabilities, stored, weights)[0] + charges(
        plain, probabilities, stored, 0.3
    )
    value = goal.value(latency, jnp.asarray(probabilities), jnp.asarray(stored > 0))
    assert value == pytest.approx(expected, rel=1e-9)
    # a class that does not count may be in any state
    starved = jnp.asarray([latency[0], jnp.inf])
    assert goal.value(starved, jnp.asarray(probabilities), jnp.asarray(stored > 0)) == value


def test_even_weights_leave_every_class_the_same_room():
    case = problems.fixed().at_load(0.6)
    model, probabilities, stored, _, plain = setting(case, np.arange(FILES) % 3, "weighted")
    other = other_work(model, jnp.asarray(stored > 0))
    done = class_work(model, kind_reads(model, jnp.asarray(probabilities)), other)
    np.testing.assert_allclose(done, work(plain, probabilities, stored), rtol=1e-10, atol=1e-14)
    weights = np.asarray(even_weights(model, done))
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-14)
    room = weights - np.asarray(done[0])
    assert np.all(room > 0)
    np.testing.assert_allclose(room, np.broadcast_to(room[:1], room.shape), rtol=1e-10)


def test_classes_have_reads_and_rows_one_class():
    problem = problems.grouped().problem()
    with pytest.raises(ValueError, match="one class"):
        class_model(problem, np.arange(FILES) // 6, 2, "priority")
    with pytest.raises(ValueError, match="class 1 has no reads"):
        class_model(problem, np.zeros(FILES, int), 2, "priority")
