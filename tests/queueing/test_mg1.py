import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads
from numpy.testing import assert_allclose

from ecjax.queueing import Delay, ServiceMoments, fcfs, load, waiting

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


def taylor(transform, radius, order=3, points=64):
    """Taylor coefficients at 0 of an analytic function, from its values on a circle."""
    circle = radius * np.exp(2j * np.pi * np.arange(points) / points)
    return [np.mean(transform(circle) / circle**n).real for n in range(order)]


def wait_by_transform(rate, service_transform, mean_service, radius):
    """Mean and variance of the wait by Pollaczek-Khinchine: E[e^-sW] = (1-rho) s / (s - lambda (1 - B(s)))."""

    def transform(s):
        return (1 - rate * mean_service) * s / (s - rate * (1 - service_transform(s)))

    _, first, second = taylor(transform, radius)
    return -first, 2 * second - first**2


@pytest.mark.parametrize("case", VECTORS["a_mg1_fcfs"])
def test_vectors(case):
    given_, expected = case["inputs"], case["expected"]
    moments = ServiceMoments(*(jnp.array([given_[name]]) for name in ("m1", "m2", "m3")))
    delay = fcfs([given_["lam"]], moments)
    assert_allclose(load([given_["lam"]], moments), expected["rho"], rtol=1e-10)
    assert_allclose(delay.mean, expected["ET"], rtol=1e-10)
    assert_allclose(delay.variance, expected["VarT"], rtol=1e-10)


def test_mixture_against_the_transform():
    # class 0: 0.4 + Exp(0.3) at rate 0.5; class 1: constant 1.1 at rate 0.2; one node
    rates = np.array([[0.5], [0.2]])
    shifted = ServiceMoments.shifted_exponential([0.4], [0.3])
    constant = ServiceMoments.shifted_exponential([1.1], [0.0])
    moments = jax.tree.map(lambda *rows: jnp.stack(rows), shifted, constant)

    def service(s):
        return (0.5 * np.exp(-0.4 * s) / (1 + 0.3 * s) + 0.2 * np.exp(-1.1 * s)) / 0.7

    mean, variance = wait_by_transform(0.7, service, (0.5 * 0.7 + 0.2 * 1.1) / 0.7, radius=0.3)
    delay = fcfs(rates, moments)
    assert_allclose(delay.mean[:, 0], [0.7 + mean, 1.1 + mean], rtol=1e-10)
    assert_allclose(delay.variance[:, 0], [0.09 + variance, variance], rtol=1e-10)


def test_alike_classes_are_one_class():
    rates = np.array([[0.1, 0.2], [0.3, 0.05]])
    row = ServiceMoments.exponential([1.0, 2.0])
    both = jax.tree.map(lambda moment: jnp.stack([moment, moment]), row)
    together, apart = fcfs(rates.sum(axis=0), row), fcfs(rates, both)
    for c in range(2):
        assert_allclose(apart.mean[c], together.mean, rtol=1e-14)
        assert_allclose(apart.variance[c], together.variance, rtol=1e-14)


def test_background_is_a_class_without_a_row():
    rates = np.array([[0.1, 0.2], [0.3, 0.05]])
    moments = ServiceMoments.shifted_exponential([[0.5, 0.6], [0.2, 1.5]], [[0.1, 0.2], [0.3, 0.4]])
    full = fcfs(rates, moments)
    other = tuple(
        rates[1] * np.asarray(moment)[1] for moment in (moments.first, moments.second, moments.third)
    )
    alone = fcfs(rates[0], jax.tree.map(lambda moment: moment[0], moments), background=other)
    assert_allclose(alone.mean, full.mean[0], rtol=1e-14)
    assert_allclose(alone.variance, full.variance[0], rtol=1e-14)


def test_exponential_service_is_exponential_sojourn():
    rate, mean = 0.7, 1.2
    delay = fcfs([rate], ServiceMoments.exponential([mean]))
    assert_allclose(delay.mean, 1 / (1 / mean - rate), rtol=1e-13)
    assert_allclose(delay.variance, 1 / (1 / mean - rate) ** 2, rtol=1e-12)


