"""The response of rows to prices as ``response`` and ``curvature`` have it, row by row for processor cores.

Array programs wait for the slowest row and compile for long; here every row ends when it is done.
"""

import numpy as np

from ecjax.machine_code import njit

_MOST_TURNS = 100
_CLOSED = 1e-8  # chunks that a row may be short of
_STEP = 20.0  # temperatures
_LEAST_PART = 0.2
_LARGEST = 300.0  # exponent above that of the q-th node of a site
_BEYOND = 30.0  # temperatures above the last chosen node, where no other could follow
_DECIDED = 1e-12
_NOTHING = -60.0  # exponent: e^-60 of a chunk is none
_FAR = 0.3  # chunks: earlier multipliers that miss by more are no start
_TINY = 1e-14  # variance: less than that comes of rounding


@njit()
def cheapest(hot, cold, k, extra, sites, per_site, margin, room):
    """The cheapest whole choice of a row: see ``exact.cheapest``.

    Args:
        hot: (m,) s; infinite where there may be no chunk.
        cold: (m,) s.
        k: hot chunks.
        extra: cold chunks.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        per_site: q.
        margin: s, how far above the last chosen node the level lies where there is no next one.
        room: (k + extra + 1 + q, 2) to work in.

    Returns:
        cost in s, infinite where there is no choice; shift and level in s.
    """
    n = k + extra
    if extra == 0:
        total, _, level = _select(hot, cold, n, 0.0, 1, sites, per_site, margin, room)
        return total, 0.0, level
    left, _, _ = _select(hot, cold, n, 0.0, 2, sites, per_site, margin, room)
    right, _, _ = _select(hot, cold, n, 0.0, 1, sites, per_site, margin, room)
    if not (np.isfinite(left) and np.isfinite(right)):
        return np.inf, 0.0, 0.0
    left_slope, right_slope = k, -extra
    best, best_shift, best_level = -np.inf, 0.0, 0.0
    for _ in range(n + 2):
        shift = (right - left) / (left_slope - right_slope)
        total, number, level = _select(hot, cold, n, shift, 0, sites, per_site, margin, room)
        value, slope = total + k * shift, k - number
        if value > best:
            best, best_shift, best_level = value, shift, level
        promised = left + left_slope * shift
        if slope == 0 or value >= promised - 1e-13 * (abs(value) + abs(k * shift)):
            break
        if slope > 0:
            left_slope, left = slope, value - slope * shift
        else:
            right_slope, right = slope, value - slope * shift
    return best, best_shift, best_level


@njit(inner=True)
def _select(hot, cold, n, shift, kind, sites, per_site, margin, room):
    """Sum of the n least min(hot - shift, cold), how many of them are hot, and a level above the last.

    With ``kind`` 1 only hot chunks count, with 2 only cold ones.
    """
    order, start = sites
    best, nearest = room[: n + 1], room[n + 1 :]
    full = 0
    for s in range(len(start) - 1):
        held = 0
        narrow = start[s + 1] - start[s] <= per_site
        for position in range(start[s], start[s + 1]):
            j = order[position]
            as_hot = hot[j] - shift
            is_hot = kind == 1 or (kind == 0 and as_hot <= cold[j])
            cost = as_hot if is_hot else cold[j]
            if not np.isfinite(cost):
                continue
            if narrow:
                full = _insert(best, full, n + 1, cost, is_hot)
            else:
                held = _insert(nearest, held, per_site, cost, is_hot)
        for place in range(held):
            full = _insert(best, full, n + 1, nearest[place, 0], nearest[place, 1] > 0)
    if full < n:
        return np.inf, 0, 0.0
    total, number = 0.0, 0
    for place in range(n):
        total += best[place, 0]
        number += int(best[place, 1])
    level = best[n - 1, 0] + margin
    if full > n:
        level = 0.5 * (best[n - 1, 0] + best[n, 0])
    return total, number, level


