"""Schedulers that share ports between coflows by what they have sent: Aalo and Baraat."""

import numpy as np

from ecjax.coflow.rates import backfill, share, sort_active
from ecjax.coflow.state import ACTIVE, SERVED
from ecjax.machine_code import copy_into, njit

QUEUES = 10
FIRST_LIMIT, FACTOR = 10e6, 10.0  # bytes; Aalo's defaults (Chowdhury and Stoica, SIGCOMM 2015)
_AT_LIMIT = 1 - 1e-9


@njit(inner=True)
def sent(state, c):
    """Bytes that a coflow has sent."""
    rest = 0.0
    use = state.first_use[c]
    for q in range(use, use + state.sources[c]):
        rest += state.load[q]
    return state.total[c] - rest * state.scale[c]


@njit(inner=True)
def _speeds(state, speed):
    """Bytes/s at which every coflow sends, (C,)."""
    for i in range(state.counts[ACTIVE]):
        c = state.active[i]
        speed[c] = 0.0
        use = state.first_use[c]
        for q in range(use, use + state.sources[c]):
            speed[c] += state.spent[q]
    for i in range(state.counts[SERVED]):
        x = state.served[i]
        speed[state.coflow[x]] += state.rate[x]


@njit(inner=True)
def aalo(state, count, speed, now):
    """Rates of Aalo; returns the time until a coflow moves to the next queue, s."""
    active, key, free, capacity = state.active, state.key, state.free, state.capacity
    zeros, over = np.zeros_like(free), np.zeros_like(free)
    changed = np.zeros(len(free), dtype=np.int64)
    members = np.zeros(QUEUES, dtype=np.int64)
    for i in range(count):
        c = active[i]
        queue, limit, bytes_sent = 0, FIRST_LIMIT, sent(state, c)
        while queue < QUEUES - 1 and bytes_sent >= limit * _AT_LIMIT:
            queue += 1
            limit *= FACTOR
        key[c] = queue
        members[queue] += 1
    sort_active(state, count)
    weights = 0
    for queue in range(QUEUES):
        if members[queue] > 0:
            weights += QUEUES - queue
    first = 0
    for queue in range(QUEUES):
        if members[queue] == 0:
            continue
        copy_into(free, capacity * ((QUEUES - queue) / weights))
        for i in range(first, first + members[queue]):
            share(state, active[i : i + 1], zeros, changed, now)
        over += free
        first += members[queue]
    copy_into(free, over)
    backfill(state, count)
    soonest = np.inf
    _speeds(state, speed)
    for i in range(count):
        c = active[i]
        if key[c] < QUEUES - 1 and speed[c] > 0.0:
            soonest = min(soonest, (FIRST_LIMIT * FACTOR ** key[c] - sent(state, c)) / speed[c])
    return soonest


@njit(inner=True)
def baraat(state, count, heavy_bytes, speed, now):
    """Rates of Baraat's FIFO with limited multiplexing; returns the time until a coflow becomes heavy, s."""
    active = state.active
    zeros = np.zeros_like(state.free)
    changed = np.zeros(len(zeros), dtype=np.int64)
    for i in range(count):
        state.key[active[i]] = active[i]
    sort_active(state, count)
    i = 0
    while i < count:
        j = i
        while j < count - 1 and sent(state, active[j]) >= heavy_bytes * _AT_LIMIT:
            j += 1
        share(state, active[i : j + 1], zeros, changed, now)
        i = j + 1
    backfill(state, count)
    soonest = np.inf
    _speeds(state, speed)
    for i in range(count):
        c = active[i]
        bytes_sent = sent(state, c)
        if bytes_sent < heavy_bytes * _AT_LIMIT and speed[c] > 0.0:
            soonest = min(soonest, (heavy_bytes - bytes_sent) / speed[c])
    return soonest
