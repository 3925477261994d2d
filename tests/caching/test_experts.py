"""The mixture of experts against known values, against plain Python, and as ``exact`` uses it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from drawn_caches import chunks_of, drawn_network, drawn_reads, drawn_stored, kept_by, policy
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_cache import PlainCache, best_by_enumeration, exact_online, keep_nothing
from plain_experts import PlainExperts, PlainMixtureCache, PlainReturns
from real_log import cloudphysics

from ecjax.caching.exchange import IN_TURN
from ecjax.caching.experts import AGES, COUNTERS, ETA, begin_experts, learn, next_read
from ecjax.caching.replay import replay
from ecjax.caching.returns import (
    DOUBT,
    HALVED,
    LOOKED,
    OCTAVES,
    PRIOR,
    PRIOR_OF_GAPS,
    begin_returns,
    count_return,
    rate,
)
from ecjax.caching.system import Network, Reads, Stored

VECTORS = json.loads((Path(__file__).parent / "experts.json").read_text())["cache_experts"]
CHUNK_S = np.array([[0.98, 0.69, 0.52, 0.21]])  # of the four chunks of an item
PEERS = ("lru", "lfu", "arc", "s3_fifo", "sieve", "w_tinylfu", "gdsf")
NONE = np.zeros(0)
RETURNS = ((PRIOR, PRIOR_OF_GAPS), DOUBT, LOOKED, HALVED, OCTAVES)
FOUR = Network(CHUNK_S, 0.0, 0.001, 0.03, NONE.astype(np.int64), NONE, NONE)


@pytest.mark.parametrize("known", VECTORS)
def test_known_values(known):
    counters, ages = (tuple(known[f"{kind}_half_lives_reads"]) for kind in ("counter", "age"))
    experts, loss = begin_experts(1, 20, counters, ages, known["eta"]), 0.0
    for item in known["reads"]:
        probability = learn(experts, 0, item)
        loss -= math.log(probability) if probability > 0 else 0.0
    np.testing.assert_allclose(experts.weight[0], known["weights"], rtol=1e-12)
    assert loss == pytest.approx(known["log_loss"], rel=1e-12)
    for item, probability in known["next_read_probability"].items():
        assert next_read(experts, 0, int(item)) == pytest.approx(probability, rel=1e-12)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=40),
    st.sampled_from([((3.0, 20.0), (3.0, 7.5)), ((16.0,), ()), ((), (4.0, 16.0))]),
    st.sampled_from([0.0, 0.05, 1.0]),
)
def test_same_as_plain(reads, half_lives, eta):
    """Two edges, which learn nothing of each other; the laws sum to 1."""
    experts = begin_experts(2, 6, *half_lives, eta)
    plain = [PlainExperts(*half_lives, eta) for _ in range(2)]
    for item, e in reads:
        assert learn(experts, e, item) == pytest.approx(plain[e].read(item), rel=1e-9, abs=1e-15)
    for e in (0, 1):
        np.testing.assert_allclose(experts.weight[e], plain[e].weight, rtol=1e-9)
        assert experts.weight[e].sum() == pytest.approx(1)
        laws = [next_read(experts, e, m) for m in range(6)]
        np.testing.assert_allclose(laws, [plain[e].probability(m) for m in range(6)], rtol=1e-9, atol=1e-15)
        if plain[e].reads:
            assert sum(laws) == pytest.approx(1)


def test_ages_alone_order_items_by_their_last_reads():
    experts = begin_experts(1, 50, (), AGES)
    reads = np.random.default_rng(1).integers(0, 50, 2000)
    for item in reads:
        learn(experts, 0, item)
    last = [np.flatnonzero(reads == m)[-1] for m in range(50)]
    laws = [next_read(experts, 0, m) for m in range(50)]
    assert np.argsort(last).tolist() == np.argsort(laws).tolist()


def test_weights_find_the_best_mixture():
    """Half of the reads by an expert with a long memory, half again the last item: the two share the weight."""
    rng = np.random.default_rng(2)
    experts = begin_experts(1, 200, (4096.0,), (0.2, 64.0), eta=0.002)
    item = 0
    for _ in range(20_000):
        item = item if rng.random() < 0.5 else int(rng.integers(200))
        learn(experts, 0, item)
    assert experts.weight[0] == pytest.approx([0.5, 0.5, 0.0], abs=0.06)


def test_long_ago_is_worth_nothing_and_breaks_nothing():
    experts = begin_experts(1, 3, (16.0,), (4.0,), eta=0.1)
    learn(experts, 0, 0)
    for _ in range(30_000):
        learn(experts, 0, 1)
    assert next_read(experts, 0, 0) == 0.0 and next_read(experts, 0, 1) == pytest.approx(1)
    assert learn(experts, 0, 0) == 0.0 and np.isfinite(experts.weight).all()
    assert next_read(experts, 0, 0) > 0.0 and next_read(experts, 0, 2) == 0.0


@pytest.mark.parametrize("loops", [False, True])
def test_returns_are_those_of_plain_sums(loops):
    items = np.minimum(np.random.default_rng(4).geometric(0.08, 400), 60) - 1
    if loops:
        items = np.arange(400) % 60
    experts, returns = begin_experts(1, 60, (64.0,), (16.0,)), begin_returns(1, 60)
    plain = PlainReturns(PlainExperts((64.0,), (16.0,), ETA), *RETURNS)
    for item in items:
        count_return(experts, returns, 0, item)
        learn(experts, 0, item)
        plain.read(item)
    rates = [rate(experts, returns, 0, m) for m in range(60)]
    np.testing.assert_allclose(rates, [plain.rate(m) for m in range(60)], rtol=1e-9)
    for sums, expected in (
        (returns.came, plain.came),
        (returns.expected, plain.expected),
        (returns.exposed, plain.exposed),
    ):
        assert sums.sum() == pytest.approx(sum(expected.values()))
        for kind, value in expected.items():
            assert sums[0][kind] == pytest.approx(value)


def test_expected_reads_are_those_of_the_law():
    """Of the mixture, which sums to 1 over all items at every read, whatever their ages."""
    rng = np.random.default_rng(5)
    experts, returns = begin_experts(1, 50_000), begin_returns(1, 50_000)
    items = np.concatenate([np.arange(50_000), rng.integers(0, 300, 3000)])
    for begin, item in enumerate(items):
        count_return(experts, returns, 0, item)
        learn(experts, 0, item)
        if begin == HALVED * 3 + 1:
            returns.expected[:] = 0.0
    reads = len(items) - (HALVED * 3 + 2)
    assert returns.expected.sum() == pytest.approx(reads, rel=0.1)


def test_a_loop_keeps_some_items_for_a_whole_round():
    """Room for R of its M items: R / M of the reads find theirs at best, and those just read come again last."""
    item = np.tile(np.arange(600), 40)
    for room in (150, 300):
        assert mean_s("lru", item, 4 * room) == pytest.approx(0.98)
        best = 0.98 * (1 - room / 600) + 0.001 * room / 600
        assert mean_s("exact", item, 4 * room) < 1.06 * best


def test_a_gap_tells_what_numbers_of_reads_do_not():
    """Of two reads: one after the other, never to come again, or a round apart, to come again after another."""
    experts, returns = begin_experts(1, 10_000), begin_returns(1, 10_000)
    for begin in range(200, 4200, 100):
        for first in range(begin, begin + 100):
            # the slow one for the third, second and first time, and one of a burst
            for item in (first - 200, first - 100, first, 5000 + first, 5000 + first):
                count_return(experts, returns, 0, item)
                learn(experts, 0, item)
    for slow in range(4000, 4100, 10):
        assert rate(experts, returns, 0, slow) > 3 * rate(experts, returns, 0, 5100 + slow)


def test_items_of_a_scan_are_let_go_first():
    """Items of one read never come again, others after a loop: then their rates are below those of older ones."""
    experts, returns = begin_experts(1, 20_000), begin_returns(1, 20_000)
    scan = iter(range(200, 20_000))
    for _ in range(30):
        for item in [*range(200), *(next(scan) for _ in range(300))]:
            count_return(experts, returns, 0, item)
            learn(experts, 0, item)
    scanned = rate(experts, returns, 0, next(scan) - 1)
    assert scanned < 0.1 * min(rate(experts, returns, 0, m) for m in range(200))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 4),
    parity=st.integers(0, 2),
    outages=st.integers(0, 4),
    capacity=st.integers(0, IN_TURN),
    nodes=st.integers(1, 8),
)
def test_exact_by_the_mixture_takes_the_plain_path(seed, k, parity, outages, capacity, nodes):
    """Of so few items that all weights are taken anew at every read."""
    rng = np.random.default_rng(seed)
    stored = drawn_stored(rng, 6, k, parity, 1, nodes)
    network = drawn_network(rng, 2, nodes, outages=outages)
    reads = drawn_reads(rng, 40, 6, 2)
    config = policy("exact", capacity, half_life_s=None)
    plain = PlainMixtureCache(stored, network, config, exact_online, (COUNTERS, AGES, ETA, RETURNS))
    expected = [plain.read(*read) for read in zip(*reads, strict=True)]
    found = replay(reads, stored, network, config)
    np.testing.assert_array_equal(found.hit_chunks, [hits for _, hits in expected])
    np.testing.assert_allclose(found.latency_s, [latency for latency, _ in expected], rtol=1e-12)
    assert [chunks_of(row) for row in found.contents] == [kept_by(edge) for edge in plain.edges]


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), capacity=st.integers(0, 40), replan_reads=st.sampled_from([0, 13]))
def test_capacity_is_never_exceeded(seed, capacity, replan_reads):
    rng = np.random.default_rng(seed)
    stored, network = drawn_stored(rng, 30, 4, 1, 1, 6), drawn_network(rng, 2, 6, jitter=0.4, outages=3)
    reads = drawn_reads(rng, 300, 30, 2)
    config = policy("exact", capacity, half_life_s=None, replan_reads=replan_reads)
    for count in (60, 170, 300):
        kept = replay(Reads(*(column[:count] for column in reads)), stored, network, config).contents
        assert (np.bitwise_count(kept).sum(axis=1) <= capacity).all()


def test_a_plan_of_all_items_is_the_best_for_the_rates_of_the_mixture():
    rng = np.random.default_rng(3)
    stored, network = drawn_stored(rng, 5, 2, 0, 1, 4), drawn_network(rng, 1, 4)
    reads = drawn_reads(rng, 60, 5, 1)
    found = replay(reads, stored, network, policy("exact", 4, half_life_s=None, replan_reads=60))
    experts, returns = begin_experts(1, 5), begin_returns(1, 5)
    for item in reads.item:
        count_return(experts, returns, 0, item)
        learn(experts, 0, item)
    plain = PlainCache(stored, network, policy("exact", 4), keep_nothing)
    rates = [rate(experts, returns, 0, m) for m in range(5)]
    best, _ = best_by_enumeration([plain.tau(plain.edges[0], m, rate) for m, rate in enumerate(rates)], 4)
    kept = chunks_of(found.contents[0])
    assert sum(
        plain.value(plain.edges[0], m, kept.get(m, set()), rates[m]) for m in range(5)
    ) == pytest.approx(best)


@pytest.mark.parametrize("name", ["near_optimal", "samplex", "decayed_lfu", "exact_periodic"])
def test_others_need_a_half_life(name):
    reads = Reads(np.arange(3.0), np.zeros(3, np.int64), np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="half_life_s: None"):
        replay(reads, Stored(1, np.zeros((1, 1, 1), np.int64)), FOUR, policy(name, 3, half_life_s=None))


def mean_s(name, item, capacity, half_life_s=None, popularity=None):
    """Mean latency of the last three quarters of the reads, chunks at four nodes."""
    count = len(item)
    reads = Reads(np.arange(float(count)), item.astype(np.int64), np.zeros(count, np.int64))
    stored = Stored(4, np.tile(np.arange(4), (item.max() + 1, 1))[:, :, None].copy())
    config = policy(name, capacity, half_life_s=half_life_s, replan_reads=0)
    return replay(reads, stored, FOUR, config, popularity).latency_s[count // 4 :].mean()


@pytest.mark.parametrize("exponent", [0.7, 1.1])
def test_zipf_is_as_good_as_the_best_fixed_plan(exponent):
    weight = np.arange(1.0, 1001) ** -exponent
    item = np.random.default_rng(5).choice(1000, 100_000, p=weight / weight.sum())
    best = mean_s("optimal_static", item, 100, 1.0, weight[None])
    assert mean_s("exact", item, 100) <= best * 1.003


def test_bursts_are_cached_as_by_the_best_peer():
    """Items come in bursts, and a scan is mixed in: counters of seconds fail, and so does counting for ever."""
    rng = np.random.default_rng(6)
    bursts = [np.repeat(rng.choice(400, 20), 3)[rng.permutation(60)] for _ in range(500)]
    item = np.concatenate(
        [np.append(burst, 400 + np.arange(5 * i, 5 * i + 5)) for i, burst in enumerate(bursts)]
    )
    peers = [
        mean_s(name, item, 100, 1.0)
        for name in ("lru", "lfu", "arc", "s3_fifo", "sieve", "w_tinylfu", "gdsf")
    ]
    mixture = mean_s("exact", item, 100)
    assert mean_s("belady", item, 100) < mixture <= min(peers) * 1.015
    assert mixture < 0.9 * mean_s("exact", item, 100, 1e9)


@pytest.mark.parametrize(
    ("extent_bytes", "capacity"),
    [(2**20, 60), (2**20, 100), (2**20, 400), (2**20, 1786), (2**16, 1500), (2**16, 3000), (2**16, 10_000)],
)
def test_a_real_log_is_cached_as_by_the_best_peer(extent_bytes, capacity):
    item = cloudphysics(extent_bytes)
    assert mean_s("exact", item, capacity) <= 1.015 * min(mean_s(name, item, capacity, 1.0) for name in PEERS)


@pytest.mark.parametrize(("capacity", "above"), [(5000, 0.04), (7500, 0.04)])
def test_after_a_scan_it_learns_late(capacity, above):
    """Known to be no better: bursts, a long scan, then everything once more."""
    item = cloudphysics(2**16)
    assert mean_s("exact", item, capacity) <= (1 + above) * min(
        mean_s(name, item, capacity, 1.0) for name in PEERS
    )
