"""Means, quantiles and intervals of replays, against theory and against plain NumPy on the paths."""

import numpy as np
import pytest
from systems import law_table, make_system

from ecjax.simulation import summary, tally
from ecjax.simulation.run import Policy, Queue, replay
from ecjax.streams import arrivals


def mm1(load, requests, seed, paths=False):
    """One M/M/1 queue with mean service 1 s."""
    system = make_system([1], [[0]], law_table("exponential", 1))
    counts = tally.empty(requests, 1, 1, 1, True, paths)
    return replay(system, arrivals.poisson([load], requests, seed), counts, seed, Policy(), Queue())


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_intervals_cover_the_true_mean_as_often_as_they_say(load):
    covered, truth = 0, 1 / (1 - load)
    for seed in range(100):
        run = mm1(load, 60_000, seed)
        found = summary.summarise([run.tally], [run.span])
        covered += abs(found.mean[0] - truth) <= found.half_width[0]
    assert 90 <= covered <= 98


def test_intervals_cover_true_quantiles_as_often_as_they_say():
    """Histograms of exponential times, four replications of 2000 each: 400 times over."""
    rng, edges = np.random.default_rng(0), tally.bin_edges()
    truth = -np.log1p(-np.array(summary.LEVELS))
    times = rng.exponential(size=(400, 4, 2000))
    place = np.searchsorted(edges, times, side="right") - 1
    rows = np.arange(1600).repeat(2000)
    bins = np.bincount(rows * tally.BINS + place.ravel(), minlength=1600 * tally.BINS)
    bins = bins.reshape(400, 4, tally.BINS).transpose(1, 0, 2)
    found, half_width = summary.quantiles(bins.sum(axis=0)), summary.quantile_half_widths(bins)
    covered = (np.abs(found - truth) <= half_width).mean(axis=0)
    assert np.all((covered[:3] >= 0.92) & (covered[:3] <= 0.98))
    # two of 2000 requests are above the last one
    assert np.isnan(half_width[:, 3]).all()
    assert np.isnan(summary.quantile_half_widths(bins[:2])).all()


def test_statistics_are_those_of_the_paths():
    runs = [mm1(0.7, 20_000, seed, paths=True) for seed in range(3)]
    found = summary.summarise([run.tally for run in runs], [run.span for run in runs])
    start = round(found.warm_up * 20_000)
    kept = np.concatenate([run.tally.paths[start:] for run in runs])
    assert found.count[0] == pytest.approx(len(kept), abs=3)
    assert found.mean[0] == pytest.approx(kept.mean(), rel=1e-3)
    assert found.deviation[0] == pytest.approx(kept.std(), rel=1e-3)
    expected = np.quantile(kept, summary.LEVELS)
    assert found.quantiles[0] == pytest.approx(expected, rel=0.01)
    # the only node, the only file, and all reads together are the same here
    assert found.all.mean[0] == found.mean[0] == found.mean[1] == found.mean[2]
    assert found.quantiles[2] == pytest.approx(expected, rel=0.03)
    each = np.array([np.quantile(run.tally.paths[start:], summary.LEVELS) for run in runs])
    half_width = (
        4.303 * each.std(axis=0, ddof=1) / np.sqrt(3)
    )  # Student's 97.5 % point, two degrees of freedom
    assert found.quantile_half_width[0] == pytest.approx(half_width, rel=0.05)
    assert found.utilisation[0] == pytest.approx(0.7, abs=0.02)
    assert found.stationary


def test_intervals_of_files_cover_the_true_mean_as_often_as_they_say():
    """One M/M/1 queue at a load of 0.8, whose reads wait behind each other; four replications, 100 times over."""
    truth, covered = 1 / (1 - 0.8), 0
    for first in range(0, 400, 4):
        runs = [mm1(0.8, 10_000, seed) for seed in range(first, first + 4)]
        found = summary.summarise([run.tally for run in runs], [run.span for run in runs])
        covered += abs(found.mean[2] - truth) <= found.half_width[2]
    assert 90 <= covered <= 98


def test_intervals_of_files_are_by_what_replications_differ_by():
    """Means of 1, 2 and 3 s: Student's 97.5 % point of two degrees of freedom; of two replications none."""
    tallies = []
    for mean in (1.0, 2.0, 3.0):
        counts = tally.empty(tally.BATCHES, 1, 1, 1)
        counts.sums[:, 2] = [10.0, 10 * mean, 10 * mean**2]
        counts.batches[0, :] = 1.0, mean
        tallies.append(counts)
    found = summary.summarise(tallies, [1.0] * 3, varying=True)
    assert found.mean[2] == pytest.approx(2.0) and found.half_width[2] == pytest.approx(4.302653 / 3**0.5)
    assert np.isnan(summary.summarise(tallies[:2], [1.0] * 2, varying=True).half_width[2])