@njit(inner=True)
def _insert(best, held, most, cost, is_hot):
    if held < most:
        place = held
        held += 1
    elif cost < best[most - 1, 0]:
        place = most - 1
    else:
        return held
    while place > 0 and best[place - 1, 0] > cost:
        best[place, 0], best[place, 1] = best[place - 1, 0], best[place - 1, 1]
        place -= 1
    best[place, 0], best[place, 1] = cost, 1.0 * is_hot
    return held


@njit()
def respond(first, last, rows, prices, tau, sites, hot, cold, multipliers):
    """Marginals of the rows first..last - 1 at prices, to ``hot`` and ``cold`` (R, m); how many did not add up.

    Args:
        first: first row.
        last: one past the last row.
        rows: see ``response.Rows``; costs are (R, m), or (0, m) where reads cost nothing themselves.
        prices: (2, m) of reads, s per 1/s, and of places, s.
        tau: (R,) s.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        hot: (R, m) result.
        cold: (R, m) result.
        multipliers: (2, R) changed: alpha and beta to start from, or not numbers, and those at the end; s.
    """
    m, q = prices.shape[1], rows.per_site
    widest = 1
    for s in range(len(sites[1]) - 1):
        widest = max(widest, sites[1][s + 1] - sites[1][s])
    hot_cost, cold_cost = np.empty(m), np.empty(m)
    x, y = np.empty(m), np.empty(m)
    largest = 0
    for i in range(first, last):
        largest = max(largest, rows.hot[i] + rows.extra[i])
    room = np.empty((largest + 1 + q, 2))
    polynomials = np.empty((3, min(q, widest) + 1))
    before, after = np.empty((widest + 1, q + 1)), np.empty((widest + 1, q + 1))
    unfinished = 0
    for i in range(first, last):
        _price(rows, i, prices, hot_cost, cold_cost)
        k, extra, t = rows.hot[i], rows.extra[i], tau[i]
        alpha, beta = multipliers[0, i], multipliers[1, i]
        near = np.isfinite(alpha)
        if near:
            sums = _sums(alpha, beta, hot_cost, cold_cost, extra, t, sites, q, x, y, polynomials)
            near = abs(k - sums[0]) < _FAR and (extra == 0 or abs(extra - sums[1]) < _FAR)
        if not near:
            _, shift, level = cheapest(hot_cost, cold_cost, k, extra, sites, q, _BEYOND * t, room)
            alpha, beta = level + shift, level
        best_alpha, best_beta, least = alpha, beta, np.inf
        move_alpha = move_beta = 0.0
        base_alpha, base_beta, length, promise = alpha, beta, 0.0, 0.0
        for _ in range(_MOST_TURNS):
            sums = _sums(alpha, beta, hot_cost, cold_cost, extra, t, sites, q, x, y, polynomials)
            short_hot = k - sums[0]
            short_cold = extra - sums[1] if extra > 0 else 0.0
            error = max(abs(short_hot), abs(short_cold))
            if error < least:
                best_alpha, best_beta, least = alpha, beta, error
            if error <= _CLOSED:
                break
            slope = move_alpha * short_hot + move_beta * short_cold
            if slope >= -0.5 * promise:
                base_alpha, base_beta = alpha, beta
                one, two = max(sums[2], _TINY), max(sums[4], _TINY) if extra > 0 else 1.0
                off = 0.0
                if extra > 0:
                    off = sums[3] / (np.sqrt(one) * np.sqrt(two))
                off = min(max(off, -1 + 1e-12), 1 - 1e-12)
                left = 1 / ((1 - off) * (1 + off))
                mixed = -off * left / (np.sqrt(one) * np.sqrt(two))
                move_alpha = t * (left / one * short_hot + mixed * short_cold)
                move_beta = t * (mixed * short_hot + left / two * short_cold)
                part = min(1.0, _STEP * t / max(abs(move_alpha), abs(move_beta)))
                move_alpha *= part
                move_beta *= part
                promise = move_alpha * short_hot + move_beta * short_cold
                length = 1.0
            else:
                length *= max(_LEAST_PART, promise / (promise - slope))
            alpha, beta = base_alpha + length * move_alpha, base_beta + length * move_beta
        unfinished += least > 1e-6
        multipliers[0, i], multipliers[1, i] = best_alpha, best_beta
        _marginals(
            best_alpha,
            best_beta,
            hot_cost,
            cold_cost,
            extra,
            t,
            sites,
            q,
            x,
            y,
            before,
            after,
            hot[i],
            cold[i],
        )
    return unfinished


