"""The plain replay, by hand: what the engine is judged by is judged first."""

import math

import cachetools
import numpy as np
import pytest
from drawn_caches import drawn_network, drawn_reads, drawn_stored, policy
from plain_cache import (
    LeastFrequentlyUsed,
    LeastRecentlyUsed,
    PlainCache,
    best_by_enumeration,
    best_plan,
    exact_online,
    keep_nothing,
)

from ecjax.caching.system import Network, Stored


def two_and_one(outages=(), memory=0.5, decide=keep_nothing, copies=1, capacity=2):
    """Two items of two data chunks and a parity chunk at nodes of 0.3, 0.2, 0.1 s; a spare node of 0.25 s."""
    node_of = np.array([[[0], [1], [2]], [[2], [1], [0]]])
    if copies == 2:
        node_of = np.concatenate([node_of, np.array([[[3], [-1], [-1]]] * 2)], axis=2)
    network = Network(
        latency_s=np.array([[0.3, 0.2, 0.1, 0.25]]),
        jitter=0.0,
        edge_s=0.01,
        decode_s=0.05,
        down_node=np.array([node for node, _, _ in outages], dtype=np.int64),
        down_from_s=np.array([start for _, start, _ in outages], dtype=float),
        down_until_s=np.array([end for _, _, end in outages], dtype=float),
    )
    return PlainCache(Stored(2, node_of), network, policy("x", capacity, memory=memory), decide)


def test_a_read_is_as_slow_as_its_slowest_fetch():
    plain = two_and_one()
    assert plain.read(0.0, 0, 0) == (0.3, 0)
    assert plain.read(0.0, 1, 0) == (0.2, 0)
    plain.edges[0].kept[0] = {0}
    assert plain.read(0.0, 0, 0) == (0.2, 1)
    plain.edges[0].kept[0] = {1}
    assert plain.read(0.0, 0, 0) == (0.3, 1)
    plain.edges[0].kept[0] = {0, 1}
    assert plain.read(0.0, 0, 0) == (0.01, 2)


def test_the_copy_that_is_up_and_thought_nearest():
    plain = two_and_one(copies=2, outages=[(3, 5.0, 6.0)])
    assert plain.read(0.0, 0, 0)[0] == 0.25
    assert plain.read(5.0, 0, 0)[0] == 0.3
    assert plain.read(6.0, 0, 0)[0] == 0.25


def test_parity_stands_in_once_decoded():
    plain = two_and_one(outages=[(0, 1.0, 2.0), (1, 1.5, 2.0)])
    assert plain.read(0.5, 0, 0)[0] == 0.3
    assert plain.read(1.0, 0, 0)[0] == pytest.approx(0.25)  # node 1 at 0.2, parity at 0.1, decoding
    assert plain.read(1.6, 0, 0)[0] == math.inf
    plain.edges[0].kept[0] = {0}
    assert plain.read(1.6, 0, 0)[0] == pytest.approx(0.15)
    plain.edges[0].kept[0] = {0, 1}
    assert plain.read(1.6, 0, 0)[0] == 0.01


def test_estimates_move_with_each_fetch_and_never_with_a_failure():
    plain = two_and_one(outages=[(0, 10.0, 20.0), (1, 15.0, 20.0)])
    plain.factor = lambda number, node: 1.0 + number
    plain.read(0.0, 0, 0)
    assert plain.edges[0].estimate == [0.3, 0.2, 0.1, 0.25]
    plain.read(1.0, 0, 0)
    np.testing.assert_allclose(plain.edges[0].estimate, [0.45, 0.3, 0.1, 0.25])
    plain.read(11.0, 0, 0)  # three times as slow: nodes 1 and 2
    np.testing.assert_allclose(plain.edges[0].estimate, [0.45, 0.45, 0.2, 0.25])
    plain.read(16.0, 0, 0)
    np.testing.assert_allclose(plain.edges[0].estimate, [0.45, 0.45, 0.2, 0.25])


