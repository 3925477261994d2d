"""Two rows that trade nodes for their reads: what single rows cannot even out, as each brings all of its reads.

A row with reads at node j goes to node to and one from there comes back, so that only the difference of their reads
moves. For each pair of nodes the difference that helps most is known from the slopes and bends of what the nodes cost,
and the two rows that come closest to it are found among those that read there, in the order of their rates.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.loops import _dollars, held_at_sites
from ecjax.planning.certified.systematic import cost_and_slopes, node_cost

_MOST = 10**7  # nodes times nodes that the reads of rows which trade take
_SWEEPS = 20
_SMALL = 0.1  # of the gain so far: a sweep with less is the last
_NEAR = 8  # partners that are looked at to either side of the one with the best rate
_TRIALS = 1_000_000  # rows that a sweep looks for partners of, at most so many of a pair of nodes
_LEAST_TRIED, _MOST_TRIED = 4, 64
_STEP = 1e-3  # of a node's room, for slopes
_LEAST_ROOM = 1e-3
_LEAST_GAIN = 1e-12
_ENOUGH = 0.9  # of what a trade of just the right difference would gain: no others are looked for


def takers(rate: np.ndarray, hot: np.ndarray, nodes: int) -> np.ndarray:
    """Rows that trade, in the order of their rates: all, or, of very many, some of every rate.

    Args:
        rate: (R,) 1/s, reads of each.
        hot: (R,) nodes that a read of each takes.
        nodes: how many there are.
    """
    order = np.argsort(rate, kind="stable")
    return order[:: max(1, int(nodes * hot.sum() // _MOST))]


@njit()
def trade(by_rate, service, rows, rate, kinds, loads, chunks, z, least, wanted):
    """Let rows trade nodes while a sweep over all pairs of nodes gains enough; returns the gain in s.

    Args:
        by_rate: rows that take part, in the order of their rates.
        service: nodes; one chunk size.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        kinds: (R, m) choices, changed in place.
        loads: (m,) 1/s, reads of the nodes, changed in place.
        chunks: (m,) chunks of the nodes, changed in place.
        z: s.
        least: s, what a trade has to promise.
        wanted: s, a gain that ends it at once.
    """
    m = len(loads)
    start = np.zeros(m + 1, np.int64)
    for i in by_rate:
        for j in range(m):
            if kinds[i, j] == HOT:
                start[j + 1] += 1
    for j in range(m):
        start[j + 1] += start[j]
    # a trade leaves as many rows at each node
    here = np.empty(start[m], np.int64)
    filled = start[:-1].copy()
    for i in by_rate:
        for j in range(m):
            if kinds[i, j] == HOT:
                here[filled[j]] = i
                filled[j] += 1
    held = held_at_sites(by_rate, rows, kinds)
    value, slope, bend = np.empty(m), np.empty(m), np.empty(m)
    for j in range(m):
        _look(service, j, loads, z, value, slope, bend)
    total = 0.0
    tried = min(max(_TRIALS // max(m * m, 1), _LEAST_TRIED), _MOST_TRIED)
    for turn in range(_SWEEPS):
        gain = 0.0
        for j in range(m):
            for to in range(m):
                fall = slope[j] - slope[to]
                if fall <= 0 or to == j:
                    continue
                both = bend[j] + bend[to]
                if not (both > 0 and 0.5 * fall * fall / both > least):
                    continue
                a, b, promised = _best(
                    here, start, j, to, fall, both, rows, rate, kinds, chunks, held, tried, turn
                )
                if a < 0 or promised <= least:
                    continue
                p, q = here[a], here[b]
                flow = rate[p] - rate[q]
                new_j = node_cost(service, j, loads[j] - flow, z)
                new_l = node_cost(service, to, loads[to] + flow, z)
                change = new_j + new_l - value[j] - value[to]
                change += _dear(rows, kinds, p, j, to) + _dear(rows, kinds, q, to, j)
                if not change < -_LEAST_GAIN * (value[j] + value[to]):
                    continue
                gain -= change
                _move(rows, kinds, chunks, held, p, j, to)
                _move(rows, kinds, chunks, held, q, to, j)
                loads[j] = max(loads[j] - flow, 0.0)
                loads[to] += flow
                _put(here, start, j, a, q, rate)
                _put(here, start, to, b, p, rate)
                _look(service, j, loads, z, value, slope, bend)
                _look(service, to, loads, z, value, slope, bend)
            if total + gain >= wanted:
                return total + gain
        total += gain
        if gain <= max(least, _SMALL * total):
            break
    return total


@njit(inner=True)
def _look(service, j, loads, z, value, slope, bend):
    work = service.background[j, 0] + loads[j] * service.moments[0, j, 0]
    step = _STEP * max(1 - work, _LEAST_ROOM) / service.moments[0, j, 0]
    value[j], slope[j], bend[j] = cost_and_slopes(service, j, loads[j], step, z)


@njit(inner=True)
def _best(here, start, j, to, fall, both, rows, rate, kinds, chunks, held, tried, turn):
    """Places in ``here`` of two rows whose trade promises most, or nearly, and what it promises, s.

    Of many rows at node j so many as ``tried`` are looked at, of all rates, others at the next ``turn``.
    """
    ideal = fall / both
    enough = _ENOUGH * 0.5 * fall * ideal
    best_a, best_b, most = -1, -1, 0.0
    first, last, count = start[to], start[to + 1], start[j + 1] - start[j]
    stride = max(1, -(-count // tried))
    for a in range(start[j] + turn % stride, start[j + 1], stride):
        p = here[a]
        if not _may(rows, kinds, held, p, j, to):
            continue
        dear = _dear(rows, kinds, p, j, to)
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if rate[here[middle]] < rate[p] - ideal:
                low = middle + 1
            else:
                high = middle
        for b in range(max(first, low - _NEAR), min(last, low + _NEAR)):
            q = here[b]
            flow = rate[p] - rate[q]
            # what the one chunk costs more the other mostly saves
            promised = fall * flow - 0.5 * both * flow * flow - dear - _dear(rows, kinds, q, to, j)
            if promised <= most or q == p or not _may(rows, kinds, held, q, to, j):
                continue
            if _room(rows, kinds, chunks, p, q, j, to):
                best_a, best_b, most = a, b, promised
        if most >= enough:
            break
    return best_a, best_b, most


@njit(inner=True)
def _may(rows, kinds, held, i, j, to):
    """Whether the reads of row i at node j may go to node to."""
    if kinds[i, to] == COLD:
        return True
    if kinds[i, to] == HOT or (len(rows.allowed) and not rows.allowed[i, to]):
        return False
    if rows.per_site == 0 or rows.site[j] == rows.site[to]:
        return True
    return held[i, rows.site[to]] < rows.per_site


@njit(inner=True)
def _dear(rows, kinds, i, j, to):
    """What it costs beside latency that the reads of row i at node j go to node to, s."""
    stored, reading = _dollars(rows, i, j)
    other, there = _dollars(rows, i, to)
    moved = 0.0 if kinds[i, to] == COLD else other - stored
    return moved + there - reading


@njit(inner=True)
def _room(rows, kinds, chunks, p, q, j, to):
    """Whether the nodes hold what rows p, from j to to, and q, from to to j, bring."""
    more = (rows.chunks[p] if kinds[p, to] == NONE else 0.0) - (
        rows.chunks[q] if kinds[q, j] == NONE else 0.0
    )
    return (more <= 0 or chunks[to] + more <= rows.capacity[to]) and (
        more >= 0 or chunks[j] - more <= rows.capacity[j]
    )


@njit(inner=True)
def _move(rows, kinds, chunks, held, i, j, to):
    if kinds[i, to] == NONE:
        if rows.per_site > 0:
            held[i, rows.site[j]] -= 1
            held[i, rows.site[to]] += 1
        chunks[j] -= rows.chunks[i]
        chunks[to] += rows.chunks[i]
    # what was cold and what was hot change roles
    kinds[i, j], kinds[i, to] = kinds[i, to], HOT


@njit(inner=True)
def _put(here, start, j, place, row, rate):
    """A row in the place of another, and where its rate belongs among those of node j."""
    while place > start[j] and rate[here[place - 1]] > rate[row]:
        here[place] = here[place - 1]
        place -= 1
    while place + 1 < start[j + 1] and rate[here[place + 1]] < rate[row]:
        here[place] = here[place + 1]
        place += 1
    here[place] = row
