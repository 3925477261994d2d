"""The engine read by read against the plain replay."""

import numpy as np
import pytest
from drawn_caches import (
    chunks_of,
    counted,
    drawn_network,
    drawn_reads,
    drawn_stored,
    kept_by,
    lognormal,
    policy,
)
from hypothesis import given
from hypothesis import strategies as st
from plain_cache import (
    LeastFrequentlyUsed,
    LeastRecentlyUsed,
    PlainCache,
    decayed_frequency,
    exact_online,
    keep_nothing,
    near_optimal,
    plan_all,
)

from ecjax.caching.replay import replay
from ecjax.caching.system import Network, Reads, Stored

PLAIN = {
    "none": lambda: keep_nothing,
    "lru": LeastRecentlyUsed,
    "lfu": LeastFrequentlyUsed,
    "decayed_lfu": lambda: decayed_frequency,
    "exact": lambda: exact_online,
    "near_optimal": lambda: near_optimal,
    "near_optimal_dp": lambda: near_optimal,
    "samplex": lambda: near_optimal,  # of so many samples that all partitions are among them
}
ALL = 10**4  # samples
SYSTEM = {
    "seed": st.integers(0, 10**6),
    "k": st.integers(1, 5),
    "parity": st.integers(0, 3),
    "copies": st.integers(1, 2),
    "outages": st.integers(0, 6),
    "capacity": st.integers(0, 14),
    "nodes": st.integers(1, 12),
}


def drawn(seed, k, parity, copies, outages, nodes, jitter=0.0, reads=80, items=8, edges=2):
    """With fewer nodes than chunks some chunks of an item are equally far."""
    rng = np.random.default_rng(seed)
    stored = drawn_stored(rng, items, k, parity, copies, nodes)
    network = drawn_network(rng, edges, nodes, jitter=jitter, outages=outages)
    network = network._replace(edge_s=0.2)  # a few nodes are nearer
    return drawn_reads(rng, reads, items, edges), stored, network


def same_reads(reads, stored, network, config, decide, factor=lambda number, node: 1.0, at_the_end=True):
    """Latency, hits and what is kept at the end are those of the plain replay."""
    plain = PlainCache(stored, network, config, decide, factor)
    expected = [plain.read(*read) for read in zip(*reads, strict=True)]
    found = replay(reads, stored, network, config)
    np.testing.assert_array_equal(found.hit_chunks, [hits for _, hits in expected])
    np.testing.assert_allclose(found.latency_s, [latency for latency, _ in expected], rtol=1e-12)
    if at_the_end:
        assert [chunks_of(row) for row in found.contents] == [kept_by(edge) for edge in plain.edges]
    return found


@pytest.mark.parametrize("name", PLAIN)
@given(**SYSTEM)
def test_same_path(name, seed, k, parity, copies, outages, capacity, nodes):
    reads, stored, network = drawn(seed, k, parity, copies, outages, nodes)
    same_reads(reads, stored, network, policy(name, capacity, samples=ALL), PLAIN[name]())


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "exact"])
@given(**SYSTEM)
def test_same_path_while_estimates_move(name, seed, k, parity, copies, outages, capacity, nodes):
    if PLAIN[name]() is near_optimal:
        # keys of candidates are as of when each was last looked at: no matter where all that is kept is a candidate
        capacity = min(capacity, k)
    reads, stored, network = drawn(seed, k, parity, copies, outages, nodes, jitter=0.5)
    config = policy(name, capacity, samples=ALL, seed=seed)
    same_reads(reads, stored, network, config, PLAIN[name](), lognormal(0.5, seed))


@pytest.mark.parametrize("name", PLAIN)
def test_a_read_that_fails_counts_as_a_request(name):
    for seed in (2, 5):
        reads, stored, network = drawn(seed, 3, 0, 1, outages=20, nodes=6, reads=400, items=15, edges=1)
        lasting = 0.2 * (network.down_until_s - network.down_from_s)
        network = network._replace(down_until_s=network.down_from_s + lasting)
        found = same_reads(reads, stored, network, policy(name, 20, samples=ALL), PLAIN[name]())
        assert np.isinf(found.latency_s).sum() > 10


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("begin", [-1e5, 1.7e9])
def test_reads_may_begin_at_any_time(name, begin):
    reads, stored, network = drawn(1, 3, 1, 1, outages=0, nodes=6, reads=150, edges=1)
    reads = reads._replace(time_s=np.round(reads.time_s * 64) / 64 + begin)  # exact, whenever they begin
    same_reads(reads, stored, network, policy(name, 9, samples=ALL), PLAIN[name]())


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("half_lives", [50, 1050, 1500, 10**6])
def test_after_a_long_silence_what_was_popular_is_worth_nothing(name, half_lives):
    reads, stored, network = drawn(1, 3, 1, 1, outages=0, nodes=6, reads=150, edges=1)
    reads.time_s[70:] += half_lives * 20.0
    # none of the old items is read again but one, at once: which of them go first is a matter of taste
    reads.item[:70] %= 4
    reads.item[70:] = reads.item[70:] % 4 + 4
    reads.item[70] = reads.item[69]
    same_reads(reads, stored, network, policy(name, 9, samples=ALL), PLAIN[name](), at_the_end=False)


