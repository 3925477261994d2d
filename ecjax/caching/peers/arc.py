"""ARC (Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003).

Items read once (T1) and more often (T2) are two LRU queues, each with a queue of those that went from it (B1, B2). A
read of one of these moves the size p that is aimed at for T1, up by max(|B2| / |B1|, 1) for B1, down by max(|B1| /
|B2|, 1) for B2; p is a real number, which the paper leaves open.
"""

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.queues import NONE, empty_queues, move, oldest
from ecjax.machine_code import njit

_T1, _T2, _B1, _B2 = 0, 1, 2, 3


@njit()
def _make_room(links, place, size, aim, of_b2):
    """REPLACE of the paper: the oldest of T1 or T2 goes to B1 or B2."""
    from_t1 = size[_T1] > 0 and (size[_T1] > aim or (size[_T1] == aim and of_b2))
    queue = _T1 if from_t1 or size[_T2] == 0 else _T2
    move(links, place, size, oldest(links, place.size + queue), _B1 if queue == _T1 else _B2)


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, items, aim = np.empty(2, np.int64), kept.size, 0.0
    links, place, size = empty_queues(items, 4), np.full(items, NONE), np.zeros(4, np.int64)
    for i in range(reads.item.size):
        m = reads.item[i]
        queue = place[m]
        hit[i] = queue == _T1 or queue == _T2
        if hit[i]:
            move(links, place, size, m, _T2)
        elif room > 0 and reads.whole[i]:
            full = size[_T1] + size[_T2] == room
            if queue == _B1 or queue == _B2:
                if queue == _B1:
                    aim = min(aim + max(size[_B2] / size[_B1], 1.0), float(room))
                else:
                    aim = max(aim - max(size[_B1] / size[_B2], 1.0), 0.0)
                move(links, place, size, m, NONE)
                if full:
                    _make_room(links, place, size, aim, queue == _B2)
                move(links, place, size, m, _T2)
            else:
                if full and size[_T1] + size[_B1] == room:
                    if size[_B1] > 0:
                        move(links, place, size, oldest(links, items + _B1), NONE)
                        _make_room(links, place, size, aim, False)
                    else:
                        move(links, place, size, oldest(links, items + _T1), NONE)
                elif full:
                    if size.sum() >= 2 * room and size[_B2] > 0:
                        move(links, place, size, oldest(links, items + _B2), NONE)
                    _make_room(links, place, size, aim, False)
                move(links, place, size, m, _T1)
        decided_ns[i] = nanoseconds(moment)
    for m in range(items):
        kept[m] = place[m] == _T1 or place[m] == _T2
