"""Bounds on how much better reads could be spread, against random spreads, SciPy and the optimum itself."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import problems
import pytest
from planning.classes.plain_classes import (
    EVERY,
    NO_LIMITS,
    TINY_CLASSES,
    Tiny,
    class_problem,
    feasible_spreads,
    plain_classes,
    spare_weights,
    tiny,
    tiny_case,
    work,
)
from problems import NODES, Case

from ecjax.planning.classes.certificate import Gaps, scheduling_gap
from ecjax.planning.classes.model import QUEUES, kind_reads, state
from ecjax.planning.classes.scheduling import Goal

SEEDS = [0, 1, 2]
COEFFICIENT = np.array([0.6, 0.4])


def gaps(both: Tiny, goal: Goal, probabilities, z, multiplier=(0.0, 0.0)) -> Gaps:
    arrays = (jnp.asarray(part, float) for part in (probabilities, z, multiplier))
    return scheduling_gap(both.model, goal, both.fixed, *arrays)


def best_z(both: Tiny, probabilities) -> np.ndarray:
    reads = kind_reads(both.model, jnp.asarray(probabilities))
    fixed = both.fixed
    return np.asarray(state(both.model, reads, fixed.other, fixed.weights, jnp.zeros(2)).z)


def spreads(both: Tiny, plan, movable, seed: int) -> list[np.ndarray]:
    """Random spreads, some near to vertices and some near to the plan, in which only some rows differ from it."""
    found = []
    for concentration in (0.02, 0.3, 2.0):
        for other in feasible_spreads(both.plain, both.stored, 12, seed, concentration):
            for share in (1.0, 0.2):
                found.append(np.where(movable[:, None], plan + share * (other - plan), plan))
    return found


def least(both: Tiny, coefficient, plan, z, movable, seed: int, limits=NO_LIMITS) -> float:
    """The least objective among random spreads that are stable and keep the limits."""
    values = [both.value(coefficient, plan, z)]
    for other in spreads(both, plan, movable, seed):
        latency = both.latencies(other, z)
        if np.all(np.isfinite(latency)) and np.all(latency <= limits):
            values.append(both.value(coefficient, other, z))
    return min(values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("queue", QUEUES)
def test_no_spread_of_a_class_is_below_its_bound(queue, seed):
    both = tiny(queue, seed)
    goal = both.goal(COEFFICIENT)
    z = best_z(both, both.start)
    for at in (z, z + [20.0, -1.0]):
        value = both.value(COEFFICIENT, both.start, at)
        found = gaps(both, goal, both.start, at)
        for number in (0, 1):
            bound = value * (1 - float(found.by_class[number]))
            reached = least(both, COEFFICIENT, both.start, at, TINY_CLASSES == number, seed)
            assert bound <= reached * (1 + 1e-9)
        if queue == "weighted":
            assert float(found.joint) == pytest.approx(min(1.0, float(found.by_class.sum())), rel=1e-12)
            bound = value * (1 - float(found.joint))
            assert bound <= least(both, COEFFICIENT, both.start, at, EVERY, seed) * (1 + 1e-9)
        else:
            assert np.isnan(found.joint)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("queue", QUEUES)
def test_the_gap_covers_what_a_solver_finds(queue, seed):
    both = tiny(queue, seed)
    z = best_z(both, both.start)
    value = both.value(COEFFICIENT, both.start, z)
    found = gaps(both, both.goal(COEFFICIENT), both.start, z)
    for number in (0, 1):
        best = both.best(COEFFICIENT, both.start, z, TINY_CLASSES == number)
        assert 1e-3 < (value - best) / value <= float(found.by_class[number]) <= 1
    if queue == "weighted":
        assert (value - both.best(COEFFICIENT, both.start, z)) / value <= float(found.joint)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("queue", QUEUES)
def test_the_best_spread_has_no_gap(queue, seed):
    both = tiny(queue, seed)
    goal = both.goal(COEFFICIENT)
    done = both.run(goal)
    found = gaps(both, goal, done.probabilities, done.z, done.multiplier)
    if queue == "weighted":
        assert 0 <= float(found.joint) < 1e-6
    for number in (0, 1):
        alone = both.goal(np.eye(2)[number], movable=TINY_CLASSES == number)
        done = both.run(alone)
        found = gaps(both, alone, done.probabilities, done.z, done.multiplier)
        assert 0 <= float(found.by_class[number]) < 1e-6
        # the rows of the other class may not change
        assert float(found.by_class[1 - number]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("queue", QUEUES)
def test_bounds_with_limits(queue):
    # class 1 costs class 0 nothing but its limit
    both = tiny(queue, 1)
    start = both.run(both.goal([1.0, 0.0], movable=TINY_CLASSES == 0))
    limits = np.array([float(start.latency[0]) * 1.02, np.inf])
    coefficient = np.array([0.0, 1.0])
    goal = both.goal(coefficient, limits)
    done = both.run(goal, start.probabilities, start.z)
    reads, z = np.asarray(done.probabilities), np.asarray(done.z)
    value = both.value(coefficient, reads, z)
    for multiplier in (np.asarray(done.multiplier), np.array([0.3, 0.0]), np.array([5.0, 7.0])):
        found = gaps(both, goal, reads, z, multiplier)
        for number in (0, 1):
            bound = value * (1 - float(found.by_class[number]))
            reached = least(both, coefficient, reads, z, TINY_CLASSES == number, 3, limits)
            assert bound <= reached * (1 + 1e-9)
    # the multipliers of the descent leave little: for fixed reads of class 0 nothing better is allowed
    best = both.best(coefficient, reads, z, TINY_CLASSES == 1, limits)
    found = gaps(both, goal, reads, z, done.multiplier)
    assert (value - best) / value <= float(found.by_class[1]) + 1e-9
    # under priority class 0 sees the accesses of class 1 at a node the less, the more there are: no convex problem
    assert float(found.by_class[1]) < (1e-5 if queue == "weighted" else 0.05)


def test_a_hill_is_no_optimum():
    # short accesses before long ones of constant length: the variance of their wait falls with their number, so that at
    # a z far above it an even spread over equal nodes is the worst, with no slope that would tell
    nodes = tiny_case(0, 0.5).nodes.assign(
        service_mean_s=1.0,
        service_second_s2=1.0,
        service_third_s3=1.0,
        reference_bytes=1e6,
        connect_mean_s=0.0,
        connect_var_s2=0.0,
    )
    files = pd.DataFrame(
        {
            "file_id": np.arange(4),
            "k": 2,
            "rate_per_s": [10.0, 0.8, 10.0, 0.8],
            "bytes": [2e4, 2e6, 2e4, 2e6],
            "min_extra_chunks": 0,
        }
    )
    case = Case(nodes, files)
    start, stored = np.full((4, 4), 0.5), np.ones((4, 4))
    plain = plain_classes(case, TINY_CLASSES, "priority")
    model = class_problem(case, TINY_CLASSES, "priority")
    both = Tiny(model, plain, start, stored, np.full((2, 4), 0.5))
    assert work(plain, start, stored)[0].sum(axis=0).max() == pytest.approx(0.9)
    coefficient, z = np.array([1.0, 0.0]), np.array([30.0, 10.0])
    goal = both.goal(coefficient)
    value = both.value(coefficient, start, z)
    found = float(gaps(both, goal, start, z).by_class[0])
    reached = least(both, coefficient, start, z, TINY_CLASSES == 0, 0)
    gain = (value - reached) / value
    assert 1e-6 < gain <= found < 10 * gain


def test_where_there_is_no_certificate():
    case = tiny_case(1, 0.6)
    files = case.files.assign(bytes=case.files["bytes"] * [1.0, 1.0, 1.3, 1.0])
    case = Case(case.nodes, files)
    plain = plain_classes(case, TINY_CLASSES, "weighted")
    start, stored = case.k[:, None] / 4 * np.ones((4, 4)), np.ones((4, 4))
    model = class_problem(case, TINY_CLASSES, "weighted")
    both = Tiny(model, plain, start, stored, spare_weights(work(plain, start, stored)))
    found = gaps(both, both.goal(COEFFICIENT), start, [3.0, 5.0])
    assert np.isnan(found.by_class[0]) and np.isnan(found.joint)
    assert float(found.by_class[1]) > 0


@pytest.mark.slow
def test_a_class_of_one_size_beside_many_sizes():
    count = 140
    files = problems.mixed_files(0, count)
    of_class = np.arange(count) % 2
    files["bytes"] = np.where(of_class == 0, 2e6 * files["k"], files["bytes"])
    case = Case(problems.moment_nodes(), files).at_load(0.5)
    plain = plain_classes(case, of_class, "priority")
    model = class_problem(case, of_class, "priority")
    assert model.mix is None
    start, stored = case.even, np.ones((count, NODES))
    both = Tiny(model, plain, start, stored, np.full((2, NODES), 0.5))
    goal = both.goal(COEFFICIENT, movable=np.ones(count, bool))
    z = np.array([3.0, 8.0])
    found = gaps(both, goal, start, z)
    assert np.isnan(found.by_class[1])
    value = both.value(COEFFICIENT, start, z)
    bound = value * (1 - float(found.by_class[0]))
    for other in feasible_spreads(plain, stored, 3, 0, 0.1):
        blend = np.where(of_class[:, None] == 0, start + 0.2 * (other - start), start)
        assert bound <= both.value(COEFFICIENT, blend, z) < np.inf
    # the fastest nodes are read too little by an even spread
    per_byte = case.node("service_mean_s") / case.node("reference_bytes")
    fast = np.exp(-per_byte / per_byte.mean())
    better = np.minimum(1, plain.k[:, None] * fast / fast.sum())
    better += (
        (plain.k - better.sum(axis=1))[:, None]
        * (1 - better)
        / np.maximum(1 - better, 1e-9).sum(axis=1)[:, None]
    )
    reached = both.value(COEFFICIENT, np.where(of_class[:, None] == 0, better, start), z)
    assert bound <= reached < value
    assert 0 < float(found.by_class[0]) < 1


def second_differences(count: int, seed: int, others: str) -> np.ndarray:
    """Least second difference of x G(x) over nine points each, relative to its size, for random nodes and z: (count,).

    Args:
        count: nodes.
        seed: of the draws.
        others: work beside that of the class: "own" (served with it, as all of a weighted queue), "before" (and of
            classes before it), "after" (and of classes after it).
    """
    random = np.random.default_rng(seed)

    def moments() -> np.ndarray:
        """Of any law: m_2 >= m_1^2, m_1 m_3 >= m_2^2, equal for constants; (3, count, 1)."""
        first = np.exp(random.normal(0, 2, count))
        spread, skew = (
            np.where(random.random(count) < 0.3, 0, np.exp(random.normal(-1, 2, count))) for _ in range(2)
        )
        second = first**2 * (1 + spread)
        return np.array([first, second, second**2 / first * (1 + skew)])[:, :, None]

    def some(load: np.ndarray) -> np.ndarray:
        """Load, A_2 and A_3 of other work."""
        law = moments()
        return load[:, None] * law / law[0]

    chosen = random.random((3, count))
    none = np.zeros(count)
    before = some(none if others == "own" else 0.9 * chosen[0] * (random.random(count) < 0.7))
    left = 1 - before[0, :, 0]
    beside = some(left * 0.9 * chosen[1] * (random.random(count) < 0.5))
    left = left - beside[0, :, 0]
    after = some(none if others != "after" else left * 0.999 * np.sqrt(chosen[2]))
    left = left - after[0, :, 0]
    law = moments()
    ends = np.sort(random.random((2, count, 1)), axis=0)
    x = (ends[0] + np.diff(ends, axis=0)[0] * np.linspace(0, 1, 9)) * 0.999 * left[:, None] / law[0]

    a = 1 - before[0]
    own = beside + law * x
    b = a - own[0]
    b_k, c_k = before[1], before[1] + own[1]
    a_2, a_3 = (before[n] + own[n] + after[n] for n in (1, 2))
    wait = a_2 / (2 * a * b)
    square = a_3 / (3 * a**2 * b) + a_2 * c_k / (2 * a**2 * b**2) + a_2 * b_k / (2 * a**3 * b)
    connect = np.where(random.random(count) < 0.5, 0, np.exp(random.normal(0, 3, count)))[:, None]
    mean, variance = law[0] + wait, np.maximum(law[1] - law[0] ** 2 + square - wait**2, 0) + connect
    away = random.choice([-1, 1], count) * np.exp(random.normal(1, 2, count))
    z = mean.mean(axis=1) + away * np.sqrt(variance.mean(axis=1))
    d = mean - z[:, None]
    value = x * 0.5 * (d + np.sqrt(d**2 + variance))
    # x z and x E cancel where z is far above: rounding is relative to them
    size = x.max(axis=1) * (np.abs(z) + mean.max(axis=1))
    return np.min(value[:, :-2] - 2 * value[:, 1:-1] + value[:, 2:], axis=1) / size


@pytest.mark.parametrize("others", ["own", "before"])
def test_what_is_proved_convex_is(others):
    assert second_differences(50_000, 1, others).min() > -1e-13


def test_own_part_of_a_class_before_others_is_not_convex():
    found = second_differences(50_000, 1, "after")
    assert found.min() < -1e-4
    # and that is rare
    assert np.mean(found < -1e-9) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("others", ["own", "before"])
def test_what_is_proved_convex_is_on_a_wide_grid(others):
    for seed in range(40):
        assert second_differences(200_000, 100 + seed, others).min() > -1e-13


def test_parts_of_other_classes_are_not_convex():
    # class 0 is hardly there; its reads meet ever more rare and long accesses of class 1
    both = tiny("priority", 0)
    moments = both.plain.moments.copy()
    moments[2, TINY_CLASSES == 1] *= 1e3
    plain = replace(both.plain, moments=moments)
    values = []
    for share in (0.0, 0.5, 1.0):
        reads = both.start.copy()
        reads[1::2, 0] *= share  # not feasible, which does not matter to one node
        values.append(
            Tiny(both.model, plain, reads, both.stored, both.weights).latencies(reads, [2.0, 5.0])[0]
        )
    assert values[0] - 2 * values[1] + values[2] < -0.05 * values[1]


def test_a_file_that_is_never_read_takes_no_proof_away():
    """Its size is of no chunk that is read: the gaps are those without it being of another size."""
    case = tiny_case(1, 0.6)
    rates = case.files["rate_per_s"] * [1.0, 1.0, 0.0, 1.0]
    files = case.files.assign(rate_per_s=rates, stored_bytes=case.files["bytes"])
    start, stored = case.k[:, None] / 4 * np.ones((4, 4)), np.ones((4, 4))
    found = []
    for size in (1.0, 1.3):
        given = Case(case.nodes, files.assign(bytes=files["bytes"] * [1.0, 1.0, size, 1.0]))
        plain = plain_classes(given, TINY_CLASSES, "weighted")
        model = class_problem(given, TINY_CLASSES, "weighted")
        both = Tiny(model, plain, start, stored, spare_weights(work(plain, start, stored)))
        found.append(gaps(both, both.goal(COEFFICIENT), start, [3.0, 5.0]))
    same, other = found
    assert np.all(np.isfinite(same.by_class))
    np.testing.assert_allclose(other.by_class, same.by_class, rtol=1e-12)
    np.testing.assert_allclose(other.joint, same.joint, rtol=1e-12)