class Planned:
    """Whole plans at the start, per period, or after every so many reads of an edge; counts what is new."""

    def __init__(self, decide=keep_nothing):
        self.decide, self.filled = decide, 0

    def plan(self, plain, edge, rates, now=None):
        before = {m: set(chunks) for m, chunks in edge.kept.items()}
        plan_all(plain, edge, rates, now)
        self.filled += sum(len(chunks - before.get(m, set())) for m, chunks in edge.kept.items())

    def rates(self, plain, edge, now):
        return {m: plain.rate(edge, m, now) for m in list(edge.requests)}

    def __call__(self, plain, edge, now, item, at_hand):
        self.decide(plain, edge, now, item, at_hand)
        if self.decide is not keep_nothing and edge.reads % plain.policy.replan_reads == 0:
            self.plan(plain, edge, self.rates(plain, edge, now), now)


def same_plans(reads, stored, network, config, planned, before_read, popularity=None):
    """As ``same_reads``; ``before_read(plain, number)`` may plan."""
    plain = PlainCache(stored, network, config, planned)
    expected = []
    for number, read in enumerate(zip(*reads, strict=True)):
        before_read(plain, number)
        expected.append(plain.read(*read))
    found = replay(reads, stored, network, config, popularity)
    np.testing.assert_array_equal(found.hit_chunks, [hits for _, hits in expected])
    np.testing.assert_allclose(found.latency_s, [latency for latency, _ in expected], rtol=1e-12)
    assert [chunks_of(row) for row in found.contents] == [kept_by(edge) for edge in plain.edges]
    assert found.filled == planned.filled


@given(**SYSTEM)
def test_exact_periodic_plans_all_items_once_per_period(seed, k, parity, copies, outages, capacity, nodes):
    reads, stored, network = drawn(seed, k, parity, copies, outages, nodes)
    planned, time_s = Planned(), reads.time_s
    config = policy("exact_periodic", capacity)

    def before_read(plain, number):
        period = np.floor((time_s[: number + 1] - time_s[0]) / config.period_s)
        if number and period[-1] > period[-2]:
            for edge in plain.edges:
                planned.plan(plain, edge, planned.rates(plain, edge, time_s[number - 1]), time_s[number - 1])

    same_plans(reads, stored, network, config, planned, before_read)


@given(replan_reads=st.integers(1, 20), **SYSTEM)
def test_exact_plans_all_items_every_so_many_reads(
    seed, k, parity, copies, outages, capacity, nodes, replan_reads
):
    reads, stored, network = drawn(seed, k, parity, copies, outages, nodes)
    config = policy("exact", capacity, replan_reads=replan_reads)
    same_plans(reads, stored, network, config, Planned(exact_online), lambda plain, number: None)


@pytest.mark.parametrize("name", ["agar", "exact_periodic", "exact"])
def test_a_plan_keeps_nothing_that_was_never_to_be_had(name):
    # the only node is down for ever
    network = Network(np.array([[0.5]]), 0.0, 0.01, 0.02, np.array([0]), np.array([-1.0]), np.array([np.inf]))
    reads = Reads(np.arange(40.0), np.zeros(40, np.int64), np.zeros(40, np.int64))
    found = replay(reads, Stored(1, np.array([[[0]]])), network, policy(name, 1, replan_reads=10))
    assert np.isinf(found.latency_s).all() and found.filled == 0


@given(**SYSTEM)
def test_the_static_plan_is_the_best_for_what_is_known(seed, k, parity, copies, outages, capacity, nodes):
    reads, stored, network = drawn(seed, k, parity, copies, outages, nodes)
    planned, popularity = Planned(), np.random.default_rng(seed).exponential(size=(2, 8))

    def before_read(plain, number):
        if number == 0:
            for edge, row in zip(plain.edges, popularity, strict=True):
                planned.plan(plain, edge, dict(enumerate(row)))

    same_plans(reads, stored, network, policy("optimal_static", capacity), planned, before_read, popularity)


@pytest.mark.parametrize("name", ["optimal_static", "samplex_static"])
def test_the_reads_themselves_are_counted_where_nothing_is_known(name):
    reads, stored, network = drawn(1, 3, 1, 1, 2, 6)
    known, unknown = (
        replay(reads, stored, network, policy(name, 7), popularity)
        for popularity in (counted(reads, 2, 8), None)
    )
    np.testing.assert_array_equal(known.contents, unknown.contents)
    np.testing.assert_array_equal(known.latency_s, unknown.latency_s)
