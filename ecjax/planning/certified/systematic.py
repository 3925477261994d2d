"""From the marginals of bins to whole choices: systematic sampling, then chunks that go where they cost less.

The row of rank i in its bin takes the hot nodes at which u, u + 1, ..., u + k - 1 fall among the summed hot marginals,
u the fractional part of i times the golden ratio; nodes are in the order of their sites, so that a site gets no more
chunks than its marginals allow. Cold chunks go to the cheapest nodes that are left.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import COLD, HOT, NONE, choose
from ecjax.planning.certified.loops import _dollars, usable
from ecjax.planning.certified.waits import term_of, wait_of

GOLDEN = 0.6180339887498949


@njit()
def place(first, last, rows, of_row, rank, sums, order, chunk, kinds):
    """Write whole choices of the rows first..last - 1 to ``kinds``.

    Args:
        first: first row.
        last: one past the last row.
        rows: the rows.
        of_row: (R,) bin of each row.
        rank: (R,) number of each row in the order of the bins.
        sums: (G, m) hot marginals summed over the nodes in ``order``; the last is k.
        order: (m,) nodes, those of a site together.
        chunk: (m,) s, price of a place for a chunk.
        kinds: (R, m) result.
    """
    m = len(order)
    used = np.zeros(m + 1, np.int64)
    for i in range(first, last):
        kinds[i] = NONE
        used[:] = 0
        by = sums[of_row[i]]
        u = rank[i] * GOLDEN % 1.0
        k = rows.hot[i]
        hot = 0
        for position in range(m):
            before = by[position - 1] if position else 0.0
            # how many of u, u + 1, ... are in [before, by[position])
            j = order[position]
            full = rows.per_site and used[rows.site[j]] >= rows.per_site
            if hot < k and by[position] > u + hot and by[position] > before and not full:
                kinds[i, j] = HOT
                used[rows.site[j]] += 1
                hot += 1
        while hot < k:
            # rounding of the sums lost one at the end
            j = _cheapest_left(rows, i, kinds, used, chunk)
            if j < 0:
                break
            kinds[i, j] = HOT
            used[rows.site[j]] += 1
            hot += 1
        for _ in range(rows.length[i] - k):
            j = _cheapest_left(rows, i, kinds, used, chunk)
            if j < 0:
                break
            kinds[i, j] = COLD
            used[rows.site[j]] += 1


@njit(inner=True)
def _cheapest_left(rows, i, kinds, used, chunk):
    best, least = -1, np.inf
    for j in range(len(chunk)):
        if kinds[i, j] != NONE or (len(rows.allowed) and not rows.allowed[i, j]):
            continue
        if rows.per_site and used[rows.site[j]] >= rows.per_site:
            continue
        cost = _dollars(rows, i, j)[0] + rows.chunks[i] * chunk[j]
        if cost < least:
            best, least = j, cost
    return best


@njit()
def spread(order, rows, rate, of_row, share, price, bend, chunk, kinds):
    """Whole choices, one row after the other, whose loads stay close to those of the marginals (error diffusion).

    Every row takes its cheapest choice at prices that rise where the rows before it have asked for more than their
    marginals, as the second derivative of the latency says.

    Args:
        order: rows in the order they are decided, those with most work first.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        of_row: (R,) bin of each row.
        share: (G, m) hot marginals.
        price: (m,) s per 1/s.
        bend: (m,) s per 1/s^2, the second derivative.
        chunk: (m,) s, price of a place for a chunk.
        kinds: (R, m) result.
    """
    m = len(price)
    deviation = np.zeros(m)
    hot, cold = np.empty(m), np.empty(m)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    for i in order:
        flow, by = rate[i], share[of_row[i]]
        count = usable(rows, i, nodes)
        for j in range(m):
            deviation[j] -= flow * by[j]
        for position in range(count):
            j = nodes[position]
            stored, reading = _dollars(rows, i, j)
            cold[j] = stored + rows.chunks[i] * chunk[j]
            # a price below nothing would make reads welcome
            work = max(price[j] + bend[j] * (deviation[j] + 0.5 * flow), 0.0)
            hot[j] = cold[j] + reading + flow * work
        extra = max(0, rows.length[i] - rows.hot[i])
        choose(
            hot, cold, nodes, count, rows.hot[i], extra, rows.site, rows.per_site, kinds[i], scratch, numbers
        )
        for j in range(m):
            if kinds[i, j] == HOT:
                deviation[j] += flow


@njit()
def polish(order, service, rows, rate, kinds, loads, chunks, z):
    """Move chunks, one at a time, to where they cost less at the true rise of the latency; returns the gain in s.

    Args:
        order: rows to go through.
        service: nodes; one chunk size.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        kinds: (R, m) choices, changed in place.
        loads: (m,) 1/s, reads of the nodes, changed in place.
        chunks: (m,) chunks of the nodes, changed in place.
        z: s.
    """
    m = len(loads)
    value, slope = np.empty(m), np.empty(m)
    for j in range(m):
        value[j] = node_cost(service, j, loads[j], z)
        slope[j] = _slope(service, j, loads[j], value[j], z)
    stored, reading = np.empty(m), np.empty(m)
    used = np.zeros(m + 1, np.int64)
    gain = 0.0
    for i in order:
        flow = rate[i]
        used[:] = 0
        for j in range(m):
            stored[j], reading[j] = _dollars(rows, i, j)
            if kinds[i, j] != NONE:
                used[rows.site[j]] += 1
        for j in range(m):
            if kinds[i, j] == NONE:
                continue
            hot = kinds[i, j] == HOT
            saved = stored[j]
            if hot:
                saved += reading[j] + value[j] - node_cost(service, j, loads[j] - flow, z)
            best, least, swap = -1, saved - 1e-12 * abs(saved), False
            for other in range(m):
                if other == j or (len(rows.allowed) and not rows.allowed[i, other]):
                    continue
                if kinds[i, other] == NONE:
                    if (
                        rows.per_site
                        and rows.site[other] != rows.site[j]
                        and used[rows.site[other]] >= rows.per_site
                    ):
                        continue
                    if chunks[other] + rows.chunks[i] > rows.capacity[other]:
                        continue
                    cost = stored[other]
                elif hot and kinds[i, other] == COLD:
                    # the two change roles: both keep their chunk
                    cost = stored[j]
                else:
                    continue
                if hot:
                    cost += reading[other]
                    # F is convex: its slope says too little
                    if cost + flow * slope[other] >= least:
                        continue
                    cost += node_cost(service, other, loads[other] + flow, z) - value[other]
                if cost < least:
                    best, least, swap = other, cost, kinds[i, other] == COLD and hot
            if best < 0:
                continue
            gain += saved - least
            if hot:
                loads[j] = max(loads[j] - flow, 0.0)
                loads[best] += flow
                for node in (j, best):
                    value[node] = node_cost(service, node, loads[node], z)
                    slope[node] = _slope(service, node, loads[node], value[node], z)
            if swap:
                kinds[i, j], kinds[i, best] = COLD, HOT
                continue
            kinds[i, best], kinds[i, j] = kinds[i, j], NONE
            used[rows.site[j]] -= 1
            used[rows.site[best]] += 1
            chunks[j] -= rows.chunks[i]
            chunks[best] += rows.chunks[i]
    return gain


@njit()
def node_cost(service, j, load, z):
    """F of node j at a rate of reads, s, where all chunks have one size: ``node_value`` without arrays to make."""
    reads, moments, other = max(load, 0.0), service.moments, service.background
    wait, spread, over = wait_of(
        other[j, 0] + reads * moments[0, j, 0],
        other[j, 1] + reads * moments[1, j, 0],
        other[j, 2] + reads * moments[2, j, 0],
    )
    term = term_of(reads, wait, spread, service.mean[j, 0], service.variance[j, 0], z, service.alone)
    return (term + service.penalty * service.rate * over * over) / service.rate


@njit(inner=True)
def cost_and_slopes(service, j, load, step, z):
    """F of node j at a rate of reads, s, and its first and second derivatives by differences of a step, 1/s."""
    low = max(load - step, 0.0)
    middle = low + step
    first, last = node_cost(service, j, low, z), node_cost(service, j, middle + step, z)
    bend = (last - 2 * node_cost(service, j, middle, z) + first) / (step * step)
    return node_cost(service, j, load, z), (last - first) / (2 * step), max(bend, 0.0)


@njit(inner=True)
def _slope(service, j, load, value, z):
    """No more than the slope of F at ``load``, s per 1/s: from a little before it."""
    step = 1e-6 * load
    if step <= 0:
        return 0.0
    return (value - node_cost(service, j, load - step, z)) / step * (1 - 1e-6)
