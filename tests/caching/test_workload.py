"""Generated workloads of caches: places, popularity and times against their laws."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from ecjax.caching.workload import EDGES, LATENCY_S, NODES, Popularity, of_buckets, placed, zipf_reads


@given(
    k=st.integers(1, 18),
    parity=st.integers(0, 3),
    copies=st.integers(1, 4),
    nodes=st.integers(1, 7),
    buckets=st.integers(1, 15),
)
def test_chunks_are_apart_and_nodes_have_equal_shares(k, parity, copies, nodes, buckets):
    items, total = 5, (k + parity) * copies
    stored = placed(items, k, parity, copies, nodes, buckets, 3)
    assert stored.k == k and stored.node_of.shape == (items, k + parity, copies)
    for places in stored.node_of.reshape(items, -1):
        assert places.min() >= 0 and places.max() < nodes * buckets
        counts = np.bincount(places // buckets, minlength=nodes)
        assert np.ptp(counts) <= 1
        assert len(set(places.tolist())) == total or total > nodes * buckets


def test_places_of_many_items():
    """As above where not all are drawn at once; and they take little more memory than what is kept of them."""
    items, nodes, buckets = 100_000, 6, 15
    tracemalloc.start()
    node_of = placed(items, 6, 3, 1, nodes, buckets, 3).node_of
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 * node_of.nbytes  # orders of all buckets would be 10 times as much
    places = np.sort(node_of[:, :, 0], axis=1)
    assert places[:, 0].min() >= 0 and places[:, -1].max() < nodes * buckets
    assert (np.diff(places, axis=1) > 0).all()
    of_node = (places[:, :, None] // buckets == np.arange(nodes)).sum(axis=1)
    assert np.ptp(of_node, axis=1).max() <= 1
    counts = np.array([np.bincount(part, minlength=90) for part in np.split(node_of[:, 4, 0], 10)])
    assert stats.chisquare(counts, axis=1).pvalue.min() > 1e-3


def test_every_bucket_is_as_likely():
    node_of = placed(4000, 6, 3, 1, 6, 15, 0).node_of
    counts = np.array([np.bincount(node_of[:, chunk, 0], minlength=90) for chunk in (0, 5, 8)])
    # a place in the order of an item's chunks says nothing of where it is
    assert stats.chisquare(counts, axis=1).pvalue.min() > 1e-3


def test_reads_follow_zipf_s_law():
    reads = zipf_reads(Popularity(50, 0.8, 0.0, 1.0), 40_000, 25.0, 3, 1)
    share = np.arange(1, 51) ** -0.8
    counts = np.bincount(reads.item, minlength=50)
    assert stats.chisquare(counts, 40_000 * share / share.sum()).pvalue > 1e-3
    assert stats.kstest(np.diff(reads.time_s), stats.expon(scale=1 / 25).cdf).pvalue > 1e-3
    assert stats.chisquare(np.bincount(reads.edge, minlength=3)).pvalue > 1e-3
    assert reads.item.dtype == reads.edge.dtype == np.int64


def test_reads_of_steps():
    steps = ((2, 0.5), (8, 0.4), (40, 0.1))
    law = Popularity(50, 0.0, 0.0, 1.0, steps)
    share = np.repeat([0.25, 0.05, 0.0025], [2, 8, 40])
    assert_allclose(law.shares, share)
    counts = np.bincount(zipf_reads(law, 40_000, 25.0, 3, 1).item, minlength=50)
    assert stats.chisquare(counts, 40_000 * share).pvalue > 1e-3


def test_seeds_share_numbers_between_laws():
    few, many = (zipf_reads(Popularity(items, 1.0, 0.0, 1.0), 1000, 2.0, 2, 7) for items in (10, 20))
    assert_allclose(few.time_s, many.time_s)
    assert (few.edge == many.edge).all() and (few.item <= many.item).all()
    other = zipf_reads(Popularity(10, 1.0, 0.0, 1.0), 1000, 2.0, 2, 8)
    assert (other.item != few.item).any()


@pytest.mark.parametrize("drift", [0.0, 0.3, 1.0])
def test_drift_exchanges_ranks_of_a_share(drift):
    items, count = 40, 60_000
    still = zipf_reads(Popularity(items, 1.0, 0.0, 100.0), count, 200.0, 1, 2)
    moved = zipf_reads(Popularity(items, 1.0, drift, 100.0), count, 200.0, 1, 2)
    period = (moved.time_s // 100).astype(int)
    assert (moved.item[period == 0] == still.item[period == 0]).all()
    before = np.arange(items)
    for number in (1, 2):
        own = period == number
        item_of = np.full(items, -1)
        item_of[still.item[own]] = moved.item[own]
        assert (item_of[still.item[own]] == moved.item[own]).all()  # one item per rank
        assert len(set(item_of.tolist())) == items  # and one rank per item
        assert np.sum(item_of != before) <= round(drift * items)
        assert drift == 0 or (item_of != before).any()
        before = item_of


def test_one_item_exchanges_its_rank_with_nobody():
    moved = [Popularity(1000, 1.0, drift, 100.0).moved for drift in (0.0, 0.001, 0.002, 0.003, 1.0)]
    assert moved == [0, 0, 2, 3, 1000]


def test_built_in_nodes():
    assert LATENCY_S.shape == (len(EDGES), len(NODES)) and (LATENCY_S > 0).all()
    assert_allclose(LATENCY_S[0], [0.52, 0.41, 0.69, 0.98, 0.14, 0.21])
    wide = of_buckets(LATENCY_S, 15)
    assert wide.shape == (3, 90) and (wide.reshape(3, 6, 15) == LATENCY_S[:, :, None]).all()
