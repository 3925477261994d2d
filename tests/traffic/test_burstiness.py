import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.tables.statistics.ticks import TickCounts
from ecjax.traffic.burstiness import BURSTIER, POISSON, REGULAR, UNKNOWN, busiest, dispersion, verdicts

VECTORS = json.loads((Path(__file__).parent / "dispersion_vectors.json").read_text())
CLOUDPHYSICS = Path(__file__).parents[3] / "shared" / "data" / "cloudphysics-a.csv"
FEW = settings(max_examples=40, deadline=None)
COUNTS = st.lists(st.sampled_from([0, 0, 0, 1, 2, 7, 40]), min_size=2, max_size=70)


def by_tick(counts, tick_s=1.0):
    counts = np.asarray(counts)
    ticks = np.flatnonzero(counts)
    return TickCounts(tick_s, len(counts), ticks, counts[ticks])


def of_times(times, tick_s, length_s):
    places = np.floor(np.asarray(times) / tick_s).astype(np.int64)
    ticks, counts = np.unique(places, return_counts=True)
    return TickCounts(tick_s, int(length_s / tick_s), ticks, counts)


def plain_dispersion(counts, tick_s=1.0):
    """Scale, I, standard error and pairs of every scale, one window after another."""
    rows, windows = [], list(counts)
    while len(windows) >= 2:
        pairs = [(windows[i], windows[i + 1]) for i in range(0, len(windows) - 1, 2)]
        total = sum(a + b for a, b in pairs)
        if total:
            squares = sum((a - b) ** 2 for a, b in pairs)
            ordered = sum((a + b) * (a + b - 1) for a, b in pairs)
            weight = total**2 / sum((a + b) ** 2 for a, b in pairs)
            rows.append((tick_s, squares / total, (2 * ordered) ** 0.5 / total, weight))
        tick_s, windows = 2 * tick_s, [a + b for a, b in pairs]
    return np.array(rows).reshape(-1, 4)


def columns(table):
    told = table.arrivals > 0
    values = (table.scale_s, table.dispersion, table.standard_error, table.pairs)
    return np.stack([each[told] for each in values], axis=1)


def told(counts):
    """The verdict of each scale."""
    table = dispersion(counts)
    return dict(zip(table.scale_s.tolist(), verdicts(table), strict=True))


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_vectors(case):
    table = dispersion(by_tick(case["counts"], case["tick_s"]))
    expected = {
        name: [row[name] for row in case["scales"]]
        for name in ("scale_s", "I", "se_poisson", "z", "effective_pairs")
    }
    np.testing.assert_array_equal(table.scale_s, expected["scale_s"])
    np.testing.assert_allclose(table.dispersion, expected["I"], rtol=1e-13)
    np.testing.assert_allclose(table.standard_error, expected["se_poisson"], rtol=1e-13)
    np.testing.assert_allclose(table.z, expected["z"], rtol=1e-13)
    np.testing.assert_allclose(table.pairs, expected["effective_pairs"], rtol=1e-13)


@FEW
@given(COUNTS, st.sampled_from([1.0, 0.25]))
def test_every_scale_is_that_of_windows_added_up_one_by_one(counts, tick_s):
    found = columns(dispersion(by_tick(counts, tick_s)))
    np.testing.assert_allclose(found, plain_dispersion(counts, tick_s), rtol=1e-12)


@FEW
@given(COUNTS, st.integers(0, 4))
def test_a_shift_by_whole_windows_changes_nothing_up_to_them(counts, level):
    moved = [0] * 2 ** (level + 1) + counts
    found, expected = (columns(dispersion(by_tick(each))) for each in (moved, counts))
    np.testing.assert_allclose(
        found[found[:, 0] <= 2**level], expected[expected[:, 0] <= 2**level], rtol=1e-12
    )


