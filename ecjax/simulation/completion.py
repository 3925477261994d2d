"""When a request is complete, from the times at which its chunks are there."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.streams import streams


@njit(inline="always")
def connection(connect, node, state):
    """Connection delay of one access, s: gamma, or constant."""
    shape = connect[0, node]
    delay = connect[1, node]
    if shape > 0.0:
        delay *= streams.gamma(state, shape)
    return delay


@njit(inner=True)
def smallest(values, count, k):
    """The k-th smallest of the first ``count`` values, k >= 1; reorders them (insertion sort: there are few)."""
    for i in range(1, count):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    return values[k - 1]


@njit(inner=True)
def through_link(ready, count, need, link_s):
    """When the ``need``-th chunk has passed the client's link, which takes chunks one by one as they come.

    Args:
        ready: (count,) times at which chunks reach the link, in any order; reordered.
        count: how many.
        need: how many complete the request.
        link_s: s, time of one chunk on the link.
    """
    smallest(ready, count, need)
    free = -np.inf
    for i in range(need):
        free = max(free, ready[i]) + link_s
    return free
