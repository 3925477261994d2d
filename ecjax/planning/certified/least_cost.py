"""Sums of the cheapest whole choices of rows at prices: only their cost, by the tangents of ``smoothed.exact``."""

import numpy as np
from numba import njit

_ROUNDING = 1e-14


@njit(cache=True, nogil=True)
def least_cost(first, last, rows, read, chunk):
    """Sum of the costs of the cheapest choices of rows first..last - 1, s, where all chunks have one size.

    Args:
        first: first row.
        last: one past the last row.
        rows: the rows.
        read: (m,) s per 1/s.
        chunk: (m,) s, price of a place.
    """
    m = len(read)
    hot, cold = np.empty(m), np.empty(m)
    site = np.empty(m, np.int64)
    sites = rows.site.max() + 1 if rows.per_site else 1
    held, count = np.empty((sites, max(rows.per_site, 1), 2)), np.empty(sites, np.int64)
    most = 1
    for i in range(first, last):
        most = max(most, rows.length[i], rows.hot[i])
    best = np.empty((most, 2))
    total = 0.0
    for i in range(first, last):
        flow = 0.0
        for p in range(rows.start[i], rows.start[i + 1]):
            flow += rows.read[p]
        usable = 0
        for j in range(m):
            if len(rows.allowed) and not rows.allowed[i, j]:
                continue
            stored = rows.per_dollar * (
                rows.chunks[i] * rows.chunk_price[j] + rows.bytes[i] * rows.byte_price[j]
            )
            if len(rows.surcharge):
                stored += rows.per_dollar * rows.surcharge[i, j]
            stored += rows.chunks[i] * chunk[j]
            cold[usable] = stored
            hot[usable] = stored + flow * read[j]
            if len(rows.reading):
                hot[usable] += rows.per_dollar * rows.reading[i, j]
            site[usable] = rows.site[j]
            usable += 1
        k, extra = rows.hot[i], max(0, rows.length[i] - rows.hot[i])
        total += _one(hot, cold, site, usable, k, extra, rows.per_site, best, held, count)
    return total


@njit(cache=True, nogil=True)
def _one(hot, cold, site, usable, k, extra, per_site, best, held, count):
    n = k + extra
    if extra == 0:
        return _least(hot, cold, site, usable, n, per_site, 0.0, 1, best, held, count)[0]
    left, _ = _least(hot, cold, site, usable, n, per_site, 0.0, 2, best, held, count)
    right, _ = _least(hot, cold, site, usable, n, per_site, 0.0, 1, best, held, count)
    if not np.isfinite(left):
        return np.inf
    left_slope, right_slope = k, -extra
    value = -np.inf
    for _ in range(n + 2):
        shift = (right - left) / (left_slope - right_slope)
        total, number = _least(hot, cold, site, usable, n, per_site, shift, 0, best, held, count)
        here, slope = total + k * shift, k - number
        value = max(value, here)
        promised = left + left_slope * shift
        if slope == 0 or here >= promised - _ROUNDING * (abs(here) + abs(k * shift)):
            break
        if slope > 0:
            left_slope, left = slope, here - slope * shift
        else:
            right_slope, right = slope, here - slope * shift
    return value


@njit(cache=True, nogil=True)
def _least(hot, cold, site, usable, n, per_site, shift, kind, best, held, count):
    """Sum of the n least costs and how many of them are hot.

    Costs are min(hot - shift, cold), with ``kind`` 1 those of hot chunks only, with 2 those of cold ones.
    """
    total, full = 0.0, 0
    hot_ones = 0
    count[:] = 0
    for position in range(usable):
        as_hot = hot[position] - shift
        is_hot = kind == 1 or (kind == 0 and as_hot <= cold[position])
        cost = as_hot if is_hot else cold[position]
        if full == n and cost >= best[n - 1, 0]:
            continue
        if per_site:
            # the dearest of a full site makes room
            s = site[position]
            if count[s] == per_site:
                dearest = 0
                for place in range(1, per_site):
                    if held[s, place, 0] > held[s, dearest, 0]:
                        dearest = place
                if cost >= held[s, dearest, 0]:
                    continue
                gone = held[s, dearest, 0]
                held[s, dearest, 0], held[s, dearest, 1] = cost, 1.0 * is_hot
                place = 0
                # it may have been pushed out by others already
                while place < full and best[place, 0] != gone:
                    place += 1
                if place < full:
                    total -= gone
                    hot_ones -= int(best[place, 1])
                    for later in range(place, full - 1):
                        best[later, 0], best[later, 1] = best[later + 1, 0], best[later + 1, 1]
                    full -= 1
            else:
                held[s, count[s], 0], held[s, count[s], 1] = cost, 1.0 * is_hot
                count[s] += 1
        if full < n:
            place = full
            full += 1
        else:
            place = n - 1
            total -= best[place, 0]
            hot_ones -= int(best[place, 1])
        total += cost
        hot_ones += int(is_hot)
        while place > 0 and best[place - 1, 0] > cost:
            best[place, 0], best[place, 1] = best[place - 1, 0], best[place - 1, 1]
            place -= 1
        best[place, 0], best[place, 1] = cost, 1.0 * is_hot
    if full < n:
        return np.inf, 0
    # added anew: what came and went leaves rounding
    total = 0.0
    for place in range(n):
        total += best[place, 0]
    return total, hot_ones
