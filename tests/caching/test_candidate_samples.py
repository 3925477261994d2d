"""SampleX among candidates: partitions by table, never worse, best when all partitions are looked at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_assignment import all_partitions, best_value, plan_value, valuations
from scipy.stats import chisquare

from ecjax.caching.candidate_samples import candidate_samplex, partition_table, unrank_small
from ecjax.caching.partitions import Partitions
from ecjax.streams.streams import key


@pytest.mark.parametrize("k", [2, 6, 15, 18, 60])
def test_table(k):
    table = partition_table(2 * k - 1, k, k + 1)
    assert table[k, -1, -1] == Partitions(2 * k - 1, k, k + 1).count
    assert partition_table(3 * k, k, k + 2)[k, -1, -1] == Partitions(3 * k, k, k + 2).count
    assert table[k, k, k // 2] == Partitions(k, k, k // 2).count


def test_unrank():
    table, x = partition_table(9, 4, 6), np.zeros(4, dtype=np.int64)
    found = []
    for index in range(table[4, 9, 5]):
        unrank_small(table, 9, 5, index, x)
        found.append(x.tolist())
    assert found == all_partitions(9, 4, 5)


def filled(tau, capacity, rng):
    """A plan of at most so many chunks, at random."""
    chunks = np.zeros(len(tau), dtype=np.int64)
    for _ in range(rng.integers(capacity + 1)):
        chunks[rng.choice(np.flatnonzero(chunks < tau.shape[1] - 1))] += 1
    return chunks


@given(valuations(), st.integers(1, 5), st.integers(0, 99))
def test_never_worse(drawn, samples, seed):
    tau, capacity = drawn
    table = partition_table(capacity + 1, tau.shape[1] - 1, len(tau) + 1)
    before = filled(tau, capacity, np.random.default_rng(seed))
    after, state = before.copy(), key(seed, 1)
    changed, state = candidate_samplex(tau, after, capacity, table, samples, np.uint64(state))
    assert after.sum() <= capacity and after.min() >= 0 and after.max() < tau.shape[1]
    if changed:
        assert plan_value(tau, after) > plan_value(tau, before) and after.sum() == capacity
    else:
        assert (after == before).all()
    candidate_samplex(tau, after, capacity, table, 10_000, np.uint64(state))
    assert plan_value(tau, after) == pytest.approx(best_value(tau, capacity))


def test_the_others_are_drawn_alike():
    """Two samples, and a plan that tells which they were: it takes the other one, as the last one is worth least."""
    tau = (
        np.array([0.0, 1, 1, 1]) * np.array([16, 8, 4, 2, 1])[:, None]
    )  # the last one, 3 + 2, has the fewest items
    partitions = all_partitions(5, 3, 5)
    table, state, found = partition_table(5, 3, 5), key(7, 1), {}
    for _ in range(1200):
        chunks = np.zeros(5, dtype=np.int64)
        _, state = candidate_samplex(tau, chunks, 5, table, 2, np.uint64(state))
        partition = tuple(np.bincount(chunks, minlength=4)[1:].tolist())
        found[partition] = found.get(partition, 0) + 1
    assert sorted(found) == sorted(tuple(x) for x in partitions[:-1])
    assert chisquare(list(found.values())).pvalue > 0.001


def test_room_for_all():
    tau, chunks = np.array([[0.0, 0, 3], [0, 1, 2]]), np.array([0, 1])
    changed, _ = candidate_samplex(tau, chunks, 9, partition_table(9, 2, 3), 3, np.uint64(1))
    assert changed and chunks.tolist() == [2, 2]
