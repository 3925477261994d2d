import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from ecjax.tables.statistics.zipf import fit_zipf


def negative_log_likelihood(s, counts):
    ordered = np.sort(counts[counts > 0])[::-1]
    ranks = np.arange(1, len(ordered) + 1)
    return s * ordered @ np.log(ranks) + ordered.sum() * np.log(np.sum(ranks**-s))


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=50).filter(lambda c: sum(n > 0 for n in c) >= 2))
def test_exponent_maximises_the_likelihood(counts):
    counts = np.array(counts)
    fit = fit_zipf(counts)
    oracle = minimize_scalar(
        negative_log_likelihood, args=(counts,), bounds=(0, 20), method="bounded", options={"xatol": 1e-10}
    )
    assert negative_log_likelihood(fit.exponent, counts) <= oracle.fun + 1e-9 * abs(oracle.fun)
    assert fit.exponent == pytest.approx(oracle.x, abs=1e-4)


def test_error_is_the_curvature_of_the_likelihood():
    counts = np.round(1000 * np.arange(1, 40) ** -0.9)
    fit, step = fit_zipf(counts), 1e-3
    values = [negative_log_likelihood(fit.exponent + d, counts) for d in (-step, 0.0, step)]
    curvature = (values[0] - 2 * values[1] + values[2]) / step**2
    assert fit.error == pytest.approx(curvature**-0.5, rel=1e-4)


def test_recovers_the_exponent_of_drawn_accesses():
    share = np.arange(1, 51) ** -1.1
    counts = np.random.default_rng(0).multinomial(200_000, share / share.sum())
    fit = fit_zipf(counts)
    assert abs(fit.exponent - 1.1) < 4 * fit.error


def test_equal_counts_and_single_files():
    assert fit_zipf(np.array([7, 7, 7, 7])).exponent == pytest.approx(0, abs=1e-9)
    assert np.isnan(fit_zipf(np.array([5, 0, 0])).exponent)
