"""Replay of reads through caches at edges (the rules are those of ``ecjax.cache``).

A read that fails fetches nothing and moves no estimate, and nothing is kept after it; it counts as a read of the
item. An outage is from <= time < until. The order of the chunks of an item, and so what they are worth, is by the
estimates of all their nodes, whether up or down. Estimates begin with the means.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from ecjax.cache.candidate_samples import partition_table
from ecjax.cache.clock import nanoseconds
from ecjax.cache.exchange import EXACT, NEAR_OPTIMAL, SAMPLEX, exchange, rank_all
from ecjax.cache.item_caches import DECAYED_LFU, LFU, LRU, keep_item
from ecjax.cache.knapsack import exact
from ecjax.cache.popularity import count_read
from ecjax.cache.serving import how_many, serve
from ecjax.cache.system import Network, Outcome, Policy, Reads, Stored
from ecjax.cache.whole_plans import plan_edge
from ecjax.replay import streams

_NETWORK, _SAMPLES = 20, 21  # purposes of random numbers
_FIXED = 0  # keeps what whole plans say, or nothing
_KIND = {
    "none": _FIXED,
    "lru": LRU,
    "lfu": LFU,
    "decayed_lfu": DECAYED_LFU,
    "exact": EXACT,
    "near_optimal": NEAR_OPTIMAL,
    "samplex": SAMPLEX,
    "agar": _FIXED,
    "optimal_static": _FIXED,
    "samplex_static": _FIXED,
}
POLICIES = tuple(_KIND)
_MOST_CHUNKS = 60


class _State(NamedTuple):
    """What all edges keep and believe between two reads."""

    kept: np.ndarray  # (E, M) uint64
    free: np.ndarray  # (E,) chunks
    weight: np.ndarray  # (E, M) of ``popularity``
    reference_s: np.ndarray  # (E,)
    estimate: np.ndarray  # (E, N) s
    moved: np.ndarray  # (E,) changes of estimates
    seen: np.ndarray  # (E, M) changes of estimates when the item was ranked
    heap: np.ndarray  # (E, places) int64, of ``ranking``
    held: np.ndarray  # (E,)
    place: np.ndarray  # (E, M) int32
    key: np.ndarray  # (E, M)
    tie: np.ndarray  # (E, M)
    down: np.ndarray  # (N,) outages that hold
    outage: np.ndarray  # (1,) the next one to begin or end
    unplanned: np.ndarray  # (E,) reads since the last plan


def replay(
    reads: Reads, stored: Stored, network: Network, policy: Policy, popularity: np.ndarray | None = None
) -> Outcome:
    """Replay reads through a cache at every edge; caches begin empty.

    Latencies are random by the number of the read, the node and the policy's seed: every policy meets the same network.

    Args:
        reads: Q reads.
        stored: M items.
        network: E edges, N nodes.
        policy: which, and its parameters.
        popularity: (E, M), in any unit, known to ``optimal_static`` and ``samplex_static``; None: the reads counted.

    Raises:
        ValueError: an unknown policy, a data chunk without a copy, K above 60.
    """
    k, edges, items = stored.k, len(network.latency_s), len(stored.node_of)
    if policy.name not in _KIND:
        raise ValueError(f"policy: {policy.name!r}; allowed: {', '.join(POLICIES)}")
    if not 1 <= k <= _MOST_CHUNKS:
        raise ValueError(f"k: {k}; allowed: 1 to {_MOST_CHUNKS}")
    node_of = np.ascontiguousarray(stored.node_of, dtype=np.int64)
    if (node_of[:, :k] < 0).all(axis=2).any():
        raise ValueError("node_of: a data chunk without a copy")
    kind, count = _KIND[policy.name], len(reads.time_s)
    state = _begin(edges, items, network, policy)
    scratch = _scratch(k)
    read = (
        np.ascontiguousarray(reads.time_s, dtype=float),
        np.ascontiguousarray(reads.item, dtype=np.int64),
        np.ascontiguousarray(reads.edge, dtype=np.int64),
    )
    if count:
        state.reference_s[:] = read[0][0]
    result = np.empty(count), np.empty(count, np.uint8), np.zeros(count)
    filled = 0

    def plan(planner: Callable, weight: np.ndarray, e: int, at: int) -> int:
        """Plan edge e after read ``at``, whose decision it prolongs."""
        begun = time.perf_counter()
        new = plan_edge(
            planner,
            node_of,
            k,
            state.kept,
            weight,
            state.free,
            state.estimate,
            policy.capacity,
            e,
            scratch,
        )
        if kind == EXACT:
            _rank_edge(kind, node_of, k, state, scratch, e)
        if count:
            result[2][max(at, 0)] += time.perf_counter() - begun
        return new

    if policy.name in ("optimal_static", "samplex_static"):
        planner = exact if policy.name == "optimal_static" else _sampler(policy)
        known = _counted(reads, edges, items) if popularity is None else np.asarray(popularity, dtype=float)
        filled += sum(plan(planner, known, e, -1) for e in range(edges))
    sigma = math.sqrt(math.log1p(network.jitter**2))
    numbers = np.uint64(streams.key(policy.seed, _NETWORK)), sigma
    outages = _outages(network)
    draw = _draw(k, policy)
    begin = 0
    while begin < count:
        end = count
        if policy.name == "agar":
            period = math.floor((read[0][begin] - read[0][0]) / policy.period_s)
            end = int(np.searchsorted(read[0], read[0][0] + (period + 1) * policy.period_s))
            end = max(end, begin + 1)
        begin = _run(
            begin,
            end,
            kind,
            read,
            node_of,
            k,
            policy.capacity,
            policy.half_life_s,
            policy.memory,
            policy.replan_reads if kind == EXACT else 0,
            (np.ascontiguousarray(network.latency_s, dtype=float), float(network.edge_s))
            + (float(network.decode_s), *numbers),
            outages,
            state,
            scratch,
            draw,
            result,
        )
        if policy.name == "agar" and begin < count:
            filled += sum(plan(exact, state.weight, e, begin - 1) for e in range(edges))
        elif kind == EXACT and policy.replan_reads > 0:
            for e in np.flatnonzero(state.unplanned >= policy.replan_reads):
                filled += plan(exact, state.weight, int(e), begin - 1)
                state.unplanned[e] = 0
    return Outcome(*result, filled, state.kept)


def _begin(edges: int, items: int, network: Network, policy: Policy) -> _State:
    nodes = network.latency_s.shape[1]
    places = min(items, max(policy.capacity, 1)) + 1
    return _State(
        kept=np.zeros((edges, items), np.uint64),
        free=np.full(edges, policy.capacity, np.int64),
        weight=np.zeros((edges, items)),
        reference_s=np.zeros(edges),
        estimate=np.array(network.latency_s, dtype=float),
        moved=np.zeros(edges, np.int64),
        seen=np.zeros((edges, items), np.int64),
        heap=np.zeros((edges, places), np.int64),
        held=np.zeros(edges, np.int64),
        place=np.full((edges, items), -1, np.int32),
        key=np.zeros((edges, items)),
        tie=np.zeros((edges, items), np.int64),
        down=np.zeros(nodes, np.int64),
        outage=np.zeros(1, np.int64),
        unplanned=np.zeros(edges, np.int64),
    )


def _scratch(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Latency, order, size and value of ``chunk_order``."""
    rows = k + 3
    return (
        np.empty((rows, k + 1)),
        np.empty((rows, k), np.int64),
        np.empty((rows, k + 1), np.int64),
        np.empty((rows, k + 1)),
    )


