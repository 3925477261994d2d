"""Policies of the replay of caches: against plans by the exact knapsack, the paper's errata, and each other."""

import json
from pathlib import Path

import numpy as np
import pytest

from ecjax.caching import whole_plans
from ecjax.caching.batched import exact_batched
from ecjax.caching.knapsack import exact
from ecjax.caching.replay import PLANS_OF_EDGES, POLICIES, replay
from ecjax.caching.system import Network, Policy, Reads, Stored

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
NONE = np.zeros(0)
LATENCY_S = np.array([[0.52, 0.41, 0.69, 0.98, 0.14, 0.21]])


def network(latency_s, jitter=0.0):
    return Network(latency_s, jitter, 0.0, 0.05, NONE.astype(np.int64), NONE, NONE)


def policy(name, capacity, **changes):
    usual = Policy(name, capacity, 1e9, 0.9, samples=5, period_s=1e3, replan_reads=0, seed=0)
    return usual._replace(**changes)


def setting(k, items, count, seed=0, exponent=1.0):
    """Chunks spread over the six nodes, Zipf reads one after another, popularity (1, M)."""
    rng = np.random.default_rng(seed)
    node_of = np.array([rng.permutation(np.arange(k) % 6) for _ in range(items)])
    share = np.arange(1.0, items + 1) ** -exponent
    share /= share.sum()
    reads = Reads(
        np.arange(1.0, count + 1), rng.choice(items, count, p=share), np.zeros(count, dtype=np.int64)
    )
    return reads, Stored(k, node_of[:, :, None]), share[None]


def values(stored, weight):
    """tau of equation 1 at the mean latencies, (M, K + 1)."""
    slowest = -np.sort(-LATENCY_S[0][stored.node_of[:, : stored.k, 0]], axis=1)
    after = np.concatenate((slowest[:, 1:], np.zeros((len(slowest), 1))), axis=1)
    return np.concatenate((np.zeros((len(slowest), 1)), weight[:, None] * (slowest[:, :1] - after)), axis=1)


def plan_value(stored, weight, kept):
    """What sets of chunks save, by definition."""
    saved = 0.0
    for nodes, r, bits in zip(stored.node_of[:, : stored.k, 0], weight, kept, strict=True):
        latency = LATENCY_S[0][nodes]
        missing = [latency[j] for j in range(stored.k) if not int(bits) >> j & 1]
        saved += r * (latency.max() - max(missing, default=0.0))
    return saved


def chunks(kept):
    return sum(int(bits).bit_count() for bits in kept.ravel())


def test_stuck_only_by_mean_value():
    """Erratum 5: items that are nearly as good with one chunk hide behind their mean value."""
    case = VECTORS["online_stuck"][0]
    unit, n = 1000.0, case["n"]
    # nodes: chunks of the first n items, of item n, of the others; tau by equation 1 at one read per item
    latency = np.array([[unit + 1, 1.0, unit - 1, unit - 2, 0.0]])
    node_of = np.array([[0, 1]] * n + [[2, 2]] + [[3, 4]] * (case["M"] - n - 1))
    stored = Stored(2, node_of[:, :, None])
    requests = np.array(case["requests"])
    reads = Reads(np.arange(len(requests)) * 1e-3, requests, np.zeros(len(requests), dtype=np.int64))
    slow, fast = latency[0, node_of[:, 0]], latency[0, node_of[:, 1]]
    tau = np.stack((np.zeros(len(slow)), slow - fast, slow), axis=1)

    def kept(name):
        """Chunks per item, and their value."""
        bits = replay(reads, stored, network(latency), policy(name, case["C"])).contents[0]
        count = np.array([int(b).bit_count() for b in bits])
        return count, tau[np.arange(len(tau)), count].sum()

    count, value = kept("near_optimal")
    assert count.tolist() == case["stuck_lambda"] and value == case["stuck_value"]
    assert value < case["claimed_lower_bound_ratio"] * case["optimum"]
    assert kept("exact")[1] == case["optimum"]


@pytest.mark.parametrize("capacity", [0, 7, 60, 1000])
def test_plans_of_all_items_are_the_best(capacity):
    """What ``optimal_static`` keeps, and ``exact`` just after a plan, is worth as much as the knapsack."""
    reads, stored, share = setting(5, 40, 2000)
    counted = np.bincount(reads.item, minlength=40).astype(float)
    for name, weight, changes, known in (
        ("optimal_static", counted, {}, None),
        ("optimal_static", share[0], {}, share),
        ("exact", counted, {"replan_reads": 2000}, None),
    ):
        found = replay(reads, stored, network(LATENCY_S), policy(name, capacity, **changes), known)
        tau = values(stored, weight)
        best = tau[np.arange(40), exact(tau, capacity)].sum()
        assert plan_value(stored, weight, found.contents[0]) == pytest.approx(best, rel=1e-6)
        assert chunks(found.contents) <= capacity
        if name == "optimal_static":
            assert found.filled == chunks(found.contents)


