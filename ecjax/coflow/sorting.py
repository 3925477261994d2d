"""Stable sorting in compiled loops: NumPy's sorts take a tenth of the time that compiling all schedulers takes."""

import numpy as np

from ecjax.machine_code import njit


@njit(inner=True)
def stable_order(keys):
    """Places of the keys from the least on, equal ones as they come: (n,) int64, by merging.

    Args:
        keys: (n,) float64; ``as_keys`` makes them of whole numbers.
    """
    n = len(keys)
    order, other = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            i, j = first, middle
            for place in range(first, last):
                if i < middle and (j >= last or keys[order[i]] <= keys[order[j]]):
                    other[place] = order[i]
                    i += 1
                else:
                    other[place] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@njit(inner=True)
def as_keys(numbers):
    """Whole numbers below 2^53 as float64, (n,), so that one version of ``stable_order`` sorts all."""
    keys = np.empty(len(numbers))
    for i in range(len(numbers)):
        keys[i] = numbers[i]
    return keys
