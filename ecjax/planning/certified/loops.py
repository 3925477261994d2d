"""Passes over placement rows, compiled: cheapest choices at prices, best responses at true node values, rounding."""

import numpy as np

from ecjax.machine_code import copy_into, njit
from ecjax.planning.certified.choice import COLD, HOT, NONE, choose
from ecjax.planning.certified.waits import node_value


@njit()
def usable(rows, i, nodes):
    """Nodes that row ``i`` may use, to ``nodes``; returns how many."""
    count = 0
    for j in range(len(rows.site)):
        if len(rows.allowed) == 0 or rows.allowed[i, j]:
            nodes[count] = j
            count += 1
    return count


@njit(inner=True)
def _dollars(rows, i, j):
    """Seconds of objective that a chunk of row ``i`` on node ``j`` costs in dollars; the second if reads use it."""
    stored = rows.chunks[i] * rows.chunk_price[j] + rows.bytes[i] * rows.byte_price[j]
    if len(rows.surcharge):
        stored += rows.surcharge[i, j]
    read = rows.reading[i, j] if len(rows.reading) else 0.0
    return rows.per_dollar * stored, rows.per_dollar * read


@njit(inner=True)
def held_at_sites(which, rows, kinds):
    """Chunks, not 0 in ``kinds`` (R, m), of rows ``which`` at each site, (R, S); nothing without a limit there."""
    if rows.per_site == 0:
        return np.zeros((1, 1), np.int16)
    held = np.zeros((kinds.shape[0], rows.site.max() + 1), np.int16)
    for i in which:
        for j in range(kinds.shape[1]):
            if kinds[i, j] != NONE:
                held[i, rows.site[j]] += 1
    return held


@njit(inner=True)
def _at_prices(rows, i, read, write, chunk, nodes, count, hot, cold):
    for position in range(count):
        j = nodes[position]
        stored, reading = _dollars(rows, i, j)
        stored += rows.chunks[i] * chunk[j]
        for p in range(rows.start[i], rows.start[i + 1]):
            c = rows.grid[p]
            reading += rows.read[p] * read[j, c]
            if rows.written:
                stored += rows.write[p] * write[j, c]
        cold[j], hot[j] = stored, stored + reading


@njit(inner=True)
def _add(rows, i, kind, weight, sizes, loads, chunks):
    """Add the loads (m, X) and chunks (m,) of a choice; returns its dollars in s."""
    dollars = 0.0
    for j in range(len(kind)):
        if kind[j] == NONE:
            continue
        stored, reading = _dollars(rows, i, j)
        dollars += weight * stored
        chunks[j] += weight * rows.chunks[i]
        if kind[j] == HOT:
            dollars += weight * reading
        for p in range(rows.start[i], rows.start[i + 1]):
            if kind[j] == HOT:
                loads[j, rows.grid[p]] += weight * rows.read[p]
            if rows.written:
                loads[j, sizes + rows.grid[p]] += weight * rows.write[p]
    return dollars


@njit()
def cheapest(first, last, rows, group, read, write, chunk, loads, chunks, dollars):
    """Cheapest choice of every row first..last - 1 at prices; returns the sum of their costs, s.

    Args:
        first: first row.
        last: one past the last row.
        rows: the rows.
        group: (R,) group of each row.
        read: (m, C) price of reads, s per 1/s.
        write: (m, C) price of writes.
        chunk: (m,) price of a place for a chunk, s.
        loads: (G, m, X) result: loads of the choices of each group, added.
        chunks: (G, m) result: chunks.
        dollars: (G,) result: dollars of the choices in s.
    """
    m, sizes = read.shape
    hot, cold, kind = np.empty(m), np.empty(m), np.empty(m, np.int8)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    total = 0.0
    for i in range(first, last):
        count = usable(rows, i, nodes)
        _at_prices(rows, i, read, write, chunk, nodes, count, hot, cold)
        extra = max(0, rows.length[i] - rows.hot[i])
        total += choose(
            hot, cold, nodes, count, rows.hot[i], extra, rows.site, rows.per_site, kind, scratch, numbers
        )
        g = group[i]
        dollars[g] += _add(rows, i, kind, 1.0, sizes, loads[g], chunks[g])
    return total


