"""Edges that serve each other: caches planned together.

The paper names cooperation of edges as future work; the model, the plans and the bound are ours.

Model: edge e reads item m at rate r[e, m]. Each of the K data chunks comes from where it is nearest: from a node in
l[e, m, j], or from an edge f that keeps it in h[e, f], where h[e, e] is the time to serve a chunk of the edge's own. A
read is as slow as its slowest chunk. Kept sets S[e, m] with sum_m |S[e, m]| <= C[e] save per second

    sum_{e, m} r[e, m] (max_j l[e, m, j] - max_j min(l[e, m, j], min_{f: j in S[f, m]} h[e, f])).

Links between edges carry any number of chunks. With h = inf between edges each edge is the knapsack of ``exact``; with
h the same from everywhere all edges are one cache of sum C chunks.

Plan: edges that are equally near to everybody are merged, as are the reads of edges that everything is equally far
from; edges that do not help each other are planned apart, and one cache alone is solved exactly. Otherwise prices of
chunks come from the upper bound (``cooperative_bound``); items, in the order of what they save beyond the price, take
their best chunks at these prices while there is room. Then one edge after the other is planned again exactly while the
others stay (a knapsack whose values count what its chunks bring to all edges), until no edge gains. Several starts are
tried, among them the plans that edges make for themselves: cooperation never does worse than these. Few items of few
chunks are solved exactly (``cooperative_exact``).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from ecjax.caching import knapsack
from ecjax.caching.cooperative_bound import Prices, least_bound
from ecjax.caching.cooperative_exact import improved_exactly, is_small
from ecjax.caching.cooperative_items import (
    MOST_STORES,
    Items,
    best_at_prices,
    best_by_count,
    by_price,
    described,
)
from ecjax.errors import UserError

_ROUNDS = 100  # of planning every edge again
_GAIN = 1e-12  # relative: less is rounding
_TILT = 0.003  # of prices, relative
_MOST_CHUNKS = 60


class Plan(NamedTuple):
    """What E edges keep together, and how good it is."""

    contents: np.ndarray  # (E, M, K) bool
    saved_per_s: float  # s/s, over all edges
    bound_per_s: float  # no plan saves more; the same where the plan is proven best


def cooperative_plan(
    rates: np.ndarray,
    latency_s: np.ndarray,
    between_s: np.ndarray,
    capacity: np.ndarray,
    kept: np.ndarray | None = None,
) -> Plan:
    """Plan the caches of all edges together.

    Args:
        rates: (E, M) reads per second.
        latency_s: (E, M, K) s, from each edge to the node of each data chunk; K <= 60.
        between_s: (E, E) s, for edge e (row) to take a chunk that edge f keeps; inf: it cannot. Its own on the
            diagonal.
        capacity: (E,) chunks that each edge can keep.
        kept: (E, M, K) bool, chunks that edges keep now: of edges that are alike, one that has a chunk goes on with it.
            None: there are none.

    Raises:
        UserError: arrays that do not fit together, numbers out of range, or more than 6 edges that help each other and
            are not alike, whether they read or keep. Time grows like (K + E)^E in the worst case, of E that are not.
    """
    rates, latency_s, between_s, capacity = checked(rates, latency_s, between_s, capacity)
    contents = np.zeros(latency_s.shape, bool)
    kept = contents.copy() if kept is None else np.asarray(kept, bool)
    if kept.shape != contents.shape:
        raise UserError(f"kept: found shape {kept.shape}; allowed: {contents.shape}")
    bound = 0.0
    useful = _useful(between_s, latency_s.max(axis=(1, 2), initial=0.0))
    useful[:, capacity == 0] = np.inf
    for readers, stores in _apart(useful, latency_s):
        first = [group[0] for group in readers]
        to_store = np.ascontiguousarray(useful[np.ix_(first, [group[0] for group in stores])])
        room = np.array([capacity[group].sum() for group in stores])
        # what is saved is linear in the rates
        together = np.array([rates[group].sum(axis=0) for group in readers])
        held, least = _planned(together, latency_s[first], to_store, room)
        bound += least
        for group, shelf in zip(stores, held, strict=True):
            contents[group] = _dealt(shelf, kept[group], capacity[group])
    saved = evaluate(contents, rates, latency_s, between_s)
    return Plan(contents, saved, bound if bound > saved * (1.0 + _GAIN) else saved)


def _dealt(shelf: np.ndarray, kept: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Chunks of a group of edges at each of them: where they are kept, and the others where there is room.

    Args:
        shelf: (M, K) bool, chunks that the group keeps, no more than there is room for.
        kept: (G, M, K) bool, what each of its edges keeps now.
        capacity: (G,) chunks that each can keep.

    Returns:
        (G, M, K) bool.
    """
    dealt, left = np.zeros(kept.shape, bool), shelf.copy()
    for edge, most in enumerate(capacity):
        item, chunk = np.nonzero(kept[edge] & left)
        dealt[edge, item[:most], chunk[:most]] = True
        left &= ~dealt[edge]
    item, chunk = np.nonzero(left)
    room = capacity - dealt.sum(axis=(1, 2))
    dealt[np.repeat(np.arange(len(room)), room)[: len(item)], item, chunk] = True
    return dealt


