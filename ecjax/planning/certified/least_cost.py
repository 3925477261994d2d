"""What the cheapest whole choices of rows cost at prices."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.loops import _dollars
from ecjax.planning.smoothed.host import cheapest


@njit()
def least_costs(first, last, rows, rate, read, chunk, sites, costs):
    """Costs of the cheapest choices of rows first..last - 1, s, where all chunks have one size.

    Args:
        first: first row.
        last: one past the last row.
        rows: the rows.
        rate: (R,) 1/s, reads of each.
        read: (m,) s per 1/s.
        chunk: (m,) s, price of a place.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        costs: (R,) result.
    """
    m, per_site = len(read), max(rows.per_site, 1)
    hot, cold = np.empty(m), np.empty(m)
    most = 1
    for i in range(first, last):
        most = max(most, rows.length[i], rows.hot[i])
    room = np.empty((most + 1 + per_site, 2))
    for i in range(first, last):
        for j in range(m):
            hot[j] = cold[j] = np.inf
            if len(rows.allowed) == 0 or rows.allowed[i, j]:
                stored, reading = _dollars(rows, i, j)
                cold[j] = stored + rows.chunks[i] * chunk[j]
                hot[j] = cold[j] + reading + rate[i] * read[j]
        extra = max(0, rows.length[i] - rows.hot[i])
        costs[i] = cheapest(hot, cold, rows.hot[i], extra, sites, per_site, 0.0, room)[0]
