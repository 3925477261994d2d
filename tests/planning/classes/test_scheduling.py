"""The spread of reads of service classes, against SciPy's SLSQP on the same objective written out in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning.classes.plain_classes import (
    THETA,
    TINY_CLASSES,
    Plain,
    Tiny,
    class_problem,
    feasible_spreads,
    plain_classes,
    stable,
    tiny,
    tiny_case,
    work,
)

from ecjax.planning.classes.model import QUEUES
from ecjax.planning.classes.scheduling import Goal

SEEDS = [0, 1, 2, 3]


@pytest.mark.parametrize("queue", QUEUES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_step_keeps_its_promises(queue, seed):
    random = np.random.default_rng(seed)
    both = tiny(queue, seed)
    starts = [
        start
        for start in feasible_spreads(both.plain, both.stored, 8, seed)
        if stable(both.plain, work(both.plain, start, both.stored), both.weights)
    ]
    start = starts[0] if starts else both.start
    before = both.latencies(start)
    # coefficients of 0, limits that hold, that are broken, and that there are not
    coefficient = random.uniform(0, 1, 2) * random.integers(0, 2, 2)
    limits = np.where(random.random(2) < 0.5, np.inf, before * random.uniform(0.9, 1.3, 2))
    movable = random.random(4) < 0.8
    goal = both.goal(coefficient, limits, movable)
    found = both.run(goal, start)
    reads = np.asarray(found.probabilities)
    after = both.latencies(reads)
    np.testing.assert_allclose(found.latency, after, rtol=1e-9)
    assert both.value(coefficient, reads) <= both.value(coefficient, start) * (1 + 1e-9)
    assert np.all(after <= np.maximum(limits, before) * (1 + 1e-9))
    assert np.all(np.asarray(found.multiplier) >= 0)
    assert np.all(np.asarray(found.multiplier)[np.isinf(limits)] == 0)
    np.testing.assert_allclose(reads.sum(axis=1), both.plain.k, atol=1e-12)
    assert reads.min() >= 0 and reads.max() <= 1
    assert np.all(reads[both.stored == 0] == 0)
    np.testing.assert_array_equal(reads[~movable], start[~movable])


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_queues_reach_the_best_spread(seed):
    # convex for fixed z: where the descent ends nothing is better at its z, and SLSQP finds nothing better with its own
    both = tiny("weighted", seed)
    coefficient = np.array([0.7, 0.3])
    found = both.run(both.goal(coefficient))
    reached = both.value(coefficient, found.probabilities)
    assert reached == pytest.approx(both.best(coefficient, both.start, found.z), rel=1e-8)
    assert reached <= both.best(coefficient, both.start, None) * (1 + 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [0, 1])
def test_priority_reaches_the_best_spread_of_a_class(number, seed):
    both = tiny("priority", seed)
    coefficient, movable = np.eye(2)[number], TINY_CLASSES == number
    found = both.run(both.goal(coefficient, movable=movable))
    reached = both.value(coefficient, found.probabilities)
    assert reached == pytest.approx(both.best(coefficient, both.start, found.z, movable), rel=1e-8)


@pytest.mark.parametrize("seed", [2, 4])
def test_priority_of_all_classes_ends_where_nothing_is_better_nearby(seed):
    # seed 4: a class comes to a node that it did not read, which its derivative there has to promise
    both = tiny("priority", seed)
    coefficient = np.array([0.5, 0.5])
    found = both.run(both.goal(coefficient))
    reached = both.value(coefficient, found.probabilities)
    assert reached <= both.best(coefficient, found.probabilities, None) * (1 + 1e-9)
    assert reached <= both.best(coefficient, both.start, None) * (1 + 1e-6)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", [0, 1])
def test_limits_are_met_at_the_least_cost(queue, seed):
    # reads cost where the limited class would go
    both = tiny(queue, seed)
    quick = both.run(both.goal([1.0, 0.0], movable=TINY_CLASSES == 0))
    reading = np.random.default_rng(seed).uniform(0, 5, (4, 4)) * quick.latency.mean()
    plain = both.plain
    plain = Plain(**{**vars(plain), "reading": np.asarray(reading) * 4 / THETA})
    both = both._replace(plain=plain)
    limits = np.array([float(quick.latency[0]) * 1.1, np.inf])
    coefficient = np.array([0.5, 0.5])
    goal = both.goal(coefficient, limits)
    goal = Goal(goal.coefficient, goal.limit, goal.storing, jnp.asarray(reading), goal.movable)
    found = both.run(goal, quick.probabilities, quick.z)
    assert float(found.latency[0]) == pytest.approx(limits[0], rel=1e-5)  # the limit is at work
    assert float(found.latency[0]) <= limits[0]
    reached = both.value(coefficient, found.probabilities)
    best = both.best(coefficient, quick.probabilities, found.z, limits=limits)
    assert reached == pytest.approx(best, rel=2e-5)


def test_a_class_is_not_starved_for_good():
    # class 0 alone would fill the fast nodes to the brink; the next step has to get class 1 out of there
    case = tiny_case(0, 0.5)
    files = case.files.assign(k=2, rate_per_s=[1.0, 0.3, 1.5, 0.2], bytes=2e6)
    case = type(case)(case.nodes, files)
    fast = case.node("reference_bytes") / case.node("service_mean_s")
    start = np.tile(np.minimum(1, 2 * fast / fast.sum()), (4, 1))
    stored = np.ones_like(start)
    plain = plain_classes(case, TINY_CLASSES, "priority")
    assert start[0].sum() == pytest.approx(2)
    case = case.scaled(rate=0.97 / work(plain, start, stored)[0].sum(axis=0).max())
    plain = plain_classes(case, TINY_CLASSES, "priority")
    both = Tiny(class_problem(case, TINY_CLASSES, "priority"), plain, start, stored, np.full((2, 4), 0.5))
    first = both.run(both.goal([1.0, 0.0], movable=TINY_CLASSES == 0))
    starved = float(first.latency[1])
    even = both.latencies(start)
    assert float(first.latency[0]) < even[0] and starved > 3 * even[1]
    limits = np.array([float(first.latency[0]) * 1.01, np.inf])
    goal = both.goal([0.0, 1.0], limits, TINY_CLASSES == 1)
    second = both.run(goal, first.probabilities, first.z)
    best = both.best([0.0, 1.0], second.probabilities, second.z, TINY_CLASSES == 1, limits)
    assert both.value([0.0, 1.0], second.probabilities) == pytest.approx(best, rel=2e-5)
    assert float(second.latency[1]) < 0.3 * starved
