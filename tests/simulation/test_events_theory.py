"""The event engine against queueing theory, within confidence intervals of independent replications."""

import numpy as np
import pytest
from random_systems import run_engine
from systems import law_table, make_system, poisson

from ecjax.simulation import fcfs, fork_join, queue_aware, tally

WARM = 1000


def interval(values):
    """Mean over replications and 3.3 standard errors."""
    values = np.array(values)
    return values.mean(axis=0), 3.3 * values.std(axis=0, ddof=1) / np.sqrt(len(values))


def replicate(system, rates, statistic, requests=20_000, replications=20, **settings):
    found = []
    for seed in range(replications):
        times, files = poisson(rates, requests, seed)
        paths = run_engine(system, times, files, seed, **settings)[0].paths
        found.append(statistic(paths[WARM:], files[WARM:]))
    return interval(found)


def assert_within(found, expected, percent):
    mean, margin = found
    expected = np.asarray(expected)
    assert np.all(np.abs(mean - expected) < margin), (mean, margin, expected)
    assert np.all(margin < percent / 100 * expected), (margin, expected)


def moments(classes):
    """Mean and variance of the latency of every file."""

    def statistic(paths, files):
        return [[paths[files == i].mean(), paths[files == i].var()] for i in range(classes)]

    return statistic


@pytest.mark.parametrize("rates", [[0.3, 0.3], [0.2, 0.2, 0.2]])
def test_priority_has_the_exact_mean_and_variance(rates):
    """Non-preemptive M/G/1 with classes of different service: E[W_k], E[W_k^2]; deterministic plus exponential."""
    classes = len(rates)
    size = np.linspace(1.0, 1.4, classes)  # service 0.4 + 0.6 E, times the size
    law = law_table("exponential", 1, offset=0.0, scale=0.0, offset_per_byte=0.4, scale_per_byte=0.6)
    system = make_system([1] * classes, [[0]] * classes, law, queues=range(classes), chunk_bytes=size)
    d, p = 0.4 * size, 0.6 * size
    m1, m2 = d + p, d**2 + 2 * d * p + 2 * p**2
    m3 = d**3 + 3 * d**2 * p + 6 * d * p**2 + 6 * p**3
    rates = np.array(rates)
    a2, a3 = (rates * m2).sum(), (rates * m3).sum()
    below = np.cumsum(rates * m2) - rates * m2
    upto = below + rates * m2
    a = 1 - (np.cumsum(rates * m1) - rates * m1)
    b = 1 - np.cumsum(rates * m1)
    wait = a2 / (2 * a * b)
    square = a3 / (3 * a**2 * b) + a2 * upto / (2 * a**2 * b**2) + a2 * below / (2 * a**3 * b)
    expected = np.stack([m1 + wait, m2 - m1**2 + square - wait**2], axis=1)
    found = replicate(system, rates, moments(classes), queue="priority", replications=30)
    mean, margin = found
    assert np.all(np.abs(mean - expected) < margin), (mean, margin, expected)
    assert np.all(margin[:, 0] < 0.06 * expected[:, 0])


@pytest.mark.slow
def test_partitioned_classes_are_queues_of_their_own():
    """M/M/1 of service X / w."""
    system = make_system([1, 1], [[0]] * 2, law_table("exponential", 1), queues=[0, 1])
    found = replicate(system, [0.4, 0.15], moments(2), queue="partitioned", weights=[0.7, 0.3])
    mean, margin = found
    expected = np.array([[1 / (0.7 - 0.4), 1 / (0.7 - 0.4) ** 2], [1 / (0.3 - 0.15), 1 / (0.3 - 0.15) ** 2]])
    assert np.all(np.abs(mean - expected) < margin), (mean, margin, expected)
    assert np.all(margin[:, 0] < 0.06 * expected[:, 0])


@pytest.mark.parametrize("queue", ["fcfs", "priority", pytest.param("shared", marks=pytest.mark.slow)])
def test_exponential_services_of_one_mean_wait_alike_in_every_queue_that_conserves_work(queue):
    """M/M/1: with services without memory the number in the system does not depend on who is served."""
    system = make_system([1] * 3, [[0]] * 3, law_table("exponential", 1), queues=[0, 1, 2])
    found = replicate(
        system, [0.2, 0.2, 0.2], lambda paths, files: paths.mean(), queue=queue, weights=[0.5, 0.3, 0.2]
    )
    assert_within(found, 1 / (1 - 0.6), 4)


