"""FCFS and partitioned nodes against the plain simulator, path by path, and against queueing theory."""

import numpy as np
import pytest
from drawn_systems import NODES, RANDOM_SYSTEMS, agree, blocks
from hypothesis import given
from hypothesis import strategies as st
from plain_simulator import Simulation
from scipy import special
from systems import law_table, make_system, poisson, service_time

from ecjax.simulation import fcfs, summary, tally


def run(system, times, files, seed, choice=fcfs.SAMPLED, slowness=None, cuts=(), **kept):
    counts = tally.empty(len(times), 2, system.nodes, files=system.files, paths=True, **kept)
    slowness = np.ones((system.nodes, 1)) if slowness is None else slowness
    free, turn = np.zeros(slowness.shape), np.zeros(len(system.start) - 1, np.int64)
    for own_times, own_files, first in blocks(times, files, cuts):
        fcfs.replay_block(system, counts, own_times, own_files, first, seed, choice, slowness, free, turn)
    return counts


@given(case=RANDOM_SYSTEMS, cuts=st.lists(st.integers(0, 120), max_size=3))
def test_sampled_paths_equal_the_plain_simulator(case, cuts):
    system, times, files, seed = case
    agree(run(system, times, files, seed, cuts=cuts), Simulation(system, times, files, seed), files)


@given(case=RANDOM_SYSTEMS, cuts=st.lists(st.integers(0, 120), max_size=3))
def test_round_robin_paths_equal_the_plain_simulator(case, cuts):
    system, times, files, seed = case
    expected = Simulation(system, times, files, seed, policy="round_robin")
    agree(run(system, times, files, seed, fcfs.ROUND_ROBIN, cuts=cuts), expected, files)


@given(
    case=RANDOM_SYSTEMS,
    cuts=st.lists(st.integers(0, 120), max_size=3),
    share=st.lists(st.floats(0.1, 0.9), min_size=NODES, max_size=NODES),
)
def test_partitioned_paths_equal_the_plain_simulator(case, cuts, share):
    system, times, files, seed = case
    weights = np.array([share, 1 - np.array(share)])
    expected = Simulation(system, times, files, seed, queue="partitioned", weights=weights)
    slowness = np.ascontiguousarray(1 / weights.T)
    agree(run(system, times, files, seed, slowness=slowness, cuts=cuts), expected, files)


def node_moments(counts, node=0):
    """Mean and variance of the sojourn at a node, without the first segment."""
    number, total, square = counts.sums[1:, 2 + node].sum(axis=0)
    return total / number, square / number - (total / number) ** 2


ERLANG = 2.5
THEORY = {  # kind, offset, scale, a, the first three moments
    "M/M/1": ("exponential", 0.0, 1.0, 0.0, (1.0, 2.0, 6.0)),
    "M/D/1": ("deterministic", 1.0, 0.0, 0.0, (1.0, 1.0, 1.0)),
    "shifted exponential": ("exponential", 0.5, 0.5, 0.0, (1.0, 1.25, 2.0)),
    "gamma": ("gamma", 0.0, 0.4, ERLANG, (1.0, 0.16 * 2.5 * 3.5, 0.064 * 2.5 * 3.5 * 4.5)),
    "weibull": ("weibull", 0.0, 1.0, 1.5, tuple(special.gamma(1 + n / 1.5) for n in (1, 2, 3))),
    "lognormal": ("lognormal", 0.0, 1.0, 0.5, tuple(np.exp(n**2 / 8) for n in (1, 2, 3))),
}


@pytest.mark.parametrize("name", THEORY)
@pytest.mark.parametrize("load", [0.4, 0.7])
def test_sojourns_of_poisson_arrivals(name, load):
    """Pollaczek and Khinchine: mean and variance of the sojourn, within four standard errors of ten replications."""
    kind, offset, scale, a, (first, second, third) = THEORY[name]
    system = make_system([1], [[0, 1]], law_table(kind, 2, offset, scale, a))
    rate = load / first  # of each node: sampling splits a Poisson stream into Poisson streams
    found = []
    for seed in range(10):
        times, files = poisson([2 * rate], 100_000, seed)
        counts = run(system, times, files, seed)
        found += [node_moments(counts, node) for node in (0, 1)]
    wait = rate * second / (2 * (1 - load))
    expected = (first + wait, second - first**2 + rate * third / (3 * (1 - load)) + wait**2)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(mean - expected) < 4 * error)
    assert np.all(error < [0.01, 0.05] * np.array(expected))  # so that this says something