def _draw(k: int, policy: Policy) -> tuple[np.ndarray, int, np.ndarray]:
    """What ``samplex`` draws with: random state, S, numbers of partitions."""
    table = partition_table(3 * k, k, k + 2) if policy.name == "samplex" else np.zeros((1, 1, 1), np.int64)
    return np.array([streams.key(policy.seed, _SAMPLES)], np.uint64), policy.samples, table


def _sampler(policy: Policy) -> Callable[[np.ndarray, int], np.ndarray]:
    from ecjax.cache.sampling import samplex

    return lambda tau, capacity: samplex(tau, capacity, policy.samples, policy.seed)


def _counted(reads: Reads, edges: int, items: int) -> np.ndarray:
    """Reads of every item at every edge, (E, M)."""
    flat = np.asarray(reads.edge, dtype=np.int64) * items + np.asarray(reads.item, dtype=np.int64)
    return np.bincount(flat, minlength=edges * items).reshape(edges, items).astype(float)


def _outages(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times at which outages begin and end, ascending, with nodes and +1 or -1; ends first."""
    lasting = np.asarray(network.down_until_s) > np.asarray(network.down_from_s)
    node = np.asarray(network.down_node, dtype=np.int64)[lasting]
    times = np.concatenate((np.asarray(network.down_until_s)[lasting], network.down_from_s[lasting]))
    change = np.repeat(np.array([-1, 1]), len(node))
    order = np.argsort(times, kind="stable")
    return times[order].astype(float), np.concatenate((node, node))[order], change[order]


@numba.njit(cache=True, nogil=True)
def _rank_edge(kind, node_of, k, state, scratch, e):
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
def _run(
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
    """Serve reads from ``begin`` to ``end``, or until an edge is to be planned; returns the first not served."""
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
        if kind != _FIXED:
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
