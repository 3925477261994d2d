"""Rows taken out, one or a few at a time, and placed again where they cost least: best responses, and exchanges.

Several rows together leave corners that no single row leaves.
"""

import numpy as np

from ecjax.machine_code import copy_into, njit
from ecjax.planning.certified.choice import HOT, NONE, choose
from ecjax.planning.certified.loops import _dollars, usable
from ecjax.planning.certified.systematic import node_cost

_LEAST_GAIN = 1e-13


@njit()
def exchange(tuples, service, rows, rate, kinds, loads, chunks, z, full_price):
    """Place the rows of each tuple anew, one after the other; keep what is better. A row without a
    choice gets one. Returns the gain at this z, s.

    Args:
        tuples: (T, p) rows that are taken out together.
        service: nodes; one chunk size.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        kinds: (R, m) choices, changed in place.
        loads: (m,) 1/s, reads of the nodes, changed in place.
        chunks: (m,) chunks of the nodes, changed in place.
        z: s.
        full_price: s, charged for a chunk beyond a node's capacity.
    """
    m, several = len(loads), tuples.shape[1]
    hot, cold = np.empty(m), np.empty(m)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    now, trial = np.empty(m), np.empty(m)
    old_kinds = np.empty((several, m), np.int8)
    old_loads, old_chunks = np.empty(m), np.empty(m)
    for j in range(m):
        now[j] = node_cost(service, j, loads[j], z)
    gain = 0.0
    for t in range(len(tuples)):
        copy_into(old_loads, loads)
        copy_into(old_chunks, chunks)
        copy_into(trial, now)
        change = 0.0
        distinct = True
        for p in range(several):
            i = tuples[t, p]
            for earlier in range(p):
                distinct &= tuples[t, earlier] != i
        if not distinct:
            continue
        missing = False
        for p in range(several):
            i = tuples[t, p]
            copy_into(old_kinds[p], kinds[i])
            missing |= not _reads_somewhere(kinds[i])
            change -= _take(i, rows, rate[i], kinds[i], loads, chunks, full_price)
            kinds[i] = NONE
        for j in range(m):
            if loads[j] != old_loads[j]:
                trial[j] = node_cost(service, j, loads[j], z)
        for p in range(several):
            i = tuples[t, p]
            flow, count = rate[i], usable(rows, i, nodes)
            for position in range(count):
                j = nodes[position]
                stored, reading = _dollars(rows, i, j)
                over = max(0.0, min(rows.chunks[i], chunks[j] + rows.chunks[i] - rows.capacity[j]))
                cold[j] = stored + full_price * over
                hot[j] = cold[j] + reading + node_cost(service, j, loads[j] + flow, z) - trial[j]
            extra = max(0, rows.length[i] - rows.hot[i])
            choose(
                hot,
                cold,
                nodes,
                count,
                rows.hot[i],
                extra,
                rows.site,
                rows.per_site,
                kinds[i],
                scratch,
                numbers,
            )
            for j in range(m):
                if kinds[i, j] != NONE:
                    chunks[j] += rows.chunks[i]
                    stored, reading = _dollars(rows, i, j)
                    over = max(0.0, min(rows.chunks[i], chunks[j] - rows.capacity[j]))
                    change += stored + full_price * over
                    if kinds[i, j] == HOT:
                        loads[j] += flow
                        change += reading
                        trial[j] = node_cost(service, j, loads[j], z)
        scale = 0.0
        for j in range(m):
            change += trial[j] - now[j]
            scale += now[j]
        if missing or change < -_LEAST_GAIN * scale:
            gain -= change
            copy_into(now, trial)
            continue
        copy_into(loads, old_loads)
        copy_into(chunks, old_chunks)
        for p in range(several):
            copy_into(kinds[tuples[t, p]], old_kinds[p])
    return gain


@njit(inner=True)
def _reads_somewhere(kind):
    for j in range(len(kind)):
        if kind[j] == HOT:
            return True
    return False


@njit(inner=True)
def _take(i, rows, flow, kind, loads, chunks, full_price):
    """Take a row out of the loads and chunks; what its chunks cost, s."""
    cost = 0.0
    for j in range(len(loads)):
        if kind[j] == NONE:
            continue
        stored, reading = _dollars(rows, i, j)
        over = max(0.0, min(rows.chunks[i], chunks[j] - rows.capacity[j]))
        cost += stored + full_price * over
        chunks[j] -= rows.chunks[i]
        if kind[j] == HOT:
            cost += reading
            loads[j] = max(loads[j] - flow, 0.0)
    return cost
