import itertools
import math
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ecjax.tables.statistics.arrivals import ArrivalProcess
from ecjax.tables.statistics.poisson import poisson_test
from ecjax.tables.statistics.sections import BLOCK_GAPS, SECTION, lewis_distance


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


EVERYTHING = 2**64 - 1
WEYL = 0x9E3779B97F4A7C15


def mixed(word):
    """SplitMix64's finaliser in plain integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & EVERYTHING
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & EVERYTHING
    return word ^ (word >> 31)


def uniform(word):
    return ((word >> 11) + 0.5) / 2**53


def plain_distance(gaps):
    ordered = np.sort(gaps)
    spacings = (len(gaps) - np.arange(len(gaps))) * np.diff(ordered, prepend=0)
    return stats.kstest(np.cumsum(spacings)[:-1] / sum(gaps), "uniform").statistic


def plainly(times, resolution, seed):
    """Gaps and distances of the blocks, tick by tick as the definitions have it."""
    spread, borders = [], []
    for tick, arrivals in itertools.groupby(times.tolist()):
        count = len(list(arrivals))
        state = mixed(int.from_bytes(struct.pack("<d", tick), "little") ^ mixed((seed + WEYL) & EVERYTHING))
        if (mixed(state ^ WEYL) >> 11) / 2**53 * SECTION < count:
            borders.append(len(spread))
        reached = 0.0
        for left in range(count, 0, -1):
            state = (state + WEYL) & EVERYTHING
            reached = 1 - (1 - reached) * uniform(mixed(state)) ** (1 / left)
            spread.append((tick + resolution * (reached if resolution else 0), tick))
    arrivals, ticks = np.array(spread).T
    distances = []
    ends = [*borders, len(arrivals)]
    for first, last in itertools.pairwise([0, *ends]):
        for begin in range(first, last - 1, BLOCK_GAPS):
            end = min(begin + BLOCK_GAPS, last - 1)
            whole = end - begin == BLOCK_GAPS
            if (whole or last == len(arrivals) and end - begin >= 16) and (
                not resolution or arrivals[begin] < ticks[end]
            ):
                distances.append(plain_distance(np.diff(arrivals[begin : end + 1])))
    return np.diff(arrivals), distances, borders


@pytest.mark.parametrize("resolution", [0.0, 1.0])
def test_sections_blocks_and_spreading_are_as_defined(resolution):
    random = np.random.default_rng(11)
    counts = np.where(random.random(300) < 0.1, random.integers(1, 4000, 300), random.integers(1, 200, 300))
    times = np.repeat(np.cumsum(random.integers(1, 3, 300)) * (1.0 if resolution else 0.37), counts)
    if not resolution:
        times = np.sort(times + random.integers(0, 30, times.size) / 100)
    gaps, distances, borders = plainly(times, resolution, 5)
    found = process(times, resolution, seed=5, parts=7)
    assert len(borders) >= 1
    np.testing.assert_allclose(found.block_distances()[0], distances, rtol=1e-9)
    assert found.interarrival_cv == pytest.approx(gaps.std(ddof=1) / gaps.mean(), rel=1e-12)


def test_ends_on_a_coarse_clock_less_fine_durations_are_on_its_ticks():
    """As nginx writes them: ten Poisson requests a second of 1 to 99 ms, each at the whole second of its end."""
    random = np.random.default_rng(12)
    duration = random.integers(1, 100, 20_000) / 1000
    ends = np.floor(np.sort(random.uniform(0, 2000, 20_000)) + duration)
    times = np.sort(ends - duration)
    ticks = np.round(times) + 0.0
    found = process(times, 1.0, seed=5, parts=7)
    assert found.ties == np.count_nonzero(np.diff(ticks) == 0) > 17_000
    gaps, distances, _ = plainly(ticks, 1.0, 5)
    np.testing.assert_allclose(found.block_distances()[0], distances, rtol=1e-9)
    assert found.interarrival_cv == pytest.approx(gaps.std(ddof=1) / gaps.mean(), rel=1e-12)
    assert found.interarrival_cv == pytest.approx(1.0, abs=0.03)
    # how long the log lasts is told as finely as its times are
    assert (found.first_s, found.last_s) == (times[0], times[-1])


def test_times_half_way_between_ticks_are_on_the_later_one():
    """Rounded to even, the arrivals of two seconds were on every other tick."""
    seconds = np.sort(np.random.default_rng(14).integers(0, 2000, 20_000)).astype(float)
    found = process(seconds + 0.5, 1.0, seed=5, parts=7)
    assert found.ties == np.count_nonzero(np.diff(seconds) == 0)
    gaps, distances, _ = plainly(seconds + 1.0, 1.0, 5)
    np.testing.assert_allclose(found.block_distances()[0], distances, rtol=1e-9)
    assert found.interarrival_cv == pytest.approx(gaps.std(ddof=1) / gaps.mean(), rel=1e-12)
    assert found.interarrival_cv == pytest.approx(1.0, abs=0.03)
    assert poisson_test(*found.block_distances()).p_value > 0.01


@pytest.mark.parametrize("resolution", [0.001, 0.25, 0.06, 60.0])
def test_times_on_ticks_are_spread_as_they_are_written(resolution):
    places = np.sort(np.random.default_rng(13).integers(0, 3000, 1500))
    times = np.array([float(f"{place * resolution:.3f}") for place in places])
    gaps, distances, _ = plainly(times, resolution, 2)
    found = process(times, resolution, seed=2, parts=4)
    assert found.ties == np.count_nonzero(np.diff(places) == 0)
    np.testing.assert_allclose(found.block_distances()[0], distances, rtol=1e-9)
    assert found.interarrival_cv == pytest.approx(gaps.std(ddof=1) / gaps.mean(), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_parts_cut_anywhere_give_the_whole(data):
    # a tick of 70,000 arrivals is always a border
    counts = data.draw(st.lists(st.sampled_from([1, 1, 2, 40, 300, 70_000]), min_size=1, max_size=12))
    steps = data.draw(st.lists(st.sampled_from([0.001, 1.0, 900.0]), min_size=12, max_size=12))
    times = np.repeat(np.cumsum(steps[: len(counts)]), counts)
    resolution = data.draw(st.sampled_from([0.0, 0.001]))
    places = st.integers(0, len(times)) | st.sampled_from([0, *np.cumsum(counts).tolist()])
    cuts = sorted(data.draw(st.lists(places, max_size=5)))
    writes, sizes = np.arange(len(times)) % 3 == 0, np.ones(len(times))
    whole, merged = ArrivalProcess(resolution, 1), ArrivalProcess(resolution, 1)
    whole.add(times, writes, sizes)
    for first, last in itertools.pairwise([0, *cuts, len(times)]):
        own = slice(first, last)
        if first == 0:
            merged.add(times[own], writes[own], sizes[own])
        else:
            part = ArrivalProcess(resolution, 1, float(times[0]), continues=True)
            for half in (slice(first, (first + last) // 2), slice((first + last) // 2, last)):
                part.add(times[half], writes[half], sizes[half])
            merged.absorb(pickle.loads(pickle.dumps(part)))
    whole.finish()
    merged.finish()
    for name in ("count", "ties", "first_s", "last_s"):
        assert getattr(whole, name) == getattr(merged, name)
    assert whole.interarrival_cv == merged.interarrival_cv or math.isnan(whole.interarrival_cv)
    for mine, other in zip(
        (*whole.block_distances(), *whole.time_bins()),
        (*merged.block_distances(), *merged.time_bins()),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, other)


def test_poisson_arrivals_pass_across_borders():
    test = poisson_test(
        *process(np.cumsum(np.random.default_rng(3).exponential(1.0, 400_000))).block_distances()
    )
    assert test.blocks > 3000 and test.p_value > 0.01 and abs(test.rejected_share - 0.05) < 0.02
