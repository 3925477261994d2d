from itertools import combinations

import numpy as np
import pytest

from ecjax.tables.statistics.correlation import (
    CHUNKS_KEPT,
    SAMPLED_REQUESTS,
    RequestSample,
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


def test_a_long_trace_is_sampled_uniformly_and_repeatably():
    count = 3 * SAMPLED_REQUESTS
    delays = np.repeat(np.arange(count, dtype=float), 2).reshape(-1, 2)
    samples = [RequestSample(seed) for seed in (0, 0, 1)]
    for sample, batch in zip(samples, (1000, 4096, 1000), strict=True):
        feed(sample, delays, np.zeros(delays.shape, np.int64), batch)
    first, same, other = (s._delays[:, 0] for s in samples)
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    assert len(np.unique(first)) == SAMPLED_REQUESTS
    assert first.mean() == pytest.approx((count - 1) / 2, rel=0.02)


def test_missing_delays_and_wide_requests():
    delays = np.ones((2, CHUNKS_KEPT + 5))
    delays[0, ::2] = np.nan
    sample = RequestSample(0)
    feed(sample, delays, np.zeros(delays.shape, np.int64), 11)
    assert sample._kept[:2].tolist() == [18, CHUNKS_KEPT]
    assert np.isnan(sample.correlation().value)
