"""The event loop of schedulers under which flows share ports: max-min fair and equal shares."""

import numpy as np

from ecjax.coflow.pairs import ENDED, arrive, end_first, record
from ecjax.machine_code import copy_into, njit

FAIR, EQUAL_SHARE = range(2)
_BELOW = 1 - 1e-9  # levels above this part of a rate may be affected by it
CODES = {"fair": FAIR, "equal_share": EQUAL_SHARE}


@njit(inner=True, fastmath=True, error_model="numpy")
def _least(values, count):
    """Smallest of the first ``count`` values; none is NaN, so that the order of comparisons does not matter."""
    least = np.inf
    for i in range(count):
        least = min(least, values[i])
    return least


@njit(inner=True, error_model="numpy")
def _fair(pairs, free, flows, todo, place, ratio, level, least_changed):
    """Max-min rates by filling: the port with the least for each of its flows settles them, again and again.

    A pair's rate is the smaller of the levels at which its ports were settled. Filling up to a level goes as it did
    before if only flows with larger rates have ended since: those levels are kept.

    Args:
        pairs: the state.
        free: work array, (S + D,).
        flows: work array, (S + D,).
        todo: work array, (S + D,).
        place: work array, (S + D,).
        ratio: work array, (S + D,).
        level: bytes/s at which the ports were settled, (S + D,); inf: never. Updated.
        least_changed: smallest rate of the flows that have ended since the last call; 0 if any have begun.
    """
    least_unsettled = least_changed * _BELOW
    partner, flows_with, degree, begin = pairs.partner, pairs.flows_with, pairs.degree, pairs.list_begin
    active = 0
    for p in range(len(free)):
        place[p] = -1
        if level[p] >= least_unsettled:
            level[p] = np.inf
    for p in range(len(free)):
        if degree[p] == 0 or level[p] < least_unsettled:
            continue
        own_free, own_flows = pairs.capacity[p], float(pairs.present[p])
        if least_unsettled > 0.0:
            for i in range(begin[p], begin[p] + degree[p]):
                if level[partner[i]] < least_unsettled:
                    own_free -= level[partner[i]] * flows_with[i]
                    own_flows -= flows_with[i]
        if own_flows > 0.5:
            free[p], flows[p] = own_free, own_flows
            todo[active], place[p], ratio[active] = p, active, max(own_free, 0.0) / own_flows
            active += 1
    while active > 0:
        least = _least(ratio, active)
        at = 0
        while ratio[at] != least:
            at += 1
        p = todo[at]
        level[p], place[p] = least, -1
        active -= 1
        if at < active:
            todo[at], ratio[at] = todo[active], ratio[active]
            place[todo[at]] = at
        for i in range(begin[p], begin[p] + degree[p]):
            q = partner[i]
            j = place[q]
            if j < 0:
                continue
            free[q] -= least * flows_with[i]
            flows[q] -= flows_with[i]
            if flows[q] > 0.5:
                ratio[j] = max(free[q], 0.0) / flows[q]
                continue
            place[q] = -1
            active -= 1
            if j < active:
                todo[j], ratio[j] = todo[active], ratio[active]
                place[todo[j]] = j


@njit(inner=True, fastmath=True, error_model="numpy")
def _at_levels(sender, receiver, level, soonest, clock, rate, count):
    """Rates of the pairs by the levels of their ports; returns the time until the next flow ends, s."""
    span = np.inf
    for s in range(count):
        pair_rate = min(level[sender[s]], level[receiver[s]])
        rate[s] = pair_rate
        span = min(span, (soonest[s] - clock[s]) / pair_rate)
    return span


@njit(error_model="numpy")
def run(pairs, arrivals, scheduler, rule, log):
    """Replay all coflows.

    Args:
        pairs: a fresh state.
        arrivals: coflows; ``source``, ``finish`` and ``completion`` are filled.
        scheduler: FAIR or EQUAL_SHARE.
        rule: of source selection.
        log: out, (rows, 4): start, end (s), flow and rate (bytes/s) of every interval; no rows: no log.

    Returns:
        Events, and rows of the log that were needed.
    """
    coflows, ports = len(arrivals.time), len(pairs.capacity)
    free, flows, level = np.zeros(ports), np.zeros(ports), np.zeros(ports)
    todo, place = np.zeros(ports, dtype=np.int64), np.zeros(ports, dtype=np.int64)
    ratio = np.zeros(ports)
    due = np.zeros(len(pairs.source), dtype=np.int64)  # slots whose first flow may have ended
    queued, selection = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    # plain 0 is a type of its own to Numba, which would compile all that it is passed to twice
    following, logged = np.int64(0), np.int64(0)
    now, events = 0.0, 0
    least_changed = 0.0
    rate, clock, soonest, size = pairs.rate, pairs.clock, pairs.soonest, arrivals.size
    while following < coflows or pairs.active[0] > 0:
        if scheduler == FAIR:
            _fair(pairs, free, flows, todo, place, ratio, level, least_changed)
        else:
            copy_into(level, pairs.capacity / np.maximum(pairs.present, 1))
        span = _at_levels(pairs.sender, pairs.receiver, level, soonest, clock, rate, pairs.active[0])
        until = now + span
        if following < coflows and arrivals.time[following] <= until:
            until = arrivals.time[following]
            span = until - now
        if len(log) > 0:
            logged = record(pairs, True, log, logged, now, until)
        now = until
        count = 0
        least_changed = np.inf
        for s in range(pairs.active[0]):
            clock[s] += rate[s] * span
            if soonest[s] - clock[s] <= ENDED * soonest[s]:  # which is at least the size
                due[count] = s
                count += 1
        # the last slot moves to where one becomes empty, so from the last one down
        for i in range(count - 1, -1, -1):
            s = due[i]
            pair = pairs.pair[s]
            more = True
            least_changed = min(least_changed, rate[s])
            while more and soonest[s] - clock[s] <= ENDED * size[pairs.flow[pairs.room[pair]]]:
                more = end_first(pairs, arrivals, pair, now)
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, selection)
            least_changed = 0.0
            following += 1
        events += 1
    return events, logged
