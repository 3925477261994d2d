"""The loop over reads: serve, count, decide."""

from typing import NamedTuple

import numpy as np

from ecjax.by_reference import by_reference
from ecjax.caching.clock import nanoseconds
from ecjax.caching.edge_state import Rules
from ecjax.caching.exchange import EXACT, exchange, weigh, weigh_in_turn
from ecjax.caching.experts import learn
from ecjax.caching.item_caches import keep_item
from ecjax.caching.popularity import count_read
from ecjax.caching.returns import count_return
from ecjax.caching.serving import Fetching, Sources, how_many, serve
from ecjax.caching.system import NodeChanges, Reads, Stored
from ecjax.machine_code import njit

FIXED, WHOLE = 0, 1  # keeps what whole plans say, or nothing; whole items, at reads that ``hit`` says


class Inputs(NamedTuple):
    """What a replay goes by."""

    reads: Reads
    stored: Stored
    fetching: Fetching
    changes: NodeChanges
    hit: np.ndarray  # (Q,) bool of caches of whole items; else (0,)
    rules: Rules


@njit(error_model="numpy")
def run(begin, end, inputs, state, scratch, candidates, measured):
    """Serve reads from ``begin`` to ``end``, or until an edge is to be planned.

    Args:
        begin: first read.
        end: after the last.
        inputs: Inputs.
        state: State, updated.
        scratch: Scratch.
        candidates: Candidates.
        measured: latency_s, hit_chunks and decision_s (Q,), written.

    Returns:
        The first read not served.
    """
    state, scratch, candidates = by_reference(state), by_reference(scratch), by_reference(candidates)
    time_s, item, edge = inputs.reads
    latency_s, hit_chunks, decision_s = measured
    stored, rules, fetching = by_reference(inputs.stored), by_reference(inputs.rules), inputs.fetching
    change_s, change_node, change = inputs.changes
    items, edges, heap, down, outage = state.items, state.edges, state.heap, state.down, state.outage
    kind, k, hit = rules.kind, stored.k, inputs.hit
    whole = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    sources = Sources(
        np.empty(stored.node_of.shape[1], np.int64), np.full(down.size, -1), np.empty(down.size)
    )
    moment = np.empty(2, np.int64)
    for i in range(begin, end):
        now, m, e = time_s[i], item[i], edge[i]
        while outage[0] < change_s.size and change_s[outage[0]] <= now:
            down[change_node[outage[0]]] += change[outage[0]]
            outage[0] += 1
        contents = items[e, m].contents
        if kind == WHOLE:
            contents = whole if hit[i] else np.uint64(0)
        hit_chunks[i] = how_many(contents)
        took = serve(stored, fetching, state, sources, contents, e, m, i)
        latency_s[i] = took
        if kind == WHOLE:
            continue
        started = nanoseconds(moment)
        grown = scale = 1.0
        if rules.mixture:
            count_return(state.experts, state.returns, e, m)
            learn(state.experts, e, m)
            grown = weigh(state, e, m)
            weigh_in_turn(kind, stored, state, scratch, candidates, e)
        else:
            before = items[e, m].weight
            scale = count_read(items, edges, rules.half_life_s, e, m, now)
            grown = items[e, m].weight / (before * scale)
        if kind != FIXED:
            if scale != 1.0:
                for place in range(edges[e].ranked):
                    items[e, heap[e, place]].key *= scale
            if kind < EXACT:
                keep_item(rules, k, state, e, m, took < np.inf)
            else:
                exchange(rules, stored, state, scratch, candidates, e, m, grown, took < np.inf)
        decision_s[i] = (nanoseconds(moment) - started) * 1e-9
        if rules.replan_reads > 0:
            edges[e].unplanned += 1
            if edges[e].unplanned >= rules.replan_reads:
                return i + 1
    return end