@FEW
@given(COUNTS, COUNTS, st.integers(0, 9))
def test_segments_are_added_up_each_from_its_own_first_tick_on(early, late, silent):
    counts = by_tick([*early, *[0] * silent, *late])
    begin = len(early) + silent
    found = columns(dispersion(counts, [(0, len(early)), (begin, begin + len(late))]))
    longest = max(len(early), len(late))
    # an even number of ticks each, so that both can stand side by side
    for row in found:
        windows = 2 * int(row[0])
        cut = [each[: len(each) // windows * windows] for each in (early, late)]
        both = plain_dispersion([*cut[0], *cut[1]])
        np.testing.assert_allclose(row, both[both[:, 0] == row[0]][0], rtol=1e-12)
        assert windows <= longest


def test_thinning_brings_the_dispersion_as_much_nearer_to_1_as_arrivals_are_fewer():
    random = np.random.default_rng(0)
    rate = np.where(np.arange(2**17) // 16 % 8 == 0, 40, 4)
    counts = random.poisson(rate)
    whole = dispersion(by_tick(counts))
    for share in (0.5, 0.1):
        thin = dispersion(by_tick(random.binomial(counts, share)))
        bursty = (whole.dispersion > 1.5) & (whole.pairs > 1000)
        assert bursty.sum() >= 3
        ratio = (thin.dispersion - 1)[bursty] / (whole.dispersion - 1)[bursty]
        np.testing.assert_allclose(ratio, share, rtol=0.05)


def test_fifty_in_every_second_are_more_regular():
    counts = by_tick(np.full(4096, 50))
    table = dispersion(counts)
    assert table.dispersion[0] == 0 and table.z[0] == pytest.approx(-32, abs=0.5)
    assert [told(counts)[s] for s in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)] == [REGULAR] * 7


@pytest.mark.parametrize("rate", [0.2, 5, 50])
def test_poisson_counts_are_as_poisson(rate):
    verdict = told(by_tick(np.random.default_rng(3).poisson(rate, 2**14)))
    assert [verdict[s] for s in (1.0, 2.0, 4.0, 8.0, 16.0)] == [POISSON] * 5
    assert set(verdict.values()) == {POISSON, UNKNOWN}


def burst_times(random, length_s, burst_s, rate=5.0):
    """A tenth of the time at ten times the mean rate, in bursts of exponential length with Poisson arrivals."""
    times, now = [], 0.0
    while now < length_s:
        now += random.exponential(9 * burst_s)
        burst = random.exponential(burst_s)
        times.append(now + random.uniform(0, burst, random.poisson(5 * rate * burst)))
        now += burst
    calm = random.uniform(0, length_s, random.poisson(0.5 * rate * length_s))
    times = np.sort(np.concatenate([*times, calm]))
    return times[times < length_s]


@pytest.mark.parametrize(
    ("burst_s", "length_s", "before", "after"),
    [
        (0.1, 2**14, 2**-6, 0.125),
        (10.0, 2**15, 2**-3, 1.0),
        (600.0, 2**18, 1.0, 16.0),
    ],
)
def test_bursts_show_from_a_scale_below_their_length_on(burst_s, length_s, before, after):
    times = burst_times(np.random.default_rng(5), length_s, burst_s)
    verdict = told(of_times(times, 2.0**-7, length_s))
    first = min(s for s, word in verdict.items() if word == BURSTIER)
    assert before < first <= after
    assert all(word == POISSON for s, word in verdict.items() if s <= before)
    assert verdict[2 * after] == verdict[4 * after] == BURSTIER


def test_a_slow_wave_is_poisson_at_short_scales():
    random = np.random.default_rng(6)
    seconds = np.arange(2**16)
    verdict = told(by_tick(random.poisson(5 * (1 + 0.8 * np.sin(2 * np.pi * seconds / 2000)))))
    assert [verdict[s] for s in (1.0, 2.0, 4.0)] == [POISSON] * 3
    assert [verdict[s] for s in (64.0, 128.0, 256.0, 512.0)] == [BURSTIER] * 4


def test_erlang_gaps_are_more_regular():
    times = np.cumsum(np.random.default_rng(7).gamma(4, 0.05, 200_000))
    verdict = told(of_times(times, 2.0**-6, times[-1]))
    assert all(verdict[2.0**level] == REGULAR for level in range(-4, 6))
    assert verdict[2.0**-6] == POISSON


def test_few_poisson_logs_raise_an_alarm():
    random = np.random.default_rng(8)
    alarms = sum(
        bool({BURSTIER, REGULAR} & set(told(by_tick(random.poisson(rate, 2048))).values()))
        for rate in (0.2, 1.0, 5.0)
        for _ in range(100)
    )
    assert alarms <= 13  # of 300: 1.6 % of each, as stated, with a chance of 1 in 1000 of more


def test_few_arrivals_tell_nothing():
    assert set(told(by_tick([1, 0, 0, 0] * 12)).values()) == {UNKNOWN}
    assert set(told(by_tick(np.random.default_rng(10).poisson(0.5, 100))).values()) == {UNKNOWN}
    assert told(by_tick([5])) == {} and told(by_tick([0, 0])) == {1.0: UNKNOWN}


def test_windows_shorter_than_the_step_of_a_clock_are_left_out():
    counts = by_tick(np.tile([9, 0, 0, 0], 64))._replace(least=4)
    assert min(told(counts)) == 4.0


def test_a_burst_of_one_window_cannot_tell():
    case = next(case for case in VECTORS if case["name"] == "one burst")
    assert set(told(by_tick(case["counts"])).values()) == {UNKNOWN}


@FEW
@given(COUNTS, st.integers(1, 20))
def test_the_busiest_window_is_the_busiest_of_all(counts, width):
    found = busiest(by_tick(counts, 0.5), 0.5 * width)
    if len(counts) < 2 * width or not any(counts):
        assert found is None
        return
    sums = [sum(counts[i : i + width]) for i in range(len(counts))]
    assert found.arrivals == max(sums)
    begin = round(found.start_s / 0.5)
    assert sum(counts[begin : begin + width]) == max(sums)
    assert found.ratio == pytest.approx(max(sums) / (np.mean(counts) * width))


def test_a_coarse_clock_knows_no_busiest_second():
    counts = by_tick([5, 1, 1, 9], 60.0)
    assert busiest(counts, 1.0) is None and busiest(counts, 60.0).arrivals == 9


@pytest.mark.parametrize(
    ("tick", "window", "found"), [(45.0, 60.0, None), (45.0, 3600.0, 80), (7.0, 60.0, None)]
)
def test_windows_that_are_no_whole_number_of_ticks_are_left_out(tick, window, found):
    """A minute by ticks of 45 s would be one of them, and by those of 7 s it would be 63 s; an hour is 80 of 45 s."""
    row = busiest(by_tick(np.ones(1000, int), tick), window, 0.03)
    assert (row if found is None else row.arrivals) == found


def test_milliseconds_that_were_joined_know_a_second():
    """Ticks of 64 ms, sixteen of which are 1.024 s."""
    assert busiest(by_tick(np.ones(1000, int), 0.064), 1.0, 0.03).arrivals == 16


@pytest.mark.skipif(not CLOUDPHYSICS.exists(), reason="the CloudPhysics trace is not here")
def test_a_real_block_trace_is_burstier_by_far():
    times = pd.read_csv(CLOUDPHYSICS, dtype={"op": str})["time"].to_numpy()
    table = dispersion(by_tick(np.bincount(times - times[0])))
    assert verdicts(table)[:4] == [BURSTIER] * 4
    assert np.all((table.dispersion[:5] > 150) & (table.dispersion[:5] < 910))
