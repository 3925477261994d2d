import numpy as np
import pytest
from hypothesis import given as cases
from hypothesis import strategies as st
from scipy import stats

from ecjax.adaptation.arrivals import Rates, constant, mean_count, mean_time_of, of_trace, poisson, varying
from ecjax.streams.arrivals import Factors

SHARES = np.array([0.5, 0.0, 0.3, 0.2])


def unit(count, seed):
    """Times of the unit-rate process that all arrivals of a seed come from."""
    return poisson(constant(1.0, np.ones(1)), count, seed).arrival_s


def test_gaps_are_independent_exponentials_with_the_mean_of_the_rate():
    found = poisson(constant(7.0, np.ones(1)), 20_000, 3)
    gaps = np.diff(found.arrival_s, prepend=0.0)
    assert stats.kstest(gaps * 7.0, "expon").pvalue > 1e-3
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 4 / np.sqrt(20_000)
    assert found.class_of.dtype == np.uint8 and not found.class_of.any()


@pytest.mark.parametrize(("count", "time"), [(10, 5.0), (20, 10.0), (25, 21.0), (1000, 216.0)])
def test_time_until_which_requests_are_expected(count, time):
    """Two per second for 10 s, none for 10 s, five per second from then on."""
    rates = Rates(np.array([0.0, 10.0, 20.0]), np.inf, np.array([[1.5, 0.5], [0.0, 0.0], [5.0, 0.0]]))
    assert mean_time_of(rates, count) == pytest.approx(time)
    # where none come any more, or rates end
    ended = rates._replace(rate=rates.rate * np.array([[1.0], [1.0], [0.0]]))
    assert mean_time_of(ended, count) == pytest.approx(min(time, 10.0))
    assert mean_time_of(rates._replace(end_s=20.5), count) == pytest.approx(min(time, 20.5))


def test_counts_are_as_dispersed_as_those_of_a_poisson_process():
    times = poisson(constant(5.0, np.ones(1)), 50_000, 4).arrival_s
    counts = np.histogram(times, np.arange(0.0, 9_000.0, 3.0))[0]
    dispersion = counts.var(ddof=1) * (len(counts) - 1) / counts.mean()
    assert 1e-3 < stats.chi2.cdf(dispersion, len(counts) - 1) < 1 - 1e-3


def test_rates_are_paired_by_common_random_numbers():
    slow, fast = (poisson(constant(rate, SHARES), 1000, 5) for rate in (2.0, 30.0))
    np.testing.assert_allclose(slow.arrival_s * 2.0, fast.arrival_s * 30.0, rtol=1e-13)
    np.testing.assert_array_equal(slow.class_of, fast.class_of)
    longer = poisson(constant(2.0, SHARES), 3000, 5)
    np.testing.assert_array_equal(longer.arrival_s[:1000], slow.arrival_s)
    np.testing.assert_array_equal(longer.class_of[:1000], slow.class_of)
    assert not np.array_equal(poisson(constant(2.0, SHARES), 1000, 6).arrival_s, slow.arrival_s)


def test_classes_have_their_shares_independently_of_the_times():
    found = poisson(constant(2.0, SHARES), 40_000, 7)
    counts = np.bincount(found.class_of, minlength=4)
    assert counts[1] == 0
    there = SHARES > 0
    assert stats.chisquare(counts[there], SHARES[there] * 40_000).pvalue > 1e-3
    gaps = np.diff(found.arrival_s, prepend=0.0)
    assert stats.ks_2samp(gaps[found.class_of == 0], gaps[found.class_of == 2]).pvalue > 1e-3


@cases(
    st.lists(
        st.tuples(st.floats(0.01, 20.0), st.sampled_from([0.0, 0.3, 2.0, 50.0])), min_size=1, max_size=6
    ),
    st.floats(0.0, 10.0),
    st.integers(0, 1000),
)
def test_the_integral_of_the_rates_is_inverted_exactly(steps, begin, seed):
    length, rate = np.array(steps).T
    knots = begin + np.append(0.0, np.cumsum(length))
    integral = np.append(0.0, np.cumsum(length * rate))
    rates = Rates(knots[:-1], knots[-1], rate[:, None])
    found = poisson(rates, None, seed).arrival_s
    clock = unit(len(found) + 1, seed)
    np.testing.assert_allclose(np.interp(found, knots, integral), clock[:-1], rtol=1e-9, atol=1e-9)
    # all of them, and no more
    assert clock[-1] >= integral[-1] * (1 - 1e-12)
    assert np.all(np.diff(found) >= 0) and np.all((found >= begin) & (found <= knots[-1]))
    at = np.searchsorted(knots, found, side="right") - 1
    assert np.all(rate[np.minimum(at, len(rate) - 1)] > 0)
    assert mean_count(rates) == pytest.approx(integral[-1])


def test_the_number_until_the_end_is_poisson():
    rates = Rates(np.array([0.0, 2.0, 4.0]), 6.0, np.array([[10.0], [70.0], [10.0]]))
    counts = np.array([len(poisson(rates, None, seed).arrival_s) for seed in range(400)])
    assert mean_count(rates) == 180.0
    assert abs(counts.mean() - 180) < 4 * np.sqrt(180 / 400)
    assert 1e-3 < stats.chi2.cdf(counts.var(ddof=1) * 399 / 180, 399) < 1 - 1e-3


def test_a_count_that_the_rates_never_reach_ends_with_them():
    rates = Rates(np.array([0.0, 5.0]), np.inf, np.array([[3.0], [0.0]]))
    found = poisson(rates, 1000, 8).arrival_s
    assert 0 < len(found) < 40 and found[-1] <= 5.0
    np.testing.assert_allclose(found * 3.0, unit(len(found), 8), rtol=1e-13)


def test_factors_hold_for_their_classes_from_their_times_on():
    factors = Factors(
        np.array([0.0, 4.0, 4.0, 9.0]),
        np.array([2.0, 0.5, 3.0, 0.0]),
        [None, None, np.array([2]), np.array([0])],
    )
    rates = varying(10.0, np.array([0.2, 0.3, 0.5]), factors)
    np.testing.assert_array_equal(rates.start_s, [0.0, 4.0, 9.0])
    np.testing.assert_allclose(rates.rate, [[4.0, 6.0, 10.0], [1.0, 1.5, 15.0], [0.0, 1.5, 15.0]])
    assert rates.end_s == np.inf


def test_before_the_first_factor_the_rate_is_as_given():
    rates = varying(10.0, np.array([0.4, 0.6]), Factors(np.array([3.0]), np.array([5.0]), [None]))
    np.testing.assert_allclose(rates.rate, [[4.0, 6.0], [20.0, 30.0]])


def test_classes_follow_the_rates_of_their_interval():
    rates = Rates(np.array([0.0, 100.0]), 200.0, np.array([[90.0, 10.0], [10.0, 40.0]]))
    found = poisson(rates, None, 9)
    for interval, shares in ((found.arrival_s < 100, [0.9, 0.1]), (found.arrival_s >= 100, [0.2, 0.8])):
        counts = np.bincount(found.class_of[interval], minlength=2)
        assert stats.chisquare(counts, np.array(shares) * counts.sum()).pvalue > 1e-3


def test_a_trace_is_replayed_at_a_multiple_of_its_rate():
    times, classes = np.array([0.0, 1.0, 4.0]), np.array([0, 1, 0], np.uint8)
    found = of_trace(times, classes, 2.0)
    np.testing.assert_array_equal(found.arrival_s, [0.0, 0.5, 2.0])
    np.testing.assert_array_equal(found.class_of, classes)
