import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.tables.statistics import silences as silences_module
from ecjax.tables.statistics import ticks
from ecjax.tables.statistics.silences import Silences
from ecjax.tables.statistics.ticks import Clock, TickHistogram, uneven_ticks

FEW = settings(max_examples=40, deadline=None)


def counted(places, series, cuts=(), clock=None):
    """A histogram of all, added in parts."""
    histogram, clock = TickHistogram(), clock or Clock(1.0, 0.0)
    for part, numbers in zip(np.split(places, cuts), np.split(series, cuts), strict=True):
        histogram.add(clock.places(part.astype(float)), numbers)
    return histogram, clock


def drawn_places(data):
    gaps = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=120))
    places = np.cumsum(np.array([0, *gaps]) * data.draw(st.sampled_from([1, 3, 8])))
    count = data.draw(st.integers(1, 3))
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-1, count, len(places))
    return places, numbers


@FEW
@given(data=st.data())
def test_counts_are_those_of_windows_as_short_as_there_is_room_for(data):
    places, series = drawn_places(data)
    limit = data.draw(st.sampled_from([4, 7, 16, 1000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ticks, "_TICKS", limit * max(2, int(series.max(initial=0)) + 1))
        histogram, clock = counted(places, series, sorted(data.draw(st.lists(st.integers(0, len(places))))))
        for number in range(histogram.series):
            counts = histogram.counts(number, clock)
            own = places[series == number]
            level = 0
            while len(np.unique(own >> level)) > limit:
                level += 1
            step = max(int(np.gcd.reduce(places)), 1) if level == 0 else 2**level
            expected, sizes = np.unique(own // step, return_counts=True)
            assert counts.tick_s == step and counts.length == places[-1] // step + 1
            np.testing.assert_array_equal(counts.tick, expected)
            np.testing.assert_array_equal(counts.arrivals, sizes)


@FEW
@given(data=st.data())
def test_later_parts_are_absorbed_as_if_they_had_been_added(data):
    places, series = drawn_places(data)
    cut = data.draw(st.integers(0, len(places)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ticks, "_TICKS", data.draw(st.sampled_from([8, 20, 1000])))
        whole, clock = counted(places, series)
        first, early = counted(places[:cut], series[:cut])
        # series there are numbered in another order
        there = np.where(series < 0, -1, int(series.max(initial=0)) - series)
        rest, late = counted(places[cut:], there[cut:])
        early.absorb(late)
        first.absorb(rest, int(series.max(initial=0)) - np.arange(rest.series))
        assert (early.step, early.last) == (clock.step, clock.last)
        for number in np.unique(series[series >= 0]):
            for a, b in zip(first.counts(number, early), whole.counts(number, clock), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_clock_that_writes_minutes_ticks_in_minutes():
    clock = Clock(1.0)
    histogram = TickHistogram()
    histogram.add(clock.places(1.7e9 + np.array([0.0, 60.0, 60.0, 240.0])), np.zeros(4, np.int64))
    counts = histogram.counts(0, clock)
    assert clock.step_s == counts.tick_s == 60 and counts.length == 5
    np.testing.assert_array_equal(counts.tick, [0, 1, 4])


def test_times_half_way_between_ticks_are_as_far_apart_as_they_are_written():
    np.testing.assert_array_equal(Clock(1.0).places(np.arange(6) + 0.5), np.arange(6))
    # the first one counts as one of the second that comes next
    np.testing.assert_array_equal(Clock(1.0).places(np.array([0.5, 1.0, 2.0, 3.5])), [0, 0, 1, 3])
    # whole numbers of more than 52 bits have no halves
    large = 2.0**52 + np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(Clock(1.0).places(large), [0, 1, 3])


def test_ticks_of_milliseconds_are_not_lost_to_rounding():
    clock = Clock(0.001)
    times = 1.6e9 + np.arange(5000) * 0.001
    np.testing.assert_array_equal(clock.places(times), np.arange(5000))


def test_steps_that_do_not_divide_windows_are_told_from_long_windows_on(monkeypatch):
    monkeypatch.setattr(ticks, "_TICKS", 64)
    places = 6 * np.arange(100)
    histogram, clock = counted(places, np.zeros(100, np.int64))
    counts = histogram.counts(0, clock)
    assert counts.tick_s == 16 or counts.tick_s == 32
    assert counts.least * counts.tick_s >= 64 * 6


def uneven_counts(times, resolution_s=0.0):
    """Counts by tick, and the step of the clock as ties and gaps show it."""
    clock, histogram = Clock(resolution_s, times[0]), TickHistogram()
    places = clock.places(times)
    histogram.add(places, np.zeros(len(times), np.int64))
    uneven = clock.uneven_step(len(times), int(np.count_nonzero(np.diff(times) == 0)))
    return histogram.counts(0, clock, uneven), uneven * clock.unit_s


def test_a_clock_of_64_ticks_a_second_in_milliseconds_tells_nothing_of_shorter_windows():
    random = np.random.default_rng(2)
    ticks_of = np.sort(random.integers(0, 64 * 100, 50_000))
    milliseconds, step_s = uneven_counts(np.round(ticks_of / 64, 3), 0.001)
    assert step_s == pytest.approx(0.015) and milliseconds.least * milliseconds.tick_s == pytest.approx(0.96)
    thirds, step_s = uneven_counts(np.sort(random.integers(0, 3000, 50_000)) / 3)
    assert step_s == pytest.approx(1 / 3, abs=1e-5) and thirds.least * thirds.tick_s > 20


def test_random_times_and_batches_of_reads_are_on_no_such_clock():
    random = np.random.default_rng(3)
    times = np.sort(random.uniform(0, 1000, 5000))
    assert uneven_counts(times)[1] == 0
    assert uneven_counts(np.repeat(np.sort(random.permutation(times)[:500]), 10))[1] == 0
    assert uneven_counts(np.cumsum(random.uniform(0.5, 1.5, 1000)))[1] == 0
    assert uneven_counts(np.round(times, 3), 0.001)[1] == 0


@pytest.mark.parametrize(("rate", "digits"), [(64, 3), (300, 3), (1024, 5), (3, None)])
def test_ticks_of_a_clock_that_ticks_unevenly(rate, digits):
    """Also of one that runs faster later on, after ten minutes in which nothing arrives."""
    random = np.random.default_rng(5)
    numbers = np.sort(random.integers(0, 64 * 100, 50_000))
    halves = np.split(numbers, [25_000])
    times = np.concatenate([halves[0] / rate, 600 + halves[1] / (rate * (1 + 1e-5))])
    times = times if digits is None else np.round(times, digits)
    found = uneven_ticks(times, 0.0 if digits is None else 10.0**-digits)
    assert found.length_s == pytest.approx(1 / rate, rel=1e-3)
    ticked = np.split(found.on(times) / found.length_s, [25_000])
    for half, expected in zip(ticked, halves, strict=True):
        np.testing.assert_allclose(half - half[0], expected - expected[0], atol=1e-3)
    # a time between two ticks is at the nearer one
    between = found.on(times[:1] + np.array([0.0, 0.3, 0.7, 2.1]) / rate) / found.length_s
    np.testing.assert_allclose(between, [0, 0, 1, 2], atol=1e-9)


def test_batches_and_even_clocks_have_no_uneven_ticks():
    random = np.random.default_rng(6)
    batches = np.round(np.repeat(np.cumsum(random.uniform(8, 12, 500)), 10), 3)
    # they tie, and no two are near each other, but they do not come at the ticks of anything
    assert uneven_counts(batches, 0.001)[1] > 0
    assert uneven_ticks(batches, 0.001) is None
    times = np.sort(random.uniform(0, 1000, 5000))
    for each, step in ((times, 0.0), (np.round(times, 3), 0.001), (np.floor(times), 1.0)):
        assert uneven_ticks(each, step) is None
    assert uneven_ticks(np.zeros(3), 0.001) is None and uneven_ticks(np.zeros(1), 0.0) is None


@pytest.mark.parametrize("rounds", [100, 300, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_a_client_that_sends_at_regular_times_is_no_clock(rounds, seed):
    """Every 100 ms but for a millisecond, in milliseconds: requests of a round come together, not within 100 ms."""
    random = np.random.default_rng(seed)
    slept = np.cumsum(random.integers(99, 102, rounds)) / 1000
    overhead = np.round(np.cumsum(0.1 + random.uniform(0, 1e-3, rounds)), 3)
    scheduled = np.round(0.1 * np.arange(rounds) + random.uniform(0, 1e-3, rounds), 3)
    exact = np.round(0.1003 * np.arange(rounds), 3)
    for begins in (slept, overhead, scheduled, exact):
        assert uneven_ticks(np.repeat(begins, 2), 0.001) is None
    # nor where it sends some more now and then
    for begins in (slept, overhead):
        assert uneven_ticks(np.repeat(begins, 1 + random.poisson(1.0, rounds)), 0.001) is None
    # random arrivals on a clock of such steps
    counts = random.poisson(2.0, rounds)
    ticked = np.repeat(exact, counts)
    found = uneven_ticks(ticked, 0.001)
    assert found.length_s == pytest.approx(0.1003, abs=2e-3 / rounds)
    np.testing.assert_array_equal(found.number, np.flatnonzero(counts) - np.flatnonzero(counts)[0])


def test_too_many_series_are_none(monkeypatch):
    monkeypatch.setattr(ticks, "MOST_SERIES", 3)
    histogram, _ = counted(np.arange(10), np.arange(10))
    assert histogram.series == 0


def silences_of(times, cuts=(), tick=0.0):
    silences = Silences()
    for part in np.split(times, cuts):
        silences.add(part)
    return silences.stretches(tick)


def test_a_hole_in_a_log_is_a_silent_stretch():
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(100, 1100, 5000))
    assert not len(silences_of(times))
    holed = times[(times < 400) | (times > 500) & (times < 700) | (times > 750)]
    found = silences_of(holed, [1000, 3000])
    np.testing.assert_allclose(found + holed[0], [[400, 500], [700, 750]], atol=1.0)
    early, late = Silences(), Silences()
    early.add(holed[:2000])
    late.add(holed[2000:])
    early.absorb(late)
    np.testing.assert_array_equal(early.stretches(0.0), found)


def test_a_long_log_is_looked_through_in_parts(monkeypatch):
    """Its longest gaps, which a sort of all of them gives, without as many rows as arrivals at a time."""
    times = np.cumsum(np.random.default_rng(4).exponential(1.0, 300_000))
    rows, longer = [], silences_module._longer

    def counting(*given):
        gaps = longer(*given)
        rows.append(len(gaps))
        return gaps

    monkeypatch.setattr(silences_module, "_longer", counting)
    silences = Silences()
    silences.add(times)
    np.testing.assert_array_equal(silences._gaps[:, 1], np.sort(np.diff(times))[::-1][: len(silences._gaps)])
    assert len(silences._gaps) > 1000 and max(rows) <= 1 << 16 and sum(rows) < 80_000


@pytest.mark.parametrize(
    ("days", "a_day", "cuts"), [(40, 100, ()), (300, 50, (7000,)), (40, 50, (100, 500)), (1024, 50, ())]
)
def test_nights_of_a_log_that_is_recorded_by_day_are_silent_stretches(days, a_day, cuts):
    """From nine to five, whole weeks: a night is 1.7 % of 40 days, 0.2 % of 300."""
    random = np.random.default_rng(2)
    begins = 86400.0 * np.arange(days)
    times = np.sort(random.uniform(9 * 3600, 17 * 3600, (days, a_day)), axis=1) + begins[:, None]
    found = silences_of(times.ravel(), cuts)
    expected = np.column_stack([times[:-1, -1], times[1:, 0]]) - times[0, 0]
    np.testing.assert_allclose(found, expected)


def test_more_nights_than_are_followed_are_none():
    times = np.add.outer(86400.0 * np.arange(1500), 60.0 * np.arange(200)).ravel()
    assert not len(silences_of(times))


def test_ticks_and_bursts_are_no_silent_stretches():
    assert not len(silences_of(np.repeat(np.arange(40.0), 50), tick=1.0))
    random = np.random.default_rng(1)
    starts = np.cumsum(random.exponential(100, 60))
    times = np.sort((starts[:, None] + random.uniform(0, 10, (60, 50))).ravel())
    assert not len(silences_of(times))


def test_few_arrivals_over_a_long_time_have_no_silent_stretches():
    """The gaps of 40 Poisson requests in a year last days; some of the shortest are five times as short as others."""
    for seed in range(40):
        times = np.sort(np.random.default_rng(seed).uniform(0, 365 * 86400.0, 40))
        assert not len(silences_of(times)), seed
