"""Plans of the few items that a read may move, by some or all partitions of their chunks, callable from Numba.

By all of them is the online near-optimal scheme, by some is online SampleX (Algorithm 2 of the SampleX paper).

Algorithm 2 as printed can make the cache worse, as what it has is not among the samples. Here the current plan is kept
unless a sample is worth more, and its own partition, best assigned, is looked at besides the S samples.
"""

import numpy as np

from ecjax.caching.clearing import clear_in_turn
from ecjax.caching.partitions import first_below, next_partitions
from ecjax.machine_code import njit
from ecjax.streams.streams import advance, uniform


def partition_table(capacity: int, k: int, items: int) -> np.ndarray:
    """Numbers of partitions N(k, c, m) of c chunks into at most m items of at most k chunks.

    For ``candidate_samplex`` with up to ``items`` candidates that share up to ``capacity`` chunks. (Exact where they
    are below 2^63: for K up to 60 with 3 K chunks.)

    Returns:
        (k + 1, capacity + 1, items + 1) int64.
    """
    table = np.zeros((k + 1, capacity + 1, items + 1), dtype=np.int64)
    table[0, 0, :] = 1
    for part in range(1, k + 1):
        table[part] = table[part - 1]
        for c in range(part, capacity + 1):
            table[part, c, 1:] += table[part, c - part, :-1]
    return table


@njit()
def unrank_small(table, capacity, items, index, x):
    """Make ``x``, (K,) int64, the partition that ``index`` others come before; 0 <= ``index`` < N(K, c, m)."""
    c, m = capacity, items
    for k in range(x.size, 1, -1):
        value = 0
        while True:
            same = table[k - 1, c, m]
            if index < same:
                break
            index -= same
            value, c, m = value + 1, c - k, m - 1
        x[k - 1] = value
    x[0] = c


@njit()
def candidate_samplex(tau, chunks, capacity, table, samples, random_state):
    """Share chunks among candidates anew: the best of their current plan and S + 1 sampled partitions.

    The samples are those of Algorithm 1, the last partition and S - 1 distinct others at random (all where there are
    not more), and the partition of the current plan where that fills the capacity.

    Args:
        tau: (n, K + 1) float64, contiguous; rows begin with 0 and do not descend.
        chunks: (n,) int64, current plan, sum at most ``capacity``; the plan is changed in its place, and only for one
            that is worth more.
        capacity: chunks to share: those that the candidates have, and free ones; all are kept from n K on.
        table: ``partition_table`` of at least so many chunks and items, and of K.
        samples: S, at least 1.
        random_state: uint64, of ``ecjax.streams.streams``.

    Returns:
        Whether the plan changed, and the random state to go on from.
    """
    items, kinds = tau.shape
    k = kinds - 1
    capacity = min(capacity, items * k)
    size, value = 0, 0.0
    for item in range(items):
        size += chunks[item]
        value += tau[item, chunks[item]]

    count = table[k, capacity, items]
    drawn = np.empty(min(samples, count) - 1, dtype=np.int64)
    targets = np.zeros((drawn.size + (2 if size == capacity else 1), kinds), dtype=np.int64)
    targets[0, k] = capacity // k
    if capacity % k:
        targets[0, capacity % k] += 1
    # Floyd's draw of distinct ranks below that of the last partition
    for i in range(drawn.size):
        most = count - 1 - drawn.size + i
        random_state = advance(random_state)
        index = min(np.int64(uniform(random_state) * (most + 1)), most)
        for j in range(i):
            if drawn[j] == index:
                index = most
                break
        drawn[i] = index
        unrank_small(table, capacity, items, index, targets[i + 1, 1:])
    if size == capacity:
        for item in range(items):
            targets[-1, chunks[item]] += 1

    return _best_cleared(tau, chunks, value, targets), random_state


@njit()
def candidate_optimum(tau, chunks, capacity, table):
    """Share chunks among candidates anew: the best of all partitions of them, each with its market cleared.

    Args:
        tau: as for ``candidate_samplex``.
        chunks: likewise; changed only for a plan that is worth more.
        capacity: likewise.
        table: likewise.

    Returns:
        Whether the plan changed.
    """
    items, kinds = tau.shape
    capacity = min(capacity, items * (kinds - 1))
    value = 0.0
    for item in range(items):
        value += tau[item, chunks[item]]
    targets = np.zeros((table[kinds - 1, capacity, items], kinds), dtype=np.int64)
    x = np.zeros(kinds - 1, dtype=np.int64)
    first_below(x, x.size, capacity, items)
    next_partitions(x, items, targets[:, 1:])
    return _best_cleared(tau, chunks, value, targets)


@njit(inner=True)
def _best_cleared(tau, chunks, value, targets):
    """Change ``chunks``, worth ``value``, to the best assignment of the partitions where it is worth more."""
    items, kinds = tau.shape
    candidate, prices = np.empty(items, dtype=np.int64), np.empty(kinds)
    clear_in_turn(tau, _sorted_columns(tau), targets, np.empty(targets.shape[0]), candidate, prices)
    better = 0.0
    for item in range(items):  # in the same order as before, so that rounding moves nothing
        better += tau[item, candidate[item]]
    if better > value:
        for item in range(items):
            chunks[item] = candidate[item]
        return True
    return False


@njit(inner=True)
def _sorted_columns(tau):
    """For each number of chunks the items in descending order of value, (K + 1, n); by insertion: there are few."""
    items, kinds = tau.shape
    order = np.empty((kinds, items), dtype=np.int64)
    for k in range(kinds):
        for item in range(items):
            i = item
            while i > 0 and tau[order[k, i - 1], k] < tau[item, k]:
                order[k, i] = order[k, i - 1]
                i -= 1
            order[k, i] = item
    return order