def test_exact_periodic_plans_at_the_ends_of_periods():
    reads, stored, _ = setting(5, 40, 2500)
    found = replay(reads, stored, network(LATENCY_S), policy("exact_periodic", 60))
    counted = np.bincount(reads.item[:2000], minlength=40).astype(float)
    tau = values(stored, counted)
    best = tau[np.arange(40), exact(tau, 60)].sum()
    assert plan_value(stored, counted, found.contents[0]) == pytest.approx(best, rel=1e-5)
    assert not found.hit_chunks[:1000].any() and found.hit_chunks[1000:2000].any()
    first = replay(
        Reads(*(a[:1500] for a in reads)), stored, network(LATENCY_S), policy("exact_periodic", 60)
    )
    new = [int(a) & ~int(b) for a, b in zip(found.contents[0], first.contents[0], strict=True)]
    assert found.filled == first.filled + sum(b.bit_count() for b in new)
    assert first.filled == chunks(first.contents)
    seldom = policy("exact_periodic", 60, period_s=1e9)
    assert not replay(reads, stored, network(LATENCY_S), seldom).hit_chunks.any()


def test_half_lives_forget():
    """With a short half-life ``exact_periodic`` keeps what was read in the end, with a long one what was read most."""
    stored = Stored(1, np.zeros((2, 1, 1), dtype=np.int64))
    item = np.array([0] * 90 + [1] * 10)
    reads = Reads(np.arange(100.0), item, np.zeros(100, dtype=np.int64))
    for half_life, expected in ((5.0, [0, 1]), (1e3, [1, 0])):
        planned = policy("exact_periodic", 1, half_life_s=half_life, period_s=99.0)
        found = replay(reads, stored, network(LATENCY_S[:, 3:4]), planned)
        assert found.contents[0].tolist() == expected


def test_replans_do_not_disturb_the_loop():
    """A replay in many pieces whose plans come too late to matter is that in one piece."""
    reads, stored, _ = setting(4, 30, 1000)
    reads = reads._replace(edge=np.arange(1000) % 3)
    net = network(np.repeat(LATENCY_S, 3, axis=0), jitter=0.2)
    whole = replay(reads, stored, net, policy("exact", 25))
    late = replay(reads, stored, net, policy("exact", 25, replan_reads=334))
    np.testing.assert_array_equal(whole.latency_s[:999], late.latency_s[:999])
    often = replay(reads, stored, net, policy("exact", 25, replan_reads=7))
    assert often.filled > 0 and whole.filled == late.filled == 0
    assert all(chunks(row) <= 25 for row in often.contents)


def test_edges_do_not_touch_each_other():
    """Every edge of three does what it does alone."""
    reads, stored, _ = setting(4, 30, 900)
    reads = reads._replace(edge=np.random.default_rng(4).integers(3, size=900))
    latency = LATENCY_S * np.array([[1.0], [0.5], [2.0]])
    for name in POLICIES:
        together = replay(reads, stored, network(latency), policy(name, 25, half_life_s=50.0, period_s=100.0))
        for e in range(3):
            own = reads.edge == e
            alone = Reads(reads.time_s[own], reads.item[own], np.zeros(own.sum(), dtype=np.int64))
            if name in ("agar", "exact_periodic", "samplex"):
                continue  # periods begin at the first read of all; samples are drawn in turn
            found = replay(alone, stored, network(latency[e : e + 1]), policy(name, 25, half_life_s=50.0))
            np.testing.assert_array_equal(found.latency_s, together.latency_s[own])
            np.testing.assert_array_equal(found.contents[0], together.contents[e])


@pytest.mark.parametrize(
    "name", ["optimal_static", "samplex_static", "exact_periodic", "agar", "exact", "near_optimal", "samplex"]
)
def test_plans_count_what_a_kept_chunk_takes(name):
    """Nodes are 0.11 and 0.5 s away and the edge 0.1 s; nine in ten reads are of item 0, and two chunks are kept.

    All of item 0 leaves 0.9 * 0.1 + 0.1 * 0.5 = 0.14 s a read, the far chunk of both items 0.11 s.
    """
    stored = Stored(2, np.array([[[0], [1]], [[0], [1]]]))
    item = np.array([0] * 9 + [1] + [0] * 9 + [1])
    reads = Reads(np.arange(20.0), item, np.zeros(20, np.int64))
    away = network(np.array([[0.11, 0.5]]))._replace(edge_s=0.1)
    found = replay(reads, stored, away, policy(name, 2, period_s=10.0))
    assert found.contents.tolist() == [[0b10, 0b10]]
    assert found.latency_s[10:].mean() == pytest.approx(0.11)


