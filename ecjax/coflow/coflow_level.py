"""The event loop of schedulers that know coflows, and the interface that they share: state -> rates."""

from typing import NamedTuple

import numpy as np

from ecjax.by_reference import by_reference
from ecjax.coflow.lasting import ENDED, has_ended, left, may_end, next_end, settle
from ecjax.coflow.open_shop import rank_by_algorithm_1, rank_by_local_search
from ecjax.coflow.queues import aalo, baraat
from ecjax.coflow.rates import backfill, bottleneck, clear, madd, madd_full, sort_active
from ecjax.coflow.reselection import least_work_ahead
from ecjax.coflow.sorting import as_keys, stable_order
from ecjax.coflow.sources import LEAST_WORK_AHEAD, choose
from ecjax.coflow.state import ACTIVE, SERVED, admit, end_flow
from ecjax.machine_code import copy_into, njit

DTARGET, DTARGET_REMAINING, VARYS, SINCRONIA, AALO, BARAAT, FIFO, LOCAL_SEARCH = range(8)
CODES = {
    "dtarget": DTARGET,
    "dtarget_remaining": DTARGET_REMAINING,
    "varys": VARYS,
    "sincronia": SINCRONIA,
    "aalo": AALO,
    "baraat": BARAAT,
    "fifo": FIFO,
    "local_search": LOCAL_SEARCH,
}
ARRIVAL, COFLOW_END, FLOW_END, ASKED = 1, 2, 4, 8  # what an event brought


class Settings(NamedTuple):
    """How a workload is replayed."""

    scheduler: int
    rule: int  # of source selection
    heavy_bytes: float  # Baraat


@njit(inner=True)
def _rates(state, settings, reads, event, speed, now):
    """Rates of all flows, in ``state``; returns the time until the scheduler asks for an event, s."""
    clear(state)
    count = state.counts[ACTIVE]
    scheduler = settings.scheduler
    if scheduler == AALO:
        return aalo(state, count, speed, now)
    if scheduler == BARAAT:
        return baraat(state, count, settings.heavy_bytes, speed, now)
    changed = event & (ARRIVAL | COFLOW_END)
    if scheduler == SINCRONIA and changed:
        rank_by_algorithm_1(state, count)
    if scheduler == LOCAL_SEARCH and changed:
        rank_by_local_search(state, count)
    by_arrival = scheduler == DTARGET or scheduler == DTARGET_REMAINING
    if scheduler == VARYS or scheduler == FIFO or (by_arrival and event & ARRIVAL):
        for i in range(count):
            c = state.active[i]
            if scheduler == DTARGET:
                state.key[c] = bottleneck(state, c, state.full)
            elif scheduler == FIFO:
                state.key[c] = c
            else:
                state.key[c] = bottleneck(state, c, state.load) * state.scale[c]
    sort_active(state, count)
    if settings.rule == LEAST_WORK_AHEAD and changed:
        for i in range(count):
            settle(state, state.active[i], now)
        reads.moved[0] += least_work_ahead(state, count, reads)
    if scheduler == DTARGET:
        madd_full(state, count, now)
    else:
        madd(state, count)
    backfill(state, count)
    return np.inf


@njit(inner=True)
def _until_next_end(state, now):
    """Time until the next flow ends at the present rates, s."""
    soonest = max(next_end(state, state.counts[ACTIVE]) - now, 0.0)
    drain, scale, rate, coflow = state.drain, state.scale, state.rate, state.coflow
    for i in range(state.counts[ACTIVE]):
        soonest = min(soonest, drain[state.active[i]])
    for i in range(state.counts[SERVED]):
        x = state.served[i]
        c = coflow[x]
        bytes_left = left(state, x, now) * scale[c]
        speed = rate[x] + state.base[x]
        if drain[c] < np.inf:
            speed += bytes_left / drain[c]
        if bytes_left < soonest * speed:
            soonest = bytes_left / speed
    return soonest


@njit(inner=True)
def _advance(state, span, now, flow, finish):
    """Flows send for ``span`` seconds until ``now``; returns what ended."""
    active, drain, scale, rest, rate = state.active, state.drain, state.scale, state.rest, state.rate
    load, coflow, spent = state.load, state.coflow, state.spent
    count = state.counts[ACTIVE]
    event = 0
    for i in range(count):
        c = active[i]
        for q in range(state.first_use[c], state.first_use[c] + state.sources[c] + state.targets[c]):
            load[q] -= spent[q] * span
        if drain[c] == np.inf:
            continue
        keep = 1.0 - span / drain[c]
        drain[c] -= span
        if keep <= ENDED:
            keep = 0.0
        scale[c] *= keep
        if 0.0 < scale[c] < 1e-60:
            for x in range(state.first[c], state.first[c + 1]):
                rest[x] *= 1e-60
            for q in range(state.first_use[c], state.first_use[c] + state.sources[c] + state.targets[c]):
                load[q] *= 1e-60
            scale[c] *= 1e60
    still_served = 0
    for i in range(state.counts[SERVED]):
        x = state.served[i]
        c = coflow[x]
        if scale[c] == 0.0:
            continue
        less = rate[x] * span / scale[c]
        rest[x] -= less
        load[state.at_source[x]] -= less
        load[state.at_target[x]] -= less
        if has_ended(state, x, now):
            end_flow(state, x, now)
            finish[flow[x]] = now
            rate[x] = 0.0
            event |= FLOW_END
        else:
            state.served[still_served] = x
            still_served += 1
    state.counts[SERVED] = still_served
    for i in range(count):
        c = active[i]
        for a in range(state.first_use[c], state.first_use[c] + state.sources[c]):
            if not may_end(state, a, now):
                continue
            for x in range(state.begin[a], state.end[a]):
                if state.base[x] > 0.0 and has_ended(state, x, now):
                    end_flow(state, x, now)
                    finish[flow[x]] = now
                    event |= FLOW_END
    return event


