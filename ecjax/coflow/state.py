"""What the coflow engine knows: ports, active coflows, their flows; and how a coflow enters it.

Flows are kept in the order (coflow, source, destination, place in the workload). Every coflow has its own list of the
ports it uses, sources first, ascending; q counts all of them. Remaining bytes of a flow are scale[coflow] * rest: flows
that shrink in proportion, as under MADD, cost one multiplication for the whole coflow.
"""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.bits import ONE, ZERO
from ecjax.coflow.lasting import left
from ecjax.coflow.sorting import as_keys, stable_order
from ecjax.coflow.workload import Fabric, Workload
from ecjax.machine_code import copy_into, njit


class State(NamedTuple):
    """C coflows, F flows, S + D ports (receiving ones after sending ones), Q uses of a port by a coflow."""

    capacity: np.ndarray  # (S + D,) bytes/s
    free: np.ndarray  # (S + D,) bytes/s left over while rates are given out
    senders: int  # S
    # flows
    size: np.ndarray  # (F,) bytes
    rest: np.ndarray  # (F,) remaining bytes / scale of the coflow; 0: ended
    rate: np.ndarray  # (F,) bytes/s beside the drain of the coflow and the lasting rate
    base: np.ndarray  # (F,) lasting rate, bytes/s: see ``lasting``; without one ``rest`` is up to date
    since: np.ndarray  # (F,) s, the moment of ``rest`` where there is a lasting rate
    until: np.ndarray  # (F,) s, when it ends by its lasting rate; inf: none
    source: np.ndarray  # (F,) sending port
    target: np.ndarray  # (F,) receiving port, counted after the sending ones
    coflow: np.ndarray  # (F,)
    at_source: np.ndarray  # (F,) use q of the sending port
    at_target: np.ndarray  # (F,) use q of the receiving port
    by_target: np.ndarray  # (F,) the flows of a coflow in the order of their targets
    served: np.ndarray  # (F,) flows with a rate, the first ``counts[SERVED]``
    # coflows
    first: np.ndarray  # (C + 1,) their flows
    first_use: np.ndarray  # (C + 1,) room for their uses of ports
    first_word: np.ndarray  # (C + 1,) room for their words of bits
    sources: np.ndarray  # (C,) sending ports used
    targets: np.ndarray  # (C,) receiving ports used
    open_flows: np.ndarray  # (C,) flows that have not ended
    scale: np.ndarray  # (C,)
    drain: np.ndarray  # (C,) s until MADD's rates end the coflow; inf: it has none
    pace: np.ndarray  # (C,) s, by which sizes are divided for lasting rates by MADD; inf: it has none
    key: np.ndarray  # (C,) place in the order of the scheduler: smallest first
    total: np.ndarray  # (C,) bytes
    active: np.ndarray  # (C,) coflows present in the order of the scheduler, the first ``counts[ACTIVE]``
    # uses of ports
    port: np.ndarray  # (Q,)
    load: np.ndarray  # (Q,) remaining bytes / scale
    full: np.ndarray  # (Q,) bytes of the flows that have not ended, sent or not
    flows: np.ndarray  # (Q,) flows that have not ended
    begin: np.ndarray  # (Q,) its flows: of a source in the order of flows, of a target in by_target
    end: np.ndarray  # (Q,)
    level: np.ndarray  # (Q,) bytes/s that Share offers to each of its flows
    spent: np.ndarray  # (Q,) bytes/s, lasting rates of its flows
    row_end: np.ndarray  # (Q,) s, of a source: none of its flows ends earlier by its lasting rate
    slowest: np.ndarray  # (Q,) s, of a source: none of its flows takes longer from its first byte on
    stale: np.ndarray  # (Q,) of a source: whether all its flows may end later than ``row_end``
    # bits of coflow c, source a, target b: whether flows between them have not ended
    word: np.ndarray  # (W,) uint64
    mask: np.ndarray  # words of the widest coflow: its targets with free ports
    counts: np.ndarray  # (2,) ACTIVE, SERVED
    local: np.ndarray  # (S + D,) work array


ACTIVE, SERVED = 0, 1


