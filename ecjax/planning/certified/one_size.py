"""The least Lagrangian of a node where all chunks have one size: convex in the one read rate, so solved exactly.

N(y, z) = min over x in [0, X], rho < 1 of  (x / lambda_hat) phi(x; z) - y x,
phi = 1/2 [(w + E - z) + sqrt((w + E - z)^2 + q + w^2 + V)],  w, q the waits at read rate x.
"""

import numpy as np

from ecjax.machine_code import njit

_STEPS = 90
_LEAST_PART = 0.02  # of a bracket, that a step leaves at both ends
_SHARP = 1e-13


@njit()
def least(first, last, moments, mean, variance, background, most, price, z, rate, alone, result):
    """Write the minima of the nodes first..last - 1 at every z to ``result`` (Z, m), s, never above the true ones.

    Args:
        first: first node.
        last: one past the last node.
        moments: (3, m) raw service moments.
        mean: (m,) s, of service and connection.
        variance: (m,) s^2.
        background: (m, 3) sums of other work.
        most: (m,) 1/s, reads that the node can get.
        price: (m,) s per 1/s.
        z: (Z,) s.
        rate: 1/s, lambda_hat.
        alone: whether k = 1 everywhere: phi = w + E.
        result: (Z, m).
    """
    for j in range(first, last):
        top = min(most[j], (1 - background[j, 0]) / moments[0, j] * (1 - 1e-12))
        guess = 0.5 * top
        for i in range(len(z)):
            low, high = 0.0, top
            value, slope = _at(low, moments, mean, variance, background, j, price[j], z[i], rate, alone)
            if slope >= 0:
                result[i, j] = 0.0
                continue
            x = guess
            end, best, rising = 0.0, -np.inf, np.inf
            for _ in range(_STEPS):
                there, by = _at(x, moments, mean, variance, background, j, price[j], z[i], rate, alone)
                width = high - low
                if by < 0:
                    low, value, slope = x, there, by
                else:
                    # the line in x lies below the function: so does its value at the other end
                    high, end, rising = x, there - by * (x - low), by
                # under both tangents
                best = max(best, value + slope * (high - low))
                if high < top:
                    best = max(best, end)
                if value - best <= _SHARP * abs(value):
                    break
                x = 0.5 * (low + high)
                if high - low <= 0.5 * width and rising < np.inf:
                    # where a line through the slopes is zero, while that closes in from both sides
                    x = low + (high - low) * min(max(slope / (slope - rising), _LEAST_PART), 1 - _LEAST_PART)
            guess = x
            result[i, j] = best


@njit(inner=True)
def _at(x, moments, mean, variance, background, j, price, z, rate, alone):
    room = 1 - background[j, 0] - x * moments[0, j]
    second = background[j, 1] + x * moments[1, j]
    third = background[j, 2] + x * moments[2, j]
    w, q = 0.5 * second / room, third / (3 * room)
    by_w = (0.5 * moments[1, j] + w * moments[0, j]) / room
    by_q = (moments[2, j] / 3 + q * moments[0, j]) / room
    if alone:
        term, by = w + mean[j], by_w
    else:
        d = w + mean[j] - z
        root = np.sqrt(d * d + q + w * w + variance[j])
        term = 0.5 * (d + root)
        by = 0.5 * (1 + (d + w) / root) * by_w + 0.25 / root * by_q
    return x * (term / rate - price), term / rate - price + x * by / rate
