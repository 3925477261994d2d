"""Arrivals: counts by file and interval against their Poisson laws, order, and blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ecjax.streams import arrivals
from ecjax.streams.arrivals import Alias, Bursts, Factors


def collected(blocks):
    blocks = list(blocks)
    return np.concatenate([times for times, _ in blocks]), np.concatenate([files for _, files in blocks])


def within(count, mean):
    return count == mean or stats.poisson.cdf(count, mean) > 1e-4 and stats.poisson.sf(count, mean) > 1e-4


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30).filter(lambda w: sum(w) > 0.1))
def test_alias_tables_hold_the_weights(weights):
    weights = np.array(weights)
    alias = Alias(weights)
    share = alias.keep + np.bincount(alias.other, 1 - alias.keep, len(weights))
    assert share / len(weights) == pytest.approx(weights / weights.sum(), abs=1e-12)


def test_rates_of_the_files():
    rates = np.array([1.0, 2.0, 0.0, 4.0])
    times, files = collected(arrivals.poisson(rates, 70_000, 3))
    assert len(times) == 70_000 and np.all(np.diff(times) >= 0)
    assert stats.kstest(np.diff(times), "expon", args=(0, 1 / 7)).pvalue > 1e-3
    counts = np.bincount(files, minlength=4)
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3]], [10_000, 20_000, 40_000]).pvalue > 1e-3


def test_factors_by_time_and_file():
    rates = np.array([10.0, 20.0])
    factors = Factors(
        np.array([100.0, 200.0, 300.0, 400.0]),
        np.array([2.0, 0.5, 0.0, 1.0]),
        [None, np.array([1]), None, np.array([0])],
    )
    times, files = collected(arrivals.poisson(rates, 20_000, 5, factors))
    edges = np.array([0, 100, 200, 300, 400])
    for file, means in enumerate(([1000, 2000, 2000, 0], [2000, 4000, 1000, 0])):
        for count, mean in zip(np.histogram(times[files == file], edges)[0], means, strict=True):
            assert within(count, mean)
    assert set(files[times > 400]) == {0}
    assert len(times) == 20_000


def test_rates_that_end_for_good_end_the_arrivals():
    factors = Factors(np.array([10.0]), np.array([0.0]), [None])
    times, _ = collected(arrivals.poisson(np.array([100.0]), 10**6, 0, factors))
    assert within(len(times), 1000) and times[-1] < 10
    # bursts come and go after the end, too; the mean of 1000 varies with how many of them come before
    bursts = Bursts(2.0, 0.5, 0.01)
    times, _ = collected(arrivals.poisson(np.array([100.0]), 10**6, 0, factors, bursts))
    assert 800 < len(times) < 1200 and times[-1] < 10
    assert list(arrivals.poisson(np.zeros(2), 5, 0, bursts=bursts)) == []


def test_bursts_keep_the_mean_and_add_variance():
    times, _ = collected(arrivals.poisson(np.array([10.0]), 400_000, 2, bursts=Bursts(8.0, 0.1, 5.0)))
    windows = np.histogram(times, np.arange(0, times[-1] // 5) * 5)[0]
    # counts in windows as long as a burst: far above Poisson variance
    assert windows.var() > 4 * windows.mean()
    assert windows.mean() == pytest.approx(50, rel=0.06)


def test_two_streams_merge_in_order():
    one = arrivals.poisson(np.array([1.0]), 3000, 1)
    other = ((times, files + 1) for times, files in arrivals.poisson(np.array([2.5]), 10**9, 2))
    times, files = collected(arrivals.merged(one, other, 10**9))
    alone = collected(arrivals.poisson(np.array([1.0]), 3000, 1))[0]
    assert np.all(np.diff(times) >= 0)
    assert np.array_equal(times[files == 0], alone)
    beside = collected(arrivals.poisson(np.array([2.5]), 20_000, 2))[0]
    assert np.array_equal(times[files == 1], beside[beside < alone[-1]])


def test_a_trace_comes_as_it_is():
    times, files = np.arange(20_000.0), np.arange(20_000) % 7
    found = collected(arrivals.of_trace(times, files))
    assert np.array_equal(found[0], times) and np.array_equal(found[1], files)
