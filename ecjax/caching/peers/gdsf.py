"""GDSF (Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy", HP Labs 1998).

The item of least priority goes. A read sets the priority of its item to L + reads since it is kept times cost over
size, where L is the priority of the last one that went; the one just read is among those that may go. Items are of
one size and cost the same here, as with libCacheSim. Among equals the one goes that was read first.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.ranking import insert, no_ranking, remove, settle
from ecjax.machine_code import njit


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, inflation = np.empty(2, np.int64), 0.0
    times_read = np.zeros(kept.size)
    heap, items, edges = no_ranking(kept.size)
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = kept[m]
        if kept[m]:
            times_read[m] += 1.0
            items[0, m].key = inflation + times_read[m]
            items[0, m].tie = i
            settle(heap, items, edges, 0, m)
        elif room > 0 and reads.whole[i]:
            priority = inflation + 1.0
            enters = True
            if edges[0].ranked == room:
                victim = heap[0, 0]
                enters = items[0, victim].key <= priority
                inflation = min(items[0, victim].key, priority)
                if enters:
                    remove(heap, items, edges, 0, victim)
                    kept[victim] = False
            if enters:
                times_read[m] = 1.0
                items[0, m].key = priority
                items[0, m].tie = i
                insert(heap, items, edges, 0, m)
                kept[m] = True
        decided_ns[i] = nanoseconds(moment)
