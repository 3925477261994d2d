"""Lower bound of one node's Lagrangian over a cell of levels of its wait.

Levels t = (w, q): w the mean wait, q = A_3/(3 (1 - A_1)), so that the wait's variance is q + w^2. At fixed levels the
rates x of reads and v of writes solve a linear program,

    LP(t) = min sum_c x_c (phi_c(t)/lambda_hat - y_c) - sum_c v_c yw_c
            subject to A_1 + A_2 p/2 <= 1,  A_1 + A_3 s/3 <= 1,  p = 1/w,  s = 1/q,

and N = min_t LP(t): true rates are feasible at their own levels, and rates that are feasible at t have levels of at
most t, hence a phi of at most phi(t). Any a, b >= 0, which may depend on t, bound LP(t) from below by

    D(t) = -a (1 - bg_1 - bg_2 p/2) - b (1 - bg_1 - bg_3 s/3) + sum_c X_c min(0, r_c) + sum_c V_c min(0, rw_c),
    r_c = phi_c/lambda_hat + a (m_1 + m_2 p/2) + b (m_1 + m_3 s/3) - y_c,   rw_c the same with -yw_c and no phi.

phi_c is convex in (p, s): it is half of w + e_c plus the length of (w + e_c, w, sqrt q, sigma_c), convex in
(w, sqrt q); it does not fall in either for w >= 0 (its derivative by w is half of 1 + (2w + e_c)/length, and
2w + e_c >= w + e_c >= -length); and w = 1/p, sqrt q = s^(-1/2) are convex. So the tangent of phi_c at the centre is
below it everywhere, and with a and b fixed or affine in (p, s) (the products of two differences bounded over the cell)
D is bounded from below by a concave function, whose minimum over a cell is at one of its corners. Cells are
p_1 <= p <= p_2, g_1 p <= s <= g_2 p: g = w/q lies between bounds that the moments give.

A class that stands for an interval of sizes [B_1, B_2] has r(B) convex in B minus a linear price: where the mean and
the standard deviation of the delay are affine in B (every law of the nodes), phi is even convex in (p, s, B), and the
moments are convex in B. So the tangent in B at the middle, at whichever end is less, is below r on all of the interval.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit


class Columns(NamedTuple):
    """What may be put on a node: n columns, first reads (as many as ``mean`` has), then writes; E = 1 or 2 ends."""

    background: np.ndarray  # (3,) A_1, A_2, A_3 of other work: 1, s, s^2
    moments: np.ndarray  # (3, n) raw service moments at the middle size
    step: np.ndarray  # (E, 3, n) what the tangent adds to them at the ends of the sizes
    most: np.ndarray  # (n,) 1/s
    price: np.ndarray  # (E, n) at the ends, s per 1/s
    middle_price: np.ndarray  # (n,) at the middle size
    mean: np.ndarray  # (reads,) s, without the wait
    variance: np.ndarray  # (reads,) s^2
    mean_step: np.ndarray  # (E, reads)
    variance_step: np.ndarray  # (E, reads)


class Terms(NamedTuple):
    """phi/lambda_hat of every read at some levels, s per 1/s."""

    value: np.ndarray  # (reads,)
    by_p: np.ndarray  # (reads,)
    by_s: np.ndarray  # (reads,)
    step: np.ndarray  # (E, reads) what the tangent adds at the ends of the sizes


@njit(inner=True)
def delay_terms(node, p, s, z, rate, alone, terms):
    """Fill in the terms of every read at the levels.

    Args:
        node: ``Columns``.
        p: 1/w.
        s: 1/q.
        z: s.
        rate: lambda_hat.
        alone: whether phi is the mean delay (z = -inf).
        terms: ``Terms``, result.
    """
    value, by_p, by_s, step = terms
    w, q = 1 / p, 1 / s
    half = 0.5 / rate
    for c in range(len(node.mean)):
        if alone:
            value[c] = (w + node.mean[c]) / rate
            by_p[c] = -w * w / rate
            by_s[c] = 0.0
            for e in range(len(step)):
                step[e, c] = node.mean_step[e, c] / rate
            continue
        d = w + node.mean[c] - z
        rest = w * w + q + node.variance[c]
        root = np.sqrt(d * d + rest)
        # d + root without cancellation where z is far above the mean
        value[c] = half * (d + root if d > 0 else rest / (root - d))
        by_p[c] = -half * w * w * (1 + (d + w) / root)
        by_s[c] = -half * q * q * 0.5 / root
        for e in range(len(step)):
            more = node.mean_step[e, c]
            step[e, c] = half * (more + (d * more + 0.5 * node.variance_step[e, c]) / root)


@njit(inner=True)
def multiplier_slopes(node, terms, p, s, a, b, basis, alone):
    """Derivatives of the linear program's multipliers by the levels while the basis stays: a_p, a_s, b_p, b_s.

    Both columns of the basis keep a reduced cost of 0.

    Args:
        node: ``Columns``.
        terms: ``Terms`` at the levels.
        p: 1/w.
        s: 1/q.
        a: multiplier of the first row.
        b: of the second.
        basis: (2,).
        alone: whether the second constraint is left out.
    """
    n, reads = len(node.most), len(node.mean)
    i, j = basis
    a_i, b_i = _entries(node, i, p, s, alone)
    a_j, b_j = _entries(node, j, p, s, alone)
    determinant = a_i * b_j - a_j * b_i
    if abs(determinant) <= 1e-10 * (a_i * b_j + a_j * b_i):
        return 0.0, 0.0, 0.0, 0.0
    i_p = i_s = j_p = j_s = 0.0
    if i < n:
        i_p, i_s = 0.5 * a * node.moments[1, i], b * node.moments[2, i] / 3
    if i < reads:
        i_p, i_s = i_p + terms.by_p[i], i_s + terms.by_s[i]
    if j < n:
        j_p, j_s = 0.5 * a * node.moments[1, j], b * node.moments[2, j] / 3
    if j < reads:
        j_p, j_s = j_p + terms.by_p[j], j_s + terms.by_s[j]
    return (
        (b_i * j_p - b_j * i_p) / determinant,
        (b_i * j_s - b_j * i_s) / determinant,
        (a_j * i_p - a_i * j_p) / determinant,
        (a_j * i_s - a_i * j_s) / determinant,
    )


@njit(inner=True)
def _entries(node, index, p, s, alone):
    n = len(node.most)
    if index >= n:
        return (1.0, 0.0) if index == n else (0.0, 1.0)
    first = node.moments[0, index]
    return first + 0.5 * p * node.moments[1, index], 0.0 if alone else first + s * node.moments[2, index] / 3


@njit(inner=True)
def cell_bound(node, cell, p, s, terms, a, b, slopes):
    """Lower bound of N over the levels of a cell, from the tangent at (p, s) and multipliers affine in the levels.

    Args:
        node: ``Columns``.
        cell: (p_1, p_2, g_1, g_2).
        p: 1/w where the tangent is taken.
        s: 1/q there.
        terms: ``Terms`` there.
        a: multiplier of the first row at (p, s).
        b: of the second.
        slopes: (a_p, a_s, b_p, b_s); taken as far as a, b >= 0 holds in the cell.
    """
    n, reads, ends = len(node.most), len(node.mean), len(node.price)
    background = node.background
    a_p, a_s, b_p, b_s = slopes
    low_p, high_p = cell[0] - p, cell[1] - p
    low_s, high_s = cell[2] * cell[0] - s, cell[3] * cell[1] - s
    part = 1.0
    for corner in range(4):
        dp = high_p if corner % 2 else low_p
        ds = (cell[3] if corner // 2 else cell[2]) * (p + dp) - s
        for multiplier, change in ((a, a_p * dp + a_s * ds), (b, b_p * dp + b_s * ds)):
            if multiplier + part * change < 0:
                part = multiplier / -change
    a_p, a_s, b_p, b_s = part * a_p, part * a_s, part * b_p, part * b_s
    # (a_p dp + a_s ds) dp and (b_p dp + b_s ds) ds over the cell
    dp2, ds2 = max(low_p * low_p, high_p * high_p), max(low_s * low_s, high_s * high_s)
    most_dpds = max(low_p * low_s, high_p * high_s)
    least_dpds = min(low_p * high_s, high_p * low_s)
    a_least = min(0.0, a_p * dp2) + min(a_s * most_dpds, a_s * least_dpds)
    a_most = max(0.0, a_p * dp2) + max(a_s * most_dpds, a_s * least_dpds)
    b_least = min(0.0, b_s * ds2) + min(b_p * most_dpds, b_p * least_dpds)
    b_most = max(0.0, b_s * ds2) + max(b_p * most_dpds, b_p * least_dpds)
    room_a = 1 - background[0] - 0.5 * p * background[1]
    room_b = 1 - background[0] - s * background[2] / 3
    least = np.inf
    for corner in range(4):
        dp = high_p if corner % 2 else low_p
        ds = (cell[3] if corner // 2 else cell[2]) * (p + dp) - s
        a_here, b_here = a + a_p * dp + a_s * ds, b + b_p * dp + b_s * ds
        total = 0.5 * background[1] * (a * dp + a_least) - a_here * room_a
        total += background[2] * (b * ds + b_least) / 3 - b_here * room_b
        for j in range(n):
            lowest = 0.0
            for e in range(ends):
                first = node.moments[0, j] + node.step[e, 0, j]
                second = 0.5 * (node.moments[1, j] + node.step[e, 1, j])
                third = (node.moments[2, j] + node.step[e, 2, j]) / 3
                reduced = (
                    a_here * (first + second * p)
                    + second * (a * dp + (a_least if second >= 0 else a_most))
                    + b_here * (first + third * s)
                    + third * (b * ds + (b_least if third >= 0 else b_most))
                    - node.price[e, j]
                )
                if j < reads:
                    reduced += terms.value[j] + terms.by_p[j] * dp + terms.by_s[j] * ds + terms.step[e, j]
                lowest = min(lowest, reduced)
            total += node.most[j] * lowest
        least = min(least, total)
    return least