@njit(inner=True)
def _price(rows, i, prices, hot_cost, cold_cost):
    """Cost of a hot and of a cold chunk of a row on every node, to (m,) s."""
    for j in range(len(hot_cost)):
        cold_cost[j] = rows.cold_cost[i, j] + rows.chunks[i] * prices[1, j]
        hot_cost[j] = cold_cost[j] + rows.rate[i] * prices[0, j]
        if len(rows.reading):
            hot_cost[j] += rows.reading[i, j]


@njit(inner=True)
def _terms(alpha, beta, hot_cost, cold_cost, extra, tau, order, begin, end, q, x, y):
    """Terms of a site's nodes to x (hot) and y (cold), scaled by e^-level; returns e^-level."""
    level = 0.0
    for position in range(begin, end):
        j = order[position]
        x[j] = (alpha - hot_cost[j]) / tau
        y[j] = (beta - cold_cost[j]) / tau if extra > 0 else -np.inf
    if end - begin <= q and q > 1:
        # no more than the smallest: all may be taken
        smallest = np.inf
        if end - begin == q:
            for position in range(begin, end):
                j = order[position]
                smallest = min(smallest, max(x[j], y[j]))
            level = max(level, smallest)
    elif q == 1:
        for position in range(begin, end):
            j = order[position]
            level = max(level, x[j], y[j])
    else:
        # the q-th largest: as many nodes lie above it as a site takes
        for position in range(begin, end):
            j = order[position]
            larger = max(x[j], y[j])
            if larger > level:
                above = 0
                for other in range(begin, end):
                    i = order[other]
                    if max(x[i], y[i]) >= larger:
                        above += 1
                if above >= q:
                    level = larger
    for position in range(begin, end):
        j = order[position]
        excess = max(x[j], y[j]) - level - _LARGEST / q
        shift = level + max(excess, 0.0)
        x[j], y[j] = _exp(x[j] - shift), _exp(y[j] - shift)
    return _exp(-level)


@njit(inner=True)
def _exp(x):
    # most nodes are out of the question once it is cold
    return np.exp(x) if x > _NOTHING else 0.0


@njit(inner=True)
def _sums(alpha, beta, hot_cost, cold_cost, extra, tau, sites, q, x, y, polynomials):
    """Expected numbers of hot and cold chunks, and their variances and covariance: HH, HC, CC."""
    order, start = sites
    a = b = aa = ab = bb = 0.0
    for s in range(len(start) - 1):
        begin, end = start[s], start[s + 1]
        none = _terms(alpha, beta, hot_cost, cold_cost, extra, tau, order, begin, end, q, x, y)
        if q == 1:
            hot = cold = 0.0
            for position in range(begin, end):
                hot += x[order[position]]
                cold += y[order[position]]
            total = none + hot + cold
            hot, cold, none = hot / total, cold / total, none / total
            a += hot
            b += cold
            aa += hot * (none + cold)
            ab -= hot * cold
            bb += cold * (none + hot)
            continue
        most = min(q, end - begin)
        value, first, second = polynomials[0], polynomials[1], polynomials[2]
        value[:], first[:], second[:] = 0.0, 0.0, 0.0
        value[0] = 1.0
        for position in range(begin, end):
            j = order[position]
            both = x[j] + y[j]
            for d in range(most, 0, -1):
                second[d] += both * second[d - 1] + 2 * x[j] * first[d - 1] + x[j] * value[d - 1]
                first[d] += both * first[d - 1] + x[j] * value[d - 1]
                value[d] += both * value[d - 1]
        total = hot = hot_hot = stored = 0.0
        scale = 1.0
        for d in range(most, -1, -1):
            total += scale * value[d]
            hot += scale * first[d]
            hot_hot += scale * second[d]
            stored += d * scale * value[d]
            scale *= none
        hot, hot_hot, stored = hot / total, hot_hot / total, stored / total
        hot_stored = stored_stored = 0.0
        scale = 1.0 / total
        for d in range(most, -1, -1):
            hot_stored += (d - stored) * scale * first[d]
            stored_stored += (d - stored) ** 2 * scale * value[d]
            scale *= none
        hot_hot -= hot * hot
        hot_cold = hot_stored - hot_hot
        a += hot
        b += stored - hot
        aa += hot_hot
        ab += hot_cold
        bb += stored_stored - hot_cold - hot_stored
    return a, b, aa, ab, bb


