"""What moving a chunk of a file is worth to first order, given the prices of reads in every scenario."""

from dataclasses import dataclass

import numpy as np

_ELEMENTS = 2_000_000  # of the arrays (scenarios, rows, nodes) that are worked on at a time


@dataclass(frozen=True)
class Limits:
    """Where chunks may go; None where nothing is said."""

    allowed: np.ndarray | None = None  # (R, m) bool, nodes that may hold a chunk of the row
    site: np.ndarray | None = None  # (m,) int, failure domain of every node
    per_site: int | None = None  # chunks of a row at one site, at most; with ``site``
    capacity: np.ndarray | None = None  # (m,) chunks that a node can hold


@dataclass(frozen=True)
class Prices:
    """First-order effect on the objective of reading from, and keeping a chunk at, every node."""

    read: np.ndarray  # (S, R, m) per unit of probability, weighted by scenario
    storing: np.ndarray  # (R, m) of a chunk that is kept there: storage cost, and writes
    up: np.ndarray  # (S, m) bool


@dataclass(frozen=True)
class Moves:
    """The best move of every row; -1 for no node."""

    gain: np.ndarray  # (R,) how far the objective falls to first order; -inf where no move is allowed
    source: np.ndarray  # (R,) node that loses its chunk, -1 for an added chunk
    target: np.ndarray  # (R,) node that gets one, -1 for a dropped chunk


