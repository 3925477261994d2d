"""Prices of port time that make the bound of ``price_response`` large: from weights, then by use above capacity."""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.price_response import cell_of, one_bound
from ecjax.coflow.single_port import mean_busy
from ecjax.machine_code import njit

MEMORY = 0.8  # of the average of supergradients
LARGEST = 3.0  # relative excess that counts
STEADY = 30  # rounds before steps fall with the root of their number
LEAST = 0.05  # prices below it (in coflows that wait) move as if they were this


class Pieces(NamedTuple):
    """Prices that are linear in pieces of time, by port and time, and 0 elsewhere."""

    port: np.ndarray  # (n,)
    start: np.ndarray  # (n,) seconds
    end: np.ndarray  # (n,)
    high: np.ndarray  # (n,) price at the start
    low: np.ndarray  # (n,) price at the end


@njit()
def prices_of_weights(first, release, load, weight):
    """Prices that belong to the bound by weights: the fields of ``Pieces``.

    While c is served the price falls by w_c / L_c per second; at the end of a busy period it is 0; when c is
    resumed after a preemption it is on the same line as before.

    Args:
        first: as in ``port_weights.PortEntries``, (P + 1,).
        release: as there, seconds, (N,).
        load: as there, seconds, (N,).
        weight: of each entry, (N,).
    """
    most = 2 * len(load)
    port, high, low = np.empty(most, np.int64), np.empty(most), np.empty(most)
    start, end, served = np.empty(most), np.empty(most), np.empty(most, np.int64)
    flow_time = np.empty(len(load))
    n = 0
    for p in range(len(first) - 1):
        a, b = first[p], first[p + 1]
        if a == b:
            continue
        level = np.full(b - a, np.nan)  # the line of c is level - slope time
        _, pieces = mean_busy(
            release[a:b], load[a:b], weight[a:b], flow_time[a:b], start[n:], end[n:], served[n:]
        )
        price_after, start_after = 0.0, np.inf
        for i in range(n + pieces - 1, n - 1, -1):
            j = served[i]
            slope = weight[a + j] / load[a + j]
            if end[i] < start_after:
                price_after = 0.0
            if np.isnan(level[j]):
                level[j] = price_after + slope * end[i]
            high[i], low[i] = level[j] - slope * start[i], level[j] - slope * end[i]
            port[i] = p
            price_after, start_after = high[i], start[i]
        n += pieces
    return port[:n], start[:n], end[:n], high[:n], low[:n]


def cells(pieces: Pieces, begin: float, end: float, count: int) -> np.ndarray:
    """Edges of cells of time: short where prices change much.

    Each cell has as much of time and of the changes of prices together, both as a share of all.

    Args:
        pieces: prices of the ports that matter.
        begin: of the first cell, not after any piece.
        end: of the last cell, not before any piece.
        count: of cells, about.

    Returns:
        Edges, seconds, (K + 1,).
    """
    # changes of prices: falls, spread over pieces, and rises, at their starts
    follows = (np.diff(pieces.port) == 0) & (pieces.start[1:] <= pieces.end[:-1])
    before = np.where(np.append(False, follows), np.append(0.0, pieces.low[:-1]), 0.0)
    rise = np.maximum(pieces.high - before, 0.0)
    moments, at = np.unique(np.concatenate([pieces.start, pieces.end]), return_inverse=True)
    fall = pieces.high - pieces.low
    length = np.maximum(pieces.end - pieces.start, np.finfo(float).tiny)
    slope = np.cumsum(np.bincount(at, np.concatenate([fall, -fall]) / np.tile(length, 2), len(moments)))
    at_once = np.bincount(at[: len(rise)], rise, len(moments))
    spread = np.append(0.0, np.cumsum(np.maximum(slope[:-1], 0.0) * np.diff(moments)))
    below = spread + np.append(0.0, np.cumsum(at_once)[:-1])
    change = np.stack([below, below + at_once], axis=1).ravel()  # just before and just after each moment
    time = np.repeat(moments - moments[0], 2)
    share = time / time[-1] + change / max(change[-1], np.finfo(float).tiny)
    edges = np.interp(np.linspace(0.0, share[-1], count), share, np.repeat(moments, 2))
    return np.unique(np.concatenate([[begin], edges[1:-1], moments[[0, -1]], [end]]))


@njit()
def averages(port, start, end, high, low, ports, edges):
    """Mean price of each cell, (P, K), of ``Pieces``."""
    cells = len(edges) - 1
    price = np.zeros((ports, cells))
    for i in range(len(port)):
        if start[i] == end[i]:  # shorter than floats tell at such times
            continue
        k = cell_of(edges, start[i])
        while k < cells and edges[k] < end[i]:
            begin, stop = max(start[i], edges[k]), min(end[i], edges[k + 1])
            middle = ((begin + stop) / 2 - start[i]) / (end[i] - start[i])
            value = high[i] + middle * (low[i] - high[i])
            price[port[i], k] += max(value, 0.0) * (stop - begin) / (edges[k + 1] - edges[k])
            k += 1
    return price


def split_cells(edges: np.ndarray, price: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Halve the longest cells, the last one apart, until there are ``count``; prices stay."""
    while len(edges) - 1 < count:
        width = np.diff(edges[:-1])
        longest = np.argsort(-width, kind="stable")[: count - len(edges) + 1]
        finer = np.unique(np.append(edges, edges[longest] + width[longest] / 2))
        if len(finer) == len(edges):  # as short as floats can be
            break
        price = price[:, np.searchsorted(edges, finer[:-1], side="right") - 1]
        edges = finer
    return edges, price


@njit()
def raise_prices(arrival, isolation, first, port, load, price, edges, rounds, work, step):
    """Prices that make the bound large: use above capacity raises a price, use below lowers it.

    Args:
        arrival: seconds, (C,), within the cells.
        isolation: seconds, (C,).
        first: the entries of coflow c are first[c] to first[c + 1] - 1, (C + 1,).
        port: of each entry, (N,).
        load: seconds, (N,), not above the coflow's isolation.
        price: to begin with, (P, K); changed.
        edges: seconds, ascending, (K + 1,).
        rounds: at most.
        work: steps of ``one_bound`` allowed; the round that passes it is the last.
        step: relative change of a price per round and relative excess.

    Returns:
        The largest bound found on the sum of flow times.
    """
    ports, cells = price.shape
    use, excess = np.empty((ports, cells)), np.zeros((ports, cells))
    best, effort = -np.inf, 0
    for number in range(rounds):
        bound, steps = one_bound(arrival, isolation, first, port, load, price, edges, use)
        best = max(best, bound)
        effort += steps + ports * cells
        if effort > work:
            break
        now = step / np.sqrt(1 + number / STEADY)
        memory = MEMORY if number else 0.0
        for p in range(ports):
            for k in range(cells - 1):
                relative = use[p, k] / (edges[k + 1] - edges[k]) - 1.0
                excess[p, k] = memory * excess[p, k] + (1 - memory) * relative
                change = min(max(excess[p, k], -1.0), LARGEST)
                price[p, k] = max(price[p, k] + now * (price[p, k] + LEAST) * change, 0.0)
    return best