def evaluate(contents: np.ndarray, rates: np.ndarray, latency_s: np.ndarray, between_s: np.ndarray) -> float:
    """Seconds that all reads together save per second, against fetching every chunk from its node.

    Args:
        contents: (F, M, K) bool, chunks at edges that keep.
        rates: (E, M) reads per second, at edges that read.
        latency_s: (E, M, K) s.
        between_s: (E, F) s.
    """
    slowest = served(contents, latency_s, between_s).max(axis=2, initial=0.0)
    return float((rates * (latency_s.max(axis=2, initial=0.0) - slowest)).sum())


def served(contents: np.ndarray, latency_s: np.ndarray, between_s: np.ndarray) -> np.ndarray:
    """Time of each chunk from where it is nearest, (E, M, K) s; arguments of ``evaluate``."""
    nearest = latency_s.copy()
    for f in range(len(contents)):
        np.minimum(nearest, between_s[:, f, None, None], out=nearest, where=contents[f][None])
    return nearest


def checked(rates, latency_s, between_s, capacity):
    """The arguments of ``cooperative_plan`` as float64 and int64 arrays.

    Raises:
        UserError: what it does not take.
    """
    rates, latency_s, between_s = (np.ascontiguousarray(a, float) for a in (rates, latency_s, between_s))
    room = np.asarray(capacity)
    if latency_s.ndim != 3 or not 1 <= latency_s.shape[2] <= _MOST_CHUNKS:
        raise UserError(
            f"latency_s: found shape {latency_s.shape}; allowed: (edges, items, chunks), 1 to {_MOST_CHUNKS} chunks"
        )
    edges, items, _ = latency_s.shape
    shapes = (
        ("rates", rates, (edges, items)),
        ("between_s", between_s, (edges, edges)),
        ("capacity", room, (edges,)),
    )
    for name, array, shape in shapes:
        if array.shape != shape:
            raise UserError(f"{name}: found shape {array.shape}; allowed: {shape}")
    for name, array in (("rates", rates), ("latency_s", latency_s)):
        if not ((array >= 0) & (array < np.inf)).all():
            raise UserError(
                f"{name}: found numbers that are negative or not finite; allowed: finite, at least 0"
            )
    if not (between_s >= 0).all():
        raise UserError(
            "between_s: found numbers that are negative or NaN; allowed: at least 0, inf where none"
        )
    if room.dtype.kind not in "iu" or (room < 0).any():
        raise UserError(f"capacity: found {room.tolist()}; allowed: whole numbers of chunks >= 0")
    most = latency_s.shape[1] * latency_s.shape[2]
    return rates, latency_s, between_s, np.minimum(room, most).astype(np.int64)


def check_together(between_s: np.ndarray, latency_s: np.ndarray) -> None:
    """Make sure that edges are few enough to be planned together.

    Args:
        between_s: (E, E) s, as in ``cooperative_plan``.
        latency_s: (E, N) s, from each edge to each node.

    Raises:
        UserError: more than 6 edges help each other and are not alike.
    """
    _apart(_useful(between_s, latency_s.max(axis=1)), latency_s)


def _useful(between_s: np.ndarray, farthest_s: np.ndarray) -> np.ndarray:
    """Times between edges, (E, E) s; inf where no chunk is farther."""
    return np.where(between_s < farthest_s[:, None], between_s, np.inf)