def best_moves(
    prices: Prices,
    stored: np.ndarray,
    k: np.ndarray,
    floor: np.ndarray,
    limits: Limits,
    rebuild: np.ndarray | None = None,
) -> Moves:
    """Best single move of every row: one chunk to another node, one more, or one less.

    To first order a row that may choose its reads pays for the k cheapest of its surviving chunks, whatever they are:
    the sum of the k least prices. Where fewer are left, which still rebuild the file, they are read in larger parts:
    each that is missing counts as the dearest of them. No move makes a file unavailable in a scenario in which it is
    available, goes below the durability floor, or leaves what ``limits`` allows (capacity apart, which depends on the
    other moves).

    Args:
        prices: see ``Prices``.
        stored: (R, m) bool.
        k: (R,) chunks that a read takes.
        floor: (R,) least code length.
        limits: see ``Limits``.
        rebuild: (R,) chunks that rebuild a file; ``k`` where absent.
    """
    rows, nodes = stored.shape
    spare = np.zeros(rows, int) if rebuild is None else (k - rebuild).astype(int)
    step = max(1, _ELEMENTS // (len(prices.up) * nodes))
    parts = []
    for first in range(0, rows, step):
        some = slice(first, first + step)
        block = Prices(prices.read[:, some], prices.storing[some], prices.up)
        allowed = None if limits.allowed is None else limits.allowed[some]
        bounds = Limits(allowed, limits.site, limits.per_site)
        parts.append(_best(block, stored[some], k[some].astype(int), floor[some], bounds, spare[some]))
    return Moves(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _best(
    prices: Prices, stored, k, floor, limits: Limits, spare
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, nodes = stored.shape
    each = np.arange(rows)
    there = stored[None] & prices.up[:, None]
    price = np.where(there, prices.read, np.inf)
    order = np.argsort(price, axis=-1)
    # one more column, so that there is a k-th dearest even where k = m
    ascending = np.pad(np.take_along_axis(price, order, -1), ((0, 0), (0, 0), (0, 1)), constant_values=np.inf)
    rank = np.argsort(order, axis=-1)
    if spare.any():
        ascending = _with_larger_parts(ascending, there.sum(axis=-1), spare)
    sums = np.pad(np.cumsum(ascending, axis=-1), ((0, 0), (0, 0), (1, 0)))  # [n]: sum of the n least

    def at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
        return np.take_along_axis(
            values, np.broadcast_to(index, values.shape[:1] + index.shape)[..., None], -1
        )[..., 0]

    now, last = at(sums, k), at(ascending, k - 1)
    available = np.isfinite(now)
    fewer, following = at(sums, k - 1), at(ascending, k)  # sum of k - 1, the price of the next one
    count, room = stored.sum(axis=1), _room(stored, limits)

    def change(after: np.ndarray) -> np.ndarray:
        """Summed over the scenarios in which the file is available now."""
        shape = (..., *([None] * (after.ndim - 2)))
        return np.sum(np.where(available[shape], after, 0.0), axis=0) - np.sum(
            np.where(available, now, 0.0), axis=0
        ).reshape(-1, *([1] * (after.ndim - 2)))

    read = np.where(prices.up[:, None], prices.read, np.inf)
    best = np.full(rows, np.inf)
    source, target = np.full(rows, -1), np.full(rows, -1)

    def offer(value: np.ndarray, out: np.ndarray, into: np.ndarray) -> None:
        better = value < best
        best[better], source[better], target[better] = value[better], out[better], into[better]

    added = change(fewer[..., None] + np.minimum(last[..., None], read)) + prices.storing
    added = np.where(room, added, np.inf)
    into = added.argmin(axis=1)
    none = np.full(rows, -1)
    offer(added[each, into], none, into)
    # the stored chunks of every row one after the other; rows that have fewer repeat their last
    chunks = np.argsort(~stored, axis=1, kind="stable")
    for position in range(int(count.max())):
        out = chunks[each, np.minimum(position, count - 1)]
        used = at(there.astype(np.int8), out) & (at(rank, out) < k)
        read_price = np.where(used, at(price, out), 0.0)
        with np.errstate(invalid="ignore"):
            without = np.where(used, now - read_price, fewer)  # sum of k - 1, without this chunk
            next_one = np.where(used, following, last)
            dropped = np.where(used, now - read_price + following, now)
        saved = prices.storing[each, out]
        offer(np.where(count > floor, change(dropped) - saved, np.inf), out, none)
        moved = (
            change(without[..., None] + np.minimum(next_one[..., None], read))
            + prices.storing
            - saved[:, None]
        )
        moved = np.where(_room(stored, limits, out), moved, np.inf)
        into = moved.argmin(axis=1)
        offer(moved[each, into], out, into)
    return -best, source, target


def _with_larger_parts(ascending: np.ndarray, left: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Prices (S, R, n) with ``spare`` (R,) more behind the ``left`` (S, R) chunks that there are: the dearest again."""
    place, left = np.arange(ascending.shape[-1]), left[..., None]
    dearest = np.take_along_axis(ascending, np.maximum(left - 1, 0), -1)
    return np.where((place >= left) & (place < left + spare[:, None]), dearest, ascending)


def _room(stored: np.ndarray, limits: Limits, out: np.ndarray | None = None) -> np.ndarray:
    """Nodes that may get a chunk of the row, once its chunk at ``out`` is gone: (R, m) bool."""
    room = ~stored
    if limits.allowed is not None:
        room = room & limits.allowed
    if limits.site is not None and limits.per_site is not None:
        counts = stored.astype(int) @ (limits.site[:, None] == np.arange(limits.site.max() + 1))
        if out is not None:
            counts[np.arange(len(out)), limits.site[out]] -= 1
        room = room & (counts[:, limits.site] < limits.per_site)
    return room


def apply(
    moves: Moves, rows: np.ndarray, stored: np.ndarray, chunks: np.ndarray, limits: Limits
) -> np.ndarray:
    """The placement after the moves of these rows, those left out that a full node has no room for.

    Args:
        moves: of every row.
        rows: rows to move, most important first.
        stored: (R, m) bool.
        chunks: (R,) files of the row: chunks that one placed chunk stands for.
        limits: see ``Limits``.
    """
    after = stored.copy()
    if limits.capacity is not None:
        filled = chunks @ stored
        feasible = []
        for row in rows:
            source, target = moves.source[row], moves.target[row]
            if target >= 0 and filled[target] + chunks[row] > limits.capacity[target]:
                continue
            if target >= 0:
                filled[target] += chunks[row]
            if source >= 0:
                filled[source] -= chunks[row]
            feasible.append(row)
        rows = np.array(feasible, int)
    source, target = moves.source[rows], moves.target[rows]
    after[rows[source >= 0], source[source >= 0]] = False
    after[rows[target >= 0], target[target >= 0]] = True
    return after
