"""The event loop of pFabric's ideal: the smallest flow first, everywhere.

Of the flows between two ports only the smallest can send. Where all ports are alike a port serves one flow at a time,
and smallest first is the one matching of ports in which no flow is smaller than what both its ports serve; so an event
moves flows only around the ports that it freed. Flows are often of equal size, and who goes first among equals changes
much: there bytes and times are counted in whole steps, so that no rounding decides. Where ports differ the flows are
gone through in order at every event.
"""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.pairs import ENDED, Arrivals, arrive, end_first, fresh, record
from ecjax.coflow.rates import NOTHING
from ecjax.coflow.sorting import as_keys, stable_order
from ecjax.coflow.workload import Fabric, Workload
from ecjax.machine_code import copy_into, njit

_WHOLE_BITS = 50  # of the longest time: sums of whole steps below 2^53 are exact


class Matching(NamedTuple):
    """What each port serves, where ports are alike, and the ports that have to look for a flow."""

    pair: np.ndarray  # (S + D,) -1: none
    bytes: np.ndarray  # (S + D,) bytes left of the first flow of the pair served; inf: none
    flow: np.ndarray  # (S + D,) that flow
    loose: np.ndarray  # (S + D,) ports that have to look, a stack of ``number`` of them
    waits: np.ndarray  # (S + D,) whether a port is on it
    number: np.ndarray  # (1,)


@njit(inner=True)
def _hold(pairs, matching, pair):
    """Both ports of a pair serve it, or what it sends has changed."""
    size, flow = pairs.soonest[pairs.slot[pair]], pairs.flow[pairs.room[pair]]
    for p in (pairs.source[pair], pairs.target[pair]):
        matching.pair[p], matching.bytes[p], matching.flow[p] = pair, size, flow


@njit(inner=True)
def _stop(pairs, matching, pair):
    """Both ports of a pair serve nothing, and have to look for something."""
    pairs.rate[pairs.slot[pair]] = 0.0
    for p in (pairs.source[pair], pairs.target[pair]):
        matching.pair[p], matching.bytes[p] = -1, np.inf
        if not matching.waits[p]:
            matching.waits[p] = True
            matching.loose[matching.number[0]] = p
            matching.number[0] += 1


@njit(inner=True)
def _start(pairs, matching, pair):
    """A pair sends, instead of what its ports served."""
    for p in (pairs.source[pair], pairs.target[pair]):
        if matching.pair[p] >= 0:
            _stop(pairs, matching, matching.pair[p])
    _hold(pairs, matching, pair)
    pairs.rate[pairs.slot[pair]] = pairs.capacity[pairs.source[pair]]


@njit(inner=True)
def _serve(pairs, matching):
    """Every loose port takes the smallest flow that its other port would take too, if that is smaller than its own."""
    listed, partner, slot, soonest = pairs.listed, pairs.partner, pairs.slot, pairs.soonest
    flow, room, held_left, held_flow = pairs.flow, pairs.room, matching.bytes, matching.flow
    while matching.number[0] > 0:
        matching.number[0] -= 1
        p = matching.loose[matching.number[0]]
        matching.waits[p] = False
        best, least, first = -1, held_left[p], held_flow[p]
        for i in range(pairs.list_begin[p], pairs.list_begin[p] + pairs.degree[p]):
            size, q = soonest[slot[listed[i]]], partner[i]
            if size > least or size > held_left[q]:
                continue
            x = flow[room[listed[i]]]
            if (size == least and x >= first) or (size == held_left[q] and x >= held_flow[q]):
                continue
            best, least, first = listed[i], size, x
        if best >= 0:
            _start(pairs, matching, best)


@njit(inner=True)
def _offer(pairs, matching, pair):
    """A flow has joined a pair: it may be smaller than what the ports serve."""
    a, b = pairs.source[pair], pairs.target[pair]
    if matching.pair[a] == pair:
        _hold(pairs, matching, pair)
        return
    size, x = pairs.soonest[pairs.slot[pair]], pairs.flow[pairs.room[pair]]
    for p in (a, b):
        if size > matching.bytes[p] or (size == matching.bytes[p] and x > matching.flow[p]):
            return
    _start(pairs, matching, pair)
    _serve(pairs, matching)


@njit(inner=True)
def _in_order(pairs, free):
    """Ports that differ: flows in order get all that both ports have left."""
    count = pairs.active[0]
    size, flow = np.empty(count), np.empty(count, dtype=np.int64)
    for s in range(count):
        size[s] = pairs.soonest[s]
        flow[s] = pairs.flow[pairs.room[pairs.pair[s]]]
    by_flow = stable_order(as_keys(flow))
    copy_into(free, pairs.capacity)
    pairs.rate[:count] = 0.0
    for s in by_flow[stable_order(size[by_flow])]:
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


@njit()
def run(pairs, arrivals, rule, log):
    """Arguments and what is returned as in ``sharing.run``."""
    coflows, ports = len(arrivals.time), len(pairs.capacity)
    alike = pairs.capacity.min() == pairs.capacity.max()
    ended = 0.0 if alike else ENDED
    matching = Matching(
        pair=np.full(ports, -1),
        bytes=np.full(ports, np.inf),
        flow=np.zeros(ports, dtype=np.int64),
        loose=np.zeros(ports, dtype=np.int64),
        waits=np.zeros(ports, dtype=np.bool_),
        number=np.zeros(1, dtype=np.int64),
    )
    sending = np.zeros(len(pairs.source), dtype=np.int64)  # pairs with a rate
    free = np.zeros(ports)
    queued, selection = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    # plain 0 is a type of its own to Numba, which would compile all that it is passed to twice
    following, logged = np.int64(0), np.int64(0)
    now, events = 0.0, 0
    rate, soonest, size = pairs.rate, pairs.soonest, arrivals.size
    while following < coflows or pairs.active[0] > 0:
        count = 0
        if alike:
            for p in range(pairs.senders):
                if matching.pair[p] >= 0:
                    sending[count] = matching.pair[p]
                    count += 1
        else:
            _in_order(pairs, free)
            for s in range(pairs.active[0]):
                if rate[s] > 0.0:
                    sending[count] = pairs.pair[s]
                    count += 1
        span = np.inf
        for i in range(count):
            s = pairs.slot[sending[i]]
            span = min(span, soonest[s] / rate[s])
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
            if alike:
                matching.bytes[pairs.source[pair]] = soonest[s]
                matching.bytes[pairs.target[pair]] = soonest[s]
        for i in range(count):
            pair = sending[i]
            s = pairs.slot[pair]
            if soonest[s] <= ended * size[pairs.flow[pairs.room[pair]]]:
                if alike:
                    _stop(pairs, matching, pair)
                end_first(pairs, arrivals, pair, now)
        _serve(pairs, matching)
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, selection)
            if alike:
                for x in range(arrivals.first[following], arrivals.first[following + 1]):
                    _offer(pairs, matching, arrivals.pair[x])
            following += 1
        events += 1
    return events, logged