@njit(inner=True)
def _marginals(alpha, beta, hot_cost, cold_cost, extra, tau, sites, q, x, y, before, after, hot, cold):
    order, start = sites
    for s in range(len(start) - 1):
        begin, end = start[s], start[s + 1]
        none = _terms(alpha, beta, hot_cost, cold_cost, extra, tau, order, begin, end, q, x, y)
        if q == 1:
            total = none
            for position in range(begin, end):
                total += x[order[position]] + y[order[position]]
            for position in range(begin, end):
                j = order[position]
                hot[j], cold[j] = x[j] / total, y[j] / total
            continue
        most = min(q, end - begin)
        _without_each(x, y, order, begin, end, most, -1, before, after)
        for position in range(begin, end):
            j = order[position]
            _, with_it, without = _joined(before[position - begin], after[position - begin + 1], most, none)
            total = (x[j] + y[j]) * with_it + without
            hot[j], cold[j] = x[j] * with_it / total, y[j] * with_it / total


@njit(inner=True)
def _without_each(x, y, order, begin, end, most, skipped, before, after):
    """Polynomials of the nodes before and after each position of a site, but for the one ``skipped``."""
    width = end - begin
    before[0, :], after[width, :] = 0.0, 0.0
    before[0, 0] = after[width, 0] = 1.0
    for place in range(width):
        j = order[begin + place]
        term = 0.0 if j == skipped else x[j] + y[j]
        before[place + 1, 0] = 1.0
        for d in range(1, most + 1):
            before[place + 1, d] = before[place, d] + term * before[place, d - 1]
    for place in range(width - 1, -1, -1):
        j = order[begin + place]
        term = 0.0 if j == skipped else x[j] + y[j]
        after[place, 0] = 1.0
        for d in range(1, most + 1):
            after[place, d] = after[place + 1, d] + term * after[place + 1, d - 1]


@njit(inner=True)
def _joined(before, after, most, none):
    """Sums up to degrees q - 2, q - 1 and q of the product of two polynomials, at the scale of Z."""
    lowest = low = high = 0.0
    scale = less = least = 1.0
    for d in range(most, -1, -1):
        coefficient = 0.0
        for i in range(d + 1):
            coefficient += before[i] * after[d - i]
        high += scale * coefficient
        scale *= none
        if d < most:
            low += less * coefficient
            less *= none
        if d < most - 1:
            lowest += least * coefficient
            least *= none
    return lowest, low, high


