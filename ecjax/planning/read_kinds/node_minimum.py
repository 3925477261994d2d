"""The least of a node's latency minus what prices earn, over all loads of full and small chunks: branch and bound.

With s small and f full chunks per second the waits at a node are known, and what is left is linear in the division of s
into direct chunks d and joined ones g, so that at the least one of the two is as large as it can be::

    G = f (h_f - p_f) + d (E - p_d) + g (h_g - p_g),   h = ((E - z) + sqrt((E - z)^2 + V)) / 2,   d + g = s.

h is replaced by its tangent in z, which is below it for every z. On a rectangle of (s, f) G is at least its value with
waits of the lowest corner, and at least that at the centre less what its slopes, each within the interval that slopes
have on the rectangle, can take away.
"""

import numpy as np

from ecjax.machine_code import njit

_MOST_CELLS = 20_000  # of a node
_DEEPEST = 4096


@njit(inner=True, error_model="numpy")
def _waits(node, s, f):
    """1 - rho, wait, its variance, and their slopes by s and f."""
    idle = 1 - (node[0] + s * node[3] + f * node[6])
    second = node[1] + s * node[4] + f * node[7]
    third = node[2] + s * node[5] + f * node[8]
    wait = second / (2 * idle)
    variance = third / (3 * idle) + wait * wait
    by_s = node[4] / (2 * idle) + second * node[3] / (2 * idle * idle)
    by_f = node[7] / (2 * idle) + second * node[6] / (2 * idle * idle)
    variance_by_s = node[5] / (3 * idle) + third * node[3] / (3 * idle * idle) + 2 * wait * by_s
    variance_by_f = node[8] / (3 * idle) + third * node[6] / (3 * idle * idle) + 2 * wait * by_f
    return idle, wait, variance, by_s, by_f, variance_by_s, variance_by_f


@njit(inner=True, error_model="numpy")
def _above(mean, variance, centre, ahead):
    """The tangent of h at z = centre, ``ahead`` of it."""
    d = mean - centre
    root = np.sqrt(d * d + variance)
    ratio = d / root if root > 0 else 0.0
    return 0.5 * (d + root) - 0.5 * (1 + ratio) * ahead


@njit(inner=True, error_model="numpy")
def _least_above(low_mean, low_variance, high_mean, high_variance, centre, ahead):
    """No more than ``_above`` for any mean and variance between."""
    d, e = low_mean - centre, high_mean - centre
    value = 0.5 * (d + np.sqrt(d * d + low_variance))
    if ahead > 0:
        # the largest ratio
        other = low_variance if e >= 0 else high_variance
        root = np.sqrt(e * e + other)
        ratio = e / root if root > 0 and np.isfinite(root) else 1.0
    else:
        other = high_variance if d >= 0 else low_variance
        root = np.sqrt(d * d + other)
        ratio = d / root if root > 0 and np.isfinite(root) else (0.0 if d >= 0 else -1.0)
    return value - 0.5 * (1 + ratio) * ahead


@njit(inner=True, error_model="numpy")
def _slopes_between(low_mean, low_variance, high_mean, high_variance, centre, ahead):
    """Intervals of the slopes of ``_above`` by mean and by variance."""
    d, e = low_mean - centre, high_mean - centre
    near = 0.0 if d < 0 < e else min(abs(d), abs(e))
    far = max(abs(d), abs(e))
    least, most = np.sqrt(near * near + low_variance), np.sqrt(far * far + high_variance)
    if least <= 0:
        return -np.inf, np.inf, -np.inf, np.inf
    low_ratio = d / np.sqrt(d * d + (high_variance if d >= 0 else low_variance))
    high_ratio = e / np.sqrt(e * e + (low_variance if e >= 0 else high_variance))
    # by mean: (1 + ratio) / 2 - ahead V / (2 root^3)
    small, large = low_variance / most**3, high_variance / least**3
    low_first = 0.5 * (1 + low_ratio) - 0.5 * (ahead * large if ahead > 0 else ahead * small)
    high_first = 0.5 * (1 + high_ratio) - 0.5 * (ahead * small if ahead > 0 else ahead * large)
    # by variance: 1 / (4 root) + ahead d / (4 root^3)
    cube_low = d / most**3 if d >= 0 else d / least**3
    cube_high = e / least**3 if e >= 0 else e / most**3
    low_second = 0.25 / most + 0.25 * (ahead * cube_low if ahead > 0 else ahead * cube_high)
    high_second = 0.25 / least + 0.25 * (ahead * cube_high if ahead > 0 else ahead * cube_low)
    return low_first, high_first, low_second, high_second


