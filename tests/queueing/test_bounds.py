import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ecjax.programs import program
from ecjax.queueing import (
    Delay,
    ServiceMoments,
    fcfs,
    latency_bound,
    latency_bound_at,
    shared_z,
)

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())

bound = program(latency_bound)
at = program(latency_bound_at)
whole = program(shared_z)
slopes = program(jax.grad(latency_bound, argnums=(0, 1)))

NODES = 6
seeds = st.integers(0, 2**32 - 1)


@program
def best_z(probabilities, delay):
    """The z of every row by itself."""
    parts = jnp.broadcast_arrays(probabilities, delay.mean, delay.variance)
    z = jax.vmap(lambda *row: shared_z(*row)[1])(*(part.reshape(-1, part.shape[-1]) for part in parts))
    return z.reshape(parts[0].shape[:-1])


def of_requests(probabilities, rates, delay):
    """Weights, means and variances of all reads together, flat, for one z: delays (m,) or (r, m)."""
    share = jnp.asarray(rates) / jnp.sum(jnp.asarray(rates))
    weights = share @ probabilities if delay.mean.ndim == 1 else share[:, None] * probabilities
    return jnp.ravel(weights), delay.mean.ravel(), delay.variance.ravel()


@program
def shared(probabilities, rates, delay):
    return shared_z(*of_requests(probabilities, rates, delay))


@program
def shared_at(z, probabilities, rates, delay):
    weights, mean, variance = of_requests(probabilities, rates, delay)
    return latency_bound_at(z, weights, Delay(mean, variance))


def delays(mean, variance):
    return Delay(jnp.asarray(mean, float), jnp.asarray(variance, float))


def random_probabilities(rng, k, nodes=NODES):
    """A mean of a few k-subsets: whole sum, and often probabilities of 0 and 1 and ties among them."""
    subsets = [rng.permutation(nodes) < k for _ in range(rng.integers(1, 6))]
    return np.average(np.array(subsets, float), axis=0, weights=rng.random(len(subsets)) + 0.1)


def random_problem(seed, k=None, deviation=None):
    rng = np.random.default_rng(seed)
    probabilities = random_probabilities(rng, rng.integers(1, NODES + 1) if k is None else k)
    mean = np.exp(rng.normal(0, rng.choice([0.1, 1.0, 3.0]), NODES))
    deviation = np.exp(rng.normal(-1, rng.choice([0.1, 1.0, 3.0]), NODES)) if deviation is None else deviation
    return probabilities, mean, np.square(deviation) * np.ones(NODES)


def bisected(weights, mean, variance):
    """z and f(z) row by row by plain bisection in extended precision; sum of weights above 1, V > 0."""
    w, e, v = (np.asarray(array, np.longdouble) for array in (weights, mean, variance))

    def slope(z):
        d = e - z[..., None]
        return 1 - (w / 2 * (1 + d / np.sqrt(d**2 + v))).sum(axis=-1)

    reach = np.full(w.shape[:-1], np.abs(e).max() + np.sqrt(v.max()), np.longdouble)
    while (slope(-reach) > 0).any():
        reach = 2 * reach
    low, high = -reach, reach + e.max()
    while (slope(high) < 0).any():
        high = 2 * high
    for _ in range(120):
        middle = (low + high) / 2
        falling = slope(middle) < 0
        low, high = np.where(falling, middle, low), np.where(falling, high, middle)
    d = e - low[..., None]
    value = low + (w / 2 * (d + np.sqrt(d**2 + v))).sum(axis=-1)
    return low.astype(float), value.astype(float)


@pytest.mark.parametrize("case", VECTORS["b_homogeneous_closed_form"])
def test_vectors_of_alike_nodes(case):
    given_, expected = case["inputs"], case["expected"]
    # nodes that are not read, up to 12: one compiled program for all cases
    probabilities = np.where(np.arange(12) < given_["m"], given_["k"] / given_["m"], 0.0)
    delay = delays(np.full(12, given_["E"]), np.full(12, given_["Var"]))
    assert_allclose(bound(probabilities, delay), expected["bound"], rtol=1e-10)
    assert_allclose(best_z(probabilities, delay), expected["z_star"], rtol=1e-10)


