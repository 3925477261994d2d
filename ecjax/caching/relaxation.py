"""The linear relaxation of the knapsack: the price of a chunk, and a plan that is best at that price. Compiled.

With fractions of items allowed, an item is worth the upper concave envelope of its values, and the best plan takes the
steepest segments of all envelopes, C chunks of them. The slope p of the segment that does not fit any more is the price
of a chunk: no plan of C chunks is worth more than sum_m max_j (tau_{m,j} - p j) + p C.
"""

import numpy as np

from ecjax.machine_code import njit

_STEP, _ADD = np.uint64(6364136223846793005), np.uint64(1442695040888963407)  # Knuth's MMIX generator
_HIGH = np.uint64(33)


@njit(inner=True)
def envelope(tau, m, ends, slopes):
    """Segments of the upper concave envelope of a row, steepest first; flat ones are left out.

    Args:
        tau: (M, K + 1), nondecreasing in each row.
        m: the row.
        ends: filled, (K + 1,) int64: segment i goes from chunks ends[i - 1] to ends[i], i = 1, 2, ...; ends[0] = 0.
        slopes: filled, (K + 1,): value per chunk along segment i, nonincreasing.

    Returns:
        Number of segments.
    """
    count = 0
    ends[0] = 0
    for j in range(1, tau.shape[1]):
        value = tau[m, j]
        if value <= tau[m, ends[count]]:
            continue
        slope = (value - tau[m, ends[count]]) / (j - ends[count])
        while count > 0 and slope > slopes[count]:
            count -= 1
            slope = (value - tau[m, ends[count]]) / (j - ends[count])
        count += 1
        ends[count], slopes[count] = j, slope
    return count


@njit(inner=True)
def price_of(slopes, lengths, count, capacity):
    """The slope p with less than or exactly ``capacity`` chunks in steeper segments, and more with those of slope p.

    Selection by random pivots: O(count) on average, whatever the order. Both arrays are permuted.

    Args:
        slopes: (n,).
        lengths: chunks, (n,).
        count: entries that are used; more than ``capacity`` chunks in all.
        capacity: chunks.
    """
    begin, end, total = 0, count, 0
    state = np.uint64(count)
    while True:
        state = state * _STEP + _ADD
        pivot = slopes[begin + np.int64(state >> _HIGH) % (end - begin)]
        steeper, equal, flatter = (
            begin,
            begin,
            end,
        )  # [begin, steeper) above, [steeper, equal) at, [flatter, end) below
        above = at = 0
        while equal < flatter:
            slope, length = slopes[equal], lengths[equal]
            if slope < pivot:
                flatter -= 1
                slopes[equal], lengths[equal] = slopes[flatter], lengths[flatter]
                slopes[flatter], lengths[flatter] = slope, length
                continue
            if slope > pivot:
                slopes[equal], lengths[equal] = slopes[steeper], lengths[steeper]
                slopes[steeper], lengths[steeper] = slope, length
                steeper += 1
                above += length
            else:
                at += length
            equal += 1
        if total + above > capacity:
            end = steeper
        elif total + above + at > capacity:
            return pivot
        else:
            total += above + at
            begin = flatter


@njit(inner=True)
def relaxed(tau, capacity, chunks):
    """A plan of whole segments that is best at the price of a chunk, and less than K chunks short of C.

    Args:
        tau: values, nondecreasing in each row, 0 first, (M, K + 1) float64.
        capacity: C >= 0.
        chunks: filled, (M,) int64.

    Returns:
        The price p, and the chunks that are left. p = 0: nothing is left to gain, and the plan is the best one.
    """
    items, most = tau.shape[0], tau.shape[1] - 1
    ends, slopes = np.empty(most + 1, np.int64), np.empty(most + 1)
    first = np.zeros(items)
    all_slopes, all_lengths = np.empty(items * most), np.empty(items * most, np.uint8)
    count = demand = 0
    for m in range(items):
        segments = envelope(tau, m, ends, slopes)
        for i in range(1, segments + 1):
            all_slopes[count], all_lengths[count] = slopes[i], ends[i] - ends[i - 1]
            count += 1
        if segments > 0:
            first[m] = slopes[1]
        chunks[m] = ends[segments]
        demand += ends[segments]
    if demand <= capacity:
        return 0.0, capacity - demand
    price = price_of(all_slopes, all_lengths, count, capacity)
    spare = capacity
    for m in range(items):
        chunks[m] = 0
        if first[m] > price:
            segments = envelope(tau, m, ends, slopes)
            while segments > 0 and slopes[segments] <= price:
                segments -= 1
            chunks[m] = ends[segments]
            spare -= chunks[m]
    for m in range(items):  # of the segments at the price, those that fit
        if spare > 0 and first[m] >= price:
            segments = envelope(tau, m, ends, slopes)
            for i in range(1, segments + 1):
                length = ends[i] - ends[i - 1]
                if slopes[i] == price and chunks[m] == ends[i - 1] and length <= spare:
                    chunks[m] = ends[i]
                    spare -= length
    return price, spare
