"""The items that an edge keeps, the first to go on top: a binary heap that knows where every item is.

Arrays of all edges: ``heap`` (E, places) int64, items; ``size`` (E,) int64; ``place`` (E, M) int32, -1 for items that
are not in it; ``key`` (E, M) and ``tie`` (E, M) int64: least key first, of equal ones least tie.
"""

import numba


@numba.njit(cache=True, nogil=True, inline="always")
def _before(key, tie, e, one, other):
    return key[e, one] < key[e, other] or (key[e, one] == key[e, other] and tie[e, one] < tie[e, other])


@numba.njit(cache=True, nogil=True)
def settle(heap, size, place, key, tie, e, m):
    """Move item m, whose key may have changed, to where it belongs."""
    at = place[e, m]
    while at > 0:
        above = (at - 1) >> 1
        other = heap[e, above]
        if not _before(key, tie, e, m, other):
            break
        heap[e, at] = other
        place[e, other] = at
        at = above
    count = size[e]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and _before(key, tie, e, heap[e, below + 1], heap[e, below]):
            below += 1
        other = heap[e, below]
        if not _before(key, tie, e, other, m):
            break
        heap[e, at] = other
        place[e, other] = at
        at = below
    heap[e, at] = m
    place[e, m] = at


@numba.njit(cache=True, nogil=True)
def insert(heap, size, place, key, tie, e, m):
    """Add item m, which is not in the heap."""
    place[e, m] = size[e]
    size[e] += 1
    settle(heap, size, place, key, tie, e, m)


@numba.njit(cache=True, nogil=True)
def remove(heap, size, place, key, tie, e, m):
    """Take item m out, which is in the heap."""
    at = place[e, m]
    place[e, m] = -1
    size[e] -= 1
    last = heap[e, size[e]]
    if last != m:
        place[e, last] = at
        settle(heap, size, place, key, tie, e, last)
