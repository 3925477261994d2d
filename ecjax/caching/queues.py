"""Queues of items from the oldest to the newest: circular doubly linked lists in one array.

``links`` is (M + L, 2) int64 for L queues of M items; queue l has the node M + l, which stands before its oldest and
after its newest item. An item is in one queue at most.
"""

import numpy as np

from ecjax.machine_code import njit

OLDER, NEWER = 0, 1  # columns of links
NONE = -1  # in place of a queue


@njit()
def empty_queues(items, queues):
    """Links of queues without items."""
    links = np.empty((items + queues, 2), np.int64)
    for node in range(items + queues):
        links[node, OLDER] = links[node, NEWER] = node
    return links


@njit(inline="always")
def oldest(links, queue):
    """The oldest item of a queue; the node of the queue itself where it is empty."""
    return links[queue, NEWER]


@njit()
def add(links, queue, m):
    """Add item m, which is in no queue, as the newest."""
    before = links[queue, OLDER]
    links[m, OLDER], links[m, NEWER] = before, queue
    links[before, NEWER] = m
    links[queue, OLDER] = m


@njit()
def take(links, m):
    """Take item m out of its queue."""
    older, newer = links[m, OLDER], links[m, NEWER]
    links[older, NEWER], links[newer, OLDER] = newer, older


@njit()
def move(links, place, size, m, queue):
    """Put item m at the new end of a queue, or of none.

    Args:
        links: of all queues; updated.
        place: (M,) int64, queue of each item, or NONE; updated.
        size: (L,) int64, items of each queue; updated.
        m: item.
        queue: from 0 to L - 1, or NONE.
    """
    if place[m] != NONE:
        take(links, m)
        size[place[m]] -= 1
    place[m] = queue
    if queue != NONE:
        add(links, place.size + queue, m)
        size[queue] += 1
