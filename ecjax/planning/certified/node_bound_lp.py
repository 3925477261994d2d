"""A linear program with two rows and bounded columns, by the dual simplex method.

    minimise cost . x   subject to   A . x <= R_A,   B . x <= R_B,   0 <= x <= most,   A, B >= 0.

Its multipliers a, b >= 0 maximise the concave, piecewise linear

    D(a, b) = -a R_A - b R_B + sum_j most_j min(0, cost_j + a A_j + b B_j).

A basis of two columns (slacks count) is a point where two of D's pieces meet; a step of the method goes along one edge
to the highest point of it, past as many kinks as it takes (bounds flip). Every basis with a, b >= 0 can be started
from: columns outside of it sit at the bound that the sign of their reduced cost says.
"""

import numpy as np

from ecjax.machine_code import njit

MOST_STEPS = 60


@njit(inner=True)
def column(index, first, second):
    """Entries of a column in the two rows; the slacks come after the columns."""
    count = len(first)
    if index < count:
        return first[index], second[index]
    return (1.0, 0.0) if index == count else (0.0, 1.0)


@njit()
def solve(cost, first, second, room_first, room_second, most, basis, x):
    """Solve from a basis; ``basis`` and ``x`` receive the last one and its solution.

    Any multipliers returned are valid in D; where the steps run out they are only not the best.

    Args:
        cost: (n,).
        first: (n,) row A.
        second: (n,) row B.
        room_first: R_A >= 0.
        room_second: R_B >= 0.
        most: (n,).
        basis: (2,) columns to start from, n and n + 1 for the slacks; overwritten.
        x: (n,) result, within its bounds; feasible up to rounding.

    Returns:
        (a, b).
    """
    n = len(cost)
    a, b = _multipliers(cost, first, second, basis)
    for _ in range(MOST_STEPS):
        i, j = basis
        a_i, b_i = column(i, first, second)
        a_j, b_j = column(j, first, second)
        determinant = a_i * b_j - a_j * b_i
        rest_first, rest_second = room_first, room_second
        for c in range(n):
            x[c] = 0.0
            if c != i and c != j and cost[c] + a * first[c] + b * second[c] < 0:
                x[c] = most[c]
                rest_first -= most[c] * first[c]
                rest_second -= most[c] * second[c]
        x_i = (rest_first * b_j - rest_second * a_j) / determinant
        x_j = (rest_second * a_i - rest_first * b_i) / determinant
        most_i = most[i] if i < n else np.inf
        most_j = most[j] if j < n else np.inf
        if i < n:
            x[i] = min(max(x_i, 0.0), most_i)
        if j < n:
            x[j] = min(max(x_j, 0.0), most_j)
        # how far outside its bounds each is, in units of what its column puts into the rows
        off_i = max(-x_i, x_i - most_i) * (a_i + b_i)
        off_j = max(-x_j, x_j - most_j) * (a_j + b_j)
        if max(off_i, off_j) <= 1e-12 * (room_first + room_second):
            break
        if off_i >= off_j:
            out, along_a, along_b, rise = 0, b_j / determinant, -a_j / determinant, max(-x_i, x_i - most_i)
            if x_i > 0:
                along_a, along_b = -along_a, -along_b
        else:
            out, along_a, along_b, rise = 1, -b_i / determinant, a_i / determinant, max(-x_j, x_j - most_j)
            if x_j > 0:
                along_a, along_b = -along_a, -along_b
        entering, step = _end_of_edge(cost, first, second, most, i, j, a, b, along_a, along_b, rise)
        if entering < 0:
            break
        a = max(a + step * along_a, 0.0)
        b = max(b + step * along_b, 0.0)
        basis[out] = entering
    return a, b


@njit(inner=True)
def _multipliers(cost, first, second, basis):
    """Where the two pieces of a basis meet; the slacks instead where that is nowhere or not at a, b >= 0."""
    n = len(cost)
    i, j = basis
    a_i, b_i = column(i, first, second)
    a_j, b_j = column(j, first, second)
    determinant = a_i * b_j - a_j * b_i
    if abs(determinant) > 1e-10 * (a_i * b_j + a_j * b_i):
        c_i = cost[i] if i < n else 0.0
        c_j = cost[j] if j < n else 0.0
        a = (c_j * b_i - c_i * b_j) / determinant
        b = (c_i * a_j - c_j * a_i) / determinant
        scale = 1e-12 * (abs(a) + abs(b))
        if a >= -scale and b >= -scale:
            return max(a, 0.0), max(b, 0.0)
    basis[0], basis[1] = n, n + 1
    return 0.0, 0.0


@njit(inner=True)
def _end_of_edge(cost, first, second, most, i, j, a, b, along_a, along_b, rise):
    """The column whose kink ends the rise of D along an edge, and the length to there; -1 where it rises for ever."""
    n = len(cost)
    passed = 0.0
    last = -1
    while True:
        entering, nearest, fall = -1, np.inf, 0.0
        for c in range(n + 2):
            if c == i or c == j:
                continue
            a_c, b_c = column(c, first, second)
            slope = along_a * a_c + along_b * b_c
            # next to parallel to the column that stays (a size's reads and writes are): no basis together
            if abs(slope) <= 1e-10 * (abs(along_a) * a_c + abs(along_b) * b_c):
                continue
            # rounded as in ``solve``: a column next to the kink is on one side of it for both
            reduced = (cost[c] if c < n else 0.0) + a * a_c + b * b_c
            if (reduced >= 0 and slope > 0) or (reduced < 0 and slope < 0):
                continue
            length = -reduced / slope
            if length < passed or (length == passed and c <= last):
                continue
            if length < nearest:
                entering, nearest = c, length
                fall = abs(slope) * (most[c] if c < n else np.inf)
        if entering < 0:
            return -1, 0.0
        rise -= fall
        if rise <= 0:
            return entering, nearest
        passed, last = nearest, entering
