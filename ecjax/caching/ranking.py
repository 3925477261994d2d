"""The items that an edge keeps, the first to go on top: a binary heap that knows where every item is.

The least key goes first, of equal ones the least tie. Keys of items in the middle change at every read, which a heap
without places (``heapq``) could only follow by entries that pile up. ``heap``, ``items`` and ``edges`` are those of
``State``.
"""

import numpy as np

from ecjax.machine_code import njit

_ITEM = np.dtype([("key", np.float64), ("tie", np.int64), ("place", np.int64)])
_EDGE = np.dtype([("ranked", np.int64)])


@njit()
def no_ranking(items):
    """An empty heap of one edge, its items and the edge, where nothing more is to be remembered of them."""
    heap, records, edges = np.empty((1, items), np.int64), np.zeros((1, items), _ITEM), np.zeros(1, _EDGE)
    for m in range(items):
        records[0, m].place = -1
    return heap, records, edges


@njit(inline="always")
def _before(items, e, one, other):
    a, b = items[e, one], items[e, other]
    return a.key < b.key or (a.key == b.key and a.tie < b.tie)


@njit()
def settle(heap, items, edges, e, m):
    """Move item m, whose key may have changed, to where it belongs."""
    at = items[e, m].place
    while at > 0:
        above = (at - 1) >> 1
        other = heap[e, above]
        if not _before(items, e, m, other):
            break
        heap[e, at] = other
        items[e, other].place = at
        at = above
    count = edges[e].ranked
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and _before(items, e, heap[e, below + 1], heap[e, below]):
            below += 1
        other = heap[e, below]
        if not _before(items, e, other, m):
            break
        heap[e, at] = other
        items[e, other].place = at
        at = below
    heap[e, at] = m
    items[e, m].place = at


@njit()
def insert(heap, items, edges, e, m):
    """Add item m, which is not in the heap."""
    items[e, m].place = edges[e].ranked
    edges[e].ranked += 1
    settle(heap, items, edges, e, m)


@njit()
def remove(heap, items, edges, e, m):
    """Take item m out, which is in the heap."""
    at = items[e, m].place
    items[e, m].place = -1
    edges[e].ranked -= 1
    last = heap[e, edges[e].ranked]
    if last != m:
        items[e, last].place = at
        settle(heap, items, edges, e, last)
