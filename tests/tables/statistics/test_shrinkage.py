"""Shrunk rates against SciPy's negative binomial law, and against the rates that made the counts."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import nbinom

from ecjax.tables.statistics.shrinkage import fit_gamma, shrunk_rates

LENGTH_S = 50.0


def drawn(shape, mean, files, seed):
    """Rates (1/s) and counts in ``LENGTH_S``."""
    random = np.random.default_rng(seed)
    rates = random.gamma(shape, mean / shape / LENGTH_S, files)
    return rates, random.poisson(rates * LENGTH_S)


def loss(counts, truncated):
    """Minus log likelihood by SciPy, of the logarithms of shape and mean."""

    def value(logs):
        shape, mean = np.exp(logs)
        p = shape / (shape + mean)
        named = nbinom.sf(0, shape, p) if truncated else 1.0
        return -np.sum(nbinom.logpmf(counts, shape, p) - np.log(named))

    return value


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize(("shape", "mean"), [(0.4, 0.8), (2.0, 3.0)])
def test_the_largest_likelihood_is_that_of_scipy(shape, mean, truncated):
    _, counts = drawn(shape, mean, 3000, 1)
    counts = counts[counts > 0] if truncated else counts
    law = fit_gamma(counts, truncated)
    value = loss(counts, truncated)
    found = minimize(value, np.log([1.0, 1.0]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose([law.shape, law.mean], np.exp(found.x), rtol=1e-5)
    assert value(np.log([law.shape, law.mean])) <= found.fun + 1e-6
    # the law that made them is within the 99.9 % region of the likelihood ratio, chi-square with two degrees
    assert 2 * (value(np.log([shape, mean])) - found.fun) < 13.8


def test_the_posterior_of_every_file_and_their_sum():
    _, counts = drawn(0.5, 1.0, 2000, 2)
    shrunk = shrunk_rates(counts, LENGTH_S, truncated=False)
    prior_s = shrunk.law.shape * LENGTH_S / shrunk.law.mean
    assert shrunk.as_counted == 0 and shrunk.unnamed == 0
    np.testing.assert_allclose(shrunk.rate, (counts + shrunk.law.shape) / (LENGTH_S + prior_s))
    np.testing.assert_allclose(shrunk.error, np.sqrt(counts + shrunk.law.shape) / (LENGTH_S + prior_s))
    assert shrunk.rate.sum() == pytest.approx(counts.sum() / LENGTH_S)


@pytest.mark.parametrize("truncated", [False, True])
def test_shrunk_rates_are_nearer_to_those_that_made_the_counts(truncated):
    rates, counts = drawn(0.5, 1.0, 5000, 3)
    if truncated:
        rates, counts = rates[counts > 0], counts[counts > 0]
    shrunk = shrunk_rates(counts, LENGTH_S, truncated)
    raw = counts / LENGTH_S
    assert np.mean((shrunk.rate - rates) ** 2) < 0.9 * np.mean((raw - rates) ** 2)
    assert shrunk.rate.sum() == pytest.approx(raw.sum())
    if truncated:
        # what files without a read have of all reads to come: (1 + mean / shape)^-(shape + 1) of them
        assert shrunk.unnamed == pytest.approx(3.0**-1.5, rel=0.15)
    else:
        inside = np.abs(shrunk.rate - rates) < 1.96 * shrunk.error
        assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("exponent", [0.6, 1.0])
def test_files_read_far_more_than_a_gamma_law_allows_keep_their_rates(exponent):
    share = np.arange(1, 20001.0) ** -exponent
    rates = share / share.sum() * 20000 / LENGTH_S
    counts = np.random.default_rng(4).poisson(rates * LENGTH_S)
    shrunk = shrunk_rates(counts, LENGTH_S, truncated=False)
    assert shrunk.as_counted > 10 and shrunk.rate[0] == counts[0] / LENGTH_S
    assert shrunk.rate.sum() == pytest.approx(counts.sum() / LENGTH_S)
    raw = counts / LENGTH_S
    assert np.sum(np.abs(shrunk.rate - rates)) < 0.8 * np.sum(np.abs(raw - rates))
    assert np.sum((shrunk.rate - rates) ** 2) < 1.1 * np.sum((raw - rates) ** 2)


def test_files_that_are_alike_get_one_rate():
    counts = np.random.default_rng(5).poisson(1.0, 3000)
    shrunk = shrunk_rates(counts, LENGTH_S, truncated=False)
    np.testing.assert_allclose(shrunk.rate, counts.mean() / LENGTH_S, rtol=0.05)


@pytest.mark.parametrize("counts", [[], [5], [0, 0, 0], [1, 1, 1]])
def test_counts_that_tell_no_law_stay_rates(counts):
    shrunk = shrunk_rates(np.array(counts), LENGTH_S, truncated=True)
    assert shrunk.law is None
    np.testing.assert_array_equal(shrunk.rate, np.array(counts) / LENGTH_S)