def test_idle_node_only_serves():
    moments = ServiceMoments.shifted_exponential([1.0], [2.0])
    delay = fcfs([0.0], moments)
    assert_allclose([delay.mean[0], delay.variance[0]], [3.0, 4.0], rtol=1e-15)


def test_connection_delay_adds_mean_and_variance():
    delay = Delay(jnp.ones((2, 3)), jnp.full((2, 3), 4.0)).plus([1, 2, 3], 0.5)
    assert_allclose(delay.mean, [[2, 3, 4]] * 2)
    assert_allclose(delay.variance, np.full((2, 3), 4.5))


@given(st.floats(1e-6, 1e9))
def test_time_unit_does_not_matter(unit):
    rates, moments = np.array([0.2, 0.35]), ServiceMoments.shifted_exponential([1.0, 0.5], [1.0, 2.0])
    base, scaled = fcfs(rates, moments), fcfs(rates / unit, moments.scaled(unit))
    assert_allclose(scaled.mean, unit * base.mean, rtol=1e-12)
    assert_allclose(scaled.variance, unit**2 * base.variance, rtol=1e-12)


def test_unstable_nodes_are_infinite_and_leave_the_derivatives_alone():
    moments = ServiceMoments.exponential([1.0, 1.0, 1.0])
    rates = jnp.array([0.5, 1.0, 1.5])
    delay = fcfs(rates, moments)
    assert_allclose(delay.mean, [2.0, np.inf, np.inf])
    assert_allclose(delay.variance, [4.0, np.inf, np.inf])
    for part in ("mean", "variance"):
        jacobian = jax.jit(jax.jacobian(lambda rate, part=part: getattr(fcfs(rate, moments), part)))(rates)
        expected = {"mean": 4.0, "variance": 16.0}[part]  # of 1/(1 - rate) and its square
        assert_allclose(jacobian, np.diag([expected, 0, 0]), rtol=1e-13)
    hessian = jax.jit(jax.hessian(lambda rate: fcfs(rate, moments).mean[0]))(rates)
    assert np.isfinite(np.asarray(hessian)).all()


def test_not_a_number_is_not_hidden_as_unstable():
    assert np.isnan(waiting(jnp.nan, 1.0, 1.0).mean)


def test_derivatives():
    moments = ServiceMoments.shifted_exponential([[0.5, 0.6], [0.2, 1.0]], [[0.1, 0.2], [0.3, 0.4]])

    @jax.jit
    def values(rates, moments):
        delay = fcfs(rates, moments)
        return delay.mean, delay.variance

    check_grads(values, (jnp.array([[0.1, 0.3], [0.5, 0.2]]), moments), order=2, modes=("fwd",))


@given(st.floats(0.01, 0.97), st.floats(0.01, 0.97), st.floats(-3.0, 30.0))
def test_rate_times_bound_term_is_convex_in_the_rate(low, high, z):
    # the latency term of Problem JLCM for fixed z; the term itself, without the rate, is not convex
    moments = ServiceMoments.shifted_exponential([0.7], [0.3])

    def term(rate):
        delay = fcfs([rate], moments)
        d = delay.mean[0] - z
        return rate * (d + np.sqrt(d**2 + delay.variance[0]))

    middle = term((low + high) / 2)
    assert middle <= (term(low) + term(high)) / 2 + 1e-12 * abs(middle)


def test_moments_broadcast_to_the_rates():
    one = ServiceMoments(13.9, 211.8, 3476.8)
    rates = np.array([[0.01, 0.02], [0.03, 0.0]])
    spread = ServiceMoments(*(jnp.full((2, 2), moment) for moment in (13.9, 211.8, 3476.8)))
    for narrow in (one, ServiceMoments([13.9] * 2, [211.8] * 2, [3476.8] * 2)):
        assert_allclose(fcfs(rates, narrow).variance, fcfs(rates, spread).variance, rtol=1e-15)
        assert_allclose(load(rates, narrow), 13.9 * rates.sum(axis=0), rtol=1e-15)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"rates have shape \(3,\), moments \(2,\)"):
        fcfs([0.1, 0.1, 0.1], ServiceMoments.exponential([1.0, 1.0]))