@pytest.mark.parametrize("name", ["agar", "exact_periodic"])
def test_reads_of_one_time_are_of_one_period(name, monkeypatch):
    """In floats 1.4 is before the end of the first second after 0.4 by the difference, and not by the sum."""
    assert (1.4 - 0.4) < 1.0 and not 1.4 < 0.4 + 1.0
    original, plans = whole_plans.plan_edge, []

    def counted(*arguments):
        plans.append(arguments)
        return original(*arguments)

    monkeypatch.setattr("ecjax.caching.replay.plan_edge", counted)
    time_s = np.array([0.4] + [1.4] * 50 + [2.9])
    reads = Reads(time_s, np.zeros(52, np.int64), np.zeros(52, np.int64))
    replay(reads, Stored(1, np.zeros((1, 1, 1), np.int64)), network(LATENCY_S), policy(name, 1, period_s=1.0))
    # between three times there is a plan at most
    assert 1 <= len(plans) <= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": policy("fifo", 3)}, "fifo"),
        (
            {"stored": Stored(21, np.zeros((2, 21, 1), dtype=np.int64)), "policy": policy("near_optimal", 3)},
            "1 to 20",
        ),
        ({"stored": Stored(61, np.zeros((2, 61, 1), dtype=np.int64))}, "61"),
        ({"stored": Stored(2, np.array([[[0], [-1]]]))}, "without a copy"),
    ],
)
def test_what_it_does_not_take(change, message):
    reads, stored, _ = setting(2, 3, 5)
    asked = {"stored": stored, "policy": policy("lru", 3)} | change
    with pytest.raises(ValueError, match=message):
        replay(reads, asked["stored"], network(LATENCY_S), asked["policy"])


@pytest.mark.slow
def test_latency_above_the_static_optimum():
    """Zipf 1.0, M = C = 1000, K = 15: 750,000 reads to learn, as many to measure; popularity never decays."""
    reads, stored, share = setting(15, 1000, 1_500_000)
    measured = slice(750_000, None)

    def mean(name, **changes):
        found = replay(reads, stored, network(LATENCY_S), policy(name, 1000, **changes), share)
        assert chunks(found.contents) <= 1000
        return found.latency_s[measured].mean()

    best = mean("optimal_static")
    above = {
        name: mean(name) / best - 1 for name in ("exact", "near_optimal_dp", "samplex", "decayed_lfu", "lru")
    }
    assert above["exact"] <= 0.001 and above["near_optimal_dp"] <= 0.004 and above["samplex"] <= 0.015
    assert mean("exact", replan_reads=20_000) / best - 1 <= above["exact"]
    assert above["decayed_lfu"] == pytest.approx(0.041, abs=0.005)
    assert above["lru"] == pytest.approx(0.418, abs=0.01)


@pytest.mark.parametrize("name", ["w_tinylfu", "agar"])
def test_caches_larger_than_all_chunks(name):
    # tables of the size of the cache would be of gigabytes
    stored = Stored(2, np.array([[[0], [1]], [[1], [0]]]))
    reads = Reads(np.arange(6.0), np.array([0, 1, 0, 1, 1, 0]), np.zeros(6, np.int64))
    one = replay(reads, stored, network(np.array([[0.5, 0.25]])), policy(name, 10**9, period_s=2.0))
    # of whole items the first reads miss; a plan comes after the two of the first period
    assert one.hit_chunks.tolist() == [0, 0, 2, 2, 2, 2]


@pytest.mark.parametrize("name", PLANS_OF_EDGES)
@pytest.mark.parametrize("together", [1, 2, 10])
def test_edges_planned_together_keep_what_each_keeps_alone(name, together, monkeypatch):
    """Values of edges differ by what is read there; the last call is filled up with edges that are nowhere."""
    k, items, edges = 3, 20, 5
    reads, stored, _ = setting(k, items, 1500, seed=4)
    reads = reads._replace(edge=np.arange(1500) % edges)
    away = network(LATENCY_S * np.linspace(1, 2, edges)[:, None])
    how = policy(name, 11, period_s=400.0)
    shapes = []

    def one_by_one(tau, capacity):
        shapes.append(tau.shape)
        return np.array([exact(each, capacity) for each in tau])

    monkeypatch.setattr(whole_plans, "_TOGETHER_BYTES", together * items * (k + 1) * 8)
    alone = replay(reads, stored, away, how)
    beside = replay(reads, stored, away, how, edges_planner=one_by_one)
    np.testing.assert_array_equal(beside.contents, alone.contents)
    np.testing.assert_array_equal(beside.latency_s, alone.latency_s)
    assert beside.filled == alone.filled > 0
    assert set(shapes) == {(min(together, edges), items, k + 1)}


@pytest.mark.parametrize("name", PLANS_OF_EDGES)
def test_a_device_plans_edges_as_well_as_processors(name):
    """Latencies of all nodes and reads of all items differ, so that there is one best plan."""
    k, items, edges = 2, 12, 3
    reads, stored, _ = setting(k, items, 900, seed=6)
    reads = reads._replace(edge=np.arange(900) % edges)
    away = network(LATENCY_S * np.array([[1.0], [1.1], [1.3]]))
    weight = np.random.default_rng(1).random((edges, items))
    how = policy(name, 7, period_s=250.0)
    alone = replay(reads, stored, away, how, weight)
    beside = replay(
        reads,
        stored,
        away,
        how,
        weight,
        edges_planner=lambda tau, room: exact_batched(tau, [room] * len(tau)),
    )
    np.testing.assert_array_equal(beside.contents, alone.contents)
    np.testing.assert_array_equal(beside.latency_s, alone.latency_s)
