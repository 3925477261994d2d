"""One item at several edges: which of its chunks to keep where, at prices or at one edge.

The latency of the item at edge e takes few values, *levels*: the latencies of its chunks and the times to fetch from
the edges. Level L at edge e holds if each chunk is either not farther than L (l[e, j] <= L), or kept at an edge that e
reaches in that time (h[e, f] <= L). Once a level is chosen for each edge, chunks no longer depend on each other: each
has to be kept where every edge that needs it reaches it, and the cheapest way to do so is one of 2^F subsets of the
edges. So the best plan of one item is found among the choices of levels, (K + F)^E at most, branch by branch; chunks
that are equally far from every edge are one *kind* and are treated once.

Edges that read (E) and edges that keep (F) are counted apart: those that keep may have been merged.
"""

from typing import NamedTuple

import numpy as np

from ecjax.caching.serving import how_many
from ecjax.machine_code import njit

MOST_STORES = 6  # subsets of them are the bits of one word
_ONE = np.uint64(1)


class Items(NamedTuple):
    """M items of K chunks as E edges see them; A levels at most, the highest first, and T kinds of chunks."""

    kind_of: np.ndarray  # (M, K) int64, kind of each chunk
    chunks: np.ndarray  # (M, T) int64, how many chunks are of a kind
    levels: np.ndarray  # (M, E) int64, how many levels there are
    level_s: np.ndarray  # (M, E, A) s
    needs: np.ndarray  # (M, E, A) int64, bit t: kind t is farther than the level
    reach: np.ndarray  # (M, E, A) int64, bit f: what f keeps is within the level


@njit()
def described(latency_s, between_s):
    """Kinds and levels of items.

    Args:
        latency_s: (E, M, K) s, of each chunk from its node.
        between_s: (E, F) s, to fetch a chunk from an edge that keeps it.
    """
    readers, items, k = latency_s.shape
    stores = between_s.shape[1]
    kind_of = np.zeros((items, k), np.int64)
    chunks = np.zeros((items, k), np.int64)
    levels = np.zeros((items, readers), np.int64)
    level_s = np.zeros((items, readers, k + stores))
    needs = np.zeros((items, readers, k + stores), np.int64)
    reach = np.zeros((items, readers, k + stores), np.int64)
    for m in range(items):
        for j in range(k):
            kind = j
            for i in range(j - 1, -1, -1):
                alike = True
                for e in range(readers):
                    alike = alike and latency_s[e, m, i] == latency_s[e, m, j]
                if alike:
                    kind = kind_of[m, i]
                    break
            kind_of[m, j] = kind
            chunks[m, kind] += 1
        for e in range(readers):
            farthest, lowest = 0.0, np.inf
            for j in range(k):
                farthest = max(farthest, latency_s[e, m, j])
            for f in range(stores):
                lowest = min(lowest, between_s[e, f])
            value, a = farthest, 0
            while value >= 0.0:
                level_s[m, e, a] = value
                lower = -1.0
                for j in range(k):
                    if latency_s[e, m, j] > value:
                        needs[m, e, a] |= 1 << kind_of[m, j]
                    elif latency_s[e, m, j] < value:
                        lower = max(lower, latency_s[e, m, j])
                for f in range(stores):
                    if between_s[e, f] <= value:
                        reach[m, e, a] |= 1 << f
                    if between_s[e, f] < value:
                        lower = max(lower, between_s[e, f])
                value = lower if lower >= lowest else -1.0
                a += 1
            levels[m, e] = a
    return kind_of, chunks, levels, level_s, needs, reach


@njit(inner=True)
def _lowest_bit(word):
    place = 0
    while not word & _ONE:
        word >>= _ONE
        place += 1
    return place