def test_popularity_of_all_requests_is_that_of_the_decayed_counter():
    plain = two_and_one()
    half_life = plain.policy.half_life_s
    counter, last = 0.0, 0.0
    for now in (1.0, 2.5, 40.0, 41.0):
        plain.read(now, 0, 0)
        counter, last = counter * 2 ** (-(now - last) / half_life) + 1, now
    rate = counter * 2 ** (-(60.0 - last) / half_life) * math.log(2) / half_life
    assert plain.rate(plain.edges[0], 0, 60.0) == pytest.approx(rate)
    # a steady stream is counted at its rate
    plain = two_and_one()
    for now in np.arange(0.0, 400.0, 0.25):
        plain.read(now, 1, 0)
    assert plain.rate(plain.edges[0], 1, 400.0) == pytest.approx(4.0, rel=0.01)


def test_value_of_what_is_kept():
    plain = two_and_one()
    edge = plain.edges[0]
    assert plain.tau(edge, 0, 2.0) == pytest.approx([0.0, 0.2, 0.58])  # 2 (0.3 - 0.01)
    assert plain.value(edge, 0, {1}, 2.0) == 0.0
    edge.estimate[1] = 0.4  # the other chunk is the slowest now
    assert plain.value(edge, 0, {0}, 2.0) == 0.0
    assert plain.value(edge, 0, {1}, 2.0) == pytest.approx(0.2)
    edge.estimate[0] = 0.005  # nearer than the edge itself: worth no room
    assert plain.tau(edge, 0, 2.0) == pytest.approx([0.0, 0.78, 0.78])


def test_best_plan_is_the_best_of_all():
    rng = np.random.default_rng(1)
    for _ in range(40):
        items, k = rng.integers(1, 5), rng.integers(1, 4)
        options = np.sort(rng.integers(0, 20, (items, k + 1)), axis=1).astype(float)
        for capacity in range(items * k + 2):
            value, plan = best_plan(options, capacity)
            assert value == best_by_enumeration(options, capacity)[0]
            assert value == sum(row[j] for row, j in zip(options, plan, strict=True))
            assert sum(plan) <= capacity


@pytest.mark.parametrize(
    "decide, library", [(LeastRecentlyUsed, cachetools.LRUCache), (LeastFrequentlyUsed, cachetools.LFUCache)]
)
def test_whole_items_are_those_of_the_library(decide, library):
    rng = np.random.default_rng(2)
    for room in (0, 1, 2, 5):
        stored = drawn_stored(rng, items=12, k=2, parity=1, copies=1, nodes=4)
        plain = PlainCache(stored, drawn_network(rng, 1, 4), policy("x", 2 * room + 1), decide())
        shelf = library(room)
        reads = drawn_reads(rng, 200, 12, 1)
        for now, item in zip(reads.time_s, reads.item, strict=True):
            hit = item in shelf
            assert plain.read(now, item, 0)[1] == 2 * hit
            if hit:
                shelf[item]  # counts as a use
            elif room:
                shelf[item] = True
            assert {m for m, chunks in plain.edges[0].kept.items() if chunks} == set(shelf)


def test_exact_online_never_loses_value_and_stays_below_the_best_of_all():
    rng = np.random.default_rng(3)
    items, k = 4, 3
    stored = drawn_stored(rng, items, k, parity=0, copies=1, nodes=k)
    before = []

    def decide(replay, edge, now, item, at_hand):
        worth = replay.total_value(edge, now)
        exact_online(replay, edge, now, item, at_hand)
        after = replay.total_value(edge, now)
        options = [replay.tau(edge, m, replay.rate(edge, m, now)) for m in range(items)]
        assert worth <= after + 1e-12
        assert after <= best_by_enumeration(options, replay.policy.capacity)[0] + 1e-12
        assert edge.size() <= replay.policy.capacity
        before.append(after)

    plain = PlainCache(stored, drawn_network(rng, 1, k), policy("x", 5), decide)
    reads = drawn_reads(rng, 100, items, 1)
    for now, item in zip(reads.time_s, reads.item, strict=True):
        plain.read(now, item, 0)
    assert before[-1] > 0
