"""Caches of whole items: every one keeps all K chunks of C // K items.

The least key goes first:
- ``lru``: the number of the last read;
- ``lfu``: reads while it is kept, and among equals the one that reached that number first. New items always enter. The
  same as LFUCache of cachetools;
- ``decayed_lfu``: the decaying counter of the popularity; an item enters if its counter is larger than the least.
"""

import numpy as np

from ecjax.caching.ranking import insert, remove, settle
from ecjax.machine_code import njit

LRU, LFU, DECAYED_LFU = 1, 2, 3  # which of them


@njit(inline="always")
def keep_item(rules, k, state, e, m, read, complete):
    """Decide after a read of item m at edge e.

    Args:
        rules: Rules; the kind is LRU, LFU or DECAYED_LFU.
        k: K.
        state: State, updated.
        e: edge.
        m: item.
        read: number of the read.
        complete: whether all data chunks were at hand.
    """
    kind, most = rules.kind, rules.capacity // k
    heap, items, edges = state.heap, state.items, state.edges
    item = items[e, m]
    new = item.place < 0
    if new and (most == 0 or not complete):
        return
    if new and edges[e].ranked >= most:
        first = heap[e, 0]
        if kind == DECAYED_LFU and item.weight <= items[e, first].key:
            return
        remove(heap, items, edges, e, first)
        items[e, first].contents = np.uint64(0)
        edges[e].free += k
    if kind == LRU:
        item.key = read
    elif kind == LFU:
        item.key = 1.0 if new else item.key + 1.0
        item.tie = read
    else:
        item.key = item.weight
    if new:
        item.contents = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
        edges[e].free -= k
        insert(heap, items, edges, e, m)
    else:
        settle(heap, items, edges, e, m)
