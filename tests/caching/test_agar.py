"""Agar's programme against one of plain lists and dictionaries, and against the best plan."""

import numpy as np
import pytest
from drawn_caches import policy
from hypothesis import given
from hypothesis import strategies as st

from ecjax.caching.agar import agar, smoothed
from ecjax.caching.knapsack import exact
from ecjax.caching.replay import replay
from ecjax.caching.system import Network, Reads, Stored


def plain_agar(tau, capacity):
    """Chunks per item; configurations are lists of (item, chunks), by weight."""
    k = tau.shape[1] - 1
    first = {m: min(value for value in row if value > 0) for m, row in enumerate(tau) if row[-1] > 0}
    items = sorted(first, key=lambda m: -first[m])[:capacity]
    if not items:
        return {}

    def value(configuration):
        return sum(tau[m, j] for m, j in configuration)

    table = {j: [(items[0], j)] for j in range(1, k + 1)}
    heaviest = k
    for m in items[1:]:
        if heaviest > capacity + 2 * k:
            break
        window = range(heaviest - k, heaviest + 1)
        reached = heaviest
        for j in range(k, 0, -1):
            for weight in [w for w in window if w in table]:
                *others, (other, size) = table[weight]
                if other != m and size > j:
                    relaxed = [*others, (other, size - j), (m, j)]
                    if value(relaxed) > value(table[weight]):
                        table[weight] = relaxed
            for weight in window:
                if weight in table:
                    reached = max(reached, weight + j)
                if weight in table and m not in [other for other, _ in table[weight]]:
                    longer = [*table[weight], (m, j)]
                    if weight + j not in table or value(longer) > value(table[weight + j]):
                        table[weight + j] = longer
        heaviest = reached
    return dict(table[max(weight for weight in table if weight <= capacity)])


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), items=st.integers(1, 25), capacity=st.integers(0, 60))
def test_configuration_is_that_of_plain_lists(seed, k, items, capacity):
    rng = np.random.default_rng(seed)
    gains = rng.integers(0, 50, (items, k)) * (rng.random((items, k)) < 0.7)  # whole: sums are exact
    tau = np.concatenate([np.zeros((items, 1)), np.cumsum(gains, axis=1)], axis=1)
    found = agar(tau, capacity)
    assert {m: j for m, j in enumerate(found.tolist()) if j} == plain_agar(tau, capacity)
    assert found.sum() <= capacity
    rows = np.arange(items)
    assert tau[rows, found].sum() <= tau[rows, exact(tau, capacity)].sum()


def test_where_whole_items_are_all_that_counts_agar_is_exact():
    """Only the last chunk is worth anything: the most valuable items are kept whole."""
    tau = np.zeros((30, 4))
    tau[:, 3] = np.random.default_rng(0).permutation(30) + 1
    found = agar(tau, 12)
    assert sorted(tau[found == 3, 3]) == [27, 28, 29, 30] and found.sum() == 12


def test_popularity_by_hand():
    """A period's reads count 0.8, those of n periods before 0.8 * 0.2^n."""
    before = smoothed(np.zeros((1, 2)), np.array([[5.0, 0.0]]), 1)
    np.testing.assert_allclose(smoothed(before, np.array([[0.0, 10.0]]), 3), [[4.0 * 0.2**3, 8.0]])


@pytest.mark.parametrize(("reads_of_1", "kept"), [(15, 0), (30, 1)])
def test_a_replay_smooths_the_frequencies_of_periods(reads_of_1, kept):
    """100 reads of item 0 are worth 20 a period later."""
    item = np.array([0] * 100 + [1] * reads_of_1 + [2])
    time_s = np.concatenate([np.linspace(0, 9, 100), np.linspace(10, 19, reads_of_1), [20.0]])
    none = np.zeros(0)
    network = Network(np.array([[0.5]]), 0.0, 0.01, 0.0, none.astype(np.int64), none, none)
    stored = Stored(1, np.zeros((3, 1, 1), dtype=np.int64))
    config = policy("agar", 1, period_s=10.0, half_life_s=None)
    found = replay(Reads(time_s, item, np.zeros(len(item), np.int64)), stored, network, config)
    assert np.flatnonzero(found.contents[0]).tolist() == [kept]