@njit(inner=True, error_model="numpy")
def _product(low, high, least, most):
    """Interval of the product of [low, high] and [least, most], least >= 0."""
    return (low * least if low >= 0 else low * most), (high * most if high >= 0 else high * least)


@njit(inner=True, error_model="numpy")
def _divided(s, most, branch):
    """Direct and joined chunks of s: the direct first (branch 0), or the joined."""
    if branch == 0:
        direct = min(s, most[0])
        return direct, s - direct
    joined = min(s, most[1])
    return s - joined, joined


@njit(inner=True, error_model="numpy")
def _value(node, direct, joined, f, price, z):
    """G; infinite where the node is unstable."""
    idle, wait, variance, _, _, _, _ = _waits(node, direct + joined, f)
    if idle <= 0:
        return np.inf
    value = 0.0
    if f > 0:
        value += f * (_above(node[11] + wait, node[12] + variance, z[0], z[1]) - price[0])
    if direct > 0:
        value += direct * (node[9] + wait - price[1])
    if joined > 0:
        value += joined * (_above(node[9] + wait, node[10] + variance, z[2], z[3]) - price[2])
    return value


@njit(inner=True, error_model="numpy")
def _least_product(low, high, factor):
    """Least of x factor over x in [low, high]."""
    return low * factor if factor >= 0 else high * factor


@njit(inner=True, error_model="numpy")
def _bound(node, cell, most, price, z, branch):
    """A lower bound of G on a cell (s0, s1, f0, f1) that no limit of direct or joined chunks divides.

    Also the interval of its slopes there by s and by f; infinite where none is known.
    """
    unknown = -np.inf, np.inf, -np.inf, np.inf
    s0, s1, f0, f1 = cell
    idle, wait, variance, by_s, by_f, var_s, var_f = _waits(node, s0, f0)
    if idle <= 0:
        return np.inf, unknown
    top, high_wait, high_variance, high_by_s, high_by_f, high_var_s, high_var_f = _waits(node, s1, f1)
    stable = top > 0
    if not stable:
        high_wait = high_variance = np.inf
    d0, g0 = _divided(s0, most, branch)
    d1, g1 = _divided(s1, most, branch)
    small_low, small_high = node[9] + wait, node[9] + high_wait
    small_v, small_w = node[10] + variance, node[10] + high_variance
    full_low, full_high = node[11] + wait, node[11] + high_wait
    full_v, full_w = node[12] + variance, node[12] + high_variance
    full = _least_above(full_low, full_v, full_high, full_w, z[0], z[1]) - price[0] if f1 > 0 else 0.0
    coded = _least_above(small_low, small_v, small_high, small_w, z[2], z[3]) - price[2] if g1 > 0 else 0.0
    plain = small_low - price[1]
    bound = _least_product(f0, f1, full) + _least_product(d0, d1, plain) + _least_product(g0, g1, coded)
    if not stable:
        return bound, unknown
    s, f = 0.5 * (s0 + s1), 0.5 * (f0 + f1)
    direct, joined = _divided(s, most, branch)
    centre = _value(node, direct, joined, f, price, z)
    # slopes by the waits, of all chunks, then by s and f
    low_mean, high_mean, low_var, high_var = d0, d1, 0.0, 0.0
    low_s, high_s, low_f, high_f = 0.0, 0.0, 0.0, 0.0
    if f1 > 0:
        a, b, c, e = _slopes_between(full_low, full_v, full_high, full_w, z[0], z[1])
        a, b = _product(a, b, f0, f1)
        c, e = _product(c, e, f0, f1)
        low_mean, high_mean, low_var, high_var = low_mean + a, high_mean + b, low_var + c, high_var + e
        # h is at most d+ + sqrt(V) / 2, and its tangent changes it by at most |ahead|
        most_full = max(full_high - z[0], 0.0) + 0.5 * np.sqrt(full_w) + abs(z[1]) - price[0]
        low_f, high_f = full, most_full
    if g1 > 0:
        a, b, c, e = _slopes_between(small_low, small_v, small_high, small_w, z[2], z[3])
        a, b = _product(a, b, g0, g1)
        c, e = _product(c, e, g0, g1)
        low_mean, high_mean, low_var, high_var = low_mean + a, high_mean + b, low_var + c, high_var + e
    if d1 > d0:
        low_s, high_s = low_s + plain, high_s + small_high - price[1]
    if g1 > g0:
        most_coded = max(small_high - z[2], 0.0) + 0.5 * np.sqrt(small_w) + abs(z[3]) - price[2]
        low_s, high_s = low_s + coded, high_s + most_coded
    a, b = _product(low_mean, high_mean, by_s, high_by_s)
    c, e = _product(low_var, high_var, var_s, high_var_s)
    low_s, high_s = low_s + a + c, high_s + b + e
    a, b = _product(low_mean, high_mean, by_f, high_by_f)
    c, e = _product(low_var, high_var, var_f, high_var_f)
    low_f, high_f = low_f + a + c, high_f + b + e
    lost = 0.5 * (s1 - s0) * max(high_s, -low_s, 0.0) + 0.5 * (f1 - f0) * max(high_f, -low_f, 0.0)
    if np.isnan(lost):
        return bound, unknown
    return max(bound, centre - lost), (low_s, high_s, low_f, high_f)


