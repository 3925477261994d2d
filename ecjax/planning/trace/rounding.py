"""Whole choices: rows placed one after the other where the objective grows least, with J itself and not its prices.

J is a sum over nodes, so that the best choice of a row, all others fixed, is exact: by what J of every node would grow
with the row's reads on it.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.trace.data import Traced, accesses_of_rows, merged_bins
from ecjax.planning.trace.loops import choice
from ecjax.planning.trace.relax import work_of
from ecjax.traffic.lindley import again, forward, increments

_MOST_STEPS = 2e7  # of the recursion, bins times nodes, in one sweep over the rows
_LEAST_BINS = 64
_SWEEPS = 4
_LEAST_GAIN = 1e-9
# times the wait of the start, or what a chunk may cost: the price of one beyond a node's capacity
_FULL = 1e3


def searchable(data: Traced) -> Traced:
    """The problem for searches that try many choices: where rows times bins are many, neighbouring bins are one."""
    most = max(int(_MOST_STEPS / (data.keep.size)), _LEAST_BINS)
    return merged_bins(data, most) if len(data.bins.width) > most else data


def round_off(data: Traced, probabilities: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Whole choices close to a mixture, improved by best responses: kinds (R, m), 2 hot, 1 cold, 0 none.

    Args:
        data: the problem.
        probabilities: (R, m) of the mixture.
        stored: (R, m), 0 to 1.
    """
    coarse = searchable(data)
    kinds = np.zeros(probabilities.shape, np.int8)
    share, held = probabilities.copy(), stored.copy()
    work = work_of(coarse, share, held)
    workload = np.empty_like(work)
    value = float(coarse.weight @ forward(coarse.bins.width, work, coarse.c, coarse.penalty, workload))
    full_price = _FULL * max(value, float(data.keep.max() + data.toll.max()))
    order = np.argsort(-accesses_of_rows(data.reads, data.bins), kind="stable")
    for _ in range(_SWEEPS):
        gain = _respond(order, coarse, kinds, share, held, work, workload, full_price)
        if gain <= _LEAST_GAIN * value:
            break
    return kinds


@njit()
def _respond(order, data, kinds, share, held, work, workload, full_price):
    """Place each row where it costs least, all others as they are; returns what that gained, s, and one where a row
    had no whole choice before.

    Args:
        order: rows, in turn.
        data: the problem.
        kinds: (R, m) choices, changed in place.
        share: (R, m) reads of nodes, changed in place.
        held: (R, m) chunks of nodes, changed in place.
        work: (B, m) s, changed in place.
        workload: (B, m) s, changed in place.
        full_price: s, of a chunk beyond a node's capacity.
    """
    width, edge = data.bins.width, data.bins.edge
    bins, m = work.shape
    reads, writes = np.zeros((2, bins)), np.zeros((2, bins))
    read_value, write_value, start = np.zeros(m), np.zeros(m), np.zeros(m)
    hot, cold = np.empty(m), np.empty(m)
    kind = np.empty(m, np.int8)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    chunks = np.zeros(m)
    for i in range(len(kinds)):
        for j in range(m):
            chunks[j] += data.rows.chunks[i] * held[i, j]
    gain = 0.0
    for i in order:
        first, last = spread_over(data.reads, i, width, edge, reads)
        first_write, last_write = spread_over(data.writes, i, width, edge, writes)
        first, last = min(first, first_write), max(last, last_write)
        new = True
        for j in range(m):
            new &= kinds[i, j] != HOT
        for j in range(m):
            read_value[j] = write_value[j] = 0.0
        if last >= 0:
            put(work, reads, data.slope, share[i], -1.0, first, last)
            put(work, writes, data.slope, held[i], -1.0, first, last)
            before(workload, first, start)
            if last_write >= 0:
                increments(
                    width, work, data.c, data.penalty, writes, data.slope, first, last, start, write_value
                )
                add(reads, writes, first, last, 1.0)
            increments(width, work, data.c, data.penalty, reads, data.slope, first, last, start, read_value)
            if last_write >= 0:
                add(reads, writes, first, last, -1.0)
        count = 0
        for j in range(m):
            chunks[j] -= data.rows.chunks[i] * held[i, j]
            over = max(0.0, min(data.rows.chunks[i], chunks[j] + data.rows.chunks[i] - data.rows.capacity[j]))
            cold[j] = data.keep[i, j] + data.weight[j] * write_value[j] + full_price * over
            # rounding must not make a read chunk cheaper than a cold one
            read = max(data.weight[j] * (read_value[j] - write_value[j]), 0.0)
            hot[j] = cold[j] + data.toll[i, j] + read
            if data.rows.allowed[i, j]:
                nodes[count] = j
                count += 1
        least = choice(data.rows, i, hot, cold, nodes, count, kind, scratch, numbers)
        now = 0.0
        for j in range(m):
            if kinds[i, j] != NONE:
                now += hot[j] if kinds[i, j] == HOT else cold[j]
        if new or least < now - 1e-10 * abs(now):
            gain += 1.0 if new else now - least
            for j in range(m):
                kinds[i, j] = kind[j]
        for j in range(m):
            share[i, j] = 1.0 if kinds[i, j] == HOT else 0.0
            held[i, j] = 1.0 if kinds[i, j] != NONE else 0.0
            chunks[j] += data.rows.chunks[i] * held[i, j]
        if last >= 0:
            put(work, reads, data.slope, share[i], 1.0, first, last)
            put(work, writes, data.slope, held[i], 1.0, first, last)
            again(width, work, data.c, first, last, workload)
            clear(reads, first, last)
            clear(writes, first, last)
    return gain


@njit()
def before(workload, first, start):
    """Workloads before a bin, to ``start`` (m,)."""
    for j in range(len(start)):
        start[j] = workload[first - 1, j] if first > 0 else 0.0


@njit()
def add(to, values, first, last, sign):
    """Add (2, B) values between two bins."""
    for p in range(2):
        for b in range(first, last + 1):
            to[p, b] += sign * values[p, b]


@njit()
def clear(values, first, last):
    """Zeros between two bins of (2, B) values."""
    for p in range(2):
        for b in range(first, last + 1):
            values[p, b] = 0.0


@njit()
def spread_over(counts, i, width, edge, result):
    """Accesses of a row by bin: (2, B) numbers and bytes, added to; the first bin and the last, or B and -1."""
    first, last = len(width), -1
    for p in range(counts.start[i], counts.start[i + 1]):
        block = counts.block[p]
        for b in range(edge[block], edge[block + 1]):
            result[0, b] += counts.rate[p] * width[b]
            result[1, b] += counts.bytes[p] * width[b]
        first = min(first, edge[block])
        last = max(last, edge[block + 1] - 1)
    return first, last


@njit()
def put(work, added, slope, share, sign, first, last):
    """Work of a row put on its nodes, or taken from them."""
    for b in range(first, last + 1):
        for j in range(work.shape[1]):
            if share[j] > 0.0:
                more = share[j] * (slope[0, j] * added[0, b] + slope[1, j] * added[1, b])
                work[b, j] = max(work[b, j] + sign * more, 0.0)
