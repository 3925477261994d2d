"""The parallel scan gives the paths and the tallies of the compiled loop: same draws, same queues."""

import numpy as np
import pytest
from systems import law_table, make_system, poisson

from ecjax.simulation import fcfs, laws, scan, tally
from ecjax.simulation.system import whole_units


def looped(system, times, files, seed, classes=2):
    counts = tally.empty(len(times), classes, system.nodes, paths=True)
    rows = len(system.start) - 1
    fcfs.replay_block(
        system, counts, times, files, 0, seed, fcfs.SAMPLED, np.ones((system.nodes, 1)), np.zeros((system.nodes, 1)),
        np.zeros(rows, np.int64),
    )  # fmt: skip
    return counts


def every_law():
    """Deterministic, stalling exponential, lognormal, Pareto, Weibull, two-point and empirical nodes."""
    kinds = [
        ("deterministic", 0.0, 0.0),
        ("exponential_with_stalls", 0.3, 1.5),
        ("lognormal", 0.9, 0.0),
        ("pareto", 1.4, 100.0),
        ("weibull", 0.7, 0.0),
        ("two_point", 0.25, 0.0),
        ("empirical", 0.0, 0.0),
    ]
    table = np.concatenate([law_table(kind, 1, 0.1, 0.3, a, b, 0.01, 0.02).table for kind, a, b in kinds])
    table[-1, 7:] = 1, 4
    return laws.Laws(table, np.array([9.0, 0.5, 1.0, 1.5, 3.0]))


def test_stalls_drawn_from_samples():
    """Beside samples of U, and several chunks at once; next to a node without."""
    table = law_table("empirical_with_stalls", 2, 0.1, 0.3, 0.4, 4.0).table
    table[0, 7:] = 0, 4
    table[1] = law_table("exponential", 1).table[0]
    service = laws.Laws(table, np.concatenate([[0.5, 1.0, 1.5, 3.0], 5 + np.arange(laws.STALL_SAMPLES)]))
    system = make_system([1, 2], [[0, 1], [0, 1]], service)._replace(chunks=np.array([1, 1, 3, 2]))
    times, files = poisson([0.05] * 2, 400, 4)
    found = np.asarray(scan.replay_fcfs(system, times, files, [3]))
    np.testing.assert_allclose(found[0], looped(system, times, files, 3).paths, rtol=1e-9)


def system_of_every_kind(link_s):
    """Rows of several lengths, a row read whole, a write, sizes, constant delays, chunks served together."""
    system = make_system(
        [3, 2, 1, 4, 2],
        [[0, 1, 2, 3, 4, 5, 6], [6, 4, 2, 0], [5], [1, 3, 5, 6], [0, 1]],
        every_law(),
        probabilities=[
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9],
            [1.0, 0.0, 0.5, 0.5],
            [1.0],
            [1.0] * 4,
            [1.0] * 2,
        ],
        classes=[0, 1, 0, 1, -1],
        chunk_bytes=[1.0, 2.0, 3.0, 4.0, 5.0],
        connect=np.array([np.zeros(7), np.linspace(0, 0.3, 7)]),
        extra_s=[0.0, 0.1, 0.2, 0.3, 0.4],
        link_s=link_s,
    )
    return system._replace(chunks=np.arange(len(system.node)) % 3 + 1)


@pytest.mark.parametrize("link_s", [0.0, [0.0, 0.1, 0.2, 0.3, 0.4]])
def test_paths_equal_the_loop(link_s):
    """Three seeds at once, 1000 requests: whole blocks and a part of one."""
    system = system_of_every_kind(link_s)
    times, files = poisson([0.1] * 5, 1000, 4)
    seeds = [0, 7, 2**40]
    found = np.asarray(scan.replay_fcfs(system, times, files, seeds))
    assert found.shape == (3, 1000)
    for lane, seed in enumerate(seeds):
        np.testing.assert_allclose(found[lane], looped(system, times, files, seed).paths, rtol=1e-9)


