"""One port by itself: preemptive schedules of the coflows that use it, each released at its arrival.

Entries of a port are given in order of arrival. Compiled; helpers of the lower bounds.
"""

import numpy as np

from ecjax.machine_code import njit


@njit(inner=True)
def _push(key, item, size, new_key, new_item):
    """Add to a heap with its smallest key first."""
    at = size
    while at > 0 and key[(at - 1) // 2] > new_key:
        key[at], item[at] = key[(at - 1) // 2], item[(at - 1) // 2]
        at = (at - 1) // 2
    key[at], item[at] = new_key, new_item


@njit(inner=True)
def _pop(key, item, size):
    """Remove the first of a heap that had ``size`` items."""
    last_key, last_item = key[size - 1], item[size - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and key[child + 1] < key[child]:
            child += 1
        if key[child] >= last_key:
            break
        key[at], item[at] = key[child], item[child]
        at = child
    key[at], item[at] = last_key, last_item


@njit()
def shortest_remaining(arrival, load, flow_time):
    """Shortest remaining processing time first: the least sum of flow times (completion - arrival) on one port.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations Research 16
    (1968).

    Args:
        arrival: seconds, ascending, (n,).
        load: seconds, (n,).
        flow_time: filled, seconds, (n,).

    Returns:
        The sum.
    """
    count = len(arrival)
    remaining, item = np.empty(count), np.empty(count, np.int64)
    size, arrived, now, total = 0, 0, 0.0, 0.0
    while arrived < count or size > 0:
        if size == 0:
            now = arrival[arrived]
        while arrived < count and arrival[arrived] <= now:
            _push(remaining, item, size, load[arrived], arrived)
            size += 1
            arrived += 1
        until = arrival[arrived] if arrived < count else np.inf
        if remaining[0] <= until - now:
            now += remaining[0]
            flow_time[item[0]] = now - arrival[item[0]]
            total += flow_time[item[0]]
            _pop(remaining, item, size)
            size -= 1
        else:
            remaining[0] -= until - now  # stays the smallest
            now = until
    return total


@njit()
def mean_busy(arrival, load, weight, flow_time, start, end, served):
    """Largest weight per load first, preemptive: the least weighted sum of (mean busy time + load / 2) on one port.

    The mean busy time M is the average of the moments at which a coflow is served; it completes at M + load / 2 at the
    earliest, since the last moment of a service of that length and mean comes no sooner. So the sum returned is
    not above the weighted sum of flow times of any schedule.

    Goemans, Queyranne, Schulz, Skutella, Wang, "Single machine scheduling with release dates", SIAM Journal on Discrete
    Mathematics 15 (2002), Section 2.

    Args:
        arrival: seconds, ascending, (n,).
        load: seconds, above 0, (n,).
        weight: not negative, (n,).
        flow_time: filled with M + load / 2 - arrival, seconds, (n,).
        start: filled with when each piece of service begins, (2 n,).
        end: filled with when it ends, (2 n,).
        served: filled with whose it is, (2 n,).

    Returns:
        The weighted sum, and the number of pieces.
    """
    count = len(arrival)
    key, item, remaining = np.empty(count), np.empty(count, np.int64), load.copy()
    size, arrived, now, total, pieces = 0, 0, 0.0, 0.0, 0
    for j in range(count):
        flow_time[j] = load[j] / 2
    while arrived < count or size > 0:
        if size == 0:
            now = arrival[arrived]
        while arrived < count and arrival[arrived] <= now:
            _push(key, item, size, -weight[arrived] / load[arrived], arrived)
            size += 1
            arrived += 1
        until = arrival[arrived] if arrived < count else np.inf
        j = item[0]
        complete = remaining[j] <= until - now
        length = remaining[j] if complete else until - now
        start[pieces], end[pieces], served[pieces] = now, now + length, j
        pieces += 1
        # relative to the arrival: nothing is lost to large times
        flow_time[j] += length / load[j] * (now - arrival[j] + length / 2)
        remaining[j] -= length
        if complete:
            now += length
            _pop(key, item, size)
            size -= 1
        else:
            now = until
    for j in range(count):
        total += weight[j] * flow_time[j]
    return total, pieces
