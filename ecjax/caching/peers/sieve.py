"""SIEVE (Zhang and others, "SIEVE is simpler than LRU", NSDI 2024).

Items stay in the order in which they came. A read marks its item; a hand goes from old to new, takes marks off, and
the first item without one goes. New items come in at the new end, and after the newest the hand goes on with the
oldest.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.queues import NEWER, add, empty_queues, oldest, take
from ecjax.machine_code import njit


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, queue, held = np.empty(2, np.int64), kept.size, 0
    links, marked = empty_queues(kept.size, 1), np.zeros(kept.size, np.bool_)
    hand = queue  # at the node of the queue: begins with the oldest
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = kept[m]
        if kept[m]:
            marked[m] = True
        elif room > 0 and reads.whole[i]:
            if held == room:
                if hand == queue:
                    hand = oldest(links, queue)
                while marked[hand]:
                    marked[hand] = False
                    hand = links[hand, NEWER]
                    if hand == queue:
                        hand = oldest(links, queue)
                victim, hand = hand, links[hand, NEWER]
                take(links, victim)
                kept[victim] = False
            else:
                held += 1
            add(links, queue, m)
            marked[m] = False
            kept[m] = True
        decided_ns[i] = nanoseconds(moment)
