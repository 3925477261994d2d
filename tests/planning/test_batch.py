"""Batches: lanes are problems of their own, programs are compiled once per shape, float32 is checked in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest

from ecjax.planning import METHODS, Solution, jlcm, lanes_per_batch

DESCENDED = tuple(name for name in METHODS if name != "certified")
THETA = [0.0, 5.0, 50.0]
COMPILED = "/jax/core/compile/backend_compile_duration"


def lane(plans, index: int, method: str = "published") -> Solution:
    return jax.tree.map(lambda leaf: np.asarray(leaf[index]), plans.by_method[method])


def assert_same(one, other, rtol=1e-9):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9), one, other)


def assert_same_plan(one: Solution, other: Solution):
    """The optimum is flat: probabilities agree to the root of what the objective agrees to."""
    np.testing.assert_array_equal(one.stored, other.stored)
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-4)
    np.testing.assert_allclose(one.evaluation.objective, other.evaluation.objective, rtol=1e-9)
    np.testing.assert_allclose(one.evaluation.cost, other.evaluation.cost, rtol=1e-12)


@pytest.fixture(scope="module")
def mixed():
    return problems.solve(problems.mixed(), THETA)


def test_a_lane_equals_the_problem_solved_alone(mixed):
    for index, theta in enumerate(THETA):
        alone = problems.solve(problems.mixed(), [theta] * len(THETA))
        assert_same_plan(lane(mixed, index), lane(alone, 0))


def test_lanes_of_scaled_rates_and_sizes_are_the_problems_of_scaled_tables():
    case = problems.mixed()
    scales = [(0.5, 1.0), (1.0, 0.5), (1.2, 0.7)]
    rates, sizes = zip(*scales, strict=True)
    plans = problems.solve(case, 5.0, rates, sizes)
    for index, (rate, size) in enumerate(scales):
        # as often, for one program; that of one lane is rounded otherwise than wider ones
        alone = problems.solve(case.scaled(rate, size), [5.0] * len(scales))
        assert_same_plan(lane(plans, index), lane(alone, 0))


def test_a_batch_padded_with_repeats_gives_the_same_lanes(mixed):
    padded = problems.solve(problems.mixed(), [THETA[0], THETA[1], THETA[1]])
    jax.tree.map(np.testing.assert_array_equal, lane(padded, 1), lane(padded, 2))
    for index in (0, 1):
        assert_same(lane(padded, index), lane(mixed, index), rtol=1e-12)


def test_a_lane_does_not_change_when_its_neighbours_are_overloaded(mixed):
    """A neighbour whose start has to be balanced, and one for which nothing helps."""
    beside = problems.solve(problems.mixed(), THETA[1], rate=[1.0, 1.9, 50.0])
    assert_same_plan(lane(beside, 0), lane(mixed, 1))
    assert np.isfinite(lane(beside, 1).evaluation.objective)
    hopeless = lane(beside, 2)
    assert hopeless.evaluation.objective == np.inf and not hopeless.converged
    assert np.asarray(beside.start_load)[2].max() >= 1


def test_one_compilation_for_all_values_of_one_shape(mixed, monkeypatch):
    traced, compiled = [], []
    published = jlcm.published
    monkeypatch.setattr(jlcm, "published", lambda *arguments: traced.append(1) or published(*arguments))

    def listen(event, duration, **_):
        if event == COMPILED:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(lambda x: x * 3 + len(THETA))(jnp.ones(3))
        assert compiled, "the event that counts compilations has another name"
        problem = problems.affine()
        problems.solve(problem, [1.0, 2.0, 3.0])  # other small programs may compile here
        count = len(compiled)
        problems.solve(problem.scaled(0.7), [4.0, 5.0, 6.0], rate=0.9)
        assert not traced and len(compiled) == count
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.slow
def test_float32_is_close_and_its_plan_is_evaluated_in_float64():
    case = problems.tiny()
    narrow = lane(problems.solve(case, 5.0, dtype="float32"), 0)
    assert narrow.probabilities.dtype == np.float64
    np.testing.assert_allclose(narrow.probabilities.sum(axis=1), case.k, atol=1e-9)
    assert not np.any(narrow.probabilities[~narrow.stored])
    expected = problems.outcome(case, narrow.probabilities, narrow.stored)
    found = narrow.evaluation
    np.testing.assert_allclose(found.latency_shared_z, expected.latency_shared_z_s, rtol=1e-10)
    np.testing.assert_allclose(found.latency, expected.latency_s, rtol=1e-10)
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-12)
    wide = lane(problems.solve(case, 5.0), 0)
    np.testing.assert_allclose(found.objective, wide.evaluation.objective, rtol=0.01)


def test_lanes_that_fit_in_memory():
    problem = problems.mixed().problem()
    one = lanes_per_batch(problem, 1.0, "float64")
    assert one == 1
    many = lanes_per_batch(problem, 1e9, "float64")
    assert many > 100
    assert lanes_per_batch(problem, 2e9, "float64") == pytest.approx(2 * many, abs=1)
    assert lanes_per_batch(problem, 1e9, "float32") == pytest.approx(2 * many, abs=1)
