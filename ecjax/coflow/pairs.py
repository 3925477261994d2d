"""What the engine of flow-level schedulers knows: flows by their pair of ports.

Under max-min or equal shares all flows between two ports have one rate, whatever coflow they belong to; under
smallest-first only one of them sends. So a pair of ports has a clock (bytes that each of its flows has sent since the
pair was made) and a heap of the flows' readings of it at which they end.
"""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.sources import choose
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, Workload
from ecjax.machine_code import njit

ENDED = 1e-10  # of its size: a flow with less left has ended


class Pairs(NamedTuple):
    """F flows, N candidates, L different pairs of ports, of which some are active: they have the slots 0, 1, ..."""

    capacity: np.ndarray  # (S + D,) bytes/s
    senders: int  # S
    # pairs
    source: np.ndarray  # (L,) sending port
    target: np.ndarray  # (L,) receiving port, counted after the sending ones
    room: np.ndarray  # (L + 1,) where the heap of each begins
    flows: np.ndarray  # (L,) flows present
    slot: np.ndarray  # (L,) -1: not active
    # heaps: what the clock reads when a flow ends, and which flow it is
    reading: np.ndarray
    flow: np.ndarray
    # slots
    pair: np.ndarray  # (L,)
    sender: np.ndarray  # (L,) ports of the pair
    receiver: np.ndarray  # (L,)
    clock: np.ndarray  # (L,) bytes
    soonest: np.ndarray  # (L,) reading of the first flow to end
    rate: np.ndarray  # (L,) bytes/s of the clock
    total: np.ndarray  # (L,) sum of the readings of the flows present
    # ports: their active pairs, and where a pair stands in the lists of its two ports
    list_begin: np.ndarray  # (S + D + 1,)
    listed: np.ndarray  # (2 L,) pairs
    partner: np.ndarray  # (2 L,) their other port
    flows_with: np.ndarray  # (2 L,) their flows
    degree: np.ndarray  # (S + D,)
    at_source: np.ndarray  # (L,)
    at_target: np.ndarray  # (L,)
    present: np.ndarray  # (S + D,) flows at each port
    active: np.ndarray  # (1,) active pairs


class Arrivals(NamedTuple):
    """Coflows to come, and what becomes of them."""

    time: np.ndarray  # (C,) s
    first: np.ndarray  # (C + 1,) their flows
    size: np.ndarray  # (F,) bytes
    pair: np.ndarray  # (F,) pair of each flow; -1 until its source is chosen
    source: np.ndarray  # (F,) the server chosen
    first_candidate: np.ndarray  # (C + 1,)
    candidate: np.ndarray  # (N,) in random order
    candidate_pair: np.ndarray  # (N,) pair of each with the client
    coflow: np.ndarray  # (F,)
    open_flows: np.ndarray  # (C,) flows that have not ended
    finish: np.ndarray  # (F,) time when each ended, s
    completion: np.ndarray  # (C,) time when the last of each ended, s