@njit()
def totals(first, last, rows, kinds, group, sizes, loads, chunks, dollars):
    """Loads, chunks and dollars of given choices (R, m), added by group as in ``cheapest``."""
    for i in range(first, last):
        g = group[i]
        dollars[g] += _add(rows, i, kinds[i], 1.0, sizes, loads[g], chunks[g])


@njit(inner=True)
def _shift(rows, i, moments, j, hot, stored, work, reads):
    """Add ``hot`` times the reads and ``stored`` times the writes of row ``i`` to a node's sums."""
    for p in range(rows.start[i], rows.start[i + 1]):
        c = rows.grid[p]
        rate = hot * rows.read[p] + stored * rows.write[p]
        reads[c] += hot * rows.read[p]
        for q in range(3):
            work[q] += rate * moments[q, j, c]


@njit()
def respond(order, service, rows, kinds, work, reads, chunks, z, chunk_price, full_price):
    """Every row of ``order`` in turn takes its best whole choice against all others; returns how many changed.

    Args:
        order: rows to go through.
        service: nodes.
        rows: the rows.
        kinds: (R, m) choices, changed in place; a row without any is placed.
        work: (m, 3) node sums with those choices, changed in place.
        reads: (m, C) read rates, changed in place.
        chunks: (m,) chunks, changed in place.
        z: s.
        chunk_price: (m,) s, price of a place for a chunk where places are short.
        full_price: s, charged for a chunk beyond a node's capacity.
    """
    m = len(work)
    moments, rate = service.moments, service.rate
    hot, cold, kind = np.empty(m), np.empty(m), np.empty(m, np.int8)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    own_work, own_reads = np.empty(3), np.empty(reads.shape[1])
    value = np.empty(m)
    for j in range(m):
        value[j] = _value(service, j, work[j], reads[j], z)
    by_kind = np.empty((3, m))
    moved = 0
    for i in order:
        count = usable(rows, i, nodes)
        for position in range(count):
            j = nodes[position]
            now = kinds[i, j]
            for other in range(3):
                if other == now:
                    by_kind[other, j] = value[j]
                elif other == COLD and not rows.written:
                    continue
                else:
                    copy_into(own_work, work[j])
                    copy_into(own_reads, reads[j])
                    hotter = 1.0 * (other == HOT) - 1.0 * (now == HOT)
                    more = 1.0 * (other != NONE) - 1.0 * (now != NONE)
                    _shift(rows, i, moments, j, hotter, more, own_work, own_reads)
                    by_kind[other, j] = _value(service, j, own_work, own_reads, z)
            if not rows.written:
                # a cold chunk that is not written is no work
                if now == COLD:
                    by_kind[NONE, j] = value[j]
                by_kind[COLD, j] = by_kind[NONE, j]
            stored, reading = _dollars(rows, i, j)
            others = chunks[j] - (rows.chunks[i] if now != NONE else 0.0)
            stored += rows.chunks[i] * chunk_price[j]
            stored += full_price * max(0.0, min(rows.chunks[i], others + rows.chunks[i] - rows.capacity[j]))
            cold[j] = stored + (by_kind[COLD, j] - by_kind[NONE, j]) / rate
            hot[j] = stored + reading + (by_kind[HOT, j] - by_kind[NONE, j]) / rate
        extra = max(0, rows.length[i] - rows.hot[i])
        choose(hot, cold, nodes, count, rows.hot[i], extra, rows.site, rows.per_site, kind, scratch, numbers)
        changed = False
        before = after = 0.0
        for position in range(count):
            j = nodes[position]
            before += hot[j] if kinds[i, j] == HOT else cold[j] if kinds[i, j] == COLD else 0.0
            after += hot[j] if kind[j] == HOT else cold[j] if kind[j] == COLD else 0.0
            changed |= kind[j] != kinds[i, j]
        empty = not np.any(kinds[i] == HOT)
        if not changed or (not empty and not after < before - 1e-14 * abs(before)):
            continue
        moved += 1
        for j in range(m):
            now, other = kinds[i, j], kind[j]
            if now == other:
                continue
            hotter = 1.0 * (other == HOT) - 1.0 * (now == HOT)
            more = 1.0 * (other != NONE) - 1.0 * (now != NONE)
            _shift(rows, i, moments, j, hotter, more, work[j], reads[j])
            chunks[j] += more * rows.chunks[i]
            value[j] = by_kind[other, j]
            kinds[i, j] = other
    return moved


