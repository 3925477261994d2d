"""The spread of reads of service classes, against SciPy's SLSQP on the same objective written out in NumPy."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize.classes.plain_classes import (
    TINY_CLASSES,
    Plain,
    best_spread,
    charges,
    class_problem,
    feasible_spreads,
    latencies,
    plain_classes,
    spare_weights,
    stable,
    tiny_case,
    tiny_placement,
    work,
)

from ecjax.optimize import Stopping
from ecjax.optimize.classes.model import QUEUES, ClassModel, other_work, tolls
from ecjax.optimize.classes.scheduling import Fixed, Goal, Scheduled, schedule

LONG = Stopping(eps=1e-13, max_iterations=3000)
THETA = 0.05
NO_LIMITS = np.full(2, np.inf)
EVERY = np.ones(4, bool)
SEEDS = [0, 1, 2, 3]


class Setting(NamedTuple):
    model: ClassModel
    plain: Plain
    start: np.ndarray
    stored: np.ndarray
    weights: np.ndarray

    def goal(self, coefficient, limits=NO_LIMITS, movable=EVERY) -> Goal:
        kept, reading = tolls(self.model, THETA)
        return Goal(jnp.asarray(coefficient, float), jnp.asarray(limits), kept, reading, jnp.asarray(movable))

    def run(self, goal: Goal, start=None, z=(0.0, 0.0)) -> Scheduled:
        stored = jnp.asarray(self.stored > 0)
        fixed = Fixed(stored, other_work(self.model, stored), jnp.asarray(self.weights))
        begin = jnp.asarray(self.start if start is None else start)
        return schedule(self.model, goal, fixed, begin, jnp.asarray(z), stopping=LONG)

    def latencies(self, probabilities, z=None):
        return latencies(self.plain, np.asarray(probabilities), self.stored, self.weights, z)[0]

    def value(self, coefficient, probabilities, z=None) -> float:
        charge = charges(self.plain, np.asarray(probabilities), self.stored, THETA)
        return float(np.asarray(coefficient) @ self.latencies(probabilities, z) + charge)

    def best(self, coefficient, start, z, movable=EVERY, limits=None) -> float:
        return best_spread(
            self.plain,
            self.stored,
            np.asarray(coefficient, float),
            np.asarray(start),
            weights=self.weights,
            z=None if z is None else np.asarray(z),
            movable=movable,
            limits=limits,
            theta=THETA,
        )[0]


def setting(queue: str, seed: int) -> Setting:
    case = tiny_case(seed, [0.3, 0.6, 0.85][seed % 3])
    start, stored = tiny_placement(case, seed)
    plain = plain_classes(case, TINY_CLASSES, queue)
    weights = spare_weights(work(plain, start, stored))
    return Setting(class_problem(case, TINY_CLASSES, queue), plain, start, stored, weights)


@pytest.mark.parametrize("queue", QUEUES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_step_keeps_its_promises(queue, seed):
    random = np.random.default_rng(seed)
    given_ = setting(queue, seed)
    starts = [
        start
        for start in feasible_spreads(given_.plain, given_.stored, 8, seed)
        if stable(given_.plain, work(given_.plain, start, given_.stored), given_.weights)
    ]
    start = starts[0] if starts else given_.start
    before = given_.latencies(start)
    # coefficients of 0, limits that hold, that are broken, and that there are not
    coefficient = random.uniform(0, 1, 2) * random.integers(0, 2, 2)
    limits = np.where(random.random(2) < 0.5, np.inf, before * random.uniform(0.9, 1.3, 2))
    movable = random.random(4) < 0.8
    goal = given_.goal(coefficient, limits, movable)
    found = given_.run(goal, start)
    reads = np.asarray(found.probabilities)
    after = given_.latencies(reads)
    np.testing.assert_allclose(found.latency, after, rtol=1e-9)
    assert given_.value(coefficient, reads) <= given_.value(coefficient, start) * (1 + 1e-9)
    assert np.all(after <= np.maximum(limits, before) * (1 + 1e-9))
    assert np.all(np.asarray(found.multiplier) >= 0)
    assert np.all(np.asarray(found.multiplier)[np.isinf(limits)] == 0)
    np.testing.assert_allclose(reads.sum(axis=1), given_.plain.k, atol=1e-12)
    assert reads.min() >= 0 and reads.max() <= 1
    assert np.all(reads[given_.stored == 0] == 0)
    np.testing.assert_array_equal(reads[~movable], start[~movable])


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_queues_reach_the_best_spread(seed):
    # convex for fixed z: where the descent ends nothing is better at its z, and SLSQP finds nothing better with its own
    given_ = setting("weighted", seed)
    coefficient = np.array([0.7, 0.3])
    found = given_.run(given_.goal(coefficient))
    reached = given_.value(coefficient, found.probabilities)
    assert reached == pytest.approx(given_.best(coefficient, given_.start, found.z), rel=1e-8)
    assert reached <= given_.best(coefficient, given_.start, None) * (1 + 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [0, 1])
def test_priority_reaches_the_best_spread_of_a_class(number, seed):
    given_ = setting("priority", seed)
    coefficient, movable = np.eye(2)[number], TINY_CLASSES == number
    found = given_.run(given_.goal(coefficient, movable=movable))
    reached = given_.value(coefficient, found.probabilities)
    assert reached == pytest.approx(given_.best(coefficient, given_.start, found.z, movable), rel=1e-8)


@pytest.mark.parametrize("seed", [2, 4])
def test_priority_of_all_classes_ends_where_nothing_is_better_nearby(seed):
    # seed 4: a class comes to a node that it did not read, which its derivative there has to promise
    given_ = setting("priority", seed)
    coefficient = np.array([0.5, 0.5])
    found = given_.run(given_.goal(coefficient))
    reached = given_.value(coefficient, found.probabilities)
    assert reached <= given_.best(coefficient, found.probabilities, None) * (1 + 1e-9)
    assert reached <= given_.best(coefficient, given_.start, None) * (1 + 1e-6)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", [0, 1])
def test_limits_are_met_at_the_least_cost(queue, seed):
    # reads cost where the limited class would go
    given_ = setting(queue, seed)
    quick = given_.run(given_.goal([1.0, 0.0], movable=TINY_CLASSES == 0))
    reading = np.random.default_rng(seed).uniform(0, 5, (4, 4)) * quick.latency.mean()
    plain = given_.plain
    plain = Plain(**{**vars(plain), "reading": np.asarray(reading) * 4 / THETA})
    given_ = given_._replace(plain=plain)
    limits = np.array([float(quick.latency[0]) * 1.1, np.inf])
    coefficient = np.array([0.5, 0.5])
    goal = given_.goal(coefficient, limits)
    goal = Goal(goal.coefficient, goal.limit, goal.kept, jnp.asarray(reading), goal.movable)
    found = given_.run(goal, quick.probabilities, quick.z)
    assert float(found.latency[0]) == pytest.approx(limits[0], rel=1e-5)  # the limit is at work
    assert float(found.latency[0]) <= limits[0]
    reached = given_.value(coefficient, found.probabilities)
    best = given_.best(coefficient, quick.probabilities, found.z, limits=limits)
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
    given_ = Setting(
        class_problem(case, TINY_CLASSES, "priority"), plain, start, stored, np.full((2, 4), 0.5)
    )
    first = given_.run(given_.goal([1.0, 0.0], movable=TINY_CLASSES == 0))
    starved = float(first.latency[1])
    even = given_.latencies(start)
    assert float(first.latency[0]) < even[0] and starved > 3 * even[1]
    limits = np.array([float(first.latency[0]) * 1.01, np.inf])
    goal = given_.goal([0.0, 1.0], limits, TINY_CLASSES == 1)
    second = given_.run(goal, first.probabilities, first.z)
    best = given_.best([0.0, 1.0], second.probabilities, second.z, TINY_CLASSES == 1, limits)
    assert given_.value([0.0, 1.0], second.probabilities) == pytest.approx(best, rel=2e-5)
    assert float(second.latency[1]) < 0.3 * starved