@pytest.mark.parametrize("case", VECTORS["c_lemma2_mg1"])
def test_vectors_with_queues(case):
    given_, expected = case["inputs"], case["expected"]
    probabilities = np.array(given_["pi"])
    moments = ServiceMoments(*(jnp.full(12, given_[name]) for name in ("m1", "m2", "m3")))
    delay = fcfs(np.array(given_["lam"]) @ probabilities, moments)
    assert_allclose(delay.mean, expected["E"], rtol=1e-10)
    assert_allclose(delay.variance, expected["Var"], rtol=1e-10)
    assert_allclose(bound(probabilities, delay)[given_["file"]], expected["bound"], rtol=1e-10)
    assert_allclose(best_z(probabilities, delay)[given_["file"]], expected["z_star"], rtol=1e-10)


@given(seeds)
def test_against_bisection_for_ordinary_and_hard_spreads(seed):
    rng = np.random.default_rng(seed)
    rows = 40
    k = rng.integers(2, NODES + 1, rows)
    weights = np.array([random_probabilities(rng, number) for number in k])
    mean = np.exp(rng.normal(0, 2, (rows, NODES)))
    variance = np.exp(rng.normal(-3, 4, (rows, NODES)))
    z, value = bisected(weights, mean, variance)
    assert_allclose(bound(weights, delays(mean, variance)), value, rtol=2e-14)
    # where f is flat, rounding leaves z itself open: what the noise of its slope allows is added
    found = np.asarray(best_z(weights, delays(mean, variance)))
    d = mean - z[:, None]
    curvature = (weights / 2 * variance / (d**2 + variance) ** 1.5).sum(axis=1)
    assert (np.abs(found - z) <= 1e-12 * np.abs(z) + 4e-15 * k / curvature).all()


def test_against_forty_digits():
    weights, mean, variance = [0.5, 1, 0.7, 0.8, 0, 0], [1, 3, 2.5, 10, 7, 7], [0.5, 4, 1e-6, 9, 1, 1]
    with mpmath.workdps(40):

        def terms(z):
            return [mpmath.sqrt((e - z) ** 2 + v) for e, v in zip(mean, variance, strict=True)]

        def slope(z):
            return 1 - sum(w / 2 * (1 + (e - z) / s) for w, e, s in zip(weights, mean, terms(z), strict=True))

        z = mpmath.findroot(slope, (-100, 100), solver="anderson", tol=1e-60)
        value = z + sum(w / 2 * (e - z + s) for w, e, s in zip(weights, mean, terms(z), strict=True))
    assert_allclose(bound(np.array(weights), delays(mean, variance)), float(value), rtol=1e-15)
    assert_allclose(best_z(np.array(weights), delays(mean, variance)), float(z), rtol=1e-14)


@given(seeds)
def test_constant_delays_against_every_breakpoint(seed):
    # V = 0: f is piecewise linear, its minimum at one of the means
    probabilities, mean, variance = random_problem(seed, deviation=0.0)
    delay = delays(mean, variance)
    candidates = [z + (probabilities * np.maximum(mean - z, 0)).sum() for z in mean]
    expected = min(candidates) if probabilities.sum() > 1.5 else probabilities @ mean
    assert_allclose(bound(probabilities, delay), expected, rtol=1e-14)
    # a small move of one mean: f stays piecewise linear, and where no slope changes the gradient is exact
    gradient = np.asarray(slopes(probabilities, delay)[1].mean)
    step = 1e-7 * mean.min()
    for move in step * np.eye(NODES):
        sides = [float(bound(probabilities, delays(mean + sign * move, variance))) for sign in (1, -1)]
        rises = (sides[0] - float(bound(probabilities, delay))) / step
        falls = (float(bound(probabilities, delay)) - sides[1]) / step
        size = 1e-14 * mean.max() / step
        assert min(rises, falls) - size <= gradient[move > 0][0] <= max(rises, falls) + size


def test_constant_and_nearly_equal_delays():
    both, ones = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), np.ones(NODES)
    assert_allclose(bound(both, delays(2 * ones, 0 * ones)), 2.0, rtol=1e-15)
    near = 1 + 1e-15 * np.arange(NODES)
    assert_allclose(bound(both, delays(2 * near, near)), 3.0, rtol=1e-14)


@given(seeds, st.floats(1e-6, 1e9))
def test_scales_with_the_unit_of_time(seed, unit):
    probabilities, mean, variance = random_problem(seed)
    base = bound(probabilities, delays(mean, variance))
    assert_allclose(bound(probabilities, delays(unit * mean, unit**2 * variance)), unit * base, rtol=1e-13)