@njit()
def curve(first, last, rows, prices, multipliers, tau, sites, hot, cold, weight, roots, blocks):
    """Parts of the curvature of rows first..last - 1: see ``curvature``.

    Args:
        first: first row.
        last: one past the last row.
        rows: see ``respond``.
        prices: (2, m) of reads and places.
        multipliers: (2, R) alpha and beta.
        tau: (R,) s.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        hot: (R, m) marginals.
        cold: (R, m).
        weight: (2, R) what a hot and a stored chunk of a row count.
        roots: (R, 2, m) or (R, 2, 2 m) result: V K^(-1/2) of every row.
        blocks: (1, m, g) or (3, m, g) changed: covariances of a node's chunk with those of the nodes of its site, in
            their order, are added: hot with hot, hot with stored, stored with stored.
    """
    m, q = hot.shape[1], rows.per_site
    order, start = sites
    widest = 1
    for s in range(len(start) - 1):
        widest = max(widest, start[s + 1] - start[s])
    with_places = blocks.shape[0] > 1
    x, y = np.empty(m), np.empty(m)
    hot_cost, cold_cost = np.empty(m), np.empty(m)
    off = np.zeros((widest, widest))
    before, after = np.empty((widest + 1, q + 1)), np.empty((widest + 1, q + 1))
    alone = np.empty((4, m))
    for i in range(first, last):
        a, b = hot[i], cold[i]
        u, v = weight[0, i], weight[1, i]
        if q > 1:
            _price(rows, i, prices, hot_cost, cold_cost)
        k11 = k12 = k22 = 0.0
        for s in range(len(start) - 1):
            begin, end = start[s], start[s + 1]
            if q > 1:
                none = _terms(
                    multipliers[0, i], multipliers[1, i], hot_cost, cold_cost, rows.extra[i], tau[i], order,
                    begin, end, q, x, y,
                )  # fmt: skip
                _pairs(x, y, order, begin, end, min(q, end - begin), none, before, after, off)
            for one in range(begin, end):
                j = order[one]
                stored = a[j] + b[j]
                part = a[j] / stored if stored > 0 else 0.0
                hh, hc, sh, sc = a[j] - a[j] * a[j], -a[j] * b[j], a[j] - stored * a[j], b[j] - stored * b[j]
                blocks[0, j, one - begin] += u * u * hh
                if with_places:
                    blocks[1, j, one - begin] += u * v * sh
                    blocks[2, j, one - begin] += v * v * (stored - stored * stored)
                for two in range(begin, end):
                    if two == one:
                        continue
                    near = order[two]
                    other = a[near] + b[near]
                    share = a[near] / other if other > 0 else 0.0
                    both = off[one - begin, two - begin] if q > 1 else 0.0
                    both -= stored * other
                    hh += part * share * both
                    hc += part * (1 - share) * both
                    sh += share * both
                    sc += (1 - share) * both
                    blocks[0, j, two - begin] += u * u * part * share * both
                    if with_places:
                        blocks[1, j, two - begin] += u * v * part * both
                        blocks[2, j, two - begin] += v * v * both
                alone[0, j], alone[1, j], alone[2, j], alone[3, j] = hh, hc, sh, sc
                k11 += hh
                k12 += hc
                k22 += sc - hc
        one_way, other_way = max(k11, _DECIDED), max(k22, _DECIDED) if rows.extra[i] > 0 else 1.0
        correlation = k12 / np.sqrt(one_way * other_way) if rows.extra[i] > 0 else 0.0
        correlation = min(max(correlation, -1 + 1e-12), 1 - 1e-12)
        # K^(-1) = L L^T
        first_root = 1 / np.sqrt(one_way * (1 - correlation) * (1 + correlation))
        second_root = -correlation / np.sqrt((1 - correlation) * (1 + correlation) * other_way)
        third_root = 1 / np.sqrt(other_way)
        for j in range(m):
            roots[i, 0, j] = u * (first_root * alone[0, j] + second_root * alone[1, j])
            roots[i, 1, j] = u * third_root * alone[1, j]
            if with_places:
                roots[i, 0, m + j] = v * (first_root * alone[2, j] + second_root * alone[3, j])
                roots[i, 1, m + j] = v * third_root * alone[3, j]


@njit(inner=True)
def _pairs(x, y, order, begin, end, most, none, before, after, result):
    """Probability that two different nodes of a site both hold a chunk, (g, g)."""
    for one in range(begin, end):
        i = order[one]
        held = x[i] + y[i]
        _without_each(x, y, order, begin, end, most, i, before, after)
        for two in range(begin, end):
            if two == one:
                continue
            j = order[two]
            other = x[j] + y[j]
            left, right = before[two - begin], after[two - begin + 1]
            both, single, neither = _joined(left, right, most, none)
            total = held * other * both + (held + other) * single + neither
            result[one - begin, two - begin] = held * other * both / total
