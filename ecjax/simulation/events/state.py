"""State of the engine between events, in arrays that grow with the requests in the system and never with the run.

A request in the system has a slot; its accesses are numbered base + (slot << shift) + position in its row. Numbers
below ``base`` stand for the queues, of which there is one per node and class: they are the ends of circular doubly
linked lists of accesses, so that an access leaves the middle of a queue in no time.
"""

from typing import NamedTuple

import numpy as np

from ecjax.simulation.events.settings import FCFS, FORK_JOIN, HEDGED, PRIORITY, Settings
from ecjax.simulation.system import System

NONE, WAITING, SERVING, DONE = range(4)  # status of an access
HEDGE = 4  # added to the status of one that was sent after the delay
STATUS = 3  # the rest of it
# counters: free slots, requests in the heap, changes so far, nodes that are down, accesses that requests which may be
# hedged need, accesses of hedging
FREE, DUE, CHANGE, DOWN, NEEDED, HEDGES = range(6)
MOST_REQUESTS = 20_000_000
MOST_ACCESSES = 1 << 28  # 2.4 GB


class State(NamedTuple):
    """S slots, A = base + S 2^shift accesses, m nodes, Q classes, L servers per node (Q, or 1)."""

    counters: np.ndarray  # (6,) int64
    shift: int
    free: np.ndarray  # (S,) int32, the first counters[FREE] are slots without a request
    number: np.ndarray  # (S,) int64, of the request; -1 without
    file: np.ndarray  # (S,) int32
    arrival: np.ndarray  # (S,) s
    opened: np.ndarray  # (S,) int32, accesses waiting or in service; not kept under late binding
    begun: np.ndarray  # (S,) int32, late binding: accesses in service or done
    finished: np.ndarray  # (S,) int32, accesses done
    complete: np.ndarray  # (S,) s, when complete; inf before that is known
    after: np.ndarray  # (A,) int32, next in the queue
    before: np.ndarray  # (A,) int32, previous in the queue
    status: np.ndarray  # (A,) int8
    ready: (
        np.ndarray
    )  # (A,) s, when the chunks done are at the client, in order of their finish; (0,) without delays
    heap: np.ndarray  # (S,) int32, requests whose completion is to come; (0,) where that is no event
    heap_place: np.ndarray  # (S,) int32
    timer_after: (
        np.ndarray
    )  # (S + 1,) int32, slot + 1 of requests that may be hedged, a circular list from 0; or (0,)
    timer_before: np.ndarray  # (S + 1,) int32
    turn: np.ndarray  # (R,) int64, whose turn it is in each row
    down: np.ndarray  # (m,) bool
    load: np.ndarray  # (m,) int64, accesses waiting or in service; not kept under late binding
    serving: np.ndarray  # (m L,) int64, access in service; -1
    work: np.ndarray  # (m L,) s, service time
    tag: np.ndarray  # (m L,) when it will be done, on the node's clock; inf
    clock: (
        np.ndarray
    )  # (m,) under sharing: service per unit of weight since the node was last idle, at time ``update_s``
    update_s: np.ndarray  # (m,) s
    active: np.ndarray  # (m,) under sharing: weight in service
    tree: np.ndarray  # (2 p,) s, next finish of every node, as a tournament


def empty(system: System, settings: Settings, slots: int = 64) -> State:
    """No requests, idle nodes, all of them up."""
    nodes, queues = settings.speeds.shape
    servers = nodes * (1 if settings.queue in (FCFS, PRIORITY) else queues)
    shift = int(system.widest - 1).bit_length()
    base = nodes * queues
    delayed = bool(system.connect.any() or system.link_s.any())
    watched = settings.policy in (HEDGED, FORK_JOIN)
    accesses = base + (slots << shift)
    timers = slots + 1 if settings.policy == HEDGED else 0
    leaves = 1 << int(nodes - 1).bit_length()
    heap = slots if delayed and watched else 0
    return State(
        counters=np.array([slots, 0, 0, 0, 0, 0]),
        shift=shift,
        free=np.arange(slots, dtype=np.int32)[::-1].copy(),
        number=np.full(slots, -1),
        file=np.zeros(slots, np.int32),
        arrival=np.zeros(slots),
        opened=np.zeros(slots, np.int32),
        begun=np.zeros(slots, np.int32),
        finished=np.zeros(slots, np.int32),
        complete=np.full(slots, np.inf),
        after=np.arange(accesses, dtype=np.int32),
        before=np.arange(accesses, dtype=np.int32),
        status=np.zeros(accesses, np.int8),
        ready=np.zeros(accesses if delayed else 0),
        heap=np.zeros(heap, np.int32),
        heap_place=np.full(heap, -1, np.int32),
        timer_after=np.arange(timers, dtype=np.int32),
        timer_before=np.arange(timers, dtype=np.int32),
        turn=np.zeros(len(system.start) - 1, np.int64),
        down=np.zeros(nodes, bool),
        load=np.zeros(nodes, np.int64),
        serving=np.full(servers, -1),
        work=np.zeros(servers),
        tag=np.full(servers, np.inf),
        clock=np.zeros(nodes),
        update_s=np.zeros(nodes),
        active=np.zeros(nodes),
        tree=np.full(2 * leaves, np.inf),
    )


def grown(state: State, system: System, settings: Settings) -> State | None:
    """The same with twice as many slots, when none is free; None where there would be too many."""
    slots = len(state.number)
    if 2 * slots > MOST_REQUESTS or (2 * slots << state.shift) > MOST_ACCESSES:
        return None
    larger = empty(system, settings, 2 * slots)
    for name, old in state._asdict().items():
        if name != "shift":
            getattr(larger, name)[: len(old)] = old
    larger.free[:slots] = np.arange(2 * slots, slots, -1) - 1
    larger.counters[FREE] = slots
    return larger
