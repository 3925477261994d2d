"""Intervals of replays against series whose variance is known, quantiles of known laws."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal, stats

from ecjax.intervals import HALF_WIDTHS, NAMES, SECTIONS, statistics


def test_values_are_those_of_the_sample():
    latency = np.random.default_rng(0).exponential(2.0, 10_000)
    found = statistics(latency)
    assert_allclose(found["mean_s"], latency.mean())
    assert_allclose(found["std_s"], latency.std())
    assert_allclose([found["p50_s"], found["p90_s"], found["p99_s"]], np.quantile(latency, [0.5, 0.9, 0.99]))
    assert set(found) == {*NAMES, *HALF_WIDTHS.values()}


def known(length, phi):
    """Half widths that a Gaussian AR(1) series with mean 0 and variance 1 should have, of mean and quantiles."""
    lag = np.arange(1, 4000)
    rho = phi**lag
    factors = {"mean_s": (1.0, rho)}
    for name, level in (("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99)):
        # indicators of exceeding a quantile correlate as two normal scores do: a series in Hermite polynomials
        z = stats.norm.ppf(level)
        hermite, corr = [1.0, z], np.zeros_like(rho)
        for m in range(1, 60):
            corr += hermite[m - 1] ** 2 * rho**m / math.factorial(m)
            hermite.append(z * hermite[m] - m * hermite[m - 1])
        density = stats.norm.pdf(z)
        variance = level * (1 - level)
        factors[name] = (np.sqrt(variance) / density, corr * density**2 / variance)
    return {
        name: 1.96 * scale * np.sqrt((1 + 2 * corr.sum()) / length) for name, (scale, corr) in factors.items()
    }


@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_half_widths_of_an_autoregressive_series(phi):
    length, trials = 40_000, 60
    random = np.random.default_rng(1)
    noise = random.standard_normal((trials, length + 200)) * np.sqrt(1 - phi**2)
    series = signal.lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 200:]
    found = [statistics(own) for own in series]
    right = known(length, phi)
    truth = {"mean_s": 0.0, "p50_s": 0.0, "p90_s": stats.norm.ppf(0.9), "p99_s": stats.norm.ppf(0.99)}
    for name, value in truth.items():
        half = np.array([own[HALF_WIDTHS[name]] for own in found])
        # a little wider than by the known variance: Student's quantile, and neighbours that correlate by chance
        assert 0.95 < half.mean() / right[name] < 1.4
        inside = sum(abs(own[name] - value) <= h for own, h in zip(found, half, strict=True))
        assert inside >= 51  # 95 % of 60 are 57; fewer than 51 have a chance below 1 %


def test_waits_of_a_single_server_queue():
    # M/M/1 at load 0.5: sojourns are exponential with mean 1 / (mu - lambda) = 2
    random = np.random.default_rng(2)
    inside = 0
    for _ in range(40):
        gap, service = random.exponential(2.0, 40_000), random.exponential(1.0, 40_000)
        walk = np.cumsum(np.append(0.0, service[:-1]) - gap)
        sojourn = (walk - np.minimum.accumulate(walk) + service)[2000:]
        found = statistics(sojourn)
        inside += abs(found["mean_s"] - 2.0) <= found["ci_s"]
    assert inside >= 33  # 38 are 95 %


def test_few_requests_have_no_interval():
    found = statistics(np.arange(100 * SECTIONS - 1, dtype=float))
    assert all(found[name] is None for name in HALF_WIDTHS.values()) and found["mean_s"] > 0
    assert statistics(np.full(100 * SECTIONS, 3.0))["ci_s"] == 0.0


def test_a_far_quantile_has_an_interval_where_every_section_has_requests_beyond_it():
    latency = np.random.default_rng(3).exponential(1.0, 20_000)
    levels = {"p50_s": 0.5, "p999_s": 0.999}
    few, enough = statistics(latency[:19_980], levels), statistics(latency, levels)
    assert few["p999_ci_s"] is None and few["p50_ci_s"] is not None
    # that of independent requests: sqrt(q (1 - q) / N) over the density, which is 1 - q
    assert enough["p999_ci_s"] == pytest.approx(1.96 * np.sqrt(0.999 * 0.001 / 20_000) / 0.001, rel=0.6)
    assert enough["p50_ci_s"] == pytest.approx(1.96 * np.sqrt(0.25 / 20_000) / 0.5, rel=0.6)