@njit(error_model="numpy")
def node_minimum(node, most, price, z, close, least):
    """No more than the least G of a node, at most ``close`` below it unless cells run out; and how many it took.

    Args:
        node: (13,) load, A_2, A_3 of other work; first three moments of a small, then of a full chunk; mean and
            variance of a small, then of a full chunk's sojourn without waiting.
        most: (3,) largest direct, joined and full chunks, 1/s.
        price: (3,) s, of full, direct and joined chunks.
        z: (4,) centre and how far ahead of it, of full and of joined reads.
        close: s/s.
        least: (3,) full, direct and joined chunks, 1/s, to look at first; result: where the least value was met.
    """
    cells, branches = np.empty((_DEEPEST, 4)), np.empty(_DEEPEST, np.int64)
    room = 1 - node[0]
    end_s, end_f = min(most[0] + most[1], room / node[3]), min(most[2], room / node[6])
    # cells end where direct or joined chunks are all that there can be
    first, second = min(most[0], most[1], end_s), min(max(most[0], most[1]), end_s)
    count = 0
    for low, high in ((0.0, first), (first, second), (second, end_s)):
        if high > low or (count == 0 and high == end_s):
            for branch in range(2):
                cells[count] = low, high, 0.0, end_f
                branches[count] = branch
                count += 1
    steps = 0
    left = np.inf
    best = _value(node, least[1], least[2], least[0], price, z)
    if not best < 0:  # an idle node: G = 0
        best = 0.0
        least[:] = 0.0
    while count:
        count -= 1
        s0, s1, f0, f1 = cells[count]
        branch = branches[count]
        bound, slopes = _bound(node, (s0, s1, f0, f1), most, price, z, branch)
        steps += 1
        if bound >= best - close:
            left = min(left, bound)
            continue
        # where G rises or falls throughout it is least at an end
        if slopes[0] >= 0:
            s1 = s0
        elif slopes[1] <= 0:
            s0 = s1
        if slopes[2] >= 0:
            f1 = f0
        elif slopes[3] <= 0:
            f0 = f1
        for s, f in ((0.5 * (s0 + s1), 0.5 * (f0 + f1)), (s1, f1), (s0, f0)):
            direct, joined = _divided(s, most, branch)
            value = _value(node, direct, joined, f, price, z)
            if value < best:
                best = value
                least[0], least[1], least[2] = f, direct, joined
        if s0 == s1 and f0 == f1:
            # that value was just looked at
            left = min(left, max(bound, best))
            continue
        if steps > _MOST_CELLS or count + 2 > _DEEPEST:
            left = min(left, bound)
            continue
        # what the slopes can take away; where they are not known, what part of the range it is
        wide, long = (s1 - s0) * max(slopes[1], -slopes[0]), (f1 - f0) * max(slopes[3], -slopes[2])
        if not (np.isfinite(wide) and np.isfinite(long)):
            wide = (s1 - s0) / end_s if end_s > 0 else 0.0
            long = (f1 - f0) / end_f if end_f > 0 else 0.0
        if wide >= long:
            s = 0.5 * (s0 + s1)
            cells[count] = s0, s, f0, f1
            cells[count + 1] = s, s1, f0, f1
        else:
            f = 0.5 * (f0 + f1)
            cells[count] = s0, s1, f0, f
            cells[count + 1] = s0, s1, f, f1
        branches[count : count + 2] = branch
        count += 2
    return min(best, left), steps


@njit(error_model="numpy")
def node_minima(nodes, most, prices, z, close, least):
    """Sums of ``node_minimum`` over nodes: nodes (m, 13), most (m, 3), prices (m, 3), least (m, 3)."""
    total, cells = 0.0, len(nodes)
    for j in range(len(nodes)):
        bound, steps = node_minimum(nodes[j], most[j], prices[j], z, close, least[j])
        total += bound
        cells += steps
    return total, cells
