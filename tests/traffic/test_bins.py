"""Counts by bin: nothing is lost, empty bins are joined, and work is the plain double sum."""

import numpy as np
import pytest

from ecjax.tables.importers import open_trace
from ecjax.tables.requests import requests
from ecjax.traffic.bins import bin_arrivals, bin_width, count_matrix, prices_of_reads, work_of_nodes


def _arrivals():
    rng = np.random.default_rng(1)
    times = np.sort(np.concatenate([rng.uniform(0, 3, 40), rng.uniform(50, 53, 60)])) + 7.0
    return times, rng.integers(0, 5, 100), rng.random(100) < 0.3


def test_every_arrival_is_in_the_bin_of_its_time():
    times, file, write = _arrivals()
    reads, writes = bin_arrivals(times, file, 5, 0.25, write)
    assert reads.width_s is writes.width_s and len(reads.width_s) < 60
    assert reads.reads.sum() == np.sum(~write) and writes.reads.sum() == np.sum(write)
    ends = times[0] + np.cumsum(reads.width_s)
    expected = np.zeros((reads.bins, 5))
    for time, which in zip(times[~write], file[~write], strict=True):
        expected[np.searchsorted(ends, time, side="right"), which] += 1
    np.testing.assert_array_equal(count_matrix(reads).toarray(), expected)
    assert reads.length_s == pytest.approx(np.ceil((times[-1] - times[0]) / 0.25) * 0.25)


def test_an_interval_keeps_empty_time_at_both_ends():
    times, file, _ = _arrivals()
    reads, _ = bin_arrivals(times, file, 5, 0.25, interval_s=(0.0, 100.0))
    assert reads.length_s == 100.0
    assert reads.width_s[0] == 7.0 and reads.bin[0] == 1
    with pytest.raises(ValueError, match="not within"):
        bin_arrivals(times, file, 5, 0.25, interval_s=(0.0, 20.0))


@pytest.mark.parametrize("begin", [0.0, 0.7, 1.7e9])
@pytest.mark.parametrize("ticks", [1, 3])
@pytest.mark.parametrize(("tick", "factor"), [(0.1, 1.0), (0.001, 1.0), (0.001, 7.0)])
def test_arrivals_on_the_ticks_of_a_clock_are_in_the_bins_of_their_ticks(begin, ticks, tick, factor):
    """One on every tick, as decimals are read; the log may be replayed faster."""
    first = round(begin / tick)
    times = np.array([float(f"{(first + number) * tick:.3f}") for number in range(3000)]) / factor
    width, tick_s = ticks * tick / factor, tick / factor
    reads, _ = bin_arrivals(times, np.zeros(3000, int), 1, width, tick_s=tick_s)
    np.testing.assert_array_equal(reads.bin, np.arange(3000 // ticks))
    np.testing.assert_array_equal(reads.reads, ticks)


@pytest.mark.parametrize("ticks", [1, 3])
@pytest.mark.parametrize("digits", [2, 5])
def test_times_since_1970_are_in_the_bins_of_their_ticks(tmp_path, digits, ticks):
    """They are counted from the first one, but for the rounding of such large numbers."""
    reads_of = 1 + np.random.default_rng(0).poisson(9, 3000)
    tick = np.repeat(np.arange(3000), reads_of)
    second, part = 1_700_000_000 + tick // 10**digits, tick % 10**digits
    rows = [f"{n},{second[n]}.{part[n]:0{digits}},a,read,1" for n in range(len(tick))]
    lines = ["request_id,arrival_s,file_id,op,bytes", *rows]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    found = requests(open_trace(tmp_path / "log.csv"))
    assert found.tick_s == pytest.approx(10.0**-digits)
    times = found.on_ticks(found.arrival)
    reads, _ = bin_arrivals(times, found.file, 1, ticks * found.tick_s, tick_s=found.tick_s)
    np.testing.assert_array_equal(reads.reads, reads_of.reshape(-1, ticks).sum(axis=1))


def test_no_arrivals_have_no_bins():
    with pytest.raises(ValueError, match="no arrivals"):
        bin_arrivals(np.zeros(0), np.zeros(0, int), 1, 1.0)


def test_the_width_is_a_service_in_whole_ticks_and_bins_are_not_too_many():
    assert bin_width(1000.0, 0.06, tick_s=1.0) == 1.0
    assert bin_width(1000.0, 0.06, tick_s=0.001) == 0.06
    assert bin_width(1000.0, 0.0052, tick_s=0.001) == 0.005
    assert bin_width(1000.0, 0.0014, tick_s=0.001) == 0.001
    assert bin_width(1000.0, 0.06) == 0.06
    assert bin_width(2.0**22, 0.06) == 1.0
    assert bin_width(2.0**24, 0.06, tick_s=1.5) == 4.5


def test_work_and_prices_are_transposes():
    times, file, _ = _arrivals()
    reads, _ = bin_arrivals(times, file, 5, 0.25)
    rng = np.random.default_rng(2)
    probabilities, mean = rng.random((5, 3)), rng.random((5, 3))
    work = work_of_nodes(reads, probabilities, mean)
    np.testing.assert_allclose(work.sum(0), np.bincount(file) @ (probabilities * mean))
    prices = rng.random(work.shape)
    by_file = prices_of_reads(reads, prices, mean)
    assert np.sum(by_file * probabilities) == pytest.approx(np.sum(prices * work))
