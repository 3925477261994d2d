import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

from ecjax.queueing import (
    Delay,
    ServiceMoments,
    fcfs,
    latency_bound,
    latency_bound_at,
    shared_z,
)

STEP = 1e-5

POINTS = {
    "two of four": [[0.5, 0.6, 0.2, 0.7], [1.0, 2.0, 3.0, 2.0], [1.0, 0.5, 2.0, 0.1]],
    "four of four": [[1.0] * 4, [1.0, 1.5, 0.5, 2.0], [1.0, 1.0, 0.3, 0.6]],
    "alike nodes": [[0.5] * 4, [2.0] * 4, [3.0] * 4],
}


def derivatives(function, argument):
    """The function of one vector, its gradient and Hessian, compiled; the vector is the flattened argument."""
    unflatten = ravel_pytree(argument)[1]

    def flat(x):
        return function(*unflatten(x))

    return jax.jit(flat), jax.jit(jax.grad(flat)), jax.jit(jax.hessian(flat))


def check(compiled, argument):
    """Gradient and Hessian against central differences of the value and of the gradient."""
    value, gradient, hessian = compiled
    point = ravel_pytree(argument)[0]
    moves = [(point + move, point - move) for move in STEP * np.eye(point.size)]

    def differences(function):
        return [(function(up) - function(down)) / (2 * STEP) for up, down in moves]

    assert_allclose(gradient(point), differences(value), rtol=1e-7, atol=1e-8)
    second = np.asarray(hessian(point))
    assert_allclose(second, np.array(differences(gradient)), rtol=1e-6, atol=1e-7)
    assert_allclose(second, second.T, atol=1e-12 * np.abs(second).max())


def parts(name):
    return [jnp.array(part) for part in POINTS[name]]


def with_delay(function):
    return lambda pi, mean, variance: function(pi, Delay(mean, variance))


BOUND = derivatives(with_delay(latency_bound), parts("two of four"))
MINIMISER = derivatives(lambda *point: shared_z(*point)[1], parts("two of four"))


@pytest.mark.parametrize("name", POINTS)
def test_bound(name):
    check(BOUND, parts(name))


@pytest.mark.parametrize("name", POINTS)
def test_minimiser(name):
    check(MINIMISER, parts(name))


def test_bound_by_the_probability_of_a_node_not_used():
    # one-sided difference of second order: a probability does not go below 0
    point = np.array([[1.0, 0.6, 0.0, 0.4], *POINTS["two of four"][1:]]).ravel()
    step = STEP * np.eye(point.size)[2]
    values = [float(BOUND[0](point + count * step)) for count in range(3)]
    difference = (4 * values[1] - 3 * values[0] - values[2]) / (2 * STEP)
    assert_allclose(BOUND[1](point)[2], difference, rtol=1e-7)


@pytest.mark.parametrize(
    "point",
    [
        [[1.0, 0.5, 0.5, 0.0], [1.0, 2.0, 3.0, 4.0], [0.0] * 4],
        [[1.0, 0.5, 0.5, 0.0], [1.0, 2.0, 3.0, np.inf], [1.0, 1.0, 1.0, np.inf]],
        [[1.0, 0.5, 0.5, 0.0], [1.0, np.inf, 3.0, 4.0], [1.0, np.inf, 1.0, 1.0]],
        [[0.5, 0.0, 0.5, 0.0], [1.0, np.inf, 3.0, 4.0], [1.0, np.inf, 0.0, 1.0]],
    ],
    ids=["constant", "unstable and not used", "unstable", "one chunk"],
)
def test_derivatives_stay_finite(point):
    point = np.array(point).ravel()
    for _, gradient, hessian in (BOUND, MINIMISER):
        assert np.isfinite(np.asarray(gradient(point))).all()
        assert np.isfinite(np.asarray(hessian(point))).all()


def test_minimiser_of_alike_nodes_follows_the_closed_form():
    # z = E + (k - 2)/(2 sqrt(k - 1)) sqrt(V), k = 3 of 4 nodes, moved together
    def z(k, mean, variance):
        return shared_z(jnp.full(4, k / 4), jnp.full(4, mean), jnp.full(4, variance))[1]

    slopes = jax.jit(jax.grad(z, argnums=(0, 1, 2)))(3.0, 2.0, 5.0)
    k, deviation = 3.0, np.sqrt(5.0)
    by_k = (1 / (2 * np.sqrt(k - 1)) - (k - 2) / (4 * (k - 1) ** 1.5)) * deviation
    by_variance = (k - 2) / (2 * np.sqrt(k - 1)) / (2 * deviation)
    assert_allclose(slopes, [by_k, 1.0, by_variance], rtol=1e-12)


def test_value_at_a_given_z():
    def function(z, pi, mean, variance):
        return latency_bound_at(z, pi, Delay(mean, variance))

    argument = [jnp.array(1.3), *parts("two of four")]
    check(derivatives(function, argument), argument)


def plan():
    rng = np.random.default_rng(5)
    raw = rng.random((3, 4))
    rates = jnp.array([0.1, 0.05, 0.2])
    moments = ServiceMoments.shifted_exponential(jnp.array([0.5, 0.6, 0.7, 0.8]), jnp.full(4, 0.3))
    return jnp.array(raw * np.array([[2.0], [1.5], [3.0]]) / raw.sum(axis=1, keepdims=True)), rates, moments


def test_shared_z_through_the_queues():
    probabilities, rates, moments = plan()

    def latency(pi, rates):
        delay = fcfs(rates @ pi, moments)
        return shared_z(rates @ pi / rates.sum(), delay.mean, delay.variance)[0]

    argument = [probabilities, rates]
    check(derivatives(latency, argument), argument)


def test_forward_equals_reverse():
    probabilities, rates, moments = plan()
    rng = np.random.default_rng(6)

    def latency(pi):
        delay = fcfs(rates @ pi, moments)
        z = jax.vmap(lambda row: shared_z(row, delay.mean, delay.variance)[1])(pi)
        return latency_bound(pi, delay), z

    direction = jnp.array(rng.normal(size=probabilities.shape))
    primal, tangent = jax.jit(lambda pi, dpi: jax.jvp(latency, (pi,), (dpi,)))(probabilities, direction)
    weights = jax.tree.map(lambda value: jnp.array(rng.normal(size=value.shape)), primal)
    cotangent = jax.jit(lambda pi, w: jax.vjp(latency, pi)[1](w))(probabilities, weights)[0]
    forward = sum(float((w * t).sum()) for w, t in zip(weights, tangent, strict=True))
    assert_allclose(forward, float((cotangent * direction).sum()), rtol=1e-12)


def test_a_start_changes_neither_value_nor_derivative():
    weights, mean, variance = parts("two of four")
    gradient = jax.jit(jax.grad(lambda w, start: shared_z(w, mean, variance, start)[0], argnums=(0, 1)))
    cold = jax.jit(jax.grad(lambda w: shared_z(w, mean, variance)[0]))(weights)
    for start in (-1e9, 0.0, 2.0, 1e9, np.nan, -np.inf):
        warm, by_start = gradient(weights, start)
        assert_allclose(warm, cold, rtol=1e-12)
        assert by_start == 0
