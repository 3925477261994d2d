import numpy as np
import pytest
from scipy import stats

from ecjax.tables.statistics.arrivals import ArrivalProcess
from ecjax.tables.statistics.poisson import poisson_test
from ecjax.tables.statistics.sections import BLOCK_GAPS, lewis_distance


def process(times, resolution=0.0, seed=0, parts=1):
    arrivals = ArrivalProcess(resolution, seed)
    writes, sizes = np.arange(len(times)) % 3 == 0, np.full(len(times), 10.0)
    for part in np.array_split(np.arange(len(times)), parts):
        arrivals.add(times[part], writes[part], sizes[part])
    arrivals.finish()
    return arrivals


@pytest.mark.parametrize("count", [2, 5, 128])
def test_distance_is_scipys_of_the_transformed_gaps(count):
    gaps = np.random.default_rng(count).gamma(0.7, 2.0, count)
    ordered = np.sort(gaps)
    spacings = (count - np.arange(count)) * np.diff(ordered, prepend=0)
    uniforms = np.cumsum(spacings)[:-1] / gaps.sum()
    assert lewis_distance(gaps) == pytest.approx(stats.kstest(uniforms, "uniform").statistic, rel=1e-12)


def test_transformed_exponential_gaps_are_uniform():
    gaps = np.random.default_rng(1).exponential(3.0, (3000, 10))
    p = stats.kstwo.sf([lewis_distance(row) for row in gaps], 9)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_batches_do_not_matter_and_gaps_are_those_of_the_times():
    times = np.cumsum(np.random.default_rng(2).exponential(0.5, 1000))
    whole, parts = process(times), process(times, parts=17)
    np.testing.assert_allclose(whole.block_distances()[0], parts.block_distances()[0])
    assert parts.interarrival_cv == pytest.approx(
        np.diff(times).std(ddof=1) / np.diff(times).mean(), rel=1e-12
    )
    distances, sizes = parts.block_distances()
    # 999 gaps: 7 blocks of 128, and 103 left
    assert sizes.tolist() == [BLOCK_GAPS - 1] * 7 + [102]
    assert distances[1] == pytest.approx(lewis_distance(np.diff(times)[128:256]), rel=1e-9)
    assert parts.span_s == times[-1] - times[0] and parts.count == 1000 and parts.ties == 0


def verdict(times, resolution=0.0):
    return poisson_test(*process(times, resolution).block_distances())


def test_poisson_arrivals_pass_also_with_a_rate_that_drifts():
    random = np.random.default_rng(7)
    steady = np.cumsum(random.exponential(1.0, 20_000))
    assert verdict(steady).p_value > 0.01
    drifting = np.cumsum(random.exponential(1.0, 20_000) / np.linspace(1, 4, 20_000))
    test = verdict(drifting)
    assert test.p_value > 0.01 and 0.01 < test.rejected_share < 0.1


@pytest.mark.parametrize("shape", [0.5, 3.0])
def test_other_renewal_arrivals_fail(shape):
    random = np.random.default_rng(8)
    test = verdict(np.cumsum(random.gamma(shape, 1.0, 5000)))
    assert test.p_value < 1e-6 and test.rejected_share > 0.5


def test_equally_spaced_and_simultaneous_arrivals_fail():
    assert verdict(np.arange(500.0)).p_value < 1e-20
    assert verdict(np.zeros(500)).p_value < 1e-20


def test_ties_of_a_coarse_clock_are_spread_within_its_ticks():
    times = np.cumsum(np.random.default_rng(9).exponential(0.05, 40_000))
    ticks = np.floor(times)
    assert verdict(ticks).p_value < 1e-20
    assert verdict(ticks, 1.0).p_value > 0.01
    spread = process(ticks, 1.0, parts=5)
    assert spread.ties == np.count_nonzero(np.diff(ticks) == 0)
    assert spread.interarrival_cv == pytest.approx(1.0, abs=0.03)
    again = process(ticks, 1.0, parts=3)
    np.testing.assert_array_equal(spread.block_distances()[0], again.block_distances()[0])
    other = process(ticks, 1.0, seed=1)
    assert not np.array_equal(other.block_distances()[0], again.block_distances()[0])


def test_blocks_within_one_tick_tell_nothing():
    ticks = np.repeat(np.arange(3.0), 1000)
    distances, _ = process(ticks, 1.0).block_distances()
    # of 2999 gaps in 23 blocks, only those that straddle a tick count
    assert distances.size == 2


def test_counts_over_time_are_a_histogram():
    times = 5.0 + np.sort(np.random.default_rng(4).uniform(0, 1000, 5000))
    arrivals = process(times, parts=9)
    width, bins = arrivals.time_bins()
    assert 512 <= len(bins) <= 1024
    edges = times[0] + width * np.arange(len(bins) + 1)
    writes = np.arange(5000) % 3 == 0
    np.testing.assert_array_equal(bins[:, 0], np.histogram(times[~writes], edges)[0])
    np.testing.assert_array_equal(bins[:, 1], np.histogram(times[writes], edges)[0])
    assert bins[:, 2].sum() == 50_000


def test_one_request_has_neither_span_nor_gaps():
    arrivals = process(np.array([3.0]))
    assert arrivals.span_s == 0 and np.isnan(arrivals.interarrival_cv)
    assert poisson_test(*arrivals.block_distances()).blocks == 0
