"""The recursion of mean and variance against exact queues, and its two forms against each other."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecjax.programs import program
from ecjax.traffic.two_moments import Constants, workload_path, workload_path_traced

VECTORS = json.loads((Path(__file__).parent / "latency_vectors.json").read_text())
EXPONENTIAL = Constants(np.ones(1), np.full(1, 2.0))


@pytest.mark.parametrize("queue", VECTORS["periodic_mtm1"], ids=lambda queue: str(queue["rates_per_s"]))
def test_the_mean_wait_of_a_periodic_queue_is_within_2_percent(queue):
    """M_t/M/1, exact by the Kolmogorov equations."""
    width = 0.2
    cycle = np.concatenate(
        [
            np.full(round(length / width), rate * width)
            for rate, length in zip(queue["rates_per_s"], queue["lengths_s"], strict=True)
        ]
    )
    work = np.tile(cycle, 8)[:, None]
    path = workload_path(work, np.full(len(work), width), EXPONENTIAL)
    last = path.mean[-len(cycle) :, 0]
    assert np.average(last, weights=cycle) == pytest.approx(queue["wait_mean_s"], rel=0.02)
    assert last.mean() == pytest.approx(queue["workload_time_mean_s"], rel=0.02)


def test_steady_queues_have_both_moments_of_pollaczek_and_khinchine():
    c, q, load = np.array([1.0, 0.3]), np.array([2.0, 0.5]), np.array([0.5, 0.9])
    work = np.broadcast_to(load * 0.5, (4000, 2))
    path = workload_path(work, np.full(4000, 0.5), Constants(c, q))
    mean = c * load / (1 - load)
    np.testing.assert_allclose(path.mean[-1], mean, rtol=1e-4)
    np.testing.assert_allclose(path.variance[-1], mean**2 + q * mean, rtol=1e-3)
    np.testing.assert_allclose(path.busy[-1], load, rtol=1e-4)


def test_an_overloaded_queue_is_not_drained_at_the_end():
    path = workload_path(np.full((10, 1), 30.0), np.full(10, 10.0), EXPONENTIAL)
    assert path.end[0] == pytest.approx(200, rel=0.01)


def _bursty():
    rng = np.random.default_rng(3)
    work = rng.gamma(0.3, 1.0, (60, 2)) * np.where(rng.random((60, 1)) < 0.2, 3.0, 0.5)
    return work, rng.uniform(0.2, 3.0, 60), Constants(np.array([1.0, 0.4]), np.array([2.0, 0.7]))


def test_both_forms_take_the_same_steps():
    work, width, constants = _bursty()
    host = workload_path(work, width, constants, most_steps=8)
    traced = jax.jit(lambda *args: workload_path_traced(*args, constants, most_steps=8))(work, width)
    for expected, value in zip(host, traced, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-8)


@program
def wait_and_slope(scales, work, width, constants):
    """The mean wait of work with its scales, and its derivatives by them."""

    def wait(scale):
        scaled = work * scale
        path = workload_path_traced(scaled, width, constants, most_steps=2)
        return jnp.sum(scaled * path.mean) / jnp.sum(scaled)

    return jax.vmap(jax.value_and_grad(wait))(scales)


def test_the_derivative_is_that_of_differences_in_a_batch():
    work, width, constants = _bursty()
    scales = jnp.array([1.1 - 1e-5, 1.1, 1.1 + 1e-5])
    value, slope = wait_and_slope(scales, work[:12], width[:12], constants)
    assert float(slope[1]) == pytest.approx(float(value[2] - value[0]) / 2e-5, rel=1e-4)
