"""Chunks of an item, slowest first, and what keeping some of them saves per unit of popularity.

By equation 1 of the paper, with ``edge_s`` in the place of 0 for the time of chunks that are kept: no read takes less,
so that an item that is kept whole is worth r (l_1 - edge_s), and chunks nearer than the edge are worth nothing.
"""

import numpy as np

from ecjax.caching.serving import has
from ecjax.machine_code import njit


@njit()
def slowest_first(node_of, k, estimate, bits, e, m, row, latency, order):
    """Order the data chunks of item m as edge e sees them: by the least estimate of their nodes, up or down.

    No chunk counts as nearer than one that is kept. Of equally slow chunks those that are kept come first: nothing is
    exchanged for its like.

    Args:
        node_of: (M, K + R, copies).
        k: K.
        estimate: (E, N) s.
        bits: the chunks that are kept, uint64.
        e: edge.
        m: item.
        row: of the results.
        latency: (rows, K + 1) s, descending; after the last chunk there is the time of one that is kept. Others are
            written.
        order: (rows, K) chunks. Written.

    Returns:
        How many of the slowest are kept, up to the first that is not: others that are kept are of no use now.
    """
    kept_s = latency[row, k]
    for chunk in range(k):
        least = np.inf
        for copy in range(node_of.shape[2]):
            node = node_of[m, chunk, copy]
            if node >= 0 and estimate[e, node] < least:
                least = estimate[e, node]
        least = max(least, kept_s)
        first = has(bits, chunk)
        place = chunk
        while place > 0:
            above = latency[row, place - 1]
            if above > least or (above == least and not (first and not has(bits, order[row, place - 1]))):
                break
            latency[row, place] = above
            order[row, place] = order[row, place - 1]
            place -= 1
        latency[row, place] = least
        order[row, place] = chunk
    useful = 0
    while useful < k and has(bits, order[row, useful]):
        useful += 1
    return useful


@njit(inline="always")
def chunks_of(order, row, count):
    """The set of the ``count`` slowest chunks."""
    bits = np.uint64(0)
    for j in range(count):
        bits |= np.uint64(1) << np.uint64(order[row, j])
    return bits


@njit()
def choices(latency, row, limit, weight, size, value):
    """The numbers of chunks that are worth more than any smaller one, from 0 to ``limit``.

    Args:
        latency: (rows, K + 1), descending.
        row: of the item.
        limit: at most so many chunks.
        weight: popularity.
        size: (rows, K + 1) int64, chunks. Written.
        value: (rows, K + 1), weight times the latency saved. Written.

    Returns:
        How many; size[row, 0] = value[row, 0] = 0.
    """
    slowest = latency[row, 0]
    size[row, 0], value[row, 0] = 0, 0.0
    count = 1
    for j in range(1, limit + 1):
        if latency[row, j] < latency[row, j - 1]:
            size[row, count] = j
            value[row, count] = weight * (slowest - latency[row, j])
            count += 1
    return count
