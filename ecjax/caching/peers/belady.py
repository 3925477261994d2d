"""Belady's algorithm with bypass, a bound: it knows all reads, and no cache of whole items hits more where none fails.

Of the items that are kept and the one just read the one goes whose next read is farthest (Belady, "A study of
replacement algorithms for a virtual-storage computer", IBM Systems Journal 5, 1966); where that is the one just read,
it does not enter. A read that fails brings nothing in, which it does not foresee: then others may hit more often. Where
items take unequal times to fetch it is a bound of hits, not of latencies.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.ranking import insert, no_ranking, remove, settle
from ecjax.machine_code import njit


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, count = np.empty(2, np.int64), reads.item.size
    following = np.empty(count, np.int64)  # the next read of the same item; count: none
    first = np.full(kept.size, count)
    for i in range(count - 1, -1, -1):
        following[i] = first[reads.item[i]]
        first[reads.item[i]] = i
    heap, items, edges = no_ranking(kept.size)
    for i in range(count):
        m = reads.item[i]
        hit[i] = kept[m]
        items[0, m].key = -float(following[i])
        if kept[m]:
            settle(heap, items, edges, 0, m)
        elif room > 0 and reads.whole[i]:
            full = edges[0].ranked == room
            if full and items[0, heap[0, 0]].key < items[0, m].key:
                victim = heap[0, 0]
                remove(heap, items, edges, 0, victim)
                kept[victim] = False
                full = False
            if not full:
                insert(heap, items, edges, 0, m)
                kept[m] = True
        decided_ns[i] = nanoseconds(moment)
