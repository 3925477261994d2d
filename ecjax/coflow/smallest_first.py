"""The event loop of pFabric's ideal: the smallest flow first, everywhere.

Of the flows between two ports only the smallest can send. Where all ports are alike a port serves one flow at a time,
and smallest first is the one matching of ports in which no flow is smaller than what both its ports serve; so an event
moves flows only around the ports that it freed. Flows are often of equal size, and who goes first among equals changes
much: there bytes and times are counted in whole steps, so that no rounding decides. Where ports differ the flows are
gone through in order at every event.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from ecjax.coflow.pairs import ENDED, Arrivals, arrive, end_first, fresh, record
from ecjax.coflow.rates import NOTHING
from ecjax.coflow.workload import Fabric, Workload

_WHOLE_BITS = 50  # of the longest time: sums of whole steps below 2^53 are exact


class Loose(NamedTuple):
    """Ports that have to look for a flow."""

    ports: np.ndarray  # a stack, the first ``number``
    waits: np.ndarray  # whether a port is on it, (S + D,)
    number: np.ndarray  # (1,)


@nb.njit(cache=True, nogil=True)
def _smaller(pairs, pair, m):
    """Whether the first flow of a pair goes before that of pair m: fewer bytes left, then the earlier flow."""
    s, t = pairs.slot[pair], pairs.slot[m]
    left, other = pairs.soonest[s] - pairs.clock[s], pairs.soonest[t] - pairs.clock[t]
    if left != other:
        return left < other
    return pairs.flow[pairs.room[pair]] < pairs.flow[pairs.room[m]]


@nb.njit(cache=True, nogil=True)
def _stop(pairs, match, pair):
    """Pair pair no longer sends."""
    match[pairs.source[pair]] = -1
    match[pairs.target[pair]] = -1
    if pairs.slot[pair] >= 0:
        pairs.rate[pairs.slot[pair]] = 0.0


@nb.njit(cache=True, nogil=True)
def _free(loose, p):
    """Port p has to look for a flow."""
    if not loose.waits[p]:
        loose.waits[p] = True
        loose.ports[loose.number[0]] = p
        loose.number[0] += 1


@nb.njit(cache=True, nogil=True)
def _start(pairs, match, pair, loose):
    """Pair pair sends, instead of what its ports served, whose other ports have to look for something else."""
    a, b = pairs.source[pair], pairs.target[pair]
    for p in (a, b):
        m = match[p]
        if m >= 0:
            _stop(pairs, match, m)
            _free(loose, pairs.target[m] if p == a else pairs.source[m])
    match[a], match[b] = pair, pair
    pairs.rate[pairs.slot[pair]] = pairs.capacity[a]


@nb.njit(cache=True, nogil=True)
def _serve(pairs, match, loose):
    """Every loose port takes the smallest flow that its other port would take too, if that is smaller than its own."""
    while loose.number[0] > 0:
        loose.number[0] -= 1
        p = loose.ports[loose.number[0]]
        loose.waits[p] = False
        own = match[p]
        best = own
        sending = p < pairs.senders
        for i in range(pairs.list_begin[p], pairs.list_begin[p] + pairs.degree[p]):
            pair = pairs.listed[i]
            m = match[pairs.target[pair] if sending else pairs.source[pair]]
            if (m < 0 or _smaller(pairs, pair, m)) and (best < 0 or _smaller(pairs, pair, best)):
                best = pair
        if best != own:
            _start(pairs, match, best, loose)


@nb.njit(cache=True, nogil=True)
def _in_order(pairs, match, free):
    """Ports that differ: flows in order get all that both ports have left; ``match`` marks source ports that send."""
    count = pairs.active[0]
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


def replay(
    workload: Workload, fabric: Fabric, candidate: np.ndarray, rule: int, log: np.ndarray
) -> tuple[Arrivals, int, int]:
    """Replay all coflows.

    Args:
        workload: coflows.
        fabric: ports.
        candidate: the candidates of each coflow in random order, (N,).
        rule: of source selection.
        log: out, as of ``sharing.run``.

    Returns:
        What became of the coflows, events, and rows of the log that were needed.
    """
    ports = np.concatenate([fabric.send, fabric.receive])
    if ports.min() < ports.max():
        pairs, arrivals = fresh(workload, fabric, candidate)
        return arrivals, *run(pairs, arrivals, rule, log)
    capacity = float(ports[0])
    longest = workload.arrival_s[-1] * capacity + workload.bytes.sum()
    step = 2.0 ** np.floor(np.log2(longest) - _WHOLE_BITS)  # bytes; a port sends one in a step of time
    whole = workload._replace(
        arrival_s=np.rint(workload.arrival_s * (capacity / step)),
        bytes=np.maximum(np.rint(workload.bytes / step), 1.0),
    )
    ones = Fabric(np.ones_like(fabric.send, dtype=float), np.ones_like(fabric.receive, dtype=float))
    pairs, arrivals = fresh(whole, ones, candidate)
    events, needed = run(pairs, arrivals, rule, log)
    seconds = step / capacity
    arrivals.finish[:] *= seconds
    arrivals.completion[:] *= seconds
    log[:needed, :2] *= seconds
    log[:needed, 3] *= capacity
    return arrivals, events, needed


@nb.njit(cache=True, nogil=True)
def run(pairs, arrivals, rule, log):
    """Arguments and what is returned as in ``sharing.run``."""
    coflows, ports = len(arrivals.time), len(pairs.capacity)
    alike = pairs.capacity.min() == pairs.capacity.max()
    ended = 0.0 if alike else ENDED
    match = np.full(ports, -1, dtype=np.int64)  # pair that each port serves, where ports are alike
    loose = Loose(
        np.zeros(ports, dtype=np.int64), np.zeros(ports, dtype=np.bool_), np.zeros(1, dtype=np.int64)
    )
    sending = np.zeros(len(pairs.source), dtype=np.int64)  # pairs with a rate
    free = np.zeros(ports)
    queued, chosen = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    # plain 0 is a type of its own to Numba, which would compile all that it is passed to twice
    following, logged = np.int64(0), np.int64(0)
    now, events = 0.0, 0
    rate, soonest, size = pairs.rate, pairs.soonest, arrivals.size
    while following < coflows or pairs.active[0] > 0:
        count = 0
        if alike:
            for p in range(pairs.senders):
                if match[p] >= 0:
                    sending[count] = match[p]
                    count += 1
        else:
            _in_order(pairs, match, free)
            for s in range(pairs.active[0]):
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
            pair = sending[i]
            s = pairs.slot[pair]
            step = rate[s] * span
            # only the first flow of a pair sends: the clock stands still, and what that flow waits for comes nearer
            pairs.reading[pairs.room[pair]] -= step
            pairs.total[s] -= step
            soonest[s] -= step
        for i in range(count):
            pair = sending[i]
            s = pairs.slot[pair]
            if soonest[s] <= ended * size[pairs.flow[pairs.room[pair]]]:
                _stop(pairs, match, pair)
                if alike:
                    _free(loose, pairs.source[pair])
                    _free(loose, pairs.target[pair])
                end_first(pairs, arrivals, pair, now)
        _serve(pairs, match, loose)
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, chosen)
            if alike:
                for x in range(arrivals.first[following], arrivals.first[following + 1]):
                    pair = arrivals.pair[x]
                    a, b = match[pairs.source[pair]], match[pairs.target[pair]]
                    if (
                        a != pair
                        and (a < 0 or _smaller(pairs, pair, a))
                        and (b < 0 or _smaller(pairs, pair, b))
                    ):
                        _start(pairs, match, pair, loose)
                        _serve(pairs, match, loose)
            following += 1
        events += 1
    return events, logged