def fresh(workload: Workload, fabric: Fabric, candidate: np.ndarray) -> tuple[Pairs, Arrivals]:
    """Nothing active, all to come.

    Args:
        workload: coflows.
        fabric: ports.
        candidate: the candidates of each coflow in random order, (N,).
    """
    senders, receivers = len(fabric.send), len(fabric.receive)
    later = workload.source == CHOSEN_LATER
    of_flow = workload.source * receivers + workload.destination
    reads = np.diff(workload.first_candidate)
    client = workload.destination[workload.first_flow[:-1]] if len(reads) else workload.destination
    of_candidate = candidate * receivers + np.repeat(client, reads)
    distinct, inverse, uses = np.unique(
        np.concatenate([of_flow[~later], of_candidate]), return_inverse=True, return_counts=True
    )
    fixed = int((~later).sum())
    flow_pair = np.full(len(later), -1, dtype=np.int64)
    flow_pair[~later] = inverse[:fixed]
    count = len(distinct)
    source, target = distinct // receivers, distinct % receivers + senders
    ports = np.concatenate([source, target])
    begin = np.concatenate([[0], np.cumsum(np.bincount(ports, minlength=senders + receivers))])

    def wholes(size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)

    room = np.concatenate([[0], np.cumsum(uses)]).astype(np.int64)
    pairs = Pairs(
        capacity=np.concatenate([fabric.send, fabric.receive]).astype(float),
        senders=senders,
        source=source.astype(np.int64),
        target=target.astype(np.int64),
        room=room,
        flows=wholes(count),
        slot=np.full(count, -1, dtype=np.int64),
        reading=np.zeros(int(room[-1])),
        flow=wholes(int(room[-1])),
        pair=wholes(count),
        sender=wholes(count),
        receiver=wholes(count),
        clock=np.zeros(count),
        soonest=np.zeros(count),
        rate=np.zeros(count),
        total=np.zeros(count),
        list_begin=begin.astype(np.int64),
        listed=wholes(2 * count),
        partner=wholes(2 * count),
        flows_with=np.zeros(2 * count),
        degree=wholes(senders + receivers),
        at_source=wholes(count),
        at_target=wholes(count),
        present=wholes(senders + receivers),
        active=wholes(1),
    )
    arrivals = Arrivals(
        time=workload.arrival_s.astype(float),
        first=workload.first_flow.astype(np.int64),
        size=workload.bytes.astype(float),
        pair=flow_pair,
        source=workload.source.astype(np.int64),
        first_candidate=workload.first_candidate.astype(np.int64),
        candidate=candidate.astype(np.int64),
        candidate_pair=inverse[fixed:].astype(np.int64),
        coflow=workload.coflow_of_flow,
        open_flows=workload.width.astype(np.int64),
        finish=np.zeros(len(later)),
        completion=np.zeros(len(reads)),
    )
    return pairs, arrivals


@njit(inner=True, error_model="numpy")
def _before(reading, flow, i, j):
    return reading[i] < reading[j] or (reading[i] == reading[j] and flow[i] < flow[j])


@njit(inner=True, error_model="numpy")
def _swap(reading, flow, i, j):
    reading[i], reading[j] = reading[j], reading[i]
    flow[i], flow[j] = flow[j], flow[i]


