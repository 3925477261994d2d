"""A read: which chunks come from where, how long they take, and what that tells of the nodes."""

import math
from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws

_ONE = np.uint64(1)


class Fetching(NamedTuple):
    """How long reads take, and what they tell."""

    latency_s: np.ndarray  # (E, N) mean time to fetch a chunk
    edge_s: float  # to serve a chunk that is kept
    decode_s: float  # once per read that needs parity
    key: np.uint64  # ``streams.key`` of ``factor``
    sigma: float  # of ``factor``
    memory: float  # a, weight of the past in estimates


class Sources(NamedTuple):
    """Room for one read; ``stamp`` begins with -1."""

    source: np.ndarray  # (K + R,) int64, nodes that chunks come from
    stamp: np.ndarray  # (N,) int64, the last read for which ``drawn`` holds
    drawn: np.ndarray  # (N,)


def sources_for(chunks: int, nodes: int) -> Sources:
    """Room for reads of items of so many chunks."""
    return Sources(np.zeros(chunks, np.int64), np.full(nodes, -1), np.zeros(nodes))


@njit(inline="always")
def has(bits, chunk):
    """Whether a set of chunks has this one."""
    return ((bits >> np.uint64(chunk)) & _ONE) != 0


@njit(inline="always")
def how_many(bits):
    """Number of chunks of a set."""
    count = 0
    while bits != 0:
        bits &= bits - _ONE
        count += 1
    return count


@njit()
def factor(key, sigma, read, node):
    """What the latency of a node is multiplied by in this read: lognormal with mean 1, the same for every policy.

    Args:
        key: ``streams.key``.
        sigma: of the logarithm.
        read: number of the read.
        node: number of the node.
    """
    score = draws.normal(draws.task_state(streams.stream(key, read), node))
    return math.exp(sigma * score - 0.5 * sigma * sigma)


@njit(inline="always")
def _nearest(node_of, estimate, down, e, m, chunk):
    """The node that is up, has a copy and the least estimate, the first of equals; -1: none."""
    nearest, least = -1, np.inf
    for copy in range(node_of.shape[2]):
        node = node_of[m, chunk, copy]
        if node >= 0 and down[node] == 0 and (nearest < 0 or estimate[e, node] < least):
            nearest, least = node, estimate[e, node]
    return nearest


@njit(inline="always", error_model="numpy")
def serve(stored, fetching, state, sources, bits, e, m, read):
    """Serve read number ``read``, of item m at edge e.

    Args:
        stored: Stored; -1 in ``node_of`` where there is no copy.
        fetching: Fetching.
        state: State; estimates and how often they moved are updated.
        sources: Sources, of this function only.
        bits: the chunks that are kept, uint64.
        e: edge.
        m: item.
        read: number of the read.

    Returns:
        s; inf where chunks are missing: then nothing is fetched.
    """
    k, node_of = stored.k, stored.node_of
    estimate, edges, down = state.estimate, state.edges, state.down
    source, stamp, drawn = sources.source, sources.stamp, sources.drawn
    latency_s, sigma = fetching.latency_s, fetching.sigma
    fetched = lost = 0
    for chunk in range(k):
        if not has(bits, chunk):
            node = _nearest(node_of, estimate, down, e, m, chunk)
            if node < 0:
                lost += 1
            else:
                source[fetched] = node
                fetched += 1
    if lost > 0:
        end = fetched
        for chunk in range(k, node_of.shape[1]):
            node = _nearest(node_of, estimate, down, e, m, chunk)
            if node >= 0:
                place = end
                while place > fetched and estimate[e, source[place - 1]] > estimate[e, node]:
                    source[place] = source[place - 1]
                    place -= 1
                source[place] = node
                end += 1
        if end - fetched < lost:
            return np.inf
        fetched += lost
    slowest = fetching.edge_s
    for f in range(fetched):
        node = source[f]
        took = latency_s[e, node]
        if sigma > 0.0:
            if stamp[node] != read:
                stamp[node] = read
                drawn[node] = factor(fetching.key, sigma, read, node)
            took *= drawn[node]
        slowest = max(slowest, took)
        step = (1.0 - fetching.memory) * (took - estimate[e, node])
        if step != 0.0:
            estimate[e, node] += step
            edges[e].moved += 1
    return slowest + fetching.decode_s if lost > 0 else slowest
