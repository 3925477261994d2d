"""The laws in JAX against those on the host, and the derivatives of the estimate by the plan."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_queues import probabilities
from scipy import special

from ecjax.programs import program
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import bin_arrivals
from ecjax.traffic.gamma_table import gamma_cumulative
from ecjax.traffic.host_laws import host_laws, host_readers
from ecjax.traffic.latency_laws import Seen, grid, latency_laws, law_means, readers
from ecjax.traffic.traced import traced_latency, traced_log

SETS = [[0, 1], [1, 2, 3], [0, 2, 3]]
SERVICE = ServiceLaw.of_nodes(UnitLaw.named("gamma", shape=2.0), scale=0.1, nodes=4)
PLAN = probabilities(SETS, 2, 4)
PLAN[2] = [0.9, 0.0, 0.7, 0.4]
LOAD = Workload.of(np.ones(3), 1.0, 2, SERVICE)


@partial(program, static_argnums=5)
def traced_laws(points, plan, load, seen, kind, k):
    return latency_laws(points, seen, kind, readers(points, plan, load), k)


@program
def figures_with_slopes(steps, scales, log, load, points):
    """Mean and quantile of PLAN with its steps and scales, and their derivatives by the steps."""

    def figures(step, scale):
        plan = jnp.asarray(PLAN) + step * jnp.array([[0.0] * 4, [0.0, 1.0, -1.0, 0.0], [0.0] * 4])
        mean, quantile = traced_latency(plan, log, load, points, scale, most_steps=4)
        return jnp.stack([mean, quantile[0]])

    def with_slopes(step, scale):
        return jax.jvp(lambda by: figures(by, scale), (step,), (jnp.ones(()),))

    return jax.vmap(with_slopes)(steps, scales)


def test_gamma_laws_of_the_table():
    cumulative = jax.jit(gamma_cumulative)
    x = np.geomspace(1e-3, 50, 40)
    for shape in (0.7, 1.0, 4.0, 300.0):
        values = np.asarray(cumulative(jnp.asarray(x), jnp.full(40, 2.0), jnp.full(40, 4.0 / shape)))
        np.testing.assert_allclose(values, special.gammainc(shape, shape * x / 2), atol=2e-3)


def test_laws_on_the_host_are_those_in_jax():
    rng = np.random.default_rng(0)
    points = grid(0.1, 2.0)
    busy = rng.uniform(0.1, 1, (6, 4))
    mean = busy * rng.uniform(0.02, 1, (6, 4))
    seen = Seen(mean, mean**2 * rng.uniform(0.5, 2, (6, 4)), busy)
    kind = np.array([0, 1, 2, 0, 1, 2])
    sizes = np.asarray(LOAD.sizes)
    host = host_laws(points, seen, kind, host_readers(points, PLAN, np.ones(3), sizes, SERVICE, None))
    at = jnp.asarray(points)
    traced = traced_laws(at, jnp.asarray(PLAN), LOAD, seen, kind.astype(np.int32), 2)
    np.testing.assert_allclose(traced, host, atol=5e-3)
    assert np.all(np.diff(host, axis=1) >= -1e-12)
    np.testing.assert_allclose(law_means(at, traced), law_means(at, jnp.asarray(host)), rtol=5e-3)


def _means(load, seen, files):
    """Mean latency of reads of one node, of each file, by the laws on the host and in JAX."""
    plan, size, kind = np.ones((files, 1)), np.asarray(load.chunk_bytes), np.arange(files)
    points = grid(float(size.min()), float(size.max()) + float(np.max(seen.mean)))
    channels = None if load.channels is None else np.asarray(load.channels)
    of = host_readers(points, plan, size, np.asarray(load.sizes), load.service, load.connect, channels)
    host = law_means(jnp.asarray(points), jnp.asarray(host_laws(points, seen, kind, of)))
    traced = traced_laws(points, plan, load, seen, kind, 1)
    return np.asarray(host), np.asarray(law_means(jnp.asarray(points), traced))


def test_reads_of_an_idle_node_take_as_long_as_their_size():
    """Of more sizes than laws are taken of: services are proportional to the size, 1 s per byte."""
    size = np.geomspace(1.0, 100.0, 17)
    service = ServiceLaw.of_nodes(UnitLaw.named("gamma", shape=2.0), scale_per_byte=0.5, nodes=1)
    load = Workload.of(np.ones(17), size, 1, service)
    assert len(load.sizes) == 16
    for means in _means(load, Seen(*[np.zeros((17, 1))] * 3), 17):
        np.testing.assert_allclose(means, size, rtol=0.02)


@pytest.mark.parametrize(("c", "load", "waits"), [(1, 0.5, 1 / 2), (2, 0.5, 1 / 3), (3, 0.6, 27 / 76)])
def test_reads_wait_for_a_channel_with_the_probability_of_erlang(c, load, waits):
    """Services of mean 1 in balance: a busy server as fast as c channels has exponential work left."""
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=1.0, nodes=1)
    work = np.full((1, 1), 1 / (c * (1 - load)))
    seen = Seen(load * work, (2 * load - load**2) * work**2, np.full((1, 1), load))
    reads = Workload.of(1.0, 1.0, 1, service, channels=None if c == 1 else np.full(1, float(c)))
    for means in _means(reads, seen, 1):
        np.testing.assert_allclose(means, 1 + waits * work[0], rtol=0.01)


def test_mean_and_quantile_are_differentiable_and_batched_over_plans_and_rates():
    rng = np.random.default_rng(4)
    times = np.sort(np.concatenate([rng.uniform(0, 40, 60), rng.uniform(10, 12, 40)]))
    reads, _ = bin_arrivals(times, rng.integers(0, 3, 100), 3, 0.5)
    log, points = traced_log(reads, most=32), jnp.asarray(grid(0.1, 3.0))
    steps = jnp.array([-1e-5, 0.0, 1e-5, 0.0])
    value, slope = figures_with_slopes(steps, jnp.array([1.0, 1.0, 1.0, 1.5]), log, LOAD, points)
    value, slope = np.asarray(value), np.asarray(slope)
    np.testing.assert_allclose(slope[1], (value[2] - value[0]) / 2e-5, rtol=2e-2)
    assert np.all(value[3] > value[1])


@pytest.mark.slow
def test_denoised_counts_have_the_constants_of_poisson_arrivals():
    rng = np.random.default_rng(4)
    reads, _ = bin_arrivals(np.sort(rng.uniform(0, 40, 60)), rng.integers(0, 3, 60), 3, 0.5)
    log, points = traced_log(reads, most=16), jnp.asarray(grid(0.1, 3.0))
    run = jax.jit(traced_latency, static_argnames=("counted", "most_steps"))
    raw, denoised = (
        float(run(jnp.asarray(PLAN), log, LOAD, points, counted=counted, most_steps=4)[0])
        for counted in (True, False)
    )
    assert denoised > raw
    assert denoised == pytest.approx(raw, rel=0.5)
