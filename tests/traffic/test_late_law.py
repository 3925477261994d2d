"""The law of what a read takes at a busy node: its moments, its limits, and exact queues that fill and drain."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ecjax.traffic.late_law import Served, cut_normal_skewness, late_cumulative
from ecjax.traffic.two_moments import Constants, workload_path

VECTORS = json.loads((Path(__file__).parent / "latency_vectors.json").read_text())


@pytest.mark.parametrize("cut", [-5.0, -2.0, 0.0, 1.5, 5.0])
def test_skewness_of_normal_laws_that_are_cut_off(cut):
    mean, variance, skewness = stats.truncnorm.stats(cut, np.inf, loc=-cut, moments="mvs")
    square, table = cut_normal_skewness()
    assert np.interp(variance / mean**2, square, table) == pytest.approx(skewness, abs=1e-3)


def laws(x, wait, spread, *service):
    """One for each of the waits, (waits, points)."""
    served = Served(*(jnp.full(len(wait), each) for each in service))
    return np.asarray(late_cumulative(jnp.asarray(x), jnp.asarray(wait), jnp.asarray(spread), served))


def law(x, wait, spread, *service):
    return laws(x, np.array([wait]), np.array([spread]), *service)[0]


def test_it_has_the_three_moments():
    """The wait's by the cut normal law and chunks of 0.4 s (square of variation 0.5708), or the gamma law (1.5)."""
    x = np.linspace(0.0, 150.0, 300_001)
    for square, skewness, lumps in ((np.pi / 2 - 1, 0.9952717, 2 - np.pi / 2), (1.5, 2 * np.sqrt(1.5), 0.0)):
        spread = square * 4.0
        above = 1 - law(x, 2.0, spread, 3.0, 0.5, 0.2, 0.4)
        first, second, third = (np.trapezoid(n * x ** (n - 1) * above, x) for n in (1, 2, 3))
        central = third - 3 * first * second + 2 * first**3
        assert first == pytest.approx(5.0, rel=2e-3)
        assert second - first**2 == pytest.approx(spread + 0.5, rel=5e-3)
        assert central == pytest.approx(skewness * spread**1.5 + lumps * 0.4 * spread + 0.2, rel=2e-2)


def test_a_balanced_queue_before_a_constant_service_is_a_shifted_exponential():
    x = np.linspace(0.0, 20.0, 100)
    expected = np.where(x > 1.5, 1 - np.exp(-(np.maximum(x, 1.5) - 1.5) / 2), 0.0)
    np.testing.assert_allclose(law(x, 2.0, 4.0, 1.5, 0.0, 0.0, 1.5), expected, atol=2e-3)


def test_nothing_waits_at_nodes_that_are_not_used():
    assert np.all(np.isfinite(law([0.1, 1.0], 0.0, 0.0, 1.0, 0.5, 0.2, 2.0)))


@pytest.mark.parametrize("queue", VECTORS["periodic_mtm1"], ids=lambda queue: str(queue["rates_per_s"]))
def test_the_99_percent_point_of_the_wait_of_a_periodic_queue(queue):
    """M_t/M/1, exact by the Kolmogorov equations, beside the two moments and this law of the wait."""
    width = 0.2
    rates, lengths = queue["rates_per_s"], queue["lengths_s"]
    cycle = np.concatenate(
        [np.full(round(each / width), rate * width) for rate, each in zip(rates, lengths, strict=True)]
    )
    path = workload_path(
        np.tile(cycle, 8)[:, None], np.full(8 * len(cycle), width), Constants(np.ones(1), np.full(1, 2.0))
    )
    last = [np.asarray(each)[-len(cycle) :, 0] for each in (path.mean, path.variance, path.busy)]
    x = np.linspace(1e-3, 3 * queue["wait_p99_s"], 2000)
    mean, variance, busy = last
    wait = mean / busy
    spread = np.maximum((variance + mean**2) / busy - wait**2, 1e-4 * wait**2)
    late = laws(x, wait, spread, 0.0, 0.0, 0.0, 3.0)
    cumulative = cycle @ (1 - busy[:, None] + busy[:, None] * late)
    assert np.interp(0.99, cumulative / cycle.sum(), x) == pytest.approx(queue["wait_p99_s"], rel=0.03)
