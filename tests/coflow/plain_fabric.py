"""A slow replay of coflows in plain Python, to compare the engine with: all rates are computed anew at every event.

The rules are those of ``ecjax.coflow``; nothing but the workload is shared with it. Where they leave something open it
is read here like this:

- A coflow needs the ports of its unfinished flows. A port counts as full once 1e-9 of its capacity or less is left.
- Flows end together where what is left of them after the step is at most 1e-12 of their bytes: rates of MADD are
  meant to end flows at once, and only rounding keeps them apart.
- Events at the same moment: flows end, then coflows are admitted, one after the other, then rates are computed, once.
- Coflows that arrive or end together make one new order.
- local_search goes through the order from first to last, and again, until no exchange helps.
- BSSI: where two ports are the heaviest, the lowest counts (sending ports first); of two coflows with the same weight
  per load there the later one goes last. Coflows without load there are not looked at.
- Queue 0 of aalo begins at no bytes, the last one never ends. The moment at which a coflow reaches the next queue is an
  event, and so is that at which one becomes heavy (baraat: has sent ``heavy_bytes`` or more).
- The parts of the ports that the queues of aalo get: C_p (10 - q) / sum of 10 - q over the queues that hold coflows.
- ``heavy_bytes`` is interpolated linearly between sizes, as ``numpy.quantile`` does.
- Flow j of a read takes the j-th of the candidates as the source rule orders them.
- smallest_load counts bytes, whatever the capacities of the servers; least_bottleneck the seconds that a server takes
  for them and for the chunk. Flows that end at the moment of the arrival have none left.
- least_work_ahead chooses anew under the schedulers whose rates are MADD and backfill, before rates are computed and in
  the order that they will have. A chunk has begun once a byte of it was sent; its server sends no other chunk of that
  read. Bytes of coflows before it are remaining ones, where they were put just now. Which flow of a read moves to which
  of its new servers is left open.
- Values that differ by 1e-9 or less count as ties (bottlenecks, loads of servers, remaining bytes of flows).
"""

from typing import NamedTuple

import numpy as np
from plain_rates import SCHEDULERS, State
from plain_sources import choose

from ecjax.coflow.workload import CHOSEN_LATER

ENDED = 1e-12  # part of a flow's bytes that counts as none


class Replay(NamedTuple):
    completion_s: np.ndarray  # (C,) from arrival to the end of the last flow
    finish_s: np.ndarray  # (F,)
    source: np.ndarray  # (F,)
    intervals: list  # (start, end, rates (F,)) with the same rates throughout


def replay(workload, fabric, scheduler, sources="given", candidate=None, taken=None):
    """The replay.

    ``candidate``: (N,) the candidates of the workload, those of each coflow in random order. ``taken``: (F,) sources
    that another replay chose, see ``choose``.
    """
    rates_of, own_event = SCHEDULERS[scheduler]
    state = State(workload, fabric)
    state.rule = sources
    arrivals = [float(a) for a in workload.arrival_s]
    count, now, arrived = len(arrivals), 0.0, 0
    finish, end, intervals = [np.nan] * len(state.bytes), [np.nan] * count, []
    while arrived < count or state.active:
        if not state.active:
            now = arrivals[arrived]
        while arrived < count and arrivals[arrived] <= now:
            a, b = workload.first_candidate[arrived : arrived + 2]
            if workload.source[state.flows_of[arrived][0]] == CHOSEN_LATER:
                state.candidates[arrived] = list(candidate[a:b])
                choose(state, arrived, sources, state.candidates[arrived], taken)
            state.active.append(arrived)
            state.arrived = True
            arrived += 1
        rates = rates_of(state)
        state.arrived = state.ended = False
        speed = [sum(rates[f] for f in flows) for flows in state.flows_of]
        running = [f for f, rate in enumerate(rates) if rate > 0]
        step = min((state.remaining[f] / rates[f] for f in running), default=np.inf)
        if own_event is not None:
            step = min(step, own_event(state, speed))
        until = now + step
        if arrived < count and arrivals[arrived] <= until:
            until = arrivals[arrived]
            step = until - now
        assert np.isfinite(step), "flows wait, and none is served"
        intervals.append((now, until, np.array(rates)))
        now = until
        for c in state.active:
            state.sent[c] += speed[c] * step
        for f in running:
            left = state.remaining[f] - rates[f] * step
            state.remaining[f] = left if left > ENDED * state.bytes[f] else 0.0
            if state.remaining[f] == 0:
                finish[f] = now
        for c in [c for c in state.active if not state.unfinished(c)]:
            state.active.remove(c)
            state.ended = True
            end[c] = now
    return Replay(np.array(end) - np.array(arrivals), np.array(finish), np.array(state.source), intervals)