@njit(inner=True)
def _value(service, j, work, reads, z):
    return node_value(
        work, reads, service.mean[j], service.variance[j], z, service.alone, service.penalty * service.rate
    )


@njit()
def spread_errors(order, rows, group, start, weight, price, read, write, chunk, kinds, roots, result):
    """Whole choices whose loads stay close to those of the mixture they come from (error diffusion).

    Every row takes one of the choices that its group mixes: the one that least raises the linear cost of the loads
    plus half the square of the deviation, in the metric of the latency's second derivative, that all rows so far left.

    Args:
        order: rows in the order they are decided, those with most work first.
        rows: the rows.
        group: (R,) group of each row.
        start: (G + 1,) columns start[g]:start[g + 1] are those of group g.
        weight: (n,) of the columns, 1 in sum for each group.
        price: (n,) which prices a column's choices are cheapest at; -1 for the choices ``kinds``.
        read: (T, m, C) prices of reads.
        write: (T, m, C) prices of writes.
        chunk: (T, m) prices of places.
        kinds: (R, m) the choices of columns without prices.
        roots: (m, X, p) roots of the second derivative.
        result: (R, m) choices.
    """
    m, sizes = read.shape[1], read.shape[2]
    most = 1
    for g in range(len(start) - 1):
        most = max(most, start[g + 1] - start[g])
    hot, cold = np.empty(m), np.empty(m)
    kind = np.empty((most, m), np.int8)
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    width = roots.shape[2]
    deviation = np.zeros((m, width))
    by_read, by_write = np.empty((m, width)), np.empty((m, width))
    last = len(read) - 1
    for i in order:
        g = group[i]
        count = usable(rows, i, nodes)
        extra = max(0, rows.length[i] - rows.hot[i])
        by_read[:] = 0.0
        by_write[:] = 0.0
        for j in range(m):
            for p in range(rows.start[i], rows.start[i + 1]):
                c = rows.grid[p]
                for t in range(width):
                    by_read[j, t] += rows.read[p] * roots[j, c, t]
                    if rows.written:
                        by_write[j, t] += rows.write[p] * roots[j, sizes + c, t]
        for t in range(start[g + 1] - start[g]):
            column = start[g] + t
            if price[column] < 0:
                kind[t] = kinds[i]
                continue
            q = price[column]
            _at_prices(rows, i, read[q], write[q], chunk[q], nodes, count, hot, cold)
            choose(
                hot,
                cold,
                nodes,
                count,
                rows.hot[i],
                extra,
                rows.site,
                rows.per_site,
                kind[t],
                scratch,
                numbers,
            )
        _at_prices(rows, i, read[last], write[last], chunk[last], nodes, count, hot, cold)
        for j in range(m):
            for t in range(width):
                mean = 0.0
                for s in range(start[g + 1] - start[g]):
                    if kind[s, j] == HOT:
                        mean += weight[start[g] + s] * by_read[j, t]
                    if kind[s, j] != NONE:
                        mean += weight[start[g] + s] * by_write[j, t]
                deviation[j, t] -= mean
        best, least = 0, np.inf
        for s in range(start[g + 1] - start[g]):
            cost = 0.0
            for j in range(m):
                if kind[s, j] == NONE:
                    continue
                cost += hot[j] if kind[s, j] == HOT else cold[j]
                for t in range(width):
                    add = by_write[j, t] + (by_read[j, t] if kind[s, j] == HOT else 0.0)
                    cost += add * (deviation[j, t] + 0.5 * add)
            if cost < least:
                best, least = s, cost
        for j in range(m):
            result[i, j] = kind[best, j]
            if kind[best, j] != NONE:
                for t in range(width):
                    deviation[j, t] += by_write[j, t] + (by_read[j, t] if kind[best, j] == HOT else 0.0)