def test_lanes_with_plans_and_arrivals_of_their_own():
    system = make_system([2], [[0, 1, 2, 3]], law_table("exponential", 4, 0.5, 0.5))
    plans = [[0.5] * 4, [1.0, 1.0, 0.0, 0.0], [0.2, 0.4, 0.6, 0.8]]
    units = np.array([whole_units(np.array(p), system.start, system.need) for p in plans])
    arrivals = [poisson([0.9], 300, seed) for seed in range(3)]
    times, files = (np.array(own) for own in zip(*arrivals, strict=True))
    found = np.asarray(scan.replay_fcfs(system, times, files, [1, 2, 3], units))
    for lane in range(3):
        expected = looped(system._replace(units=units[lane]), times[lane], files[lane], lane + 1)
        np.testing.assert_allclose(found[lane], expected.paths, rtol=1e-9)


def test_tallies_equal_those_of_the_loop():
    service = law_table("exponential", 5, 1e-3, 2e-3)
    system = make_system([2, 3, 2], [[0, 1, 2, 3], [1, 2, 3, 4], [0, 4]], service, classes=[0, 1, -1])
    times, files = poisson([200.0, 150.0, 30.0], 17_001, 9)
    lanes = scan.tallies_fcfs(system, times, files, [5, 6], classes=2)
    for seed, found in zip([5, 6], lanes, strict=True):
        expected = looped(system, times, files, seed)
        np.testing.assert_array_equal(found.bins, expected.bins)
        np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-9)
        np.testing.assert_allclose(found.busy, expected.busy, rtol=1e-9)
        np.testing.assert_allclose(found.batches, expected.batches, rtol=1e-9)
        np.testing.assert_array_equal(found.began, expected.began)
        np.testing.assert_array_equal(found.segment, expected.segment)


def test_tallies_of_fewer_requests_than_batches():
    system = make_system([2], [[0, 1, 2, 3]], law_table("exponential", 4, 0.5, 0.5))
    times, files = poisson([0.9], 300, 1)
    (found,) = scan.tallies_fcfs(system, times, files, 4, classes=1)
    expected = looped(system, times, files, 4, classes=1)
    for name in ("sums", "bins", "batches", "busy", "began"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_gamma_laws_and_random_connection_delays_are_drawn_as_by_the_loop():
    """Shapes below 1, which draw once more, and above."""
    table = np.concatenate([law_table("gamma", 1, 0.1, 0.3, a).table for a in (0.3, 1.0, 4.5)])
    connect = np.array([[0.5, 0.0, 7.0], [0.2, 0.1, 0.01]])
    system = make_system(
        [2, 1], [[0, 1, 2], [2]], laws.Laws(table, np.zeros(0)), connect=connect, classes=[0, 1]
    )
    system = system._replace(chunks=np.array([1, 2, 1, 1]))
    times, files = poisson([0.4, 0.1], 2000, 3)
    found = np.asarray(scan.replay_fcfs(system, times, files, [1, 2]))
    for lane, seed in enumerate([1, 2]):
        np.testing.assert_allclose(found[lane], looped(system, times, files, seed).paths, rtol=1e-9)


def test_lanes_of_unequal_lengths_with_files_one_by_one():
    service = law_table("exponential", 5, 1e-3, 2e-3)
    system = make_system([2, 3, 2], [[0, 1, 2, 3], [1, 2, 3, 4], [0, 4]], service, classes=[0, 1, -1])
    counts, width = [3000, 2500], 3200
    arrivals = [poisson([200.0, 150.0, 30.0], count, seed) for seed, count in enumerate(counts)]
    times, files = (
        np.stack([np.pad(each[part], (0, width - len(each[part])), mode="edge") for each in arrivals])
        for part in (0, 1)
    )
    lanes = scan.tallies_fcfs(system, times, files, [5, 6], 2, counts=counts, of_files=2, file_bins=True)
    for seed, found, (times, files) in zip([5, 6], lanes, arrivals, strict=True):
        expected = tally.empty(width, 2, system.nodes, 2, True)
        fcfs.replay_block(
            system, expected, times, files, 0, seed, fcfs.SAMPLED, np.ones((5, 1)), np.zeros((5, 1)),
            np.zeros(3, np.int64),
        )  # fmt: skip
        for name in ("sums", "bins", "batches", "busy", "began", "file_bins"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
