"""Prices of port time that make the bound of ``price_response`` large: from weights, then by use above capacity."""

import numba
import numpy as np

from ecjax.coflow.price_response import one_bound
from ecjax.coflow.single_port import mean_busy

MEMORY = 0.8  # of the average of supergradients
LARGEST = 3.0  # relative excess that counts
STEADY = 30  # rounds before steps fall with the root of their number
LEAST = 0.05  # prices below it (in coflows that wait) move as if they were this


def cells(arrival: np.ndarray, isolation: np.ndarray, end: float, count: int) -> np.ndarray:
    """Edges of cells of time: half are spaced evenly, half are arrivals of the coflows that take longest.

    Args:
        arrival: seconds, ascending, (C,).
        isolation: seconds, (C,).
        end: when ports that never idle with work are idle for good.
        count: of cells, about.

    Returns:
        Edges, (K + 1,); the last cell is for what remains after ``end``, and holds all that any coflow needs.
    """
    longest = arrival[np.argsort(-isolation, kind="stable")[: count // 2]]
    edges = np.unique(np.concatenate([np.linspace(arrival[0], end, count - len(longest)), longest]))
    return np.append(edges, edges[-1] + 2 * isolation.max())


def split_cells(edges: np.ndarray, price: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Halve the longest cells, the last one apart, until there are ``count``; prices stay."""
    while len(edges) - 1 < count:
        width = np.diff(edges[:-1])
        longest = np.argsort(-width, kind="stable")[: count - len(edges) + 1]
        finer = np.sort(np.append(edges, edges[longest] + width[longest] / 2))
        price = price[:, np.searchsorted(edges, finer[:-1], side="right") - 1]
        edges = finer
    return edges, price


@numba.njit(cache=True, nogil=True)
def prices_of_weights(arrival, first, coflow, load, weight, edges):
    """Prices that belong to the bound by weights, averaged over cells.

    While c is served the price falls by w_c / L_c per second; at the end of a busy period it is 0; when c is
    resumed after a preemption it is on the same line as before.

    Args:
        arrival: seconds, ascending, (C,).
        first: the entries of port p are first[p] to first[p + 1] - 1, (P + 1,).
        coflow: of each entry, ascending within a port, (N,).
        load: seconds, (N,).
        weight: of each entry, (N,).
        edges: of the cells, seconds, ascending, (K + 1,).

    Returns:
        Flow time per second of a port, (P, K).
    """
    ports, cells = len(first) - 1, len(edges) - 1
    price = np.zeros((ports, cells))
    for p in range(ports):
        a, b = first[p], first[p + 1]
        count = b - a
        if count == 0:
            continue
        start, end = np.empty(2 * count), np.empty(2 * count)
        served, flow_time = np.empty(2 * count, np.int64), np.empty(count)
        _, pieces = mean_busy(arrival[coflow[a:b]], load[a:b], weight[a:b], flow_time, start, end, served)
        level = np.full(count, np.nan)  # the line of c is level - slope time
        price_after, start_after = 0.0, np.inf
        for piece in range(pieces - 1, -1, -1):
            j = served[piece]
            slope = weight[a + j] / load[a + j]
            if end[piece] < start_after:
                price_after = 0.0
            if np.isnan(level[j]):
                level[j] = price_after + slope * end[piece]
            k = max(np.searchsorted(edges, start[piece], side="right") - 1, 0)
            while k < cells and edges[k] < end[piece]:
                low, high = max(start[piece], edges[k]), min(end[piece], edges[k + 1])
                value = level[j] - slope * (low + high) / 2
                price[p, k] += max(value, 0.0) * (high - low) / (edges[k + 1] - edges[k])
                k += 1
            price_after, start_after = level[j] - slope * start[piece], start[piece]
    return price


@numba.njit(cache=True, nogil=True)
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
    best, done = -np.inf, 0
    for number in range(rounds):
        bound, steps = one_bound(arrival, isolation, first, port, load, price, edges, use)
        best = max(best, bound)
        done += steps + ports * cells
        if done > work:
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
