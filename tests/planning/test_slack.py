"""One z per file: value, gradient and polished plans against the model written out in NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from scipy.optimize import minimize

from ecjax.planning.descent import Stopping
from ecjax.planning.slack import own_slopes, polish
from ecjax.programs import program

compute = program(own_slopes)
polished = program(partial(polish, stopping=Stopping(eps=1e-9, max_iterations=300)))


def latency(case, probabilities, stored) -> float:
    """Mean over files of the least bound, a row per file, by SciPy."""
    of_files = partial(problems.of_files, case)
    return problems.outcome(case, of_files(probabilities), of_files(stored)).latency_s


def slopes(case, probabilities, stored):
    problem = case.problem()
    found = compute(problem, jnp.asarray(probabilities), jnp.asarray(stored), jnp.zeros(len(case.files)))
    return jax.tree.map(np.asarray, found)


def plan(case, seed=0):
    return problems.random_plan(case, case.problem().rows, seed)


@pytest.mark.parametrize("name", [*problems.PLAIN, "grouped"])
def test_value_is_that_of_one_z_per_file(name):
    case = problems.ALL[name]()
    probabilities, stored = plan(case, 1)
    if problems.outcome(case, *(problems.of_files(case, a) for a in (probabilities, stored))).load.max() >= 1:
        case = case.scaled(rate=0.5)
    found = slopes(case, probabilities, stored)
    expected = latency(case, probabilities, stored)
    assert np.isfinite(expected)
    assert found.value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["mixed", "fixed", "affine", "idle", "replicated", "grouped"])
def test_gradient_is_that_of_finite_differences(name):
    case = problems.ALL[name]().scaled(rate=0.7)
    probabilities, stored = plan(case, 2)
    found = slopes(case, probabilities, stored).by_probability
    random = np.random.default_rng(3)
    scale = np.abs(found).max()
    checked = 0
    for row in random.permutation(len(probabilities)):
        # along a move of probability from one node to another: the sum stays k, where the bound of k = 1 has a kink
        inside = np.flatnonzero((probabilities[row] > 0.01) & (probabilities[row] < 0.99))
        if len(inside) < 2:
            continue
        step = np.zeros_like(probabilities)
        step[row, inside[0]], step[row, inside[1]] = 1e-4, -1e-4
        ahead, behind = (latency(case, probabilities + sign * step, stored) for sign in (1, -1))
        expected = (ahead - behind) / 2
        assert np.sum(found * step) == pytest.approx(expected, rel=1e-4, abs=1e-9 * scale)
        checked += 1
    assert checked >= 3


def test_an_overloaded_node_makes_the_latency_infinite():
    case = problems.mixed().scaled(rate=10.0)
    probabilities, stored = plan(case)
    assert np.isinf(slopes(case, probabilities, stored).value)
    found = polished(case.problem(), jnp.asarray(probabilities), jnp.asarray(stored, bool))
    assert np.isinf([found.latency_shared_z, found.latency, found.latency_polished]).all()
    np.testing.assert_array_equal(found.probabilities, probabilities)


@pytest.mark.parametrize("name", ["mixed", "alike", "idle", "replicated", "grouped"])
def test_polished_is_at_most_the_latency_and_that_at_most_the_one_with_a_shared_z(name):
    case = problems.ALL[name]().scaled(rate=0.7)
    probabilities, stored = plan(case, 4)
    found = polished(case.problem(), jnp.asarray(probabilities), jnp.asarray(stored, bool))
    before = problems.outcome(case, *(problems.of_files(case, a) for a in (probabilities, stored)))
    assert found.latency_shared_z == pytest.approx(before.latency_shared_z_s, rel=1e-9)
    assert found.latency == pytest.approx(before.latency_s, rel=1e-9)
    assert found.latency_polished == pytest.approx(
        latency(case, np.asarray(found.probabilities), stored), rel=1e-9
    )
    assert found.latency_polished < found.latency <= found.latency_shared_z * (1 + 1e-12)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), probabilities.sum(axis=1), atol=1e-9)
    assert np.all((found.probabilities >= 0) & (found.probabilities <= stored))


def test_polished_is_as_good_as_slsqp():
    """Two files on all of four nodes; SciPy minimises the bound of ``problems`` from several starts."""
    case = problems.tiny()
    stored = np.ones((2, 4))
    start = case.even

    def whole(x: np.ndarray) -> np.ndarray:
        # the last node takes the rest: exact sums, else the file with k = 1 would leave the bound for k = 1
        free = x.reshape(2, 3)
        return np.column_stack([free, case.k - free.sum(axis=1)])

    best = np.inf
    for seed in range(3):
        noise = np.random.default_rng(seed).uniform(0.9, 1.1, (2, 3)) if seed else np.ones((2, 3))
        found = minimize(
            lambda x: latency(case, whole(x), stored),
            (start[:, :3] * noise).ravel(),
            method="SLSQP",
            bounds=[(0, 1)] * 6,
            constraints=[
                {"type": "ineq", "fun": lambda x: whole(x)[:, 3]},
                {"type": "ineq", "fun": lambda x: 1 - whole(x)[:, 3]},
            ],
            options={"ftol": 1e-11},
        )
        best = min(best, found.fun)
    ours = polished(case.problem(), jnp.asarray(start), jnp.asarray(stored, bool))
    assert ours.latency_polished == pytest.approx(best, rel=1e-5)