def test_late_binding_of_one_chunk_is_a_queue_of_many_servers():
    """M/M/c, Erlang's C: c = 4, 2.8 Erlang."""
    servers, offered = 4, 2.8
    terms = np.cumprod(np.concatenate(([1.0], offered / np.arange(1, servers + 1))))
    busy = terms[-1] * servers / (servers - offered)
    probability = busy / (terms[:-1].sum() + busy)
    expected = 1 + probability / (servers - offered)
    system = make_system([1], [range(servers)], law_table("exponential", servers))
    found = replicate(system, [offered], lambda paths, files: paths.mean(), policy="late_binding")
    assert_within(found, expected, 3)


def test_fork_join_with_theory():
    """Of one chunk with cancellation M/M/1 at the speed of all; of two of two Nelson and Tantawi's exact mean."""
    three = make_system([1], [range(3)], law_table("exponential", 3))
    found = replicate(three, [1.8], lambda paths, files: paths.mean(), policy="fork_join")
    assert_within(found, 1 / (3 - 1.8), 4)
    two = make_system([2], [range(2)], law_table("exponential", 2))
    found = replicate(two, [0.6], lambda paths, files: paths.mean(), policy="fork_join")
    assert_within(found, (12 - 0.6) / 8 / (1 - 0.6), 4)


def one_node(seed=0):
    rng = np.random.default_rng(seed)
    system = make_system(
        [1] * 3, [[0]] * 3, law_table("weibull", 1, offset=0.2, scale=0.6, a=0.8), queues=[0, 1, 2]
    )
    return system, poisson(rng.uniform(0.15, 0.35, 3), 4000, seed)


@pytest.mark.parametrize("seed", range(3))
def test_work_is_conserved(seed):
    """One node: the service given is that asked for, and it is idle in the same intervals whoever goes first."""
    system, (times, files) = one_node(seed)
    fcfs_run = run_engine(system, times, files, seed)[0]
    end = np.maximum.accumulate(times + fcfs_run.paths)
    last = np.flatnonzero(np.append(end[:-1] <= times[1:], True))  # of a busy period
    assert len(last) > 50
    first = np.concatenate(([0], last[:-1] + 1))
    for queue, weights in (("priority", None), ("shared", [0.5, 0.3, 0.2]), ("shared", [1.0, 5.0, 0.01])):
        run = run_engine(system, times, files, seed, queue=queue, weights=weights)[0]
        np.testing.assert_allclose(run.busy.sum(), fcfs_run.busy.sum(), rtol=1e-12)
        np.testing.assert_allclose(
            np.maximum.reduceat(times + run.paths, first), end[last], rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("seed", range(3))
def test_sharing_is_never_later_than_partition(seed):
    system, (times, files) = one_node(seed)
    weights = [0.5, 0.3, 0.2]
    shared = run_engine(system, times, files, seed, queue="shared", weights=weights)[0].paths
    apart = run_engine(system, times, files, seed, queue="partitioned", weights=weights)[0].paths
    assert np.all(shared <= apart + 1e-8)
    assert shared.mean() < 0.9 * apart.mean()


def test_paths_equal_the_recursions():
    """At the size that users have, against the engines made for first come, first served."""
    rows = [range(12), range(2, 12)]
    system = make_system([6, 4], rows, law_table("exponential", 12, offset=0.5, scale=0.5))
    times, files = poisson([0.8, 0.4], 20_000)
    for name, settings in {
        "probabilistic": {},
        "round_robin": {"policy": "round_robin"},
        "partitioned": {"queue": "partitioned", "weights": [0.9]},
        "least_loaded": {"policy": "least_loaded"},
        "power_of_d": {"policy": "power_of_d", "probes": 1},
        "fork_join": {"policy": "fork_join", "cancel": False},
    }.items():
        found, _ = run_engine(system, times, files, 5, (7_777,), **settings)
        counts = tally.empty(len(times), 1, 12, paths=True)
        if name in ("least_loaded", "power_of_d"):
            probes = 1 if name == "power_of_d" else 12
            rings = queue_aware.Rings.empty(np.zeros((12, 1)))
            queue_aware.replay_block(system, counts, times, files, 0, 5, probes, rings)
        elif name == "fork_join":
            fork_join.replay_block(system, counts, times, files, 0, 5, False, np.zeros((12, 1)))
        else:
            choice = fcfs.ROUND_ROBIN if name == "round_robin" else fcfs.SAMPLED
            slowness = np.full((12, 2), 1 / 0.9) if name == "partitioned" else np.ones((12, 1))
            turn, free = np.zeros(2, np.int64), np.zeros(slowness.shape)
            fcfs.replay_block(system, counts, times, files, 0, 5, choice, slowness, free, turn)
        np.testing.assert_allclose(found.paths, counts.paths, rtol=0, atol=1e-8, err_msg=name)
        np.testing.assert_allclose(found.busy.sum(axis=0), counts.busy.sum(axis=0), rtol=1e-9, err_msg=name)