@pytest.mark.parametrize("requests", [100, 500, 700, 767])
def test_few_requests_have_intervals_by_their_replications(requests):
    """As the means of eight replications have it by Student's law (97.5 % point of seven degrees: 2.364624)."""
    runs = [mm1(0.3, requests, seed, paths=True) for seed in range(8)]
    found = summary.summarise([run.tally for run in runs], [run.span for run in runs])
    start = round(found.warm_up * requests)
    means = np.array([run.tally.paths[start:].mean() for run in runs])
    expected = 2.364624 * means.std(ddof=1) / 8**0.5
    assert found.all.half_width[0] == pytest.approx(expected, rel=1e-6)
    assert found.half_width[:3] == pytest.approx([expected] * 3, rel=1e-6)
    # of less than three nothing is known
    for few in (runs[:1], runs[:2]):
        found = summary.summarise([run.tally for run in few], [run.span for run in few])
        assert np.isnan(found.all.half_width[0]) and np.isnan(found.half_width).all()


def test_intervals_are_of_the_requests_that_came():
    """Of 800 independent times: their standard error, whatever room there is for more."""
    rng = np.random.default_rng(3)
    counts = tally.empty(800, 1, 1)
    for b, value in enumerate(rng.normal(1.0, 0.1, 800)):
        counts.batches[0, b] = 1, value
        counts.sums[counts.segment[b], 0] += 1, value, value**2
    counts.began[:800] = np.arange(800)
    found = summary.summarise([counts], [800.0])
    assert found.half_width[0] == pytest.approx(1.96 * 0.1 / found.count[0] ** 0.5, rel=0.3)


@pytest.mark.parametrize("level", [0.01, 0.25, 0.5, 0.75])
def test_the_warm_up_is_cut(level):
    """A start from a high level that decays over a tenth of the run."""
    rng = np.random.default_rng(0)
    batch = np.arange(tally.BATCHES)
    counts = tally.empty(tally.BATCHES, 1, 1)
    values = 1 + 0.1 * rng.standard_normal(len(batch)) + 10 * level * np.exp(-batch / 30)
    for b, value in zip(batch, values, strict=True):
        counts.batches[0, b] = 1, value
        counts.sums[counts.segment[b], 0] += 1, value, value**2
    counts.began[:] = batch
    found = summary.summarise([counts], [1024.0])
    assert found.mean[0] == pytest.approx(1.0, abs=0.02)
    assert found.warm_up >= 32 / 1024
    assert found.stationary


@pytest.mark.parametrize("requests", [1, 30, 100, 500, 700])
def test_a_part_of_few_requests_is_always_kept(requests):
    """As many batches as requests, which begin high: what is cut leaves a quarter at least."""
    counts = tally.empty(requests, 1, 1)
    values = 1 + 0.1 * np.random.default_rng(1).standard_normal(requests)
    values[: requests * 7 // 10] += 5.0
    for b, value in enumerate(values):
        counts.batches[0, b] = 1, value
        counts.sums[counts.segment[b], 0] += 1, value, value**2
    counts.began[:requests] = np.arange(requests)
    found = summary.summarise([counts], [float(requests)])
    start = round(found.warm_up * requests)
    assert found.all.count[0] == found.count[0] == requests - start >= requests / 4
    assert found.mean[0] == pytest.approx(values[start:].mean(), rel=1e-12)


def test_of_arrivals_that_vary_all_count():
    """A burst in the middle, which a rule for the warm-up would cut, or call a drift."""
    counts = tally.empty(tally.BATCHES, 1, 1)
    values = np.ones(tally.BATCHES)
    values[300:400] = 50.0
    for b, value in enumerate(values):
        counts.batches[0, b] = 1, value
        counts.sums[counts.segment[b], 0] += 1, value, value**2
    counts.began[:] = np.arange(tally.BATCHES)
    found = summary.summarise([counts], [1024.0], varying=True)
    assert found.mean[0] == found.all.mean[0] == pytest.approx(values.mean(), rel=1e-12)
    assert found.count[0] == tally.BATCHES and found.warm_up == 0 and found.stationary
    assert summary.summarise([counts], [1024.0]).mean[0] < 0.5 * values.mean()


def test_an_overloaded_queue_is_not_stationary():
    run = mm1(1.1, 60_000, 1)
    assert not summary.summarise([run.tally], [run.span]).stationary


def test_groups_without_requests_have_no_mean():
    system = make_system([1, 1], [[0], [1]], law_table("exponential", 2), classes=[0, 1])
    counts = tally.empty(1000, 2, 2, 2, True)
    run = replay(system, arrivals.poisson([0.5, 0.0], 1000, 0), counts, 0, Policy(), Queue())
    found = summary.summarise([run.tally], [run.span])
    assert np.isnan(found.mean[[1, 3, 5]]).all()
    assert np.isnan(found.quantiles[[1, 3, 5]]).all()
    assert found.all.count[0] == found.count[0]


def test_quantiles_of_a_constant():
    counts = np.zeros((1, tally.BINS), np.int64)
    counts[0, tally.bin_of(3.0)] = 10
    assert summary.quantiles(counts)[0] == pytest.approx([3.0] * 4, rel=0.02)


def test_bins_hold_their_values():
    rng = np.random.default_rng(0)
    for number, shift in ((tally.BINS, 0), (tally.FILE_BINS, 2)):
        edges = tally.bin_edges(number)
        assert np.all(np.diff(edges) > 0)
        for value in np.exp(rng.uniform(-15, 12, 200)):
            place = tally.bin_of(value)
            place = ((place - 1) >> shift) + 1 if shift else place
            assert edges[place] <= value < edges[place + 1]