@given(seeds, st.floats(0, 3), st.integers(0, NODES - 1))
def test_rises_with_every_mean_and_variance(seed, more, node):
    probabilities, mean, variance = random_problem(seed)
    base = float(bound(probabilities, delays(mean, variance)))
    step = more * np.eye(NODES)[node]
    for later in (delays(mean + step, variance), delays(mean, variance + step)):
        assert bound(probabilities, later) >= base * (1 - 1e-14)


@given(seeds)
def test_between_the_mean_delay_and_the_sum_of_deviations(seed):
    probabilities, mean, variance = random_problem(seed)
    k = probabilities.sum()
    value = float(bound(probabilities, delays(mean, variance)))
    # the mean of the largest of k delays is at least the mean of their average
    assert value >= probabilities @ mean / k * (1 - 1e-14)
    # the largest delay is at least that of a node that is always read
    assert value >= max(mean[probabilities > 1 - 1e-12], default=0) * (1 - 1e-14)
    used = probabilities > 0
    worst = mean[used].max() + np.sqrt(max(k - 1, 0) * variance[used].max())
    assert value <= worst * (1 + 1e-14)


@given(seeds, st.floats(-10, 10))
def test_smallest_over_z(seed, z):
    probabilities, mean, variance = random_problem(seed)
    delay = delays(mean, variance)
    value = bound(probabilities, delay)
    assert value <= at(z, probabilities, delay) * (1 + 1e-14)
    best = best_z(probabilities, delay)
    assert_allclose(at(best, probabilities, delay), value, rtol=1e-14)


@given(seeds)
def test_one_chunk_has_the_mean_delay(seed):
    probabilities, mean, variance = random_problem(seed, k=1)
    delay = delays(mean, variance)
    assert_allclose(bound(probabilities, delay), probabilities @ mean, rtol=1e-14)
    assert best_z(probabilities, delay) == -np.inf
    by_probability, by_delay = slopes(probabilities, delay)
    assert_allclose(by_probability, mean, rtol=1e-14)
    assert_allclose(by_delay.mean, probabilities, rtol=1e-14)
    assert_allclose(by_delay.variance, 0)


def test_sum_of_one_is_recognised_through_rounding():
    mean = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    for excess in (-1e-12, 1e-12):
        value = bound(np.array([0.5, 0.3, 0.2 + excess, 0, 0, 0]), delays(mean, np.full(NODES, 100.0)))
        assert_allclose(value, 1.7, rtol=1e-11)
    # and a true excess is not: E + sqrt((k - 1) V)
    value = bound(np.array([0.5, 0, 0, 0.5 + 1e-9, 0, 0]), delays(mean, np.full(NODES, 4.0)))
    assert_allclose(value, 1 + np.sqrt(1e-9 * 4), rtol=1e-10)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"probabilities have shape \(2,\), mean delays \(3,\)"):
        latency_bound([1.0, 1.0], delays([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]))


def test_one_node():
    delay = delays([3.0], [7.0])
    assert_allclose(bound(np.array([1.0]), delay), 3.0)
    assert_allclose(bound(np.array([0.0]), delay), 0.0)


def test_unstable_nodes():
    mean, variance = np.array([1.0, 2.0, np.inf, 5.0, 5.0, 5.0]), np.array([1.0, 1.0, np.inf, 1.0, 1.0, 1.0])
    delay = delays(mean, variance)
    off, on, one = np.array([[1, 1, 0, 0, 0, 0], [1, 0.5, 0.5, 0, 0, 0], [0.4, 0, 0.6, 0, 0, 0]])
    expected = bound(off, delays([1, 2, 5, 5, 5, 5], np.ones(6)))
    assert_allclose(bound(off, delay), expected, rtol=1e-15)
    assert np.isfinite(best_z(off, delay))
    for probabilities in (on, one):
        assert np.isposinf(bound(probabilities, delay))
        assert np.isposinf(best_z(probabilities, delay))
        assert np.isposinf(at(1.5, probabilities, delay))
    for probabilities in (off, on, one):
        leaves = jax.tree.leaves(slopes(probabilities, delay))
        assert all(np.isfinite(np.asarray(leaf)).all() for leaf in leaves)


def test_not_a_number_comes_back():
    ones, bad = np.ones(NODES), np.where(np.arange(NODES) == 2, np.nan, 1.0)
    assert np.isnan(bound(ones, delays(bad, ones)))
    assert np.isnan(bound(ones, delays(ones, bad)))
    assert np.isnan(bound(bad, delays(ones, ones)))


