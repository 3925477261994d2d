"""The event engine path by path against the plain simulator, for every policy with every queue."""

import numpy as np
import pytest
from plain_simulator import Simulation
from random_systems import random_outages, random_system, run_engine
from systems import law_table, make_system, poisson

from ecjax.simulation import events, tally
from ecjax.simulation.events import state


def assert_same(system, times, files, seed, splits, **settings):
    counts, unfinished = run_engine(system, times, files, seed, splits, **settings)
    plain = Simulation(system, times, files, seed, **settings)
    np.testing.assert_allclose(counts.paths, plain.latencies, rtol=0, atol=1e-9)
    assert unfinished == np.isnan(plain.latencies).sum()
    np.testing.assert_allclose(counts.busy.sum(axis=0), plain.busy, rtol=0, atol=1e-9)
    # sojourn times of the chunks of reads, by node
    group = system.group[files]
    classes = int(counts.classes[0])
    chunks = [(node, end - sent) for request, node, sent, end in plain.records if group[request] >= 0]
    node = np.array([node for node, _ in chunks], int)
    sojourn = np.array([sojourn for _, sojourn in chunks])
    sums = counts.sums.sum(axis=0)
    nodes = slice(classes, classes + system.nodes)
    np.testing.assert_array_equal(sums[nodes, 0], np.bincount(node, minlength=system.nodes))
    np.testing.assert_allclose(sums[nodes, 1], np.bincount(node, sojourn, system.nodes), atol=1e-9)
    # latencies of reads, by class and by file
    there = (group >= 0) & ~np.isnan(plain.latencies)
    for label, first, number in ((group, 0, classes), (files, classes + system.nodes, system.files)):
        found = sums[first : first + number]
        np.testing.assert_array_equal(found[:, 0], np.bincount(label[there], minlength=number))
        expected = np.bincount(label[there], plain.latencies[there], number)
        np.testing.assert_allclose(found[:, 1], expected, atol=1e-9)


def random_settings(rng, nodes, classes=3):
    """Weights by class, by class and node, and of classes that no file has."""
    classes = 3 if rng.random() < 0.5 else classes
    return {
        "weights": rng.uniform(0.2, 1, classes if rng.random() < 0.3 else (classes, nodes)),
        "probes": int(rng.integers(1, 4)),
        "cancel": bool(rng.random() < 0.7),
        "hedge_delay": float(rng.choice([0.0, 0.3, 1.0, 3.0, np.inf])),
        "hedges": int(rng.integers(0, 4)),
        "hedge_budget": float(rng.choice([0.0, 0.05, 0.3, np.inf])),
    }


@pytest.mark.parametrize("outages", [False, True])
@pytest.mark.parametrize("delays", [False, True])
@pytest.mark.parametrize("queue", events.QUEUES)
@pytest.mark.parametrize("policy", events.POLICIES)
def test_paths_equal_the_plain_simulator(policy, queue, delays, outages):
    rng = np.random.default_rng([events.POLICIES.index(policy), events.QUEUES.index(queue), delays, outages])
    for seed in range(4):
        kind = rng.choice(["exponential", "weibull", "gamma"])
        system, (times, files) = random_system(rng, kind, delays)
        intervals = random_outages(rng, system.nodes, times[-1]) if outages else ()
        splits = sorted(rng.integers(0, len(times), 3))
        assert_same(
            system,
            times,
            files,
            seed,
            splits,
            policy=policy,
            queue=queue,
            outages=intervals,
            **random_settings(rng, system.nodes, int(system.queue.max()) + 1),
        )


@pytest.mark.parametrize("policy", events.POLICIES)
def test_events_at_the_same_time(policy):
    """Services and delays of whole halves of a second, arrivals and outages on the same grid."""
    rng = np.random.default_rng(events.POLICIES.index(policy))
    for seed in range(12):
        nodes = int(rng.integers(2, 5))
        need, placements = [], []
        for _ in range(2):
            width = int(rng.integers(1, nodes + 1))
            need.append(int(rng.integers(1, width + 1)))
            placements.append(rng.permutation(nodes)[:width])
        law = law_table("deterministic", nodes, offset=rng.choice([0.5, 1.0, 2.0], nodes), scale=0.0)
        connect = [np.zeros(nodes), rng.choice([0.0, 0.5], nodes)]
        system = make_system(
            need, placements, law, queues=[0, 1], connect=connect, link_s=rng.choice([0.0, 0.5])
        )
        times, files = np.sort(rng.integers(0, 80, 50) * 0.5), rng.integers(0, 2, 50)
        starts = rng.integers(0, 60, 3) * 0.5
        settings = random_settings(rng, nodes) | {
            "weights": [0.5, 0.5],
            "hedge_delay": float(rng.choice([0, 0.5, 2])),
        }
        settings["outages"] = [(int(rng.integers(nodes)), t, t + 0.5 * rng.integers(0, 9)) for t in starts]
        assert_same(
            system, times, files, seed, (10,), policy=policy, queue=events.QUEUES[seed % 4], **settings
        )


