"""Some partitions of the chunks of a few items, and the best way to hand out the parts of each (SampleX, online)."""

import numba
import numpy as np

from ecjax.cache.serving import how_many
from ecjax.replay import streams

PURPOSE = 21  # of the random numbers


def partition_counts(k: int, rows: int, total: int) -> np.ndarray:
    """Number of partitions of b into at most n parts of at most j, (k + 1, rows + 1, total + 1) float64.

    Exact for totals of up to 180 (3 K for the largest K): there are fewer than 2^53 of any kind.
    """
    counts = np.zeros((k + 1, rows + 1, total + 1))
    counts[:, :, 0] = 1.0
    for j in range(1, k + 1):
        for n in range(1, rows + 1):
            counts[j, n] = counts[j - 1, n]
            counts[j, n, j:] += counts[j, n - 1, : total + 1 - j]
    return counts


@numba.njit(cache=True, nogil=True)
def partition_of(rank, counts, k, rows, total, part):
    """The partition of ``total`` into at most ``rows`` parts of at most k with this rank; part[:rows] is descending.

    Those whose largest part is less have lower ranks; the last has as many parts of k as there can be.
    """
    largest, left = k, total
    for slot in range(rows):
        if left == 0:
            part[slot] = 0
            continue
        while rank < counts[largest - 1, rows - slot, left]:
            largest -= 1
        rank -= counts[largest - 1, rows - slot, left]
        part[slot] = largest
        left -= largest


@numba.njit(cache=True, nogil=True)
def rank_of(part, counts, rows, total):
    """Inverse of ``partition_of``."""
    rank, left = 0.0, total
    for slot in range(rows):
        if left == 0:
            break
        rank += counts[part[slot] - 1, rows - slot, left]
        left -= part[slot]
    return rank


@numba.njit(cache=True, nogil=True, error_model="numpy")
def assign(rows, worth, part, scratch):
    """The best assignment of slots to items: shortest augmenting paths, with prices that clear the market.

    Args:
        rows: number of items and of slots.
        worth: (>= rows, K + 1), of a slot of so many chunks to an item.
        part: (>= rows,) int64, chunks of every slot.
        scratch: price, offer and least (> rows,), slot_of and way (> rows,) int64, done (> rows,) bool; items and slots
            begin at place 1. slot_of[s + 1] - 1 is the item of slot s in the end.

    Returns:
        The sum of what the slots are worth to their items.
    """
    price, offer, least, slot_of, way, done = scratch
    for s in range(rows + 1):
        price[s] = offer[s] = 0.0
        slot_of[s] = 0
    for i in range(1, rows + 1):
        slot_of[0] = i
        at = 0
        for s in range(rows + 1):
            least[s] = np.inf
            done[s] = False
        while True:
            done[at] = True
            bidder, step, then = slot_of[at], np.inf, 0
            for s in range(1, rows + 1):
                if not done[s]:
                    loss = -worth[bidder - 1, part[s - 1]] - offer[bidder] - price[s]
                    if loss < least[s]:
                        least[s], way[s] = loss, at
                    if least[s] < step:
                        step, then = least[s], s
            for s in range(rows + 1):
                if done[s]:
                    offer[slot_of[s]] += step
                    price[s] -= step
                else:
                    least[s] -= step
            at = then
            if slot_of[at] == 0:
                break
        while at != 0:
            slot_of[at] = slot_of[way[at]]
            at = way[at]
    total = 0.0
    for s in range(rows):
        total += worth[slot_of[s + 1] - 1, part[s]]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def best_sampled(rows, own, kept, e, k, size, value, count, item, chosen, draw):
    """The best assignment over sampled partitions of the candidates' chunks.

    The samples, all different: the last partition, the one in use, and others with equal probability, as long as there
    are any; a single sample is the last partition.

    Args:
        rows: number of items, the requested one first.
        own: chunks that the requested item keeps, and free ones, of which it gets up to K.
        kept: (E, M) uint64.
        e: edge.
        k: K.
        size: (>= rows, K + 1) of ``choices``.
        value: (>= rows, K + 1) of ``choices``.
        count: (>= rows,) number of choices.
        item: (>= rows,) the items.
        chosen: (>= rows,) int64, the choice for every row. Written.
        draw: state (1,) uint64, updated; ranks (S,); counts of ``partition_counts``; worth (rows, K + 1); part and
            in_use (rows,) int64; scratch of ``assign``.

    Returns:
        Its value.
    """
    state, ranks, counts, worth, part, in_use, market = draw
    slot_of = market[3]
    total = 0
    for row in range(rows):
        chunks = min(own, k) if row == 0 else how_many(kept[e, item[row]])
        total += chunks
        place = row  # parts in use, descending
        while place > 0 and in_use[place - 1] < chunks:
            in_use[place] = in_use[place - 1]
            place -= 1
        in_use[place] = chunks
        o = 0
        for s in range(k + 1):
            if o + 1 < count[row] and size[row, o + 1] <= s:
                o += 1
            worth[row, s] = value[row, o]
    different = counts[k, rows, total]
    drawn, most = 0, -1.0
    while drawn < min(ranks.size, different):
        if drawn == 0:
            rank = different - 1.0
        elif drawn == 1:
            rank = rank_of(in_use, counts, rows, total)
        elif different <= ranks.size:
            rank = float(drawn)
        else:
            state[0] = streams.advance(state[0])
            rank = np.floor(streams.uniform(state[0]) * different)
        new = False
        while not new:
            new = True
            for s in range(drawn):
                if ranks[s] == rank:
                    new = False
            if not new:
                rank = (rank + 1.0) % different
        ranks[drawn] = rank
        drawn += 1
        partition_of(rank, counts, k, rows, total, part)
        found = assign(rows, worth, part, market)
        if found > most:
            most = found
            for s in range(rows):
                row = slot_of[s + 1] - 1
                o = 0
                while o + 1 < count[row] and size[row, o + 1] <= part[s]:
                    o += 1
                chosen[row] = o
    return most
