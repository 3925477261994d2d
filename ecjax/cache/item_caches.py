"""Caches of whole items: every one keeps all K chunks of C // K items.

The least key goes first:
- ``lru``: the number of the last read;
- ``lfu``: reads while it is kept, and among equals the one that reached that number first. New items always enter. The
  same as LFUCache of cachetools;
- ``decayed_lfu``: the decaying counter of the popularity; an item enters if its counter is larger than the least.
"""

import numba
import numpy as np

from ecjax.cache.ranking import insert, remove, settle

LRU, LFU, DECAYED_LFU = 1, 2, 3  # which of them


@numba.njit(cache=True, nogil=True, inline="always")
def keep_item(kind, k, items, kept, weight, free, ranking, e, m, read, complete):
    """Decide after a read of item m at edge e.

    Args:
        kind: LRU, LFU or DECAYED_LFU.
        k: K.
        items: how many are kept at most.
        kept: (E, M) uint64, updated.
        weight: (E, M) popularity.
        free: (E,) chunks that are free, updated.
        ranking: heap, size, place, key and tie of ``ranking``, updated.
        e: edge.
        m: item.
        read: number of the read.
        complete: whether all data chunks were at hand.
    """
    heap, held, place, key, tie = ranking
    new = place[e, m] < 0
    if new and (items == 0 or not complete):
        return
    if new and held[e] >= items:
        first = heap[e, 0]
        if kind == DECAYED_LFU and weight[e, m] <= key[e, first]:
            return
        remove(heap, held, place, key, tie, e, first)
        kept[e, first] = np.uint64(0)
        free[e] += k
    if kind == LRU:
        key[e, m] = read
    elif kind == LFU:
        key[e, m] = 1.0 if new else key[e, m] + 1.0
        tie[e, m] = read
    else:
        key[e, m] = weight[e, m]
    if new:
        kept[e, m] = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
        free[e] -= k
        insert(heap, held, place, key, tie, e, m)
    else:
        settle(heap, held, place, key, tie, e, m)