def test_no_delay_hedging_of_all_nodes_is_fork_join_and_none_is_probabilistic():
    system = make_system([2, 1], [range(4), range(1, 4)], law_table("exponential", 4, offset=0.1))
    times, files = poisson([0.4, 0.2], 500)
    for cancel in (False, True):
        fork, _ = run_engine(system, times, files, 1, policy="fork_join", cancel=cancel)
        hedged, _ = run_engine(system, times, files, 1, policy="hedged", hedges=3, cancel=cancel)
        np.testing.assert_allclose(hedged.paths, fork.paths, rtol=0, atol=1e-12)
    drawn, _ = run_engine(system, times, files, 1)
    for never in ({"hedge_delay": np.inf}, {"hedges": 0}, {"hedge_budget": 0.0}):
        hedged, _ = run_engine(system, times, files, 1, policy="hedged", **never)
        np.testing.assert_array_equal(hedged.paths, drawn.paths)


def test_no_more_is_hedged_than_the_budget():
    system = make_system([2, 1], [range(4), range(1, 4)], law_table("exponential", 4, offset=0.1))
    times, files = poisson([0.4, 0.2], 2000)
    shares, latencies = [], []
    for budget in (0.02, 0.1, 0.3, np.inf):
        counts = tally.empty(len(times), 1, 4, paths=True)
        settings = events.settings(
            system, policy="hedged", hedge_delay=0.5, hedges=2, hedge_budget=budget, cancel=False
        )
        run = events.Run(system, settings, 3)
        assert events.replay_block(run, counts, times, files, 0) and events.finish(run, counts) == 0
        shares.append(events.hedged_share(run))
        latencies.append(float(counts.paths.mean()))
        assert shares[-1] <= budget
        # every access counts once at a node
        needed = 2 * np.sum(files == 0) + np.sum(files == 1)
        served = counts.sums.sum(axis=0)[1:5, 0].sum()
        assert served == pytest.approx(needed * (1 + shares[-1]))
    # the budget is used, up to the next access
    assert shares[0] > 0.019 and shares[1] > 0.099 and shares[:3] == sorted(shares[:3])


def test_state_stays_small_and_grows_with_the_requests_in_the_system():
    system = make_system([1], [[0, 1]], law_table("exponential", 2))
    for load, slots in ((0.5, 64), (4.0, 4096)):
        times, files = poisson([2 * load], 4000)
        counts = tally.empty(4000, 1, 2, paths=True)
        run = events.Run(system, events.settings(system, policy="hedged", hedge_delay=1.0), 0)
        assert events.replay_block(run, counts, times, files, 0)
        assert len(run.state.number) == slots
        assert events.finish(run, counts) == 0
        assert not np.isnan(counts.paths).any()


def test_a_run_that_is_far_from_stable_is_given_up(monkeypatch):
    monkeypatch.setattr(state, "MOST_REQUESTS", 200)
    system = make_system([1], [[0]], law_table("exponential", 1))
    times, files = poisson([10.0], 1000)
    counts = tally.empty(1000, 1, 1)
    run = events.Run(system, events.settings(system), 0)
    assert not events.replay_block(run, counts, times, files, 0)
    assert run.overflow
    assert not events.replay_block(run, counts, times, files, 1000)
    assert events.finish(run, counts) > 0


@pytest.mark.parametrize(
    "wrong,named",
    [
        ({"policy": "fastest"}, "policy 'fastest'"),
        ({"queue": "lifo"}, "queue 'lifo'"),
        ({"queue": "shared", "weights": [1.0]}, "weights must be 2"),
        ({"queue": "partitioned", "weights": [1.0, 0.0]}, "weights must be 2"),
        ({"queue": "partitioned", "weights": [[0.5, 0.5]]}, r"or \(2, 2\) of them, one per class and node"),
        ({"queue": "shared", "weights": np.ones((2, 3))}, "one per class and node"),
        ({"queue": "shared", "weights": [[0.5, np.nan], [0.5, 0.5]]}, "weights must be 2"),
        ({"probes": 0}, "probes"),
        ({"hedges": -1}, "hedges"),
        ({"hedge_delay": -1.0}, "hedge_delay"),
        ({"hedge_delay": np.nan}, "hedge_delay"),
        ({"outages": [(0, 0.0, 1.0), (2, 0.0, 1.0)]}, "outage 1: node 2"),
        ({"outages": [(0, 2.0, 1.0)]}, "outage 0: ends at 1.0"),
        ({"outages": [(0, np.nan, 1.0)]}, "outage 0"),
    ],
)
def test_wrong_settings_are_named(wrong, named):
    system = make_system([1, 1], [[0], [1]], law_table("exponential", 2), queues=[0, 1])
    with pytest.raises(ValueError, match=named):
        events.settings(system, **wrong)