def test_single_precision():
    rng = np.random.default_rng(0)
    weights = np.array([random_probabilities(rng, 3) for _ in range(50)])
    mean, variance = np.exp(rng.normal(0, 1, (2, 50, NODES)))
    single = [jnp.asarray(array, jnp.float32) for array in (weights, mean, variance)]
    value = bound(single[0], Delay(*single[1:]))
    assert value.dtype == jnp.float32
    assert_allclose(value, bisected(weights, mean, variance)[1], rtol=3e-6)


def test_shapes_broadcast_and_map():
    rng = np.random.default_rng(1)
    weights = np.array([[random_probabilities(rng, 3) for _ in range(4)] for _ in range(2)])
    mean, variance = np.exp(rng.normal(0, 1, (2, 4, NODES)))
    value = bound(weights, delays(mean, variance))
    assert_allclose(value, bisected(weights, mean[None], variance[None])[1], rtol=1e-14)
    # one row of probabilities, delays by file
    assert_allclose(bound(weights[1, 2], delays(mean, variance))[2], value[1, 2], rtol=1e-15)
    lanes = jax.jit(jax.vmap(latency_bound, in_axes=(0, None)))(weights, delays(mean, variance))
    assert_allclose(lanes, value, rtol=1e-15)


@given(seeds)
def test_shared_z_is_the_minimum_over_one_z(seed):
    rng = np.random.default_rng(seed)
    files = 5
    probabilities = np.array([random_probabilities(rng, rng.integers(1, 5)) for _ in range(files)])
    rates = np.exp(rng.normal(0, 1, files))
    mean, variance = np.exp(rng.normal(0, 1, (2, files, NODES)))
    weights = rates[:, None] / rates.sum() * probabilities
    delay = delays(mean, variance)
    value, z = shared(probabilities, rates, delay)
    if weights.sum() < 1 + 1e-9:
        assert_allclose(value, (weights * mean).sum(), rtol=1e-13)
        return
    expected_z, expected = bisected(weights.ravel(), mean.ravel(), variance.ravel())
    assert_allclose(value, expected, rtol=1e-14)
    assert_allclose(z, expected_z, rtol=1e-10)
    assert_allclose(shared_at(z, probabilities, rates, delay), value, rtol=1e-14)
    # one z for all is no better than one for each file
    assert value >= rates / rates.sum() @ bound(probabilities, delay) * (1 - 1e-14)
    again = whole(weights, mean, variance, start=rng.normal(0, 10))
    assert_allclose(again, (value, z), rtol=1e-12)


def test_shared_z_with_common_delays_needs_node_sums_only():
    rng = np.random.default_rng(3)
    probabilities = np.array([random_probabilities(rng, 3) for _ in range(5)])
    rates, (mean, variance) = np.arange(1.0, 6.0), np.exp(rng.normal(0, 1, (2, NODES)))
    full = np.broadcast_to(mean, probabilities.shape), np.broadcast_to(variance, probabilities.shape)
    common = shared(probabilities, rates, delays(mean, variance))
    assert_allclose(common, shared(probabilities, rates, delays(*full)), rtol=1e-14)


def test_shared_z_of_single_chunks_and_unstable_nodes():
    mean = np.array([1.0, 3.0, np.inf, 1.0, 1.0, 1.0])
    variance = np.where(np.isinf(mean), np.inf, 5.0)
    assert_allclose(whole(np.array([0.25, 0.75, 0, 0, 0, 0]), mean, variance), (2.5, -np.inf))
    assert_allclose(whole(np.array([1.0, 0, 1.0, 0, 0, 0]), mean, variance), np.inf)
    probabilities = np.tile([0.0, 1.0, 0, 0, 0, 0], (2, 1))
    rates, delay = np.array([1.0, 2.0]), delays(mean, variance)
    assert_allclose(shared(probabilities, rates, delay)[0], 3.0)
    assert_allclose(shared_at(-np.inf, probabilities, rates, delay), 3.0)


@given(seeds, st.floats(-5, 20))
def test_latency_with_shared_z_is_convex_in_the_probabilities(seed, z):
    rng = np.random.default_rng(seed)
    rates = np.array([0.2, 0.1])
    moments = ServiceMoments.shifted_exponential(np.full(NODES, 0.7), np.full(NODES, 0.4))
    plans = [np.array([random_probabilities(rng, 2), random_probabilities(rng, 3)]) for _ in range(2)]

    def latency(probabilities):
        return float(shared_at(z, probabilities, rates, fcfs(rates @ probabilities, moments)))

    middle = latency((plans[0] + plans[1]) / 2)
    assert middle <= (latency(plans[0]) + latency(plans[1])) / 2 + 1e-12 * middle
