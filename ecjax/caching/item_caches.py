"""``decayed_lfu``: all K chunks of the C // K items whose decaying counters of popularity are largest.

An item enters if its counter is larger than the least. Caches of whole items that know no time:
``ecjax.caching.peers``.
"""

import numpy as np

from ecjax.caching.ranking import insert, remove, settle
from ecjax.machine_code import njit

DECAYED_LFU = 3  # kind of ``Rules``


@njit(inline="always")
def keep_item(rules, k, state, e, m, complete):
    """Decide after a read of item m at edge e.

    Args:
        rules: Rules.
        k: K.
        state: State, updated.
        e: edge.
        m: item.
        complete: whether all data chunks were at hand.
    """
    most = rules.capacity // k
    heap, items, edges = state.heap, state.items, state.edges
    item = items[e, m]
    new = item.place < 0
    if new and (most == 0 or not complete):
        return
    if new and edges[e].ranked >= most:
        first = heap[e, 0]
        if item.weight <= items[e, first].key:
            return
        remove(heap, items, edges, e, first)
        items[e, first].contents = np.uint64(0)
        edges[e].free += k
    item.key = item.weight
    if new:
        item.contents = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
        edges[e].free -= k
        insert(heap, items, edges, e, m)
    else:
        settle(heap, items, edges, e, m)
