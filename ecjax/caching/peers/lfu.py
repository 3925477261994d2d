"""LFU: the item goes that was read least since it is kept, and among equals the one that reached that number first.

New items always enter. The same as LFUCache of cachetools.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.ranking import insert, no_ranking, remove, settle
from ecjax.machine_code import njit


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment = np.empty(2, np.int64)
    heap, items, edges = no_ranking(kept.size)
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = kept[m]
        if kept[m]:
            items[0, m].key += 1.0
            items[0, m].tie = i
            settle(heap, items, edges, 0, m)
        elif room > 0 and reads.whole[i]:
            if edges[0].ranked == room:
                victim = heap[0, 0]
                remove(heap, items, edges, 0, victim)
                kept[victim] = False
            items[0, m].key = 1.0
            items[0, m].tie = i
            insert(heap, items, edges, 0, m)
            kept[m] = True
        decided_ns[i] = nanoseconds(moment)
