"""The event loop of schedulers under which flows share ports: max-min fair and equal shares."""

import numba as nb
import numpy as np

from ecjax.coflow.pairs import ENDED, arrive, end_first, record

FAIR, EQUAL_SHARE = range(2)
CODES = {"fair": FAIR, "equal_share": EQUAL_SHARE}


@nb.njit(cache=True, nogil=True, fastmath=True)
def _least(values, count):
    """Smallest of the first ``count`` values; none is NaN, so that the order of comparisons does not matter."""
    least = np.inf
    for i in range(count):
        least = min(least, values[i])
    return least


@nb.njit(cache=True, nogil=True)
def _fair(pairs, free, flows, todo, place, ratio, level):
    """Max-min rates by filling: the port with the least for each of its flows settles them, again and again.

    A pair's rate is the smaller of the levels at which its ports were settled.
    """
    partner, flows_with, degree, begin = pairs.partner, pairs.flows_with, pairs.degree, pairs.list_begin
    active = 0
    for p in range(len(free)):
        level[p], place[p] = np.inf, -1
        if degree[p] > 0:
            free[p], flows[p] = pairs.capacity[p], pairs.present[p]
            todo[active], place[p], ratio[active] = p, active, free[p] / flows[p]
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
    sender, receiver, rate = pairs.sender, pairs.receiver, pairs.rate
    for s in range(pairs.active[0]):
        rate[s] = min(level[sender[s]], level[receiver[s]])


@nb.njit(cache=True, nogil=True)
def _equal_share(pairs):
    """Least over both ports of capacity / flows."""
    for s in range(pairs.active[0]):
        a, b = pairs.sender[s], pairs.receiver[s]
        pairs.rate[s] = min(pairs.capacity[a] / pairs.present[a], pairs.capacity[b] / pairs.present[b])


@nb.njit(cache=True, nogil=True, fastmath=True)
def _until_next_end(soonest, clock, rate, count):
    """Time until the next flow ends, s; no number here is NaN."""
    span = np.inf
    for s in range(count):
        span = min(span, (soonest[s] - clock[s]) / rate[s])
    return span


@nb.njit(cache=True, nogil=True)
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
    queued, chosen = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    # plain 0 is a type of its own to Numba, which would compile all that it is passed to twice
    following, logged = np.int64(0), np.int64(0)
    now, events = 0.0, 0
    rate, clock, soonest, size = pairs.rate, pairs.clock, pairs.soonest, arrivals.size
    while following < coflows or pairs.active[0] > 0:
        if scheduler == FAIR:
            _fair(pairs, free, flows, todo, place, ratio, level)
        else:
            _equal_share(pairs)
        span = _until_next_end(soonest, clock, rate, pairs.active[0])
        until = now + span
        if following < coflows and arrivals.time[following] <= until:
            until = arrivals.time[following]
            span = until - now
        if len(log) > 0:
            logged = record(pairs, True, log, logged, now, until)
        now = until
        count = 0
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
            while more and soonest[s] - clock[s] <= ENDED * size[pairs.flow[pairs.room[pair]]]:
                more = end_first(pairs, arrivals, pair, now)
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, chosen)
            following += 1
        events += 1
    return events, logged
