"""What Agar keeps for the next period: its authors' own programme, a dynamic programme with heuristics.

Halalai, Felber, Kermarrec and Taiani, "Agar: A caching system for erasure-coded data", ICDCS 2017, in the version of
the program that the authors released (Agar-YCSB, 2016). Items come in order of the value of their first caching option,
the most valuable first. For every weight, in chunks, one configuration is kept. Each option of the next item, from the
largest to the smallest, first tries to share the room of the last option of a configuration with a smaller option of
the same item (its relaxation), then to be added to it. Only the K + 1 heaviest weights so far are gone through, so that
what fits into the cache no longer changes after little more than C / K items, and the others are not looked at.

Ours are two readings. Their options are whole regions, at which every item has as many chunks; items here lie at nodes
of their own, and so an option is any number of slowest chunks, and the first one is the smallest that is worth
anything. Their configurations may be heavier than the cache while the programme runs; the heaviest that fits is kept.
"""

import numpy as np

from ecjax.machine_code import njit

ALPHA = 0.8  # weight of the last period in the popularity, as published


def smoothed(popularity: np.ndarray, frequency: np.ndarray, periods: int) -> np.ndarray:
    """Popularity at the end of a period: ALPHA times its reads and 1 - ALPHA times what it was a period earlier.

    Args:
        popularity: (E, M) at the end of an earlier period.
        frequency: (E, M) reads in this one; those between had none.
        periods: how many later this one ends, at least 1.
    """
    return ALPHA * frequency + (1 - ALPHA) ** periods * popularity


def agar(tau: np.ndarray, capacity: int) -> np.ndarray:
    """Chunks to keep per item, (M,) int64, at most ``capacity`` together.

    Args:
        tau: value of the j slowest chunks of each item, (M, K + 1) float64: 0 first, nondecreasing in each row.
        capacity: C >= 0, chunks.
    """
    chunks = np.zeros(len(tau), np.int64)
    useful = tau > 0
    first = np.argmax(useful, axis=1)
    worth = np.where(useful.any(axis=1), tau[np.arange(len(tau)), first], 0.0)
    order = np.argsort(-worth, kind="stable")[: min(capacity, np.count_nonzero(worth))]
    if len(order):
        _fill(tau, capacity, order, chunks)
    return chunks


@njit()
def _fill(tau, capacity, order, chunks):
    """Fill ``chunks`` with the configuration of the heaviest weight within the capacity.

    Configurations are lists that share their beginnings: an entry has an item, its chunks, and the entry before it.
    """
    k = tau.shape[1] - 1
    most = capacity + 4 * k + 1
    best = np.full(most, -1.0)  # by weight; -1: there is no configuration
    last = np.full(most, -1)  # its last entry
    each = 3 * k * (k + 1)  # most entries that an item adds; there is room for more when it is needed
    room = k + 8 * each
    who, size, before = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    entries = 0
    for j in range(1, k + 1):
        who[entries], size[entries], before[entries] = order[0], j, -1
        best[j], last[j] = tau[order[0], j], entries
        entries += 1
    heaviest = k
    for i in range(1, len(order)):
        m, reached = order[i], heaviest
        if entries + each > room:
            who, size, before = np.append(who, who), np.append(size, size), np.append(before, before)
            room *= 2
        for j in range(k, 0, -1):
            for weight in range(heaviest - k, heaviest + 1):
                if best[weight] < 0:
                    continue
                end = last[weight]
                other, left = who[end], size[end] - j
                if other == m or left <= 0:
                    continue
                value = best[weight] - tau[other, size[end]] + tau[m, j] + tau[other, left]
                if value > best[weight]:
                    who[entries], size[entries], before[entries] = other, left, before[end]
                    who[entries + 1], size[entries + 1], before[entries + 1] = m, j, entries
                    best[weight], last[weight] = value, entries + 1
                    entries += 2
            for weight in range(heaviest - k, heaviest + 1):
                if best[weight] < 0:
                    continue
                reached = max(reached, weight + j)  # whether or not that is kept
                if who[last[weight]] == m:  # an item is in a configuration once; the newest is the last there
                    continue
                value = best[weight] + tau[m, j]
                if value > best[weight + j]:
                    who[entries], size[entries], before[entries] = m, j, last[weight]
                    best[weight + j], last[weight + j] = value, entries
                    entries += 1
        heaviest = reached
        if heaviest > capacity + 2 * k:
            break
    weight = capacity
    while weight > 0 and best[weight] < 0:
        weight -= 1
    entry = last[weight]
    while entry >= 0:
        chunks[who[entry]] = size[entry]
        entry = before[entry]
