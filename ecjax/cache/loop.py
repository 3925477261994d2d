"""The loop over reads: serve, count, decide."""

import numba
import numpy as np

from ecjax.cache.clock import nanoseconds
from ecjax.cache.exchange import EXACT, exchange, rank_all
from ecjax.cache.item_caches import LFU, LRU, keep_item
from ecjax.cache.popularity import count_read
from ecjax.cache.serving import how_many, serve

FIXED = 0  # keeps what whole plans say, or nothing


@numba.njit(cache=True, nogil=True)
def rank_edge(kind, node_of, k, state, scratch, e):
    """Rank what edge e keeps by the present estimates and popularity."""
    ranking = (state.heap, state.held, state.place, state.key, state.tie)
    rank_all(
        kind,
        node_of,
        k,
        state.kept,
        state.weight,
        state.estimate,
        state.moved,
        ranking,
        state.seen,
        scratch,
        e,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def run(
    begin,
    end,
    kind,
    read,
    node_of,
    k,
    capacity,
    half_life_s,
    memory,
    replan_reads,
    network,
    outages,
    state,
    scratch,
    draw,
    result,
):
    """Serve reads from ``begin`` to ``end``, or until an edge is to be planned.

    Args:
        begin: first read.
        end: after the last.
        kind: FIXED, or one of ``item_caches`` and ``exchange``.
        read: time_s, item and edge (Q,).
        node_of: (M, K + R, copies).
        k: K.
        capacity: C.
        half_life_s: H.
        memory: a.
        replan_reads: reads of an edge until it is to be planned; 0: never.
        network: of ``serve``.
        outages: times, nodes and +1 or -1 where an outage begins or ends, in order of time.
        state: of all edges, updated.
        scratch: of ``order_scratch``.
        draw: of ``exchange``.
        result: latency_s, hit_chunks and decision_s (Q,), written.

    Returns:
        The first read not served.
    """
    time_s, item, edge = read
    latency_s, hit_chunks, decision_s = result
    change_s, change_node, change = outages
    kept, free, weight, reference_s = state.kept, state.free, state.weight, state.reference_s
    estimate, moved, seen, down = state.estimate, state.moved, state.seen, state.down
    key, held = state.key, state.held
    ranking = (state.heap, held, state.place, key, state.tie)
    unplanned, outage = state.unplanned, state.outage
    source = np.empty(node_of.shape[1], np.int64)
    fetching = (source, np.full(down.size, -1), np.empty(down.size))
    width = 3 * k + 1
    rows = k + 3
    work = (
        np.empty(width),
        np.empty((rows, width), np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )
    moment = np.empty(2, np.int64)
    for i in range(begin, end):
        now, m, e = time_s[i], item[i], edge[i]
        while outage[0] < change_s.size and change_s[outage[0]] <= now:
            down[change_node[outage[0]]] += change[outage[0]]
            outage[0] += 1
        hit_chunks[i] = how_many(kept[e, m])
        took = serve(node_of, k, network, kept, estimate, moved, down, memory, fetching, e, m, i)
        latency_s[i] = took
        started = nanoseconds(moment)
        before = weight[e, m]
        scale = count_read(weight, reference_s, half_life_s, e, m, now)
        if kind != FIXED:
            if scale != 1.0 and kind != LRU and kind != LFU:
                for place in range(held[e]):
                    key[e, ranking[0][e, place]] *= scale
            if kind < EXACT:
                keep_item(kind, k, capacity // k, kept, weight, free, ranking, e, m, i, took < np.inf)
            else:
                grown = weight[e, m] / (before * scale)
                exchange(
                    kind,
                    node_of,
                    k,
                    kept,
                    weight,
                    free,
                    estimate,
                    moved,
                    ranking,
                    seen,
                    grown,
                    took < np.inf,
                    scratch,
                    work,
                    draw,
                    e,
                    m,
                )
        decision_s[i] = (nanoseconds(moment) - started) * 1e-9
        if replan_reads > 0:
            unplanned[e] += 1
            if unplanned[e] >= replan_reads:
                return i + 1
    return end
