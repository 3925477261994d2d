"""Loops over the placement rows of a problem under a log's arrivals: work of nodes, prices, choices, projections."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import choose
from ecjax.planning.certified.loops import usable

_HALVINGS = 60


@njit()
def add_work(counts, slope, share, rate):
    """Add the work of rows to that of nodes.

    Args:
        counts: accesses of the rows.
        slope: (2, m) s and s/B.
        share: (R, m) of the accesses that use each node.
        rate: (K, m) result, added to: work per second of every block.
    """
    m = slope.shape[1]
    by_count, by_size = np.empty(m), np.empty(m)
    for i in range(len(counts.start) - 1):
        for j in range(m):
            by_count[j] = share[i, j] * slope[0, j]
            by_size[j] = share[i, j] * slope[1, j]
        for p in range(counts.start[i], counts.start[i + 1]):
            block, count, size = counts.block[p], counts.rate[p], counts.bytes[p]
            for j in range(m):
                rate[block, j] += by_count[j] * count + by_size[j] * size


@njit()
def price_rows(counts, slope, price, result):
    """What the accesses of a row cost if all used a node.

    Args:
        counts: accesses of the rows.
        slope: (2, m) s and s/B.
        price: (K, m) of work of one per second in every block.
        result: (R, m) s.
    """
    m = slope.shape[1]
    by_count, by_size = np.empty(m), np.empty(m)
    for i in range(len(counts.start) - 1):
        by_count[:] = 0.0
        by_size[:] = 0.0
        for p in range(counts.start[i], counts.start[i + 1]):
            block, count, size = counts.block[p], counts.rate[p], counts.bytes[p]
            for j in range(m):
                by_count[j] += count * price[block, j]
                by_size[j] += size * price[block, j]
        for j in range(m):
            result[i, j] = slope[0, j] * by_count[j] + slope[1, j] * by_size[j]


@njit()
def cheapest(rows, hot, cold, kinds, value):
    """The cheapest whole choice of every row.

    Args:
        rows: what they keep to; the capacities of nodes are left aside.
        hot: (R, m) s, of a chunk that reads use.
        cold: (R, m) s, of one that they do not use.
        kinds: (R, m) result: 2 hot, 1 cold, 0 none.
        value: (R,) result, s; infinite where there is no choice.
    """
    number, m = hot.shape
    nodes = np.empty(m, np.int64)
    scratch, numbers = np.empty((2, m + 2)), np.empty((3, m + 2), np.int64)
    for i in range(number):
        count = usable(rows, i, nodes)
        value[i] = choice(rows, i, hot[i], cold[i], nodes, count, kinds[i], scratch, numbers)


@njit()
def choice(rows, i, hot, cold, nodes, count, kind, scratch, numbers):
    """``choose`` for row i."""
    k = rows.hot[i]
    extra = rows.length[i] - k
    return choose(hot, cold, nodes, count, k, extra, rows.site, rows.per_site, kind, scratch, numbers)


@njit()
def project(point, rows, mask, per_site, result):
    """Nearest point of {0 <= p <= mask, sum p = k, at most q per site} in every row.

    p_j = clip(y_j - tau - mu_site, 0, mask_j): the sum over a site is capped at q, so that the total falls in tau.

    Args:
        point: (R, m) y.
        rows: k and sites.
        mask: (R, m) 0 or 1, with at least k ones within the limits of sites.
        per_site: q; 0: no limit.
        result: (R, m).
    """
    number, m = point.shape
    sites = 0
    for j in range(m):
        sites = max(sites, rows.site[j] + 1)
    sums = np.empty(sites)
    for i in range(number):
        low, high = np.inf, -np.inf
        for j in range(m):
            if mask[i, j]:
                low = min(low, point[i, j] - 1.0)
                high = max(high, point[i, j])
        k = float(rows.hot[i])
        for _ in range(_HALVINGS):
            tau = 0.5 * (low + high)
            if _total(point[i], mask[i], tau, rows.site, per_site, sums) > k:
                low = tau
            else:
                high = tau
        tau = 0.5 * (low + high)
        _total(point[i], mask[i], tau, rows.site, per_site, sums)
        for j in range(m):
            shift = tau
            if per_site > 0 and sums[rows.site[j]] > per_site:
                shift = _site_shift(point[i], mask[i], tau, rows.site, rows.site[j], per_site)
            result[i, j] = min(max(point[i, j] - shift, 0.0), 1.0) if mask[i, j] else 0.0
        _mend(result[i], mask[i], k)


@njit()
def _total(point, mask, tau, site, per_site, sums):
    """Sum of a row at tau, and of every site before its limit."""
    if per_site == 0:
        total = 0.0
        for j in range(len(point)):
            if mask[j]:
                total += min(max(point[j] - tau, 0.0), 1.0)
        return total
    sums[:] = 0.0
    for j in range(len(point)):
        if mask[j]:
            sums[site[j]] += min(max(point[j] - tau, 0.0), 1.0)
    total = 0.0
    for s in range(len(sums)):
        total += min(sums[s], float(per_site))
    return total


@njit()
def _site_shift(point, mask, tau, site, which, per_site):
    low, high = tau, tau
    for j in range(len(point)):
        if mask[j] and site[j] == which:
            high = max(high, point[j])
    for _ in range(_HALVINGS):
        shift = 0.5 * (low + high)
        total = 0.0
        for j in range(len(point)):
            if mask[j] and site[j] == which:
                total += min(max(point[j] - shift, 0.0), 1.0)
        if total > per_site:
            low = shift
        else:
            high = shift
    return high


@njit()
def _mend(values, mask, k):
    """Rounding of the bisection, taken from or given to entries with room."""
    short = k
    for j in range(len(values)):
        short -= values[j]
    for j in range(len(values)):
        if mask[j] and 0.0 < values[j] < 1.0:
            changed = min(max(values[j] + short, 0.0), 1.0)
            short -= changed - values[j]
            values[j] = changed
