"""S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).

New items go to a small queue, a tenth of the room. The oldest of it moves to the main queue if it was read twice or
more since it came, else it goes, and its name to a ghost queue of nine tenths of the room. Items whose name is there
go to the main queue at once. The oldest of the main queue comes in again, with one read less (three count at most),
if it was read. Items leave the main queue where it has more than its nine tenths, or the small queue is empty. Until
the first one leaves, new items that find the small queue full go to the main queue: so libCacheSim has it.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.queues import NONE, empty_queues, move, oldest
from ecjax.machine_code import njit

_SMALL, _MAIN, _GHOST = 0, 1, 2
_SMALL_SHARE, _GHOST_SHARE = 0.1, 0.9
_OFTEN, _MOST = 2, 3  # reads that move an item to the main queue; that count there


@njit()
def _leave_small(links, place, size, times_read, ghosts):
    """Until one item went, or the small queue is empty."""
    items = place.size
    while size[_SMALL] > 0:
        m = oldest(links, items + _SMALL)
        if times_read[m] >= _OFTEN:
            times_read[m] = 0
            move(links, place, size, m, _MAIN)
            continue
        if ghosts > 0:
            if size[_GHOST] == ghosts:
                move(links, place, size, oldest(links, items + _GHOST), NONE)
            move(links, place, size, m, _GHOST)
        else:
            move(links, place, size, m, NONE)
        return


@njit()
def _leave_main(links, place, size, times_read):
    """Until one item went."""
    while size[_MAIN] > 0:
        m = oldest(links, place.size + _MAIN)
        if times_read[m] == 0:
            move(links, place, size, m, NONE)
            return
        times_read[m] = min(times_read[m], _MOST) - 1
        move(links, place, size, m, _MAIN)


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, items = np.empty(2, np.int64), kept.size
    small, ghosts = int(_SMALL_SHARE * room), int(_GHOST_SHARE * room)
    filled = False  # has some item ever left
    links, place, size = empty_queues(items, 3), np.full(items, NONE), np.zeros(3, np.int64)
    times_read = np.zeros(items, np.int64)
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = place[m] == _SMALL or place[m] == _MAIN
        if hit[i]:
            times_read[m] += 1
        elif room > 0 and reads.whole[i]:
            queue = _MAIN if place[m] == _GHOST else _SMALL
            if queue == _SMALL and not filled and size[_SMALL] + size[_MAIN] < room and size[_SMALL] >= small:
                queue = _MAIN
            if place[m] == _GHOST:
                move(links, place, size, m, NONE)
            while size[_SMALL] + size[_MAIN] >= room:
                filled = True
                if size[_MAIN] > room - small or size[_SMALL] == 0:
                    _leave_main(links, place, size, times_read)
                else:
                    _leave_small(links, place, size, times_read, ghosts)
            times_read[m] = 0
            move(links, place, size, m, queue)
        decided_ns[i] = nanoseconds(moment)
    for m in range(items):
        kept[m] = place[m] == _SMALL or place[m] == _MAIN
