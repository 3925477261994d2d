"""The event loop of pFabric's ideal: the smallest flow first, everywhere.

Of the flows between two ports only the smallest can send. Where all ports are alike a port serves one flow at a time, and smallest
first is the one matching of ports in which no flow is smaller than what both its ports serve; so an event moves flows only around
the ports that it freed. Where ports differ the flows are gone through in order at every event.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from ecjax.coflow.pairs import ENDED, arrive, end_first, record
from ecjax.coflow.rates import NOTHING


class Loose(NamedTuple):
    """Ports that have to look for a flow."""

    ports: np.ndarray  # a stack, the first ``count``
    waits: np.ndarray  # whether a port is on it, (S + D,)
    count: np.ndarray  # (1,)


@nb.njit(cache=True, nogil=True)
def _smaller(pairs, l, m):
    """Whether the first flow of pair l goes before that of pair m: fewer bytes left, then the earlier flow."""
    s, t = pairs.slot[l], pairs.slot[m]
    left, other = pairs.soonest[s] - pairs.clock[s], pairs.soonest[t] - pairs.clock[t]
    if left != other:
        return left < other
    return pairs.flow[pairs.room[l]] < pairs.flow[pairs.room[m]]


@nb.njit(cache=True, nogil=True)
def _stop(pairs, match, l):
    """Pair l no longer sends."""
    match[pairs.source[l]] = -1
    match[pairs.target[l]] = -1
    if pairs.slot[l] >= 0:
        pairs.rate[pairs.slot[l]] = 0.0


@nb.njit(cache=True, nogil=True)
def _free(loose, p):
    """Port p has to look for a flow."""
    if not loose.waits[p]:
        loose.waits[p] = True
        loose.ports[loose.count[0]] = p
        loose.count[0] += 1


@nb.njit(cache=True, nogil=True)
def _start(pairs, match, l, loose):
    """Pair l sends, instead of what its ports served, whose other ports have to look for something else."""
    a, b = pairs.source[l], pairs.target[l]
    for p in (a, b):
        m = match[p]
        if m >= 0:
            _stop(pairs, match, m)
            _free(loose, pairs.target[m] if p == a else pairs.source[m])
    match[a], match[b] = l, l
    pairs.rate[pairs.slot[l]] = pairs.capacity[a]


@nb.njit(cache=True, nogil=True)
def _serve(pairs, match, loose):
    """Every loose port takes the smallest flow that its other port would take too, if that is smaller than its own."""
    while loose.count[0] > 0:
        loose.count[0] -= 1
        p = loose.ports[loose.count[0]]
        loose.waits[p] = False
        own = match[p]
        best = own
        sending = p < pairs.senders
        for i in range(pairs.list_begin[p], pairs.list_begin[p] + pairs.degree[p]):
            l = pairs.listed[i]
            m = match[pairs.target[l] if sending else pairs.source[l]]
            if (m < 0 or _smaller(pairs, l, m)) and (best < 0 or _smaller(pairs, l, best)):
                best = l
        if best != own:
            _start(pairs, match, best, loose)


@nb.njit(cache=True, nogil=True)
def _in_order(pairs, match, free):
    """Ports that differ: flows in order get all that both ports have left; ``match`` marks source ports that send."""
    count = pairs.count[0]
    left, flow = np.empty(count), np.empty(count, dtype=np.int64)
    for s in range(count):
        left[s] = pairs.soonest[s] - pairs.clock[s]
        flow[s] = pairs.flow[pairs.room[pairs.pair[s]]]
    by_flow = np.argsort(flow)
    free[:] = pairs.capacity
    pairs.rate[:count] = 0.0
    for s in by_flow[np.argsort(left[by_flow], kind="mergesort")]:
        a, b = pairs.source[pairs.pair[s]], pairs.target[pairs.pair[s]]
        amount = min(free[a], free[b])
        if amount > 0.0:
            pairs.rate[s] = amount
            for p in (a, b):
                free[p] -= amount
                if free[p] < NOTHING * pairs.capacity[p]:
                    free[p] = 0.0


@nb.njit(cache=True, nogil=True)
def run(pairs, arrivals, rule, log):
    """Replay all coflows; arguments and what is returned as in ``sharing.run``."""
    coflows, ports = len(arrivals.time), len(pairs.capacity)
    alike = pairs.capacity.min() == pairs.capacity.max()
    match = np.full(ports, -1, dtype=np.int64)  # pair that each port serves, where ports are alike
    loose = Loose(np.zeros(ports, dtype=np.int64), np.zeros(ports, dtype=np.bool_), np.zeros(1, dtype=np.int64))
    sending = np.zeros(len(pairs.source), dtype=np.int64)  # pairs with a rate
    free = np.zeros(ports)
    queued, chosen = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    now, following, events, logged = 0.0, 0, 0, 0
    rate, soonest, size = pairs.rate, pairs.soonest, arrivals.size
    while following < coflows or pairs.count[0] > 0:
        count = 0
        if alike:
            for p in range(pairs.senders):
                if match[p] >= 0:
                    sending[count] = match[p]
                    count += 1
        else:
            _in_order(pairs, match, free)
            for s in range(pairs.count[0]):
                if rate[s] > 0.0:
                    sending[count] = pairs.pair[s]
                    count += 1
        span = np.inf
        for i in range(count):
            s = pairs.slot[sending[i]]
            span = min(span, (soonest[s]) / rate[s])
        until = now + span
        if following < coflows and arrivals.time[following] <= until:
            until = arrivals.time[following]
            span = until - now
        if len(log) > 0:
            logged = record(pairs, False, log, logged, now, until)
        now = until
        for i in range(count):
            l = sending[i]
            s = pairs.slot[l]
            step = rate[s] * span
            # only the first flow of a pair sends: the clock stands still, and what that flow waits for comes nearer
            pairs.reading[pairs.room[l]] -= step
            pairs.total[s] -= step
            soonest[s] -= step
        for i in range(count):
            l = sending[i]
            s = pairs.slot[l]
            if soonest[s] <= ENDED * size[pairs.flow[pairs.room[l]]]:
                _stop(pairs, match, l)
                if alike:
                    _free(loose, pairs.source[l])
                    _free(loose, pairs.target[l])
                end_first(pairs, arrivals, l, now)
        _serve(pairs, match, loose)
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, chosen)
            if alike:
                for x in range(arrivals.first[following], arrivals.first[following + 1]):
                    l = arrivals.pair[x]
                    a, b = match[pairs.source[l]], match[pairs.target[l]]
                    if a != l and (a < 0 or _smaller(pairs, l, a)) and (b < 0 or _smaller(pairs, l, b)):
                        _start(pairs, match, l, loose)
                        _serve(pairs, match, loose)
            following += 1
        events += 1
    return events, logged

