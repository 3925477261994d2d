"""A plain simulation of nodes that serve several accesses at once, first-come first-served."""

import heapq

import numpy as np

LAWS = {
    "exponential": lambda random, count: random.exponential(1.0, count),
    "shifted exponential": lambda random, count: 0.7 + random.exponential(0.3, count),
    "lognormal": lambda random, count: random.lognormal(0.0, 1.0, count),
    "constant": lambda random, count: np.ones(count),
}


def served(channels, load, law, rows=5000, seed=0):
    """Arrivals, starts and finishes of M/G/c queues, merged in order of arrival, and the node of each access."""
    random = np.random.default_rng(seed)
    parts = []
    for node, c in enumerate(channels):
        service = LAWS[law](random, rows)
        arrival = np.cumsum(random.exponential(service.mean() / (c * load), rows))
        free, start = [0.0] * c, np.empty(rows)
        for i in range(rows):
            start[i] = max(arrival[i], heapq.heappop(free))
            heapq.heappush(free, start[i] + service[i])
        parts.append(np.stack([np.full(rows, node), arrival, start, start + service]))
    node, arrival, start, finish = np.concatenate(parts, axis=1)
    order = np.argsort(arrival, kind="stable")
    return node[order].astype(np.int64), arrival[order], start[order], finish[order]


def single_starts(arrival, node, service):
    """Starts of accesses, in order of arrival, at nodes that serve one at a time."""
    free, start = np.zeros(node.max() + 1), np.empty(len(arrival))
    for i in range(len(arrival)):
        start[i] = max(arrival[i], free[node[i]])
        free[node[i]] = start[i] + service[i]
    return start
