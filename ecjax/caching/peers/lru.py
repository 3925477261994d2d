"""LRU: the item that has not been read for longest goes."""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.queues import add, empty_queues, oldest, take
from ecjax.machine_code import njit


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, queue, held = np.empty(2, np.int64), kept.size, 0
    links = empty_queues(kept.size, 1)
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = kept[m]
        if kept[m]:
            take(links, m)
            add(links, queue, m)
        elif room > 0 and reads.whole[i]:
            if held == room:
                victim = oldest(links, queue)
                take(links, victim)
                kept[victim] = False
            else:
                held += 1
            add(links, queue, m)
            kept[m] = True
        decided_ns[i] = nanoseconds(moment)
