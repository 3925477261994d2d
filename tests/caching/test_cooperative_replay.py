"""Replays of edges that serve each other: against a plain one, the engine where they do not, and by hand."""

import numpy as np
import pytest
from drawn_caches import drawn_network, drawn_reads, drawn_stored, policy
from plain_cache import PlainCache, keep_nothing

from ecjax.caching.cooperative import cooperative_plan
from ecjax.caching.cooperative_replay import replay_cooperative
from ecjax.caching.replay import NETWORK, replay
from ecjax.caching.serving import factor
from ecjax.caching.system import Network, Reads, Stored
from ecjax.errors import UserError
from ecjax.streams import streams


class PlainCooperation(PlainCache):
    """Chunks of neighbours are fetched as well; all edges are planned at the end of each period."""

    def __init__(self, stored, network, between, *rest):
        super().__init__(stored, network, *rest)
        self.between, self.from_neighbours, self.filled, self.last_s = between, 0, 0, 0.0

    def serve(self, edge, number, at, now, item):
        self.last_s = now
        own = set(edge.kept[item])
        others = {}
        for chunk in set(range(self.k)) - own:
            near = [self.between[at][f] for f, other in enumerate(self.edges) if chunk in other.kept[item]]
            node = self.best_copy(edge, item, chunk, now)
            if near and min(near) <= (np.inf if node is None else edge.estimate[node]):
                others[chunk] = min(near)
        self.from_neighbours = len(others)
        edge.kept[item] = own | set(others)
        parity = any(
            self.best_copy(edge, item, chunk, now) is None
            for chunk in range(self.k)
            if chunk not in edge.kept[item]
        )
        latency, _ = super().serve(edge, number, at, now, item)
        edge.kept[item] = own
        decoding = self.network.decode_s if parity else 0.0
        return max([latency, *(time + decoding for time in others.values())]), len(own)

    def plan(self, now):
        items = range(len(self.node_of))
        rates = np.array([[self.rate(edge, m, now) for m in items] for edge in self.edges])
        latency = np.array([[self.latencies(edge, m) for m in items] for edge in self.edges])
        had = [[self.to_be_had(at, m) for m in items] for at in range(len(self.edges))]
        for at, row in enumerate(had):
            for m, chunks in enumerate(row):
                floor = max((latency[at, m, j] for j in set(range(self.k)) - chunks), default=0.0)
                latency[at, m] = [max(seconds - floor, 0.0) for seconds in latency[at, m]]
        capacity = np.full(len(self.edges), self.policy.capacity)
        kept = cooperative_plan(rates, latency, self.between, capacity).contents
        for edge, chosen, row in zip(self.edges, kept, had, strict=True):
            edge.planned = [set(np.flatnonzero(chosen[m]).tolist()) & row[m] for m in items]
        for edge in self.edges:
            for m in items:
                self.filled += len(edge.planned[m] - edge.kept[m])
                edge.kept[m] = edge.planned[m]

    def to_be_had(self, at, m):
        """Data chunks at an edge that this one reaches, at nodes that were up at the last read, or decoded from K."""
        edge = self.edges[at]
        reached = [other for f, other in enumerate(self.edges) if f == at or self.between[at][f] < np.inf]
        near = set().union(*(other.kept[m] for other in reached))
        up = {j for j in range(len(self.node_of[m])) if self.best_copy(edge, m, j, self.last_s) is not None}
        data = set(range(self.k))
        return data if len(near | up) >= self.k else (near | up) & data


