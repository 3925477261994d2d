"""Exchanges after a read where estimates move: candidates by keys of when they were last ranked."""

import math

import numpy as np
import pytest
from drawn_caches import chunks_of, drawn_network, drawn_reads, drawn_stored, policy
from hypothesis import given
from hypothesis import strategies as st
from plain_cache import PlainCache, best_plan, dropping, mean_value, release_price

from ecjax.caching.replay import replay
from ecjax.caching.serving import factor
from ecjax.streams import streams


class Ranked:
    """Plain exchanges; ``first_only`` where nothing is done if the least price is too high for the requested item."""

    def __init__(self, price, by_release):
        self.price, self.by_release = price, by_release
        self.ranks = {}  # (edge, item) -> (estimates then, key per unit of popularity)

    def rank(self, replay, edge, item, now):
        unit = self.price(dropping(replay, edge, item, now)) / replay.rate(edge, item, now)
        self.ranks[id(edge), item] = tuple(edge.estimate), unit

    def first(self, replay, edge, inside, now):
        """The least key, once that is by the present estimates."""
        while True:
            key = {n: self.ranks[id(edge), n][1] * replay.rate(edge, n, now) for n in inside}
            first = min(key, key=key.get)
            if self.ranks[id(edge), first][0] == tuple(edge.estimate):
                return first, key[first]
            self.rank(replay, edge, first, now)

    def __call__(self, replay, edge, now, item, at_hand):
        k = replay.k
        if at_hand and len(edge.kept[item]) < k:
            self.exchange(replay, edge, now, item)
            if edge.kept[item]:
                self.rank(replay, edge, item, now)

    def exchange(self, replay, edge, now, item):
        rate, own = replay.rate(edge, item, now), len(edge.kept[item])
        tau = replay.tau(edge, item, rate)
        worth = replay.value(edge, item, edge.kept[item], rate)
        free = replay.policy.capacity - edge.size()
        inside = {n for n, chunks in edge.kept.items() if chunks and n != item}
        if self.by_release:
            price = self.first(replay, edge, inside, now)[1] if inside and free < replay.k else math.inf
            lacking = [max(j - own - free, 0) for j in range(replay.k + 1)]
            if all(
                value <= worth or (need and value - worth <= price * need)
                for value, need in zip(tau, lacking, strict=True)
            ):
                return
        others, room = [], free if self.by_release else free + own
        while room < replay.k and inside:
            other = self.first(replay, edge, inside, now)[0]
            inside.remove(other)
            others.append(other)
            self.rank(replay, edge, other, now)
            room += len(edge.kept[other])
        options = [tau] + [dropping(replay, edge, other, now) for other in others]
        best, plan = best_plan(options, room + own if self.by_release else room)
        if best <= (worth + sum(row[-1] for row in options[1:])) * (1 + 1e-12):
            return
        edge.kept[item] = set(replay.order(edge, item)[: plan[0]])
        for other, j in zip(others, plan[1:], strict=True):
            kept = [chunk for chunk in replay.order(edge, other) if chunk in edge.kept[other]]
            edge.kept[other] = set(kept[:j])
            if j:
                self.rank(replay, edge, other, now)


@pytest.mark.parametrize("name", ["exact", "near_optimal", "near_optimal_dp"])
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    parity=st.integers(0, 2),
    copies=st.integers(1, 2),
    capacity=st.integers(0, 20),
    jitter=st.floats(0.1, 1.0),
)
def test_same_path_while_estimates_move(name, seed, k, parity, copies, capacity, jitter):
    rng = np.random.default_rng(seed)
    nodes = (k + parity) * copies + 1
    stored = drawn_stored(rng, 9, k, parity, copies, nodes)
    network = drawn_network(rng, 2, nodes, jitter=jitter, outages=2)
    reads = drawn_reads(rng, 150, 9, 2)
    config = policy(name, capacity, seed=seed)
    key, sigma = np.uint64(streams.key(seed, 20)), math.sqrt(math.log1p(jitter**2))
    decide = Ranked(release_price, True) if name == "exact" else Ranked(mean_value, False)
    plain = PlainCache(stored, network, config, decide, lambda read, node: factor(key, sigma, read, node))
    expected = [plain.read(*read) for read in zip(*reads, strict=True)]
    found = replay(reads, stored, network, config)
    np.testing.assert_array_equal(found.hit_chunks, [hits for _, hits in expected])
    np.testing.assert_allclose(found.latency_s, [latency for latency, _ in expected], rtol=1e-12)
    for edge, row in zip(plain.edges, found.contents, strict=True):
        assert chunks_of(row) == {item: chunks for item, chunks in edge.kept.items() if chunks}