def test_reads_of_all_nodes_wait_like_one_node():
    """Every node gets every request: the sojourn at each is M/M/1; the read lasts as long as the longest."""
    system = make_system([3], [[0, 1, 2]], law_table("exponential", 3))
    times, files = poisson([0.5], 200_000, 2)
    counts = run(system, times, files, 3)
    for node in range(3):
        mean, _ = node_moments(counts, node)
        assert mean == pytest.approx(2.0, rel=0.03)
    assert (
        2.0 * (1 + 1 / 2) < counts.paths.mean() < 2.0 * (1 + 1 / 2 + 1 / 3)
    )  # associated: less than independent


def test_busy_time_is_the_sum_of_services():
    """Of every access, writes and queues of their own among them."""
    service = law_table("gamma", 4, 0.1, 0.4, 1.7, offset_per_byte=0.2)
    system = make_system(
        [4, 3, 2],
        [[0, 1, 2, 3], [0, 1, 2], [2, 3]],
        service,
        classes=[0, 1, -1],
        queues=[0, 1, 0],
        chunk_bytes=[1.0, 2.0, 3.0],
        chunks=2,
    )
    times, files = poisson([0.1, 0.2, 0.1], 300, 8)
    expected = np.zeros(4)
    for request, file in enumerate(files):
        for entry in range(system.start[file], system.start[file + 1]):
            expected[system.node[entry]] += service_time(system, 5, request, entry, file)
    for slowness in (np.ones((4, 1)), np.random.default_rng(0).uniform(1, 4, (4, 2))):
        counts = run(system, times, files, 5, slowness=slowness)
        np.testing.assert_allclose(counts.busy.sum(axis=0), expected, rtol=1e-12)


def test_probabilities_of_the_plan_are_met():
    """Accesses per node within a binomial interval of five standard deviations."""
    probabilities = [[0.9, 0.6, 0.5], [0.2, 0.3, 0.5]]
    system = make_system([2, 1], [[0, 1, 2], [1, 2, 3]], law_table("deterministic", 4), probabilities)
    times, files = poisson([1.0, 2.0], 50_000, 8)
    counts = run(system, times, files, 5)
    accesses = counts.sums[:, 2:6, 0].sum(axis=0)
    reads = np.bincount(files)
    wanted = np.array([0.9 * reads[0], 0.6 * reads[0] + 0.2 * reads[1], 0.5 * reads[0] + 0.3 * reads[1], 0.0])
    wanted[3] = 0.5 * reads[1]
    assert np.all(np.abs(accesses - wanted) < 5 * np.sqrt(len(files) / 4 * np.array([1, 2, 2, 1])))
    assert accesses.sum() == 2 * reads[0] + reads[1]


@pytest.mark.parametrize("kind", ["exponential", "pareto"])
def test_histograms_give_the_quantiles_of_the_paths(kind):
    """Within 1 %, at every level reported; batches and segments hold what the paths say."""
    service = law_table(kind, 5, scale=1e-3, a=1.6, b=1e4)
    system = make_system([2, 3], [[0, 1, 2], [0, 2, 3, 4]], service, classes=[0, 1])
    times, files = poisson([70.0, 70.0], 100_000, 1)
    counts = run(system, times, files, 2, file_bins=True)
    for group in (0, 1):
        own = counts.paths[files == group]
        expected = np.quantile(own, summary.LEVELS)
        found = summary.quantiles(counts.bins[:, group].sum(axis=0)[None])[0]
        np.testing.assert_allclose(found, expected, rtol=0.01)
        coarse = summary.quantiles(counts.file_bins[:, group].sum(axis=0)[None])[0]
        np.testing.assert_allclose(coarse, expected, rtol=0.05)
        np.testing.assert_allclose(
            counts.sums[:, group].sum(axis=0), [own.size, own.sum(), (own**2).sum()], rtol=1e-9
        )
        batch = (np.flatnonzero(files == group) * tally.BATCHES) // len(times)
        expected = np.bincount(batch, own, minlength=tally.BATCHES)
        np.testing.assert_allclose(counts.batches[group, :, 1], expected, rtol=1e-9)
        by_segment = np.add.reduceat(expected, tally.SEGMENTS)
        np.testing.assert_allclose(counts.sums[:, group, 1], by_segment, rtol=1e-9)


def test_bins_hold_what_their_edges_say():
    """At, just below and between all edges, and far outside."""
    edges = tally.bin_edges()
    inner = edges[1:-1]
    assert [tally.bin_of(x) for x in inner] == list(range(1, tally.BINS))
    assert [tally.bin_of(x) for x in np.nextafter(inner, 0)] == list(range(tally.BINS - 1))
    assert tally.bin_of(0.0) == 0 and tally.bin_of(1e-300) == 0 and tally.bin_of(1e300) == tally.BINS - 1
    assert np.max(edges[2:] / edges[1:-1]) < 1.016