@pytest.mark.parametrize(
    ("seed", "jitter", "outages", "parity", "copies"),
    [(0, 0.0, 0, 2, 2), (2, 0.3, 12, 2, 2), (3, 0.0, 12, 0, 1), (5, 0.2, 20, 1, 1)],
)
def test_plain_replay_agrees(seed, jitter, outages, parity, copies):
    random = np.random.default_rng(seed)
    stored = drawn_stored(random, items=8, k=4, parity=parity, copies=copies, nodes=14)
    network = drawn_network(random, edges=3, nodes=14, jitter=jitter, outages=outages)
    reads = drawn_reads(random, 300, items=8, edges=3)
    between = random.uniform(0.05, 0.5, (3, 3))
    np.fill_diagonal(between, network.edge_s)
    rules = policy("exact_periodic", 7, period_s=30.0)
    key, sigma = np.uint64(streams.key(rules.seed, NETWORK)), np.sqrt(np.log1p(jitter**2))
    plain = PlainCooperation(
        stored, network, between, rules, keep_nothing, lambda read, node: factor(key, sigma, read, node)
    )
    latency, own, others, past = [], [], [], 0
    for now, item, edge in zip(*reads, strict=True):
        period = int((now - reads.time_s[0]) // rules.period_s)
        if period > past:
            plain.plan(reads.time_s[0] + period * rules.period_s)
        past = period
        took, hits = plain.read(now, item, edge)
        latency.append(took)
        own.append(hits)
        others.append(plain.from_neighbours)
    found = replay_cooperative(reads, stored, network, between, rules)
    np.testing.assert_allclose(found.outcome.latency_s, latency, rtol=1e-9)
    assert (found.outcome.hit_chunks == own).all()
    assert (found.neighbour_chunks == others).all()
    assert found.outcome.filled == plain.filled
    assert found.neighbour_chunks.sum() > 0


@pytest.mark.parametrize(
    ("parity", "copies", "outages", "edge_s"),
    [(2, 2, 10, 0.0), (0, 1, 10, 0.0), (1, 1, 20, 0.0), (1, 2, 0, 0.2)],
    ids=["parity", "none", "little", "up"],
)
def test_edges_apart_do_as_exact_plans_of_each(parity, copies, outages, edge_s):
    random = np.random.default_rng(4)
    stored = drawn_stored(random, items=20, k=4, parity=parity, copies=copies, nodes=14)
    network = drawn_network(random, edges=3, nodes=14, jitter=0.2, outages=outages)
    # plans together count it on top of chunks that are lost
    network = network._replace(edge_s=edge_s)
    reads = drawn_reads(random, 2000, items=20, edges=3)
    rules = policy("exact_periodic", 15)
    found = replay_cooperative(reads, stored, network, np.full((3, 3), np.inf), rules)
    expected = replay(reads, stored, network, rules)
    np.testing.assert_allclose(found.outcome.latency_s, expected.latency_s, rtol=1e-12)
    assert (found.outcome.hit_chunks == expected.hit_chunks).all()
    assert found.outcome.filled == expected.filled
    assert not found.neighbour_chunks.any()


def one_item():
    """Two chunks at nodes 0.4 s and 0.9 s away; edge 0 reads in the first period, then edge 1."""
    stored = Stored(2, np.array([[[0], [1]]]))
    none = np.zeros(0)
    network = Network(np.array([[0.4, 0.9], [0.4, 0.9]]), 0.0, 0.01, 0.0, none.astype(int), none, none)
    reads = Reads(np.array([0.0, 1.0, 12.0]), np.zeros(3, int), np.array([0, 0, 1]))
    return reads, stored, network, policy("exact_periodic", 1, period_s=10.0, half_life_s=1e6)


def test_a_neighbour_serves_the_slowest_chunk():
    reads, stored, network, rules = one_item()
    found = replay_cooperative(reads, stored, network, np.full((2, 2), 0.05), rules)
    # only edge 0 has read: its slow chunk is kept, there or at edge 1 the other one: all from 0.05 s at most for edge 0
    np.testing.assert_allclose(found.outcome.latency_s, [0.9, 0.9, 0.05])
    assert found.outcome.hit_chunks.tolist() == [0, 0, 1]
    assert found.neighbour_chunks.tolist() == [0, 0, 1]
    assert found.outcome.filled == 2


def test_edges_in_one_place_fetch_only_what_is_new():
    """Items 1 and 2 are kept, one at each edge, then 0 and 1: 1 stays where it is, and 0 is fetched."""
    none = np.zeros(0)
    network = Network(np.array([[0.5], [0.5]]), 0.0, 0.01, 0.0, none.astype(int), none, none)
    item = np.array([1, 1, 2, 0, 0, 0, 0, 0, 0])
    reads = Reads(np.array([0, 1, 2, 10, 11, 12, 13, 14, 20.0]), item, np.zeros(9, int))
    rules = policy("exact_periodic", 1, period_s=10.0, half_life_s=1e6)
    stored = Stored(1, np.zeros((3, 1, 1), int))
    found = replay_cooperative(reads, stored, network, np.full((2, 2), 0.01), rules).outcome
    assert found.contents.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert found.filled == 2 + 1


def test_a_far_neighbour_is_not_asked():
    reads, stored, network, rules = one_item()
    found = replay_cooperative(reads, stored, network, np.full((2, 2), 0.95), rules)
    np.testing.assert_allclose(found.outcome.latency_s, [0.9, 0.9, 0.9])
    assert not found.neighbour_chunks.any()


@pytest.mark.parametrize("between_s", [0.05, np.inf])
def test_a_chunk_that_was_never_to_be_had_is_not_kept(between_s):
    reads, stored, network, rules = one_item()
    down = (np.array([1]), np.array([-1.0]), np.array([np.inf]))  # the node of the slow chunk, for ever
    network = network._replace(down_node=down[0], down_from_s=down[1], down_until_s=down[2])
    found = replay_cooperative(reads, stored, network, np.full((2, 2), between_s), rules)
    assert np.isinf(found.outcome.latency_s).all()
    assert found.outcome.filled == 0 and not found.outcome.contents.any()


@pytest.mark.parametrize("pause_s", [10.0, 1035.0, 2000.0])
def test_what_is_kept_outlasts_a_pause(pause_s):
    """A half-life of 1 s: rates of all items fall by the same factor, below what a float64 can be."""
    _, stored, network, rules = one_item()
    rules = rules._replace(half_life_s=1.0, period_s=5.0)
    reads = Reads(np.array([0.0, 1.0, 1.0 + pause_s]), np.zeros(3, int), np.array([0, 1, 0]))
    found = replay_cooperative(reads, stored, network, np.full((2, 2), 0.05), rules)
    # both chunks are kept, one per edge
    np.testing.assert_allclose(found.outcome.latency_s, [0.9, 0.9, 0.05])


def test_no_reads():
    reads, stored, network, rules = one_item()
    found = replay_cooperative(
        Reads(*(column[:0] for column in reads)), stored, network, np.zeros((2, 2)), rules
    )
    assert len(found.outcome.latency_s) == len(found.neighbour_chunks) == 0
    assert found.outcome.filled == 0


def test_mistakes_of_a_replay():
    reads, stored, network, rules = one_item()
    with pytest.raises(UserError, match=r"between_s: found shape \(3, 3\)"):
        replay_cooperative(reads, stored, network, np.zeros((3, 3)), rules)
    with pytest.raises(UserError, match="period_s: found 0"):
        replay_cooperative(reads, stored, network, np.zeros((2, 2)), rules._replace(period_s=0.0))
