import itertools
import pickle
from itertools import combinations

import numpy as np
import pytest

from ecjax.tables.statistics.bins import BINS
from ecjax.tables.statistics.correlation import (
    CHUNKS_KEPT,
    LATE,
    SAMPLED_REQUESTS,
    RequestSample,
    chunk_groups,
    pooled_correlation,
)


def brute_force(delays, groups, chunks):
    pairs = [(r, c) for r, width in enumerate(chunks) for c in range(width)]
    means = {g: np.mean([delays[p] for p in pairs if groups[p] == g]) for g in {groups[p] for p in pairs}}
    y = {p: delays[p] - means[groups[p]] for p in pairs}
    product = norm = 0.0
    for request, width in enumerate(chunks):
        for a, b in combinations(range(width), 2):
            first, second = y[request, a], y[request, b]
            product += first * second
            norm += (first**2 + second**2) / 2
    return product / norm


def test_pooled_correlation_is_that_of_all_pairs():
    random = np.random.default_rng(0)
    delays, groups = random.gamma(2, 1, (60, 6)), random.integers(0, 4, (60, 6))
    chunks = random.integers(0, 7, 60)
    found = pooled_correlation(delays, groups, chunks)
    assert found.value == pytest.approx(brute_force(delays, groups, chunks), rel=1e-12)
    assert found.requests == np.count_nonzero(chunks >= 2)


def test_known_correlation_is_recovered_within_its_error():
    random = np.random.default_rng(1)
    requests, truth = 8000, 0.3
    common = random.exponential(1, (requests, 1)) * np.sqrt(truth)
    delays = common + random.exponential(1, (requests, 4)) * np.sqrt(1 - truth)
    nodes = random.integers(0, 5, (requests, 4))
    found = pooled_correlation(delays + 3.0 * nodes, nodes, np.full(requests, 4))
    assert abs(found.value - truth) < 4 * found.error and found.error < 0.02


def test_sizes_do_not_look_like_correlation():
    random = np.random.default_rng(2)
    size = random.integers(0, 2, (5000, 1))
    delays = 5.0 * size + random.exponential(1, (5000, 3))
    groups = np.broadcast_to(size, delays.shape)
    assert abs(pooled_correlation(delays, groups, np.full(5000, 3)).value) < 0.03


def feed(sample, delays, groups, batch):
    begins = np.zeros(delays.shape, bool)
    begins[:, 0] = True
    rows = [a.ravel() for a in (begins, delays, groups)]
    for begin in range(0, delays.size, batch):
        sample.add(*(a[begin : begin + batch] for a in rows))


def test_a_small_trace_is_taken_whole_in_any_batches():
    random = np.random.default_rng(3)
    delays, groups = random.exponential(1, (500, 3)), random.integers(0, 3, (500, 3))
    sample = RequestSample(0)
    feed(sample, delays, groups, 7)
    expected = pooled_correlation(delays, groups, np.full(500, 3))
    assert sample.correlation().value == pytest.approx(expected.value, rel=1e-12)


def hashed(seed, row):
    """SplitMix64's finaliser over the row, under a salt made from the seed, in plain integers."""
    everything = 2**64 - 1

    def mix(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & everything
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & everything
        return word ^ (word >> 31)

    return mix(mix((seed + 0x9E3779B97F4A7C15) & everything) ^ row)


def test_a_long_trace_is_sampled_uniformly_and_repeatably():
    count = 3 * SAMPLED_REQUESTS
    delays = np.repeat(np.arange(count, dtype=float), 2).reshape(-1, 2)
    samples = [RequestSample(seed) for seed in (0, 0, 1)]
    for sample, batch in zip(samples, (1000, 4096, 1000), strict=True):
        feed(sample, delays, np.zeros(delays.shape, np.int64), batch)
    first, same, other = (s.requests().delays[:, 0] for s in samples)
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    smallest = sorted(range(count), key=lambda request: hashed(0, 2 * request))[:SAMPLED_REQUESTS]
    assert first.tolist() == sorted(smallest)
    # a uniform sample hits each of 16 stretches alike: chi-square with 15 degrees, 99.9 % at 37.7
    hits = np.histogram(first, 16, (0, count))[0]
    assert ((hits - hits.mean()) ** 2 / hits.mean()).sum() < 37.7


def test_missing_delays_and_wide_requests():
    delays = np.ones((2, CHUNKS_KEPT + 5))
    delays[0, ::2] = np.nan
    sample = RequestSample(0)
    feed(sample, delays, np.zeros(delays.shape, np.int64), 11)
    assert sample.requests().chunks.tolist() == [18, CHUNKS_KEPT]
    assert np.isnan(sample.correlation().value)


@pytest.mark.parametrize("cuts", [[5], [1, 2, 700], [3 * SAMPLED_REQUESTS, 7 * SAMPLED_REQUESTS + 1]])
def test_the_sample_of_a_log_is_found_in_those_of_its_parts(cuts):
    random = np.random.default_rng(5)
    shape = (4 * SAMPLED_REQUESTS, 2)
    delays, nodes = random.exponential(1, shape), random.integers(0, 7, shape)
    begins = np.tile([True, False], shape[0])
    groups = chunk_groups(nodes.ravel(), np.zeros(nodes.size, bool), np.ones(nodes.size))
    whole = RequestSample(3)
    whole.add(begins, delays.ravel(), groups)
    merged = None
    renumbered = np.argsort([4, 2, 6, 0, 1, 3, 5])  # nodes there are numbered in another order
    for first, last in itertools.pairwise([0, *cuts, delays.size]):
        part = RequestSample(3, first, first > 0)
        own = begins[first:last].copy()
        own[0] = True
        there = groups[first:last]
        if merged is not None:
            there = renumbered[there // (2 * BINS)] * (2 * BINS) + there % (2 * BINS)
        part.add(own, delays.ravel()[first:last], there)
        part = pickle.loads(pickle.dumps(part))
        if merged is None:
            merged = part
        else:
            merged.absorb(part, not begins[first], np.argsort(renumbered), np.full(7, np.nan))
    for found, expected in zip(merged.requests(), whole.requests(), strict=True):
        # every request has two chunks; what is behind them does not count
        np.testing.assert_array_equal(*(a if a.ndim == 1 else a[:, :2] for a in (found, expected)))


def test_delays_that_are_told_later_come_to_their_places():
    delays = np.array([1.0, 2.0, LATE, 3.0, 4.0, LATE])
    nodes = np.array([0, 1, 1, 0, 0, 0])
    groups = chunk_groups(nodes, np.zeros(6, bool), np.ones(6))
    head, rest = RequestSample(0), RequestSample(0, 2, continues=True)
    head.add(np.array([True, False]), delays[:2], groups[:2])
    rest.add(np.array([True, False, True, False]), delays[2:], groups[2:])
    head.absorb(rest, True, np.array([0, 1]), np.array([8.0, 9.0]))
    found = head.requests()
    assert found.rows.tolist() == [0, 4] and found.chunks.tolist() == [4, 2]
    assert found.delays[0, :4].tolist() == [1, 2, 9, 3] and found.delays[1, :2].tolist() == [4, 8]