def by_price(price: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Subsets of F edges, the cheapest first: which (S,), their prices (S,), and who meets whom.

    Returns:
        The subsets as bits of int64 (of equal prices those of fewer edges first), the price of one chunk in all of
        a subset, and for each set of edges (2^F,) uint64 with bit s where it has an edge in common with subset s.
    """
    every = np.arange(1 << len(price))
    inside = (every[:, None] >> np.arange(len(price))) & 1
    cost = inside @ price
    order = np.lexsort((every, inside.sum(axis=1), cost))
    meets = ((every[:, None] & every[order][None, :]) != 0).astype(np.uint64)
    bits = np.uint64(1) << np.arange(len(every), dtype=np.uint64)
    return every[order], cost[order], np.bitwise_or.reduce(meets * bits, axis=1)


@njit(inner=True)
def _narrowed(kinds, subsets, possible, m, e, a):
    """Least price of chunks once edge e is at level a; ``possible[e + 1]`` becomes the subsets that still will do."""
    _, chunks, _, _, needs, reach = kinds
    _, cost, meets = subsets
    meet = meets[reach[m, e, a]]
    spent = 0.0
    for t in range(chunks.shape[1]):
        if chunks[m, t]:
            word = possible[e, t]
            if needs[m, e, a] >> t & 1:
                word &= meet
            possible[e + 1, t] = word
            spent += chunks[m, t] * cost[_lowest_bit(word)]
    return spent


@njit(inner=True)
def _fits(kinds, subsets, possible, m, room):
    """Whether the cheapest of the subsets in ``possible`` leave no edge with more chunks than there is room for."""
    chunks, members = kinds[1], subsets[0]
    for f in range(len(room)):
        used = 0
        for t in range(chunks.shape[1]):
            if chunks[m, t]:
                used += chunks[m, t] * (members[_lowest_bit(possible[-1, t])] >> f & 1)
        if used > room[f]:
            return False
    return True


@njit()
def best_at_prices(rate, kinds, subsets, order, room, first_levels):
    """The best plan of each item alone: value less price of its chunks.

    Args:
        rate: (E, M) reads per second.
        kinds: fields of ``Items``.
        subsets: of ``by_price``.
        order: (n,) items, in which they take chunks from ``room``.
        room: (F,) int64, how many more chunks may be kept at each edge, changed in place; what does not fit is not
            considered.
        first_levels: (M, E) int64, levels to try first: those of prices nearby make it quick. Replaced by the best.

    Returns:
        What is left of the value after prices (M,), and the subset that keeps chunks of each kind (M, T).
    """
    _, chunks, levels, level_s, _, _ = kinds
    members = subsets[0]
    items, readers = levels.shape
    count = chunks.shape[1]
    net = np.zeros(items)
    keep = np.zeros(chunks.shape, np.int64)
    at = np.zeros(readers, np.int64)  # level under consideration
    gained = np.zeros(readers + 1)  # by the levels of edges before this one
    rest = np.zeros(readers + 1)  # gained at most by this edge and those after it
    possible = np.zeros((readers + 1, count), np.uint64)  # subsets that still will do
    possible[0] = ~np.uint64(0)
    for m in order:
        for e in range(readers - 1, -1, -1):
            rest[e] = rest[e + 1] + rate[e, m] * (level_s[m, e, 0] - level_s[m, e, levels[m, e] - 1])
        for trial in range(2):  # the first levels, then all
            e = 0
            at[0] = first_levels[m, 0] - 1 if trial == 0 else -1
            while e >= 0:
                at[e] += 1
                a = at[e]
                if (
                    a == levels[m, e]
                    or (a > 0 and rate[e, m] == 0.0)
                    or (trial == 0 and a > first_levels[m, e])
                ):
                    e -= 1
                    continue
                spent = _narrowed(kinds, subsets, possible, m, e, a)
                if gained[e] + rest[e] - spent <= net[m]:
                    e -= 1  # lower levels need no less
                    continue
                gained[e + 1] = gained[e] + rate[e, m] * (level_s[m, e, 0] - level_s[m, e, a])
                if gained[e + 1] + rest[e + 1] - spent <= net[m]:
                    continue
                if e + 1 < readers:
                    e += 1
                    at[e] = first_levels[m, e] - 1 if trial == 0 else -1
                elif _fits(kinds, subsets, possible, m, room):
                    net[m] = gained[readers] - spent
                    for i in range(readers):
                        first_levels[m, i] = at[i]
                    for t in range(count):
                        keep[m, t] = members[_lowest_bit(possible[readers, t])] if chunks[m, t] else 0
        for t in range(count):
            for f in range(len(room)):
                room[f] -= chunks[m, t] * (keep[m, t] >> f & 1)
    return net, keep


@njit()
def best_by_count(rate, latency_s, to_store_s):
    """What n chunks of each item are worth at one edge, for all edges together, and which n chunks.

    Args:
        rate: (E, M) reads per second.
        latency_s: (E, M, K) s, without that edge.
        to_store_s: (E,) s, to fetch from it.

    Returns:
        Seconds saved per second (M, K + 1), never less for more chunks, and the chunks as bits, (M, K + 1) uint64.
    """
    readers, items, k = latency_s.shape
    saved = np.zeros((items, k + 1))
    which = np.zeros((items, k + 1), np.uint64)
    level = np.zeros((readers, k + 1))
    farther = np.zeros((readers, k + 1), np.uint64)
    levels = np.zeros(readers, np.int64)
    at = np.zeros(readers, np.int64)
    gained = np.zeros(readers + 1)
    rest = np.zeros(readers + 1)  # gained at most by this edge and those after it
    chunks = np.zeros(readers + 1, np.uint64)
    for m in range(items):
        for e in range(readers):
            levels[e] = 1
            level[e, 0] = 0.0
            for j in range(k):
                level[e, 0] = max(level[e, 0], latency_s[e, m, j])
            farther[e, 0] = 0
            if rate[e, m] == 0.0:
                continue
            while level[e, levels[e] - 1] > to_store_s[e]:
                last = level[e, levels[e] - 1]
                lower = to_store_s[e]
                word = np.uint64(0)
                for j in range(k):
                    if latency_s[e, m, j] < last:
                        lower = max(lower, latency_s[e, m, j])
                    else:
                        word |= _ONE << np.uint64(j)
                level[e, levels[e]] = lower
                farther[e, levels[e]] = word
                levels[e] += 1
        for e in range(readers - 1, -1, -1):
            rest[e] = rest[e + 1] + rate[e, m] * (level[e, 0] - level[e, levels[e] - 1])
        e = 0
        at[0] = -1
        while e >= 0:
            at[e] += 1
            a = at[e]
            if a == levels[e]:
                e -= 1
                continue
            gained[e + 1] = gained[e] + rate[e, m] * (level[e, 0] - level[e, a])
            chunks[e + 1] = chunks[e] | farther[e, a]
            n = how_many(chunks[e + 1])
            if gained[e + 1] + rest[e + 1] <= saved[m, n]:
                continue
            if e + 1 < readers:
                e += 1
                at[e] = -1
                continue
            while n <= k and saved[m, n] < gained[readers]:  # more chunks are worth no less
                saved[m, n] = gained[readers]
                which[m, n] = chunks[readers]
                n += 1
    return saved, which
