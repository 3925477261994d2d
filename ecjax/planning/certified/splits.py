"""Reads of some rows shared out over more nodes than k: what whole choices, which move all of a row, leave uneven.

Where all chunks have one size the latency depends on the loads of the nodes only, so that a plan with the loads of the
relaxation costs no more than that and the chunks which its splits need; of m nodes fewer than m splits reach any loads
that the rows allow. Reads flow between two nodes at a time, from those where they are dear to where they are cheap: to
a chunk that the row has already, where that is as good, else to a new one, for which one that serves nothing goes.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.certified.data import Rows, rates_of
from ecjax.planning.certified.loops import _dollars, held_at_sites
from ecjax.planning.certified.relax import Passes
from ecjax.planning.certified.systematic import cost_and_slopes, node_cost
from ecjax.planning.certified.waits import best_z, slopes, work_of

_ROUNDS = 6  # with another z each
_FLOWS = 4  # times nodes, in a round
# dearest and cheapest nodes that are looked at for a flow, at first and where there is none
_SOURCES, _TARGETS = (4, 16), (12, 64)
_OVERRATED = 4.0  # what slopes and bends promise of a flow, of what it may gain
_HALVINGS = 40
_STEP = 1e-4  # of a node's load or room, for slopes
_GOLDEN = 0.5 * (np.sqrt(5) - 1)


class Split(NamedTuple):
    """Shares of reads (R, m), chunks (R, m) bool, and their objective at its best z, s; infinite with an overload."""

    probabilities: np.ndarray
    stored: np.ndarray
    objective: float


def whole(kinds: np.ndarray) -> Split:
    """Whole choices (R, m) as shares of reads; what they are worth is left open."""
    return Split((kinds == HOT).astype(float), kinds != NONE, np.inf)


def split(passes: Passes, start: Split, z: float, target: float, worthwhile: float) -> Split:
    """Let reads flow to other nodes while that closes the gap to a target.

    Args:
        passes: the rows; all chunks of one size, nothing written.
        start: shares and chunks to begin with; rows sum to k.
        z: s, to begin with.
        target: s, an objective that is good enough.
        worthwhile: part of the gap that a round, or as many flows as there are nodes, have to close for more.
    """
    service, rows = passes.service, passes.rows
    rate = rates_of(rows)
    share, stored = start.probabilities.copy(), start.stored.copy()
    loads, chunks = rate @ share, rows.chunks @ stored
    dollars = _paid(rows, share, stored)

    def objective() -> float:
        latency = slopes(service, loads[:, None], z).value + (0.0 if service.alone else z)
        return float(latency + dollars)

    reached = objective()
    for _ in range(_ROUNDS):
        before, most = reached, _FLOWS * len(loads)
        least = worthwhile * (before - target)
        if least <= 0:
            break
        dollars += _flow(service, rows, rate, share, stored, loads, chunks, z, least / len(loads), most)
        z = best_z(service, loads[:, None])
        reached = objective()
        if not before - reached > least:
            break
    # the price of an overload is finite while reads flow
    overload = work_of(service, loads[:, None])[:, 0].max() >= 1
    return Split(share, stored, np.inf if overload else reached)


def _paid(rows: Rows, share: np.ndarray, stored: np.ndarray) -> float:
    """What chunks and reads cost beside latency, s."""
    dollars = (rows.chunks @ stored) @ rows.chunk_price + (rows.bytes @ stored) @ rows.byte_price
    if len(rows.surcharge):
        dollars += float(np.sum(rows.surcharge * stored))
    if len(rows.reading):
        dollars += float(np.sum(rows.reading * share))
    return float(rows.per_dollar * dollars)


@njit()
def _flow(service, rows, rate, share, stored, loads, chunks, z, least, most):
    """Let reads flow at a fixed z while one of the flows gains enough; returns what chunks and reads cost more, s.

    Args:
        service: nodes; one chunk size.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        share: (R, m) of the reads of a row that use a node, changed in place.
        stored: (R, m) bool, changed in place.
        loads: (m,) 1/s, changed in place.
        chunks: (m,), changed in place.
        z: s.
        least: s, what a flow has to gain.
        most: flows.
    """
    m = len(loads)
    slope, value, bend = np.empty(m), np.empty(m), np.empty(m)
    held = held_at_sites(np.arange(len(rate)), rows, stored)
    here = np.empty(len(rate), np.int64)
    idle = np.empty(len(rate), np.int64)
    for i in range(len(rate)):
        idle[i] = _dearest_idle(rows, share, stored, i)
    for j in range(m):
        _look(service, j, loads, z, value, slope, bend)
    dollars = 0.0
    for _ in range(most):
        order = np.argsort(slope)
        gain, row, source, target, amount, paid = least, -1, -1, -1, 0.0, 0.0
        for wide in range(2):
            sources, targets = min(_SOURCES[wide], m), min(_TARGETS[wide], m)
            for s in range(sources):
                a = order[m - 1 - s]
                count = -1
                for t in range(targets):
                    b = order[t]
                    fall = slope[a] - slope[b]
                    if fall <= 0:
                        break
                    if _OVERRATED * 0.5 * fall * fall <= gain * (bend[a] + bend[b]):
                        continue
                    ideal = _ideal(service, a, b, loads, z)
                    best = value[a] + value[b] - _both(service, a, b, loads, ideal, z)
                    if best <= gain:
                        continue
                    if count < 0:
                        count = 0
                        for i in range(len(rate)):
                            if share[i, a] > 0 and rate[i] > 0:
                                here[count] = i
                                count += 1
                    for at in range(count):
                        i = here[at]
                        room = min(share[i, a], 1 - share[i, b]) * rate[i]
                        if room <= 0:
                            continue
                        # what a node costs is convex: less than the best flow gains more than in proportion, and no
                        # more than all of it
                        moved = min(room, ideal)
                        cost = _toll(rows, i, a, b) * moved / rate[i]
                        if best - cost <= gain:
                            continue
                        cost += _price(rows, stored, held, chunks, i, b, idle[i])
                        if best - cost <= gain:
                            continue
                        got = best - cost
                        if room < ideal:
                            got = value[a] + value[b] - _both(service, a, b, loads, room, z) - cost
                        if got > gain:
                            gain, row, source, target, amount, paid = got, i, a, b, moved, cost
            if row >= 0 or (sources == m and targets == m):
                break
        if row < 0:
            break
        part = amount / rate[row]
        share[row, source] = share[row, source] - part if part < share[row, source] else 0.0
        share[row, target] = min(share[row, target] + part, 1.0)
        if not stored[row, target]:
            _keep(rows, stored, held, chunks, row, target, True)
            if idle[row] >= 0:
                _keep(rows, stored, held, chunks, row, idle[row], False)
        idle[row] = _dearest_idle(rows, share, stored, row)
        loads[source] = max(loads[source] - amount, 0.0)
        loads[target] += amount
        dollars += paid
        _look(service, source, loads, z, value, slope, bend)
        _look(service, target, loads, z, value, slope, bend)
    return dollars - _save(rows, share, stored, held, chunks)


@njit(inner=True)
def _look(service, j, loads, z, value, slope, bend):
    room = max(1 - service.background[j, 0] - loads[j] * service.moments[0, j, 0], 0.0)
    step = _STEP * max(room / service.moments[0, j, 0], loads[j] * _STEP)
    value[j], slope[j], bend[j] = cost_and_slopes(service, j, loads[j], step, z)


@njit(inner=True)
def _both(service, a, b, loads, amount, z):
    return node_cost(service, a, loads[a] - amount, z) + node_cost(service, b, loads[b] + amount, z)


@njit(inner=True)
def _ideal(service, a, b, loads, z):
    """The flow from a to b after which the two cost least, 1/s."""
    low, high = 0.0, loads[a]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = _both(service, a, b, loads, left, z), _both(service, a, b, loads, right, z)
    for _ in range(_HALVINGS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = _both(service, a, b, loads, left, z)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = _both(service, a, b, loads, right, z)
    return 0.5 * (low + high)


@njit(inner=True)
def _price(rows, stored, held, chunks, i, b, idle):
    """What a chunk of row i at node b costs, s, instead of one that serves nothing, if there is one; infinite where it
    may not be, nothing if it is there.
    """
    if stored[i, b]:
        return 0.0
    if len(rows.allowed) and not rows.allowed[i, b]:
        return np.inf
    if chunks[b] + rows.chunks[i] > rows.capacity[b]:
        return np.inf
    if rows.per_site > 0 and held[i, rows.site[b]] >= rows.per_site:
        if idle < 0 or rows.site[idle] != rows.site[b]:
            return np.inf
    saved = 0.0 if idle < 0 else _dollars(rows, i, idle)[0]
    return _dollars(rows, i, b)[0] - saved


@njit(inner=True)
def _dearest_idle(rows, share, stored, i):
    """The node with the dearest of the chunks of row i that serve nothing; -1: there is none."""
    best, most = -1, -np.inf
    for j in range(stored.shape[1]):
        if stored[i, j] and share[i, j] <= 0:
            dollars = _dollars(rows, i, j)[0]
            if dollars > most:
                best, most = j, dollars
    return best


@njit(inner=True)
def _keep(rows, stored, held, chunks, i, j, there):
    stored[i, j] = there
    sign = 1 if there else -1
    chunks[j] += sign * rows.chunks[i]
    if rows.per_site > 0:
        held[i, rows.site[j]] += sign


@njit(inner=True)
def _save(rows, share, stored, held, chunks):
    """Chunks that serve nothing go where they cost least, or, where no floor asks for them, away; returns what that
    saves, s.
    """
    m = stored.shape[1]
    saved = 0.0
    for i in range(stored.shape[0]):
        spare = stored[i].sum() - max(rows.length[i], rows.hot[i])
        for _ in range(m):
            idle = _dearest_idle(rows, share, stored, i)
            if idle < 0:
                break
            least, to = 0.0, -1
            if spare <= 0:
                for j in range(m):
                    price = np.inf if stored[i, j] else _price(rows, stored, held, chunks, i, j, idle)
                    if price < least:
                        least, to = price, j
                if to < 0:
                    break  # nor may one that is cheaper
                _keep(rows, stored, held, chunks, i, to, True)
                saved -= least
            else:
                spare -= 1
                saved += _dollars(rows, i, idle)[0]
            _keep(rows, stored, held, chunks, i, idle, False)
    return saved


@njit(inner=True)
def _toll(rows, i, a, b):
    """What reads of row i cost more at node b than at a, s."""
    return _dollars(rows, i, b)[1] - _dollars(rows, i, a)[1]
