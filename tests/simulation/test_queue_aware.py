"""Shortest queues and power of d choices against the plain simulator, path by path, and against known extremes."""

import numpy as np
import pytest
from drawn_systems import RANDOM_SYSTEMS, agree, blocks
from hypothesis import given
from hypothesis import strategies as st
from plain_simulator import Simulation
from systems import law_table, make_system, poisson

from ecjax.simulation import queue_aware, tally


def run(system, times, files, seed, probes, cuts=(), classes=2):
    counts = tally.empty(len(times), classes, system.nodes, files=system.files, paths=True)
    rings = queue_aware.Rings.empty(np.zeros((system.nodes, 1)))
    for own_times, own_files, first in blocks(times, files, cuts):
        queue_aware.replay_block(system, counts, own_times, own_files, first, seed, probes, rings)
    return counts, rings


@given(case=RANDOM_SYSTEMS, probes=st.integers(1, 3), cut=st.integers(0, 120))
def test_paths_equal_the_plain_simulator(case, probes, cut):
    system, times, files, seed = case
    counts, _ = run(system, times, files, seed, probes, (cut,))
    agree(counts, Simulation(system, times, files, seed, policy="power_of_d", probes=probes), files)
    counts, _ = run(system, times, files, seed, system.widest, (cut,))
    agree(counts, Simulation(system, times, files, seed, policy="least_loaded"), files)


def test_one_probe_per_chunk_is_a_random_choice():
    """With as many probes as chunks the queues do not matter: mean sojourn of M/M/1."""
    system = make_system([1], [[0, 1, 2, 3]], law_table("exponential", 4))
    times, files = poisson([2.0], 200_000, 3)
    counts, _ = run(system, times, files, 1, 1)
    mean = counts.paths.mean()
    error = counts.paths.reshape(100, -1).mean(axis=1).std() / 10
    assert abs(mean - 2.0) < 4 * error


def test_two_exponential_nodes_join_the_shortest_queue():
    """Better than two queues chosen at random (M/M/1), not as good as one queue before both servers (M/M/2)."""
    system = make_system([1], [[0, 1]], law_table("exponential", 2))
    times, files = poisson([1.6], 200_000, 3)
    counts, _ = run(system, times, files, 1, 2)
    rho = 0.8
    assert 1 / (1 - rho**2) < counts.paths.mean() < 1 / (1 - rho)


@pytest.mark.parametrize("cuts", [(), (1, 700, 701)])
def test_overload_makes_the_rings_grow(cuts):
    """Requests come every 1 ms, services last 1 s: the nodes serve in turn, whatever the order of ties."""
    system = make_system([1], [[0, 1]], law_table("deterministic", 2, offset=1.0))
    times = np.arange(900) * 1e-3
    counts, rings = run(system, times, np.zeros(900, np.int64), 7, 2, cuts)
    assert rings.finishes.shape[1] > 450
    rounds = np.arange(900) // 2
    np.testing.assert_allclose(
        np.sort(times + counts.paths), times[np.arange(900) % 2] + rounds + 1, rtol=1e-12
    )


def test_most_loaded_nodes_are_avoided():
    """Node 0 is busy for long with what only it can serve: others take what has a choice."""
    system = make_system([1, 1], [[0], [0, 1, 2]], law_table("deterministic", 3, offset=[100.0, 0.5, 0.5]))
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    counts, rings = run(system, times, np.array([0, 1, 1, 1, 1]), 1, 3)
    np.testing.assert_allclose(counts.paths, [100.0, 0.5, 0.5, 0.5, 0.5])
    assert rings.end.tolist()[0] == 1