def _apart(useful: np.ndarray, latency_s: np.ndarray) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Parts of the edges that do not help each other, each in groups that count as one.

    Args:
        useful: (E, E) s, of ``_useful``.
        latency_s: (E, ...) s, from each edge to whatever is fetched.

    Returns:
        Of each part groups of edges whose reads are as far from everything, and of edges whose chunks are as near to
        all that read.

    Raises:
        UserError: a part has more than 6 groups.
    """
    edges = len(useful)
    helps = np.isfinite(useful)
    link = np.zeros((2 * edges, 2 * edges), bool)  # readers, then those that keep
    link[:edges, edges:] = helps
    _, part = connected_components(link, directed=False)
    parts = []
    for number in np.unique(part[:edges]):
        readers = np.flatnonzero(part[:edges] == number)
        stores = np.flatnonzero(part[edges:] == number)
        if len(stores) == 0:
            continue
        near = useful[np.ix_(readers, stores)]
        _, group = np.unique(near, axis=1, return_inverse=True)
        groups = [stores[group == g] for g in range(group.max() + 1)]
        alike: dict[bytes, list[int]] = {}
        for reader, row in zip(readers, near, strict=True):
            alike.setdefault(row.tobytes() + latency_s[reader].tobytes(), []).append(int(reader))
        count = max(len(groups), len(alike))
        if count > MOST_STORES:
            raise UserError(
                f"between_s: found {count} edges that help each other; allowed: at most {MOST_STORES} that are "
                "not alike"
            )
        parts.append(([np.array(each) for each in alike.values()], groups))
    return parts


def _planned(
    rates: np.ndarray, latency_s: np.ndarray, between_s: np.ndarray, capacity: np.ndarray
) -> tuple[np.ndarray, float]:
    """Chunks kept (F, M, K) by F groups of edges for E edges that read, and the bound."""
    stores = len(capacity)
    if stores == 1:
        contents = _alone(rates, latency_s, between_s, capacity)
        return contents, evaluate(contents, rates, latency_s, between_s)
    items = Items(*described(latency_s, between_s))
    top = latency_s.max(axis=2)
    start = np.full(stores, (rates * top).sum() / max(capacity.sum(), latency_s[0].size))
    prices = least_bound(rates, items, capacity, start)
    starts = [_alone(rates, latency_s, between_s, capacity)]
    starts += [
        _priced(rates, items, prices, tilt, capacity)
        for tilt in np.vstack([np.zeros(stores), np.eye(stores)])
    ]
    plans = [_improved(contents, rates, latency_s, between_s, capacity) for contents in starts]
    values = [evaluate(contents, rates, latency_s, between_s) for contents in plans]
    best = int(np.argmax(values))
    if is_small(stores, *latency_s.shape[1:]) and prices.bound_per_s > 0.0:
        return improved_exactly(plans[best], values[best], prices, rates, latency_s, between_s, capacity)
    return plans[best], prices.bound_per_s


def _priced(
    rates: np.ndarray, items: Items, prices: Prices, tilt: np.ndarray, capacity: np.ndarray
) -> np.ndarray:
    """Chunks (F, M, K) that items take at the prices, a little higher where ``tilt`` (F,) says so, while there is room.

    At the prices themselves several plans of an item are equally good; a tilt tells which is taken.
    """
    order = np.argsort(-prices.net, kind="stable")
    subsets = by_price(prices.price * (1.0 + _TILT * tilt))
    _, keep = best_at_prices(rates, items, subsets, order, capacity.copy(), prices.levels.copy())
    subset = np.take_along_axis(keep, items.kind_of, axis=1)  # (M, K)
    return (subset >> np.arange(len(capacity))[:, None, None]) & 1 == 1


def _alone(
    rates: np.ndarray, latency_s: np.ndarray, between_s: np.ndarray, capacity: np.ndarray
) -> np.ndarray:
    """Chunks (F, M, K) that each edge keeps for itself: for those that read and to whom it is the nearest."""
    nothing = np.zeros((len(capacity), *latency_s.shape[1:]), bool)
    alone = nothing.copy()
    nearest = between_s.argmin(axis=1)
    for f in range(len(capacity)):
        nearby = np.where((nearest == f)[:, None], rates, 0.0)
        alone[f] = _replanned(nothing, f, nearby, latency_s, between_s, capacity)
    return alone


def _improved(
    contents: np.ndarray,
    rates: np.ndarray,
    latency_s: np.ndarray,
    between_s: np.ndarray,
    capacity: np.ndarray,
) -> np.ndarray:
    """A plan of which no edge alone can be planned better; it saves at least as much as the given one."""
    value = evaluate(contents, rates, latency_s, between_s)
    waiting = list(range(len(capacity)))
    for _ in range(_ROUNDS * len(capacity)):
        if not waiting:
            break
        f = waiting.pop(0)
        changed = contents.copy()
        changed[f] = _replanned(contents, f, rates, latency_s, between_s, capacity)
        gained = evaluate(changed, rates, latency_s, between_s)
        if gained > value * (1.0 + _GAIN):
            contents, value = changed, gained
            waiting = [g for g in range(len(capacity)) if g != f]
    return contents


def _replanned(
    contents: np.ndarray,
    f: int,
    rates: np.ndarray,
    latency_s: np.ndarray,
    between_s: np.ndarray,
    capacity: np.ndarray,
) -> np.ndarray:
    """The best chunks (M, K) of edge f for all that read, while the others keep what they have."""
    others = np.delete(contents, f, axis=0)
    without = served(others, latency_s, np.delete(between_s, f, axis=1))
    saved, which = best_by_count(rates, without, np.ascontiguousarray(between_s[:, f]))
    count = knapsack.exact(saved, int(capacity[f]))
    bits = which[np.arange(len(count)), count]
    return (bits[:, None] >> np.arange(contents.shape[2], dtype=np.uint64)) & np.uint64(1) == 1
