"""A read: which chunks come from where, how long they take, and what that tells of the nodes."""

import math

import numba
import numpy as np

from ecjax.streams import streams
from ecjax.streams import ziggurat as draws

_ONE = np.uint64(1)


@numba.njit(cache=True, nogil=True, inline="always")
def has(bits, chunk):
    """Whether a set of chunks has this one."""
    return ((bits >> np.uint64(chunk)) & _ONE) != 0


@numba.njit(cache=True, nogil=True, inline="always")
def how_many(bits):
    """Number of chunks of a set."""
    count = 0
    while bits != 0:
        bits &= bits - _ONE
        count += 1
    return count


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True, inline="always")
def _nearest(node_of, estimate, down, e, m, chunk):
    """The node that is up, has a copy and the least estimate, the first of equals; -1: none."""
    found, least = -1, np.inf
    for copy in range(node_of.shape[2]):
        node = node_of[m, chunk, copy]
        if node >= 0 and down[node] == 0 and (found < 0 or estimate[e, node] < least):
            found, least = node, estimate[e, node]
    return found


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def serve(node_of, k, network, kept, estimate, moved, down, memory, scratch, e, m, read):
    """Serve read number ``read``, of item m at edge e.

    Args:
        node_of: (M, K + R, copies), -1 where there is no copy.
        k: K.
        network: latency_s (E, N), edge_s, decode_s, key and sigma of ``factor``.
        kept: (E, M) uint64.
        estimate: (E, N) s, updated.
        moved: (E,) int64, counts the changes of estimates, updated.
        down: (N,) above 0 where the node is down.
        memory: a, weight of the past in estimates.
        scratch: source (K + R,) int64, stamp (N,) int64 and drawn (N,), of this function only; stamp begins with -1.
        e: edge.
        m: item.
        read: number of the read.

    Returns:
        s; inf where chunks are missing: then nothing is fetched.
    """
    latency_s, edge_s, decode_s, key, sigma = network
    source, stamp, drawn = scratch
    bits = kept[e, m]
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
    slowest = edge_s
    for f in range(fetched):
        node = source[f]
        took = latency_s[e, node]
        if sigma > 0.0:
            if stamp[node] != read:
                stamp[node] = read
                drawn[node] = factor(key, sigma, read, node)
            took *= drawn[node]
        slowest = max(slowest, took)
        step = (1.0 - memory) * (took - estimate[e, node])
        if step != 0.0:
            estimate[e, node] += step
            moved[e] += 1
    return slowest + decode_s if lost > 0 else slowest
