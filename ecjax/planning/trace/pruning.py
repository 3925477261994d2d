"""Chunks that do not pay for themselves are dropped: what J grows by, exactly, against what they cost to keep."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.trace.data import Traced
from ecjax.planning.trace.relax import work_of
from ecjax.planning.trace.rounding import add, before, clear, put, searchable, spread_over
from ecjax.traffic.lindley import again, forward, increments

_LEAST_READ = 1e-3  # a smaller share of a row's reads is what a descent has left over


def prune(data: Traced, probabilities: np.ndarray, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The plan without chunks that gain less than they cost: reads (R, m) and chunks (R, m) bool.

    The reads of a chunk go to the row's other chunks with room; the least read one is tried first, down to the least
    code length.

    Args:
        data: the problem.
        probabilities: (R, m).
        placed: (R, m) bool.
    """
    coarse = searchable(data)
    share, held = probabilities.copy(), placed.astype(float)
    work = work_of(coarse, share, held)
    workload = np.empty_like(work)
    forward(coarse.bins.width, work, coarse.c, coarse.penalty, workload)
    _prune(coarse, share, held, work, workload)
    return share, held > 0.5


@njit()
def _prune(data, share, held, work, workload):
    width, edge = data.bins.width, data.bins.edge
    bins, m = work.shape
    reads, writes = np.zeros((2, bins)), np.zeros((2, bins))
    less, factor = np.zeros((2, m)), np.zeros((2, m))
    value, start, after = np.zeros(m), np.zeros(m), np.zeros(m)
    for i in range(len(share)):
        count = 0.0
        for j in range(m):
            count += held[i, j]
        first, last = bins, -1
        while count > data.rows.length[i]:
            least = -1
            for j in range(m):
                if held[i, j] > 0.5 and (least < 0 or share[i, j] < share[i, least]):
                    least = j
            if last < 0:
                first, last = spread_over(data.reads, i, width, edge, reads)
                first_write, last_write = spread_over(data.writes, i, width, edge, writes)
                first, last = min(first, first_write), max(last, last_write)
            if not _others(share[i], held[i], least, after):
                break
            change = -data.keep[i, least]
            if last >= 0:
                for j in range(m):
                    change += data.toll[i, j] * (after[j] - share[i, j])
                    for p in range(2):
                        factor[p, j] = data.slope[p, j] * (after[j] - share[i, j])
                if last_write >= 0:
                    # reads and writes leave the node together: J is not linear
                    for p in range(2):
                        factor[p, least] = 0.0
                before(workload, first, start)
                increments(width, work, data.c, data.penalty, reads, factor, first, last, start, value)
                change += weighed(data.weight, value)
                if last_write >= 0:
                    for j in range(m):
                        for p in range(2):
                            less[p, j] = -data.slope[p, j] if j == least else 0.0
                    add(writes, reads, first, last, share[i, least])
                    increments(width, work, data.c, data.penalty, writes, less, first, last, start, value)
                    add(writes, reads, first, last, -share[i, least])
                    change += weighed(data.weight, value)
            if change > 0.0 and share[i, least] > _LEAST_READ:
                break
            if last >= 0:
                put(work, reads, data.slope, share[i], -1.0, first, last)
                put(work, writes, data.slope, held[i], -1.0, first, last)
            for j in range(m):
                share[i, j] = after[j]
            held[i, least] = 0.0
            count -= 1
            if last >= 0:
                put(work, reads, data.slope, share[i], 1.0, first, last)
                put(work, writes, data.slope, held[i], 1.0, first, last)
                again(width, work, data.c, first, last, workload)
        if last >= 0:
            clear(reads, first, last)
            clear(writes, first, last)


@njit()
def weighed(weight, values):
    """Sum of products."""
    total = 0.0
    for j in range(len(weight)):
        total += weight[j] * values[j]
    return total


@njit()
def _others(share, held, least, after):
    """Reads of the other chunks if one is dropped; whether they have room."""
    room = 0.0
    for j in range(len(share)):
        if held[j] > 0.5 and j != least:
            room += 1.0 - share[j]
    if room < share[least] - 1e-12:
        return False
    part = share[least] / room if room > 0.0 else 0.0
    for j in range(len(share)):
        after[j] = share[j] + part * (1.0 - share[j]) if held[j] > 0.5 and j != least else 0.0
    return True
