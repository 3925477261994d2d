"""Whole items in and out: the hits of a kept cache library, on the same reads."""

import cachetools
import numpy as np
import pytest
from drawn_caches import drawn_network, drawn_stored, policy
from hypothesis import given
from hypothesis import strategies as st
from plain_cache import LeastFrequentlyUsed, LeastRecentlyUsed, PlainCache, decayed_frequency

from ecjax.caching.replay import replay
from ecjax.caching.system import Reads

LIBRARY = {"lru": cachetools.LRUCache, "lfu": cachetools.LFUCache}
PLAIN = {"lru": LeastRecentlyUsed, "lfu": LeastFrequentlyUsed, "decayed_lfu": lambda: decayed_frequency}
ITEMS, K, EDGES = 12, 3, 2
RNG = np.random.default_rng(7)
STORED = drawn_stored(RNG, ITEMS, K, parity=1, copies=1, nodes=5)
NETWORK = drawn_network(RNG, EDGES, nodes=5)


def library_hits(name, reads, room):
    """Whether each read found its item, and what each edge has at the end."""
    shelves = [LIBRARY[name](room) for _ in range(EDGES)]
    hits = []
    for item, edge in zip(reads.item, reads.edge, strict=True):
        hits.append(item in shelves[edge])
        if hits[-1]:
            shelves[edge][item]  # counts as a use
        elif room:
            shelves[edge][item] = True
    return np.array(hits), [set(map(int, shelf)) for shelf in shelves]


def as_reads(items, edges):
    return Reads(np.arange(len(items), dtype=float), np.array(items, np.int64), np.array(edges, np.int64))


@pytest.mark.parametrize("name", LIBRARY)
@given(data=st.data())
def test_hits_are_those_of_the_library(name, data):
    length = data.draw(st.integers(1, 80))
    items = data.draw(st.lists(st.integers(0, ITEMS - 1), min_size=length, max_size=length))
    edges = data.draw(st.lists(st.integers(0, EDGES - 1), min_size=length, max_size=length))
    room, rest = data.draw(st.integers(0, 6)), data.draw(st.integers(0, K - 1))
    reads = as_reads(items, edges)
    found = replay(reads, STORED, NETWORK, policy(name, room * K + rest))
    hits, shelves = library_hits(name, reads, room)
    np.testing.assert_array_equal(found.hit_chunks, K * hits)
    assert [set(np.flatnonzero(row)) for row in found.contents] == shelves
    assert set(np.unique(found.contents)) <= {0, 2**K - 1}


@pytest.mark.parametrize("name", LIBRARY)
def test_many_reads_with_a_popular_few(name):
    rng = np.random.default_rng(11)
    stored = drawn_stored(rng, 300, K, parity=0, copies=1, nodes=4)
    network = drawn_network(rng, EDGES, nodes=4)
    weight = 1.0 / np.arange(1, 301)
    items = rng.choice(300, 5000, p=weight / weight.sum())
    reads = as_reads(items, rng.integers(0, EDGES, len(items)))
    found = replay(reads, stored, network, policy(name, 40 * K))
    hits, shelves = library_hits(name, reads, 40)
    assert 0.3 < hits.mean() < 0.95
    np.testing.assert_array_equal(found.hit_chunks, K * hits)
    assert [set(np.flatnonzero(row)) for row in found.contents] == shelves


@pytest.mark.parametrize("name", PLAIN)
def test_the_same_items_as_the_plain_replay(name):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        stored = drawn_stored(rng, ITEMS, K, parity=2, copies=1, nodes=6)
        # without an outage for too long: a read that fails lets nothing in
        network = drawn_network(rng, EDGES, nodes=6, outages=seed, until=60.0)
        reads = as_reads(rng.integers(0, ITEMS, 60), rng.integers(0, EDGES, 60))
        reads = reads._replace(time_s=np.sort(rng.uniform(0.0, 60.0, 60)))
        config = policy(name, 4 * K + 1)
        plain = PlainCache(stored, network, config, PLAIN[name]())
        expected = [plain.read(*read) for read in zip(*reads, strict=True)]
        found = replay(reads, stored, network, config)
        np.testing.assert_allclose(found.latency_s, [latency for latency, _ in expected], rtol=1e-12)
        np.testing.assert_array_equal(found.hit_chunks, [hits for _, hits in expected])
