"""The event loop of schedulers under which flows share ports: max-min fair and equal shares."""

import numba as nb
import numpy as np

from ecjax.coflow.pairs import ENDED, arrive, end_first, record

FAIR, EQUAL_SHARE = range(2)
CODES = {"fair": FAIR, "equal_share": EQUAL_SHARE}


@nb.njit(cache=True, nogil=True)
def _fair(pairs, free, flows, todo, place, ratio, done):
    """Max-min rates by filling: the port with the least for each of its flows settles them, again and again."""
    rate, slot, listed, source = pairs.rate, pairs.slot, pairs.listed, pairs.source
    target, degree, begin, present = pairs.target, pairs.degree, pairs.list_begin, pairs.flows
    active = 0
    for p in range(len(free)):
        if degree[p] > 0:
            free[p], flows[p] = pairs.capacity[p], pairs.present[p]
            todo[active], place[p], ratio[active] = p, active, free[p] / flows[p]
            active += 1
    for s in range(pairs.active[0]):
        done[s] = False
    while active > 0:
        least, at = ratio[0], 0
        for i in range(1, active):
            if ratio[i] < least:
                least, at = ratio[i], i
        p = todo[at]
        sending = p < pairs.senders
        active -= 1
        todo[at], ratio[at] = todo[active], ratio[active]
        place[todo[at]] = at
        for i in range(begin[p], begin[p] + degree[p]):
            pair = listed[i]
            s = slot[pair]
            if done[s]:
                continue
            done[s] = True
            rate[s] = least
            q = target[pair] if sending else source[pair]
            free[q] -= least * present[pair]
            flows[q] -= present[pair]
            j = place[q]
            if flows[q] == 0:
                active -= 1
                todo[j], ratio[j] = todo[active], ratio[active]
                place[todo[j]] = j
            else:
                ratio[j] = max(free[q], 0.0) / flows[q]


@nb.njit(cache=True, nogil=True)
def _equal_share(pairs):
    """Least over both ports of capacity / flows."""
    for s in range(pairs.active[0]):
        pair = pairs.pair[s]
        a, b = pairs.source[pair], pairs.target[pair]
        pairs.rate[s] = min(pairs.capacity[a] / pairs.present[a], pairs.capacity[b] / pairs.present[b])


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
    free, flows = np.zeros(ports), np.zeros(ports, dtype=np.int64)
    todo, place = np.zeros(ports, dtype=np.int64), np.zeros(ports, dtype=np.int64)
    ratio = np.zeros(ports)
    done = np.zeros(len(pairs.source), dtype=np.bool_)
    queued, chosen = np.zeros(pairs.senders), np.zeros(pairs.senders, dtype=np.int64)
    now, following, events, logged = 0.0, 0, 0, 0
    rate, clock, soonest, size = pairs.rate, pairs.clock, pairs.soonest, arrivals.size
    while following < coflows or pairs.active[0] > 0:
        if scheduler == FAIR:
            _fair(pairs, free, flows, todo, place, ratio, done)
        else:
            _equal_share(pairs)
        span = np.inf
        for s in range(pairs.active[0]):
            span = min(span, (soonest[s] - clock[s]) / rate[s])
        until = now + span
        if following < coflows and arrivals.time[following] <= until:
            until = arrivals.time[following]
            span = until - now
        if len(log) > 0:
            logged = record(pairs, True, log, logged, now, until)
        now = until
        for s in range(pairs.active[0]):
            clock[s] += rate[s] * span
        s = 0
        while s < pairs.active[0]:
            pair = pairs.pair[s]
            more = True
            while more and soonest[s] - clock[s] <= ENDED * size[pairs.flow[pairs.room[pair]]]:
                more = end_first(pairs, arrivals, pair, now)
            if more:  # else another pair has the slot now
                s += 1
        while following < coflows and arrivals.time[following] <= now:
            arrive(pairs, arrivals, following, rule, queued, chosen)
            following += 1
        events += 1
    return events, logged