@njit(inner=True)
def _leave(state, now, flow, finish, completion):
    """Coflows without flows left leave; returns what ended."""
    event, still_active = 0, 0
    active = state.active
    for i in range(state.counts[ACTIVE]):
        c = active[i]
        if state.scale[c] == 0.0:
            for x in range(state.first[c], state.first[c + 1]):
                if state.rest[x] > 0.0:
                    finish[flow[x]] = now
                    state.rest[x] = 0.0
            state.open_flows[c] = 0
        if state.open_flows[c] == 0:
            completion[c] = now
            event |= FLOW_END | COFLOW_END
        else:
            active[still_active] = c
            still_active += 1
    state.counts[ACTIVE] = still_active
    return event


@njit(inner=True)
def _queued(state, queued):
    """Bytes that every sending port has yet to send, (S,)."""
    queued[:] = 0.0
    for i in range(state.counts[ACTIVE]):
        c = state.active[i]
        use = state.first_use[c]
        for q in range(use, use + state.sources[c]):
            queued[state.port[q]] += state.load[q] * state.scale[c]


@njit(inner=True)
def _arrive(state, settings, c, reads, queued, selection):
    """A coflow arrives; a read chooses its sources, and its flows are put in their order."""
    first, last = state.first[c], state.first[c + 1]
    width = last - first
    candidates = reads.candidate[reads.first_candidate[c] : reads.first_candidate[c + 1]]
    if len(candidates) > 0:
        _queued(state, queued)
        choose(candidates, width, settings.rule, queued, state.size[first], state.capacity, selection)
        servers = candidates[selection[:width]]
        order = stable_order(as_keys(servers))
        for i in range(width):
            state.source[first + i] = servers[order[i]]
            reads.flow[first + i] = first + order[i]
    copy_into(state.rest[first:last], state.size[first:last])
    admit(state, c)
    state.active[state.counts[ACTIVE]] = c
    state.counts[ACTIVE] += 1


@njit(inner=True)
def _record(state, flow, log, used, start, end):
    """Append the rates of an interval to the log while it has room; returns how much of it is used."""
    for i in range(state.counts[ACTIVE]):
        c = state.active[i]
        for x in range(state.first[c], state.first[c + 1]):
            speed = state.rate[x] + state.base[x]
            if state.drain[c] < np.inf:
                speed += state.rest[x] * state.scale[c] / state.drain[c]
            if speed > 0.0 and state.rest[x] > 0.0:
                if used < len(log):
                    log[used, 0], log[used, 1], log[used, 2], log[used, 3] = start, end, flow[x], speed
                used += 1
    return used


@njit()
def run(state, settings, arrival, reads, finish, completion, log):
    """Replay all coflows.

    Args:
        state: a fresh state.
        settings: scheduler and source rule.
        arrival: (C,) s, ascending.
        reads: the candidates of the coflows, and which flow of the workload each flow of the state is.
        finish: out, time when each flow of the workload ended, (F,) s.
        completion: out, time when each coflow ended, (C,) s.
        log: out, (rows, 4): start, end (s), flow and rate (bytes/s) of every interval; no rows: no log.

    Returns:
        Events, and rows of the log that were needed.
    """
    state, reads = by_reference(state), by_reference(reads)
    coflows = len(arrival)
    queued = np.zeros(state.senders)
    speed = np.zeros(coflows)
    selection = np.zeros(max(1, state.senders), dtype=np.int64)
    # plain 0 is a type of its own to Numba, which would compile all that it is passed to twice
    following, event, logged = np.int64(0), np.int64(0), np.int64(0)
    now, events = 0.0, 0
    rate_change = np.inf
    while following < coflows or state.counts[ACTIVE] > 0:
        if event:
            rate_change = _rates(state, settings, reads, event, speed, now)
        span = _until_next_end(state, now)
        span = min(span, rate_change)
        event = np.int64(0)
        until = now + span
        if span == rate_change:
            event = np.int64(ASKED)
        if following < coflows and arrival[following] <= until:
            until = arrival[following]
            span = until - now
        if len(log) > 0:
            logged = _record(state, reads.flow, log, logged, now, until)
        now = until
        rate_change -= span
        event |= _advance(state, span, now, reads.flow, finish)
        event |= _leave(state, now, reads.flow, finish, completion)
        while following < coflows and arrival[following] <= now:
            c = following
            _arrive(state, settings, c, reads, queued, selection)
            event |= ARRIVAL
            following += 1
        events += 1
    return events, logged
