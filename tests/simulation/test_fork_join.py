"""Fork and join against the plain simulator, path by path, and against exact means."""

import numpy as np
import pytest
from drawn_systems import RANDOM_SYSTEMS, agree, blocks
from hypothesis import given
from hypothesis import strategies as st
from plain_simulator import Simulation
from systems import law_table, make_system, poisson

from ecjax.simulation import fork_join, tally


def run(system, times, files, seed, cancel, cuts=()):
    counts = tally.empty(len(times), 2, system.nodes, files=system.files, paths=True)
    free = np.zeros((system.nodes, 1))
    for own_times, own_files, first in blocks(times, files, cuts):
        fork_join.replay_block(system, counts, own_times, own_files, first, seed, cancel, free)
    return counts


@given(case=RANDOM_SYSTEMS, cancel=st.booleans(), cut=st.integers(0, 120))
def test_paths_equal_the_plain_simulator(case, cancel, cut):
    system, times, files, seed = case
    counts = run(system, times, files, seed, cancel, (cut,))
    agree(counts, Simulation(system, times, files, seed, policy="fork_join", cancel=cancel), files)


def mean_and_error(paths):
    """Mean of the second nine tenths, and its standard error by batches."""
    batches = paths[len(paths) // 10 :].reshape(90, -1).mean(axis=1)
    return batches.mean(), batches.std(ddof=1) / np.sqrt(90)


@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_two_nodes_both_needed(rho):
    """Nelson and Tantawi, IEEE Trans. Computers 37, 1988: (12 - rho) / 8 times the mean of M/M/1, exact for two."""
    system = make_system([2], [[0, 1]], law_table("exponential", 2))
    times, files = poisson([rho], 400_000, 3)
    for cancel in (False, True):  # nothing to cancel
        mean, error = mean_and_error(run(system, times, files, 1, cancel).paths)
        assert abs(mean - (12 - rho) / 8 / (1 - rho)) < 4 * error


@pytest.mark.parametrize("rate", [0.5, 2.4])
def test_first_of_n_with_cancellation_is_one_fast_server(rate):
    """All replicas begin together and end together: M/M/1 with n times the rate."""
    system = make_system([1], [[0, 1, 2]], law_table("exponential", 3))
    times, files = poisson([rate], 400_000, 3)
    counts = run(system, times, files, 1, True)
    mean, error = mean_and_error(counts.paths)
    assert abs(mean - 1 / (3 - rate)) < 4 * error
    utilisation = counts.busy.sum(axis=0) / times[-1]
    np.testing.assert_allclose(utilisation, rate / 3, rtol=0.02)


def test_first_of_n_shifted_exponential_with_cancellation():
    """M/G/1 with the least of n services: Delta + Exp(n mu), mean by Pollaczek and Khinchine."""
    system = make_system([1], [[0, 1, 2, 3]], law_table("exponential", 4, offset=0.5, scale=0.5))
    first, second = 0.5 + 0.125, 0.125**2 + (0.5 + 0.125) ** 2
    times, files = poisson([1.0], 400_000, 4)
    mean, error = mean_and_error(run(system, times, files, 1, True).paths)
    assert abs(mean - (first + second / (2 * (1 - first)))) < 4 * error


def test_known_paths():
    """Two of three; node 2 is slow and is given up in service first, then in its queue."""
    system = make_system([2, 1], [[0, 1, 2], [2]], law_table("deterministic", 3, offset=[1.0, 2.0, 5.0]))
    times, files = np.array([0.0, 0.5, 10.0, 11.0]), np.array([0, 0, 1, 0])
    counts = run(system, times, files, 1, True)
    # 0: nodes 0, 1 end at 1, 2; node 2 stops at 2. 1: node 0 1..2, node 1 2..4, node 2 2..4. 3: node 2 busy to 15
    np.testing.assert_allclose(counts.paths, [2.0, 3.5, 5.0, 2.0])
    np.testing.assert_allclose(counts.busy.sum(axis=0), [3.0, 6.0, 2.0 + 2.0 + 5.0])
    counts = run(system, times, files, 1, False)
    # node 2 serves all of them: 0..5, 5..10, 10..15, 15..20
    np.testing.assert_allclose(counts.paths, [2.0, 3.5, 5.0, 2.0])
    np.testing.assert_allclose(counts.busy.sum(axis=0), [3.0, 6.0, 20.0])
