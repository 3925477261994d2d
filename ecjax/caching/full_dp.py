"""The best numbers of chunks by the whole dynamic programme: slow, and plainly right.

F_m(c) = max_j F_{m-1}(c - j) + tau_{m,j}: the best value of the first m items with c chunks at most.
"""

import numpy as np

from ecjax.machine_code import njit


@njit()
def full_dp(tau, capacity, chunks):
    """Fill ``chunks`` with the fewest chunks of largest value.

    Args:
        tau: values, nondecreasing in each row, 0 first, (M, K + 1) float64.
        capacity: C >= 0.
        chunks: filled, (M,) int64.

    Returns:
        The value.
    """
    items, options = tau.shape
    best = np.zeros(capacity + 1)
    choice = np.zeros((items, capacity + 1), np.uint8)
    for m in range(items):
        for c in range(capacity, 0, -1):  # downwards: what is read is still that of the items before
            value, count = best[c], 0
            for j in range(1, min(options, c + 1)):
                other = best[c - j] + tau[m, j]
                if other > value:
                    value, count = other, j
            best[c], choice[m, c] = value, count
    room = capacity
    while room > 0 and best[room - 1] == best[capacity]:
        room -= 1
    for m in range(items - 1, -1, -1):
        chunks[m] = choice[m, room]
        room -= chunks[m]
    return best[capacity]
