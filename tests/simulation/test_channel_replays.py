"""Nodes that serve several requests at once: path by path, against Erlang, and beside bound and estimate."""

import jax
import numpy as np
import pytest
from drawn_systems import NODES, RANDOM_SYSTEMS, agree
from hypothesis import given
from hypothesis import strategies as st
from plain_simulator import Simulation
from scipy import integrate, special
from systems import law_table, make_system, poisson

from ecjax.queueing.channels import erlang_c
from ecjax.simulation import tally
from ecjax.simulation.run import Outages, Policy, Queue, replay, several_channels

CASES = (
    ("probabilistic", True),
    ("round_robin", True),
    ("least_loaded", True),
    ("fork_join", True),
    ("fork_join", False),
)


def replayed(system, times, files, seed, policy, channels):
    counts = tally.empty(len(times), 2, system.nodes, files=system.files, paths=True)
    half = len(times) // 2
    blocks = [(times[:half], files[:half]), (times[half:], files[half:])]
    replay(system, iter([b for b in blocks if len(b[0])]), counts, seed, policy, Queue(), channels=channels)
    return counts


@pytest.mark.parametrize(("policy", "cancel"), CASES)
@given(case=RANDOM_SYSTEMS, channels=st.lists(st.integers(1, 3), min_size=NODES, max_size=NODES))
def test_paths_equal_the_plain_simulator(policy, cancel, case, channels):
    system, times, files, seed = case
    channels = np.array(channels)
    counts = replayed(system, times, files, seed, Policy(policy, cancel=cancel), channels)
    expected = Simulation(system, times, files, seed, policy=policy, cancel=cancel, channels=channels)
    agree(counts, expected, files)


def erlang(load, c):
    """C by the sum over states."""
    a = load * c
    full = a**c / special.factorial(c) / (1 - load)
    return full / (sum(a**n / special.factorial(n) for n in range(c)) + full)


@pytest.mark.parametrize("c", [1, 2, 5, 24])
@pytest.mark.parametrize("load", [1e-3, 0.2, 0.7, 0.95])
def test_erlang_c(load, c):
    assert float(erlang_c(load, float(c))) == pytest.approx(erlang(load, c), rel=1e-9)
    slope = jax.grad(lambda rho: erlang_c(rho, float(c)))(load)
    step = 1e-6 * load
    differences = (erlang(load + step, c) - erlang(load - step, c)) / (2 * step)
    assert float(slope) == pytest.approx(differences, rel=1e-5)


@pytest.mark.parametrize(("c", "load"), [(1, 0.6), (3, 0.5), (4, 0.85)])
def test_one_node_is_an_m_m_c_queue(c, load):
    """Mean sojourn 1 + C / (c (1 - rho)), and its 99 % quantile, of exponential services of 1 s."""
    system = make_system([1], [[0]], law_table("exponential", 1))
    times, files = poisson([load * c], 400_000, 5)
    paths = replayed(system, times, files, 5, Policy(), np.array([c])).paths[20_000:]
    batches = paths.reshape(100, -1).mean(axis=1)
    waiting = erlang(load, c)
    exact = 1 + waiting / (c * (1 - load))
    assert paths.mean() == pytest.approx(exact, abs=4 * batches.std(ddof=1) / 10)

    def above(t):
        rate = c * (1 - load)
        late = integrate.quad(lambda s: np.exp(-s) * np.exp(-rate * (t - s)), 0, t)[0] + np.exp(-t)
        return (1 - waiting) * np.exp(-t) + waiting * late

    assert above(np.quantile(paths, 0.99)) == pytest.approx(0.01, rel=0.15)


def test_what_cannot_be_replayed():
    assert several_channels(Policy("least_loaded"), Queue(), None)
    assert not several_channels(Policy("late_binding"), Queue(), None)
    assert not several_channels(Policy(), Queue("priority"), None)
    outages = Outages(np.zeros(1, np.int64), np.zeros(1), np.ones(1))
    assert not several_channels(Policy(), Queue(), outages)
    system = make_system([1], [[0]], law_table("exponential", 1))
    with pytest.raises(ValueError, match="one channel"):
        replayed(system, *poisson([1.0], 10), 0, Policy("hedged"), np.array([2]))