def fresh(workload: Workload, fabric: Fabric) -> tuple[State, np.ndarray]:
    """A state before the first arrival, and the flow of the workload that each of its flows is, (F,)."""
    ports = np.concatenate([fabric.send, fabric.receive]).astype(float)
    senders, receivers = len(fabric.send), len(fabric.receive)
    coflow = workload.coflow_of_flow
    flow = np.lexsort((workload.destination, workload.source, coflow))
    width = workload.width
    most_sources, most_targets = np.minimum(width, senders), np.minimum(width, receivers)
    words = -(-most_targets // 64)
    first_use = np.concatenate([[0], np.cumsum(most_sources + most_targets)])
    first_word = np.concatenate([[0], np.cumsum(most_sources * words)])
    coflows, flows, uses = len(width), len(flow), int(first_use[-1])

    def floats(count: int) -> np.ndarray:
        return np.zeros(count)

    def wholes(count: int) -> np.ndarray:
        return np.zeros(count, dtype=np.int64)

    state = State(
        capacity=ports,
        free=floats(len(ports)),
        senders=senders,
        size=workload.bytes[flow].astype(float),
        rest=floats(flows),
        rate=floats(flows),
        base=floats(flows),
        since=floats(flows),
        until=np.full(flows, np.inf),
        source=workload.source[flow].astype(np.int64),
        target=workload.destination[flow].astype(np.int64) + senders,
        coflow=coflow,
        at_source=wholes(flows),
        at_target=wholes(flows),
        by_target=wholes(flows),
        served=wholes(flows),
        first=workload.first_flow.astype(np.int64),
        first_use=first_use,
        first_word=first_word,
        sources=wholes(coflows),
        targets=wholes(coflows),
        open_flows=wholes(coflows),
        scale=np.ones(coflows),
        drain=np.full(coflows, np.inf),
        pace=np.full(coflows, np.inf),
        key=floats(coflows),
        total=workload.coflow_bytes.astype(float),
        active=wholes(coflows),
        port=wholes(uses),
        load=floats(uses),
        full=floats(uses),
        flows=wholes(uses),
        begin=wholes(uses),
        end=wholes(uses),
        level=floats(uses),
        spent=floats(uses),
        row_end=np.full(uses, np.inf),
        slowest=floats(uses),
        stale=np.zeros(uses, dtype=np.bool_),
        word=np.zeros(int(first_word[-1]), dtype=np.uint64),
        mask=np.zeros(int(words.max(initial=1)), dtype=np.uint64),
        counts=wholes(2),
        local=np.full(len(ports), -1, dtype=np.int64),
    )
    return state, flow


@njit(inner=True)
def admit(state, c):
    """A coflow arrives (or changes its sources): lists of its ports, with loads, from its flows with bytes left."""
    first, last, use = state.first[c], state.first[c + 1], state.first_use[c]
    source, target, rest, size, local = state.source, state.target, state.rest, state.size, state.local
    port, load, full, flows = state.port, state.load, state.full, state.flows
    begin, end, at_source, at_target = state.begin, state.end, state.at_source, state.at_target
    q = use - 1
    for x in range(first, last):
        if x == first or source[x] != source[x - 1]:
            q += 1
            port[q], begin[q], load[q], full[q], flows[q] = source[x], x, 0.0, 0.0, 0
        at_source[x], end[q] = q, x + 1
    sources = q + 1 - use
    for x in range(first, last):
        if local[target[x]] < 0:
            q += 1
            port[q] = target[x]
            local[target[x]] = 0
    targets = q + 1 - use - sources
    ports = port[use + sources : q + 1]
    copy_into(ports, ports[stable_order(as_keys(ports))])
    for b in range(use + sources, q + 1):
        local[port[b]] = b
        load[b], full[b], flows[b], end[b] = 0.0, 0.0, 0, 0
    for x in range(first, last):
        at_target[x] = local[target[x]]
        end[at_target[x]] += 1
    place = first
    for b in range(use + sources, q + 1):
        begin[b] = place
        place += end[b]
        end[b] = begin[b]
        local[port[b]] = -1
    words = (targets + 63) // 64
    word = state.first_word[c]
    state.word[word : word + sources * words] = ZERO
    count = 0
    for x in range(first, last):
        a, b = at_source[x], at_target[x]
        state.by_target[end[b]] = x
        end[b] += 1
        if rest[x] <= 0.0:
            continue
        count += 1
        for q in (a, b):
            load[q] += rest[x]
            full[q] += size[x]
            flows[q] += 1
        bit = b - use - sources
        state.word[word + (a - use) * words + bit // 64] |= ONE << np.uint64(bit % 64)
    state.sources[c], state.targets[c], state.open_flows[c] = sources, targets, count
    state.base[first:last], state.until[first:last], state.pace[c] = 0.0, np.inf, np.inf
    for q in range(use, use + sources + targets):
        state.level[q], state.spent[q], state.row_end[q], state.slowest[q] = 0.0, 0.0, np.inf, 0.0
        state.stale[q] = False


@njit(inner=True)
def end_flow(state, x, now):
    """A flow ends: its bit, the counts and, summed anew so that no rounding is left, what is of its ports."""
    c = state.coflow[x]
    a, b = state.at_source[x], state.at_target[x]
    rest, size, by_target = state.rest, state.size, state.by_target
    if state.until[x] <= state.row_end[a]:
        state.stale[a] = True
    rest[x], state.base[x], state.until[x] = 0.0, 0.0, np.inf
    state.open_flows[c] -= 1
    load, full, spent, others = 0.0, 0.0, 0.0, False
    for y in range(state.begin[a], state.end[a]):
        if rest[y] > 0.0:
            load += left(state, y, now)
            full += size[y]
            spent += state.base[y]
            others = others or state.at_target[y] == b
    state.load[a], state.full[a], state.spent[a] = load, full, spent
    state.flows[a] -= 1
    load, full, spent = 0.0, 0.0, 0.0
    for place in range(state.begin[b], state.end[b]):
        y = by_target[place]
        if rest[y] > 0.0:
            load += left(state, y, now)
            full += size[y]
            spent += state.base[y]
    state.load[b], state.full[b], state.spent[b] = load, full, spent
    state.flows[b] -= 1
    if not others:
        use, sources = state.first_use[c], state.sources[c]
        words = (state.targets[c] + 63) // 64
        bit = b - use - sources
        place = state.first_word[c] + (a - use) * words + bit // 64
        state.word[place] &= ~(ONE << np.uint64(bit % 64))
