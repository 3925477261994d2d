"""Service times of every law against its SciPy distribution; sizes; several chunks together."""

import numpy as np
import pytest
from scipy import stats
from systems import law_table

from ecjax.machine_code import njit
from ecjax.simulation import laws
from ecjax.streams import streams

COUNT = 100_000
LEAST = 1e-4  # p-value; seeds are fixed


@njit()
def draw(table, samples, law, chunk_bytes, chunks, count):
    found = np.empty(count)
    start = streams.key(17, streams.SERVICE)
    for i in range(count):
        found[i] = laws.service(table, samples, law, chunk_bytes, chunks, streams.stream(start, i))
    return found


def cut_pareto(a, b):
    class CutPareto(stats.rv_continuous):
        def _cdf(self, x):
            return (1 - x**-a) / (1 - b**-a)

        def _munp(self, n):
            return a / (a - n) * (1 - b ** (n - a)) / (1 - b**-a)

    return CutPareto(a=1.0, b=b)()


LAWS = {
    "exponential": ("exponential", 0.0, 0.0, stats.expon()),
    "gamma": ("gamma", 2.5, 0.0, stats.gamma(2.5)),
    "gamma below one": ("gamma", 0.4, 0.0, stats.gamma(0.4)),
    "lognormal": ("lognormal", 0.7, 0.0, stats.lognorm(0.7)),
    "pareto": ("pareto", 2.4, 1000.0, cut_pareto(2.4, 1000.0)),
    "pareto, heavy": ("pareto", 0.8, 50.0, cut_pareto(0.8, 50.0)),
    "weibull": ("weibull", 1.6, 0.0, stats.weibull_min(1.6)),
    "weibull, heavy": ("weibull", 0.6, 0.0, stats.weibull_min(0.6)),
}


def test_stalls_come_on_top_whatever_the_size():
    """Every chunk stalls by itself, with probability 0.2, for 3 s."""
    law = law_table("exponential_with_stalls", 1, 0.5, 2.0, 0.2, 3.0, 0.1, 0.3)
    for size in (1.0, 5.0):
        fixed, random = 0.5 + 0.1 * size, 2.0 + 0.3 * size
        values = draw(law.table, law.samples, 0, size, 1, COUNT)
        alone = stats.expon(fixed, random)
        assert (
            stats.kstest(values, lambda x, law=alone: 0.8 * law.cdf(x) + 0.2 * law.cdf(x - 3.0)).pvalue
            > LEAST
        )
        several = draw(law.table, law.samples, 0, size, 3, COUNT)
        mean, variance = 3 * (fixed + random + 0.6), 3 * (random**2 + 0.16 * 9.0)
        assert abs(several.mean() - mean) < 4 * np.sqrt(variance / COUNT)
        assert several.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("name", LAWS)
def test_one_chunk(name):
    kind, a, b, expected = LAWS[name]
    law = law_table(kind, 2, offset=[9.0, 0.5], scale=[9.0, 2.0], a=a, b=b)
    values = draw(law.table, law.samples, 1, 1.0, 1, COUNT)
    assert stats.kstest((values - 0.5) / 2.0, expected.cdf).pvalue > LEAST
    mean, variance = expected.mean(), expected.var()
    assert abs(values.mean() - (0.5 + 2 * mean)) < 4 * np.sqrt(4 * variance / COUNT)


@pytest.mark.parametrize("name", [name for name in LAWS if "heavy" not in name])
def test_chunks_served_together_are_a_sum_of_independent_draws(name):
    kind, a, b, expected = LAWS[name]
    law = law_table(kind, 1, offset=0.25, scale=2.0, a=a, b=b)
    values = draw(law.table, law.samples, 0, 1.0, 4, COUNT)
    mean, variance = expected.mean(), expected.var()
    assert abs(values.mean() - 4 * (0.25 + 2 * mean)) < 4 * np.sqrt(16 * variance / COUNT)
    fourth = ((values - values.mean()) ** 4).mean() / values.var() ** 2  # of the variance's own error
    assert abs(values.var() / (16 * variance) - 1) < 4 * np.sqrt((fourth - 1) / COUNT) + 0.01


def test_four_exponential_chunks_are_gamma():
    law = law_table("exponential", 1)
    values = draw(law.table, law.samples, 0, 1.0, 4, COUNT)
    assert stats.kstest(values, stats.gamma(4).cdf).pvalue > LEAST


def test_lognormal_chunks_draw_independently():
    """The second draw of a normal is not the first of the next chunk: a pair's sum against a simulation by NumPy."""
    law = law_table("lognormal", 1, a=1.0)
    values = draw(law.table, law.samples, 0, 1.0, 2, COUNT)
    other = np.exp(np.random.default_rng(1).standard_normal((COUNT, 2))).sum(axis=1)
    assert stats.ks_2samp(values, other).pvalue > LEAST


def test_sizes():
    """X = offset_0 + offset_1 B + (scale_0 + scale_1 B) U with the same U for all sizes."""
    law = law_table("exponential", 1, 0.1, 0.2, offset_per_byte=0.03, scale_per_byte=0.5)
    unit = law_table("exponential", 1)
    draws = draw(unit.table, unit.samples, 0, 1.0, 1, 100)
    for size in (0.0, 1.0, 64.0):
        values = draw(law.table, law.samples, 0, size, 1, 100)
        np.testing.assert_allclose(values, 0.1 + 0.03 * size + (0.2 + 0.5 * size) * draws, rtol=1e-12)


def test_deterministic():
    law = law_table("deterministic", 1, offset=0.5, offset_per_byte=2.0)
    assert np.all(draw(law.table, law.samples, 0, 3.0, 1, 10) == 6.5)
    assert np.all(draw(law.table, law.samples, 0, 3.0, 4, 10) == 26.0)


def test_two_point():
    law = law_table("two_point", 1, offset=1.0, scale=10.0, a=0.3)
    values = draw(law.table, law.samples, 0, 1.0, 1, COUNT)
    assert set(values) == {1.0, 11.0}
    assert stats.binomtest(int((values == 11.0).sum()), COUNT, 0.3).pvalue > LEAST


def test_empirical():
    """Every sample of its own law as often, none of another law's."""
    table = np.zeros((2, 9))
    table[:, 2], table[:, 6] = 2.0, laws.KINDS.index("empirical")
    table[:, 7], table[:, 8] = (0, 3), (3, 7)
    samples = np.arange(10.0) ** 2
    for law, own in ((0, samples[:3]), (1, samples[3:])):
        values = draw(table, samples, law, 1.0, 1, COUNT)
        found, counts = np.unique(values, return_counts=True)
        np.testing.assert_allclose(found, 2 * own)
        assert stats.chisquare(counts).pvalue > LEAST
    together = draw(table, samples, 0, 1.0, 2, COUNT)
    sums, counts = np.unique(together, return_counts=True)
    np.testing.assert_allclose(sums, [0.0, 2.0, 4.0, 8.0, 10.0, 16.0])
    assert stats.chisquare(counts, COUNT * np.array([1, 2, 1, 2, 2, 1]) / 9).pvalue > LEAST
