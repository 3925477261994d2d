"""Which of many times is the soonest: a tournament of the nodes' next events, and a heap of the requests' due times."""

from ecjax.machine_code import njit


@njit(inline="always")
def set_time(tree, leaf, time):
    """Set one time of a tournament; ``tree`` (2 p,): the times are tree[p:], the soonest of all is tree[1]."""
    place = (tree.size >> 1) + leaf
    tree[place] = time
    while place > 1:
        time = min(time, tree[place ^ 1])
        place >>= 1
        tree[place] = time


@njit(inline="always")
def soonest_leaf(tree):
    """The lowest number whose time is the soonest."""
    half = tree.size >> 1
    place = 1
    while place < half:
        place <<= 1
        place += tree[place] != tree[1]
    return place - half


@njit(inner=True)
def due_set(heap, places, times, count, slot, time):
    """Set or lower the due time of a slot; returns how many are in the heap.

    Args:
        heap: (S,) int32, slots; the first is due first, of those due at once the lowest.
        places: (S,) int32, where a slot is in the heap; -1: it is not.
        times: (S,) s, due times of those in the heap.
        count: how many are in it.
        slot: which.
        time: s; not later than before.
    """
    times[slot] = time
    place = places[slot]
    if place < 0:
        place = count
        count += 1
    while place > 0:
        above = (place - 1) >> 1
        other = heap[above]
        if times[other] < time or (times[other] == time and other < slot):
            break
        heap[place] = other
        places[other] = place
        place = above
    heap[place] = slot
    places[slot] = place
    return count


@njit(inner=True)
def due_pop(heap, places, times, count):
    """Take out the first; returns how many are left."""
    places[heap[0]] = -1
    count -= 1
    if count == 0:
        return 0
    slot = heap[count]
    time = times[slot]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count:
            left, right = heap[below], heap[below + 1]
            if times[right] < times[left] or (times[right] == times[left] and right < left):
                below += 1
        other = heap[below]
        if time < times[other] or (time == times[other] and slot < other):
            break
        heap[place] = other
        places[other] = place
        place = below
    heap[place] = slot
    places[slot] = place
    return count