@njit(inner=True, error_model="numpy")
def add(pairs, pair, x, size):
    """Flow x of ``size`` bytes joins a pair."""
    if pairs.slot[pair] < 0:
        s = pairs.active[0]
        pairs.active[0] += 1
        pairs.slot[pair], pairs.pair[s] = s, pair
        pairs.sender[s], pairs.receiver[s] = pairs.source[pair], pairs.target[pair]
        pairs.clock[s], pairs.total[s], pairs.rate[s] = 0.0, 0.0, 0.0
        for port, place in ((pairs.source[pair], pairs.at_source), (pairs.target[pair], pairs.at_target)):
            place[pair] = pairs.list_begin[port] + pairs.degree[port]
            pairs.listed[place[pair]] = pair
            pairs.partner[place[pair]] = pairs.source[pair] + pairs.target[pair] - port
            pairs.flows_with[place[pair]] = 0.0
            pairs.degree[port] += 1
    s = pairs.slot[pair]
    reading, flow, base = pairs.reading, pairs.flow, pairs.room[pair]
    i = pairs.flows[pair]
    pairs.flows[pair] += 1
    reading[base + i], flow[base + i] = pairs.clock[s] + size, x
    pairs.total[s] += reading[base + i]
    while i > 0 and _before(reading, flow, base + i, base + (i - 1) // 2):
        _swap(reading, flow, base + i, base + (i - 1) // 2)
        i = (i - 1) // 2
    pairs.soonest[s] = reading[base]
    pairs.flows_with[pairs.at_source[pair]] += 1.0
    pairs.flows_with[pairs.at_target[pair]] += 1.0
    pairs.present[pairs.source[pair]] += 1
    pairs.present[pairs.target[pair]] += 1


@njit(inner=True, error_model="numpy")
def sink(pairs, pair):
    """Put the first flow of the heap of a pair in its place."""
    reading, flow, base, count = pairs.reading, pairs.flow, pairs.room[pair], pairs.flows[pair]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            return
        if child + 1 < count and _before(reading, flow, base + child + 1, base + child):
            child += 1
        if not _before(reading, flow, base + child, base + i):
            return
        _swap(reading, flow, base + i, base + child)
        i = child


@njit(inner=True, error_model="numpy")
def remove_first(pairs, pair):
    """The first flow of a pair ends; returns it. A pair without flows gives up its slot."""
    reading, flow, base = pairs.reading, pairs.flow, pairs.room[pair]
    s = pairs.slot[pair]
    x = flow[base]
    pairs.total[s] -= reading[base]
    pairs.flows[pair] -= 1
    count = pairs.flows[pair]
    reading[base], flow[base] = reading[base + count], flow[base + count]
    pairs.flows_with[pairs.at_source[pair]] -= 1.0
    pairs.flows_with[pairs.at_target[pair]] -= 1.0
    pairs.present[pairs.source[pair]] -= 1
    pairs.present[pairs.target[pair]] -= 1
    if count > 0:
        sink(pairs, pair)
        pairs.soonest[s] = reading[base]
        return x
    for port, place, source in (
        (pairs.source[pair], pairs.at_source, True),
        (pairs.target[pair], pairs.at_target, False),
    ):
        pairs.degree[port] -= 1
        end = pairs.list_begin[port] + pairs.degree[port]
        other = pairs.listed[end]
        pairs.listed[place[pair]] = other
        pairs.partner[place[pair]], pairs.flows_with[place[pair]] = pairs.partner[end], pairs.flows_with[end]
        if source:
            pairs.at_source[other] = place[pair]
        else:
            pairs.at_target[other] = place[pair]
    pairs.active[0] -= 1
    final = pairs.active[0]
    moved = pairs.pair[final]
    pairs.pair[s], pairs.slot[moved] = moved, s
    pairs.sender[s], pairs.receiver[s] = pairs.sender[final], pairs.receiver[final]
    pairs.clock[s], pairs.soonest[s] = pairs.clock[final], pairs.soonest[final]
    pairs.rate[s], pairs.total[s] = pairs.rate[final], pairs.total[final]
    pairs.slot[pair] = -1
    return x


@njit(inner=True, error_model="numpy")
def _queued(pairs, port):
    """Bytes that a sending port has yet to send."""
    bytes_left = 0.0
    for i in range(pairs.list_begin[port], pairs.list_begin[port] + pairs.degree[port]):
        pair = pairs.listed[i]
        s = pairs.slot[pair]
        bytes_left += pairs.total[s] - pairs.flows[pair] * pairs.clock[s]
    return bytes_left


@njit(inner=True, error_model="numpy")
def arrive(pairs, arrivals, c, rule, queued, selection):
    """Coflow c arrives: sources are chosen where they are free, and its flows join their pairs.

    Args:
        pairs: the state.
        arrivals: the coflows.
        c: coflow.
        rule: of source selection.
        queued: work array, (S,).
        selection: work array, (S,).
    """
    first, last = arrivals.first[c], arrivals.first[c + 1]
    begin, end = arrivals.first_candidate[c], arrivals.first_candidate[c + 1]
    if end > begin:
        candidates = arrivals.candidate[begin:end]
        for port in candidates:
            queued[port] = _queued(pairs, port)
        choose(candidates, last - first, rule, queued, arrivals.size[first], pairs.capacity, selection)
        for i in range(last - first):
            arrivals.pair[first + i] = arrivals.candidate_pair[begin + selection[i]]
            arrivals.source[first + i] = candidates[selection[i]]
    for x in range(first, last):
        add(pairs, arrivals.pair[x], x, arrivals.size[x])


@njit(inner=True, error_model="numpy")
def end_first(pairs, arrivals, pair, now):
    """The first flow of a pair ends; returns whether the pair has more."""
    more = pairs.flows[pair] > 1
    x = remove_first(pairs, pair)
    c = arrivals.coflow[x]
    arrivals.finish[x] = now
    arrivals.open_flows[c] -= 1
    if arrivals.open_flows[c] == 0:
        arrivals.completion[c] = now
    return more


@njit(inner=True, error_model="numpy")
def record(pairs, shared, log, used, start, end):
    """Append the rates of an interval to the log while it has room; returns how much of it is needed.

    ``shared``: all flows of a pair have its rate; else only the first one.
    """
    for s in range(pairs.active[0]):
        if pairs.rate[s] <= 0.0:
            continue
        pair = pairs.pair[s]
        for i in range(pairs.flows[pair] if shared else 1):
            if used < len(log):
                log[used, 0], log[used, 1] = start, end
                log[used, 2], log[used, 3] = pairs.flow[pairs.room[pair] + i], pairs.rate[s]
            used += 1
    return used
