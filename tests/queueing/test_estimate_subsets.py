"""Draws of k nodes against all subsets: marginals, expectations, and derivatives next to 0 and 1."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ecjax.programs import program
from ecjax.queueing.subsets import drawing_probabilities, subset_product

M, MOST = 6, 4


@program
def drawn(marginals):
    return drawing_probabilities(marginals, MOST)


@program
def product(marginals, values):
    return subset_product(drawing_probabilities(marginals, MOST), jnp.round(marginals.sum()), values, MOST)


slope = program(jax.grad(lambda marginals, values: product(marginals, values).sum()))


def by_subsets(p, k):
    """Probability of every subset of k nodes, and the subsets."""
    subsets = [np.isin(np.arange(len(p)), chosen) for chosen in itertools.combinations(range(len(p)), k)]
    weight = np.array([np.prod(np.where(subset, p, 1 - p)) for subset in subsets])
    return weight / weight.sum(), np.array(subsets)


CASES = {
    "equal": [0.5] * 6,
    "one": [0.1, 0.2, 0.3, 0.15, 0.05, 0.2],
    "always and never": [1.0, 0.0, 0.25, 0.75, 0.6, 0.4],
    "near": [0.98, 0.98, 0.02, 0.02, 0.5, 0.5],
    "fixed": [1.0, 1.0, 0.0, 0.0, 1.0, 1.0],
    "nearly fixed": [1.0, 0.999, 0.001, 0.0, 1.0, 1.0],
}


@st.composite
def marginals(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(1, MOST))
    subsets = np.array([rng.permutation(M) < k for _ in range(draw(st.integers(1, 6)))], float)
    return np.average(subsets, axis=0, weights=rng.random(len(subsets)) + 0.01)


def check(pi):
    pi = np.asarray(pi, float)
    k = round(pi.sum())
    p = np.asarray(drawn(pi))
    weight, subsets = by_subsets(p, k)
    assert_allclose(weight @ subsets, pi, atol=3e-7)
    values = np.random.default_rng(k).random((M, 3))
    exact = weight @ np.array([np.prod(values[subset], axis=0) for subset in subsets])
    assert_allclose(product(pi, values), exact, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_marginals_and_expectations_are_those_of_all_subsets(name):
    check(CASES[name])


@given(marginals())
def test_marginals_and_expectations(pi):
    check(pi)


def test_all_nodes_or_the_values_alone():
    values = np.linspace(0.1, 0.9, 12).reshape(4, 3)
    everything = jax.jit(lambda pi: subset_product(drawing_probabilities(pi, 4), pi.sum(), values, 4))
    assert_allclose(everything(jnp.ones(4)), np.prod(values, axis=0), rtol=1e-12)
    assert np.isfinite(jax.jacobian(everything)(jnp.ones(4))).all()


@pytest.mark.parametrize("name", ["equal", "one", "near"])
def test_derivatives_against_differences(name):
    pi = np.asarray(CASES[name])
    values = np.random.default_rng(2).random((M, 3))
    along = np.array([1.0, -1.0, 0.5, 0.5, -2.0, 1.0])
    step = 1e-6
    difference = (product(pi + step * along, values) - product(pi - step * along, values)).sum() / (2 * step)
    assert_allclose(slope(pi, values) @ along, difference, rtol=1e-4, atol=1e-5)


def test_derivatives_next_to_a_fixed_choice_are_those_of_one_exchange():
    pi = np.asarray(CASES["nearly fixed"])
    values = np.random.default_rng(3).random((M, 1))
    along = np.zeros(M)
    along[1], along[2] = -1.0, 1.0  # only the exchange of these two is possible
    kept = math.prod(values[[0, 4, 5], 0])
    assert_allclose(slope(pi, values) @ along, kept * (values[2, 0] - values[1, 0]), rtol=1e-4)


def test_derivatives_at_a_fixed_choice_are_finite_and_prefer_the_better_node():
    pi = np.asarray(CASES["fixed"])
    values = np.random.default_rng(3).random((M, 1))
    values[2] = 1.0
    found = np.asarray(slope(pi, values))
    assert np.isfinite(found).all()
    assert found[2] > found[[0, 1, 3, 4, 5]].max()
