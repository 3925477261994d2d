"""Replay of edges that serve each other, planned together once per period.

Rules are those of ``ecjax.caching``, with two changes. A data chunk that the edge does not keep comes from the nearest
edge that keeps it, in h[e, f], where that is not farther than the node it would come from (by estimate, of nodes that
are up); such a fetch has no jitter and tells nothing of nodes. And every ``period_s`` after the first read the caches
of all edges are planned together (``cooperative_plan``) from their rates and estimates of that moment; until the first
plan nothing is kept. A plan adds a chunk only if it could be had at the last read before: from a node that was up, from
an edge that kept it, or decoded from K chunks that were at these. With h = inf between edges this is the policy
``exact_periodic``, the exact plan of each edge for itself once per period: what cooperation gains is the difference.
(Where chunks are lost, plans made here count ``edge_s`` and h on top of the slowest of them.)
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ecjax.caching.cooperative import cooperative_plan
from ecjax.caching.edge_state import State, begin_empty
from ecjax.caching.popularity import count_read
from ecjax.caching.replay import AT_ONCE, fetching_of, node_changes
from ecjax.caching.serving import Fetching, has, how_many, serve, sources_for
from ecjax.caching.system import Network, NodeChanges, Outcome, Policy, Reads, Stored
from ecjax.errors import UserError
from ecjax.machine_code import njit

_MOST_HALF_LIVES = 700.0  # between edges: what is less popular than by so many stays above 0
_NANOSECOND = 9  # decimals of estimates in plans: nodes that are alike but for rounding stay alike


class Cooperation(NamedTuple):
    """What became of Q reads."""

    outcome: Outcome  # decision times: of a plan, at the last read before it
    neighbour_chunks: np.ndarray  # (Q,) uint8, data chunks that came from other edges


class _Inputs(NamedTuple):
    """What a replay goes by."""

    reads: Reads
    stored: Stored
    fetching: Fetching
    changes: NodeChanges
    between_s: np.ndarray  # (E, E), the diagonal is ``edge_s``
    half_life_s: float


def replay_cooperative(
    reads: Reads,
    stored: Stored,
    network: Network,
    between_s: np.ndarray,
    policy: Policy,
    advance: Callable[[float], None] = lambda share: None,
) -> Cooperation:
    """Replay reads at edges that take chunks from each other.

    Args:
        reads: in order of time.
        stored: where chunks are.
        network: how edges reach nodes.
        between_s: (E, E) s, for edge e (row) to take a chunk that edge f keeps; the diagonal is not used.
        policy: capacity, half-life, memory, period and seed are used.
        advance: called with the share of the reads just served.

    Raises:
        UserError: ``between_s`` is not as above, the period is not above 0, or there is no half-life.
    """
    edges, nodes = network.latency_s.shape
    items, total, _ = stored.node_of.shape
    count = len(reads.time_s)
    if policy.half_life_s is None:
        raise UserError("half_life_s: found None; allowed: a number above 0")
    if not policy.period_s > 0:
        raise UserError(f"period_s: found {policy.period_s}; allowed: above 0")
    between = np.array(between_s, float)
    if between.shape != (edges, edges) or not (between >= 0).all():
        raise UserError(
            f"between_s: found shape {between.shape}, or less than 0; allowed: {(edges, edges)}, s"
        )
    np.fill_diagonal(between, network.edge_s)
    state = begin_empty(items, network, policy.capacity)
    if count:
        state.edges["reference_s"] = reads.time_s[0]
    inputs = _Inputs(
        Reads(
            np.ascontiguousarray(reads.time_s, float),
            np.ascontiguousarray(reads.item, np.int64),
            np.ascontiguousarray(reads.edge, np.int64),
        ),
        Stored(stored.k, np.ascontiguousarray(stored.node_of, np.int64)),
        fetching_of(network, policy),
        node_changes(network),
        between,
        float(policy.half_life_s),
    )
    sources = sources_for(total, nodes)
    measured = (np.zeros(count), np.zeros(count, np.uint8), np.zeros(count, np.uint8))
    decision = np.zeros(count)
    start_s = inputs.reads.time_s[:1]
    period = np.floor((inputs.reads.time_s - start_s) / policy.period_s)
    begins = np.flatnonzero(np.diff(period, prepend=-1.0))
    filled = 0
    for begin, end in pairwise(np.append(begins, count)):
        if begin:
            started = time.perf_counter()
            filled += _plan(inputs, state, policy.capacity)
            decision[begin - 1] = time.perf_counter() - started
        for first in range(begin, end, AT_ONCE):
            last = min(end, first + AT_ONCE)
            _run(first, last, inputs, state, sources, measured)
            advance((last - first) / count)
    latency_s, hit_chunks, neighbour_chunks = measured
    outcome = Outcome(latency_s, hit_chunks, decision, filled, state.items["contents"].copy())
    return Cooperation(outcome, neighbour_chunks)


def _plan(inputs: _Inputs, state: State, capacity: int) -> int:
    """Plan what all edges keep; returns how many chunks are new."""
    k, node_of = inputs.stored.k, inputs.stored.node_of
    contents = state.items["contents"]
    latency = _estimated(node_of[:, :k], state.estimate)
    had = np.ones(latency.shape, bool)
    kept = (contents[:, :, None] >> np.arange(k, dtype=np.uint64)) & np.uint64(1) == 1
    if state.down.any():
        had = _to_be_had(kept, node_of, state.down, inputs.between_s)
        # no read is faster than the chunks that are lost: only what is slower than these is worth anything
        latency = np.maximum(latency - np.where(had, 0.0, latency).max(axis=2, keepdims=True), 0.0)
    rates = _relative_rates(state, inputs.half_life_s)
    rooms = np.full(len(rates), capacity)
    chosen = cooperative_plan(rates, latency, inputs.between_s, rooms, kept).contents & had
    bits = (chosen << np.arange(k, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    filled = int(np.bitwise_count(bits & ~contents).sum())
    contents[:] = bits
    return filled


def _to_be_had(kept: np.ndarray, node_of: np.ndarray, down: np.ndarray, between_s: np.ndarray) -> np.ndarray:
    """Data chunks that each edge keeps or can have now, (E, M, K) bool: a plan adds no others.

    Args:
        kept: (E, M, K) bool.
        node_of: (M, K + R, copies).
        down: (N,) outages that hold.
        between_s: (E, E) s.
    """
    k = kept.shape[2]
    up = ((node_of >= 0) & (down[node_of] == 0)).any(axis=2)
    at_hand = up[:, :k] | np.array([kept[near].any(axis=0) for near in np.isfinite(between_s)])
    decodable = at_hand.sum(axis=2) + up[:, k:].sum(axis=1) >= k
    return at_hand | decodable[:, :, None]


def _relative_rates(state: State, half_life_s: float) -> np.ndarray:
    """Rates of all items at all edges as parts of the largest, (E, M): after a long pause all of them are tiny."""
    reference_s = state.edges["reference_s"]
    passed = np.minimum((reference_s.max() - reference_s) / half_life_s, _MOST_HALF_LIVES)
    rates = state.items["weight"] * np.exp2(-passed)[:, None]
    return rates / rates.max()


def _estimated(node_of: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Estimates of data chunks from their nearest copies, up or down, (E, M, K) s."""
    nearest = np.full((len(estimate), *node_of.shape[:2]), np.inf)
    for copy in range(node_of.shape[2]):
        node = node_of[:, :, copy]
        np.minimum(nearest, estimate[:, node], out=nearest, where=node >= 0)
    return np.round(nearest, _NANOSECOND)


@njit(error_model="numpy")
def _run(begin, end, inputs, state, sources, measured):
    """Serve reads from ``begin`` to ``end`` while what is kept stays."""
    time_s, item, edge = inputs.reads
    change_s, change_node, change = inputs.changes
    stored, fetching, between_s = inputs.stored, inputs.fetching, inputs.between_s
    k, node_of = stored.k, stored.node_of
    items, edges, estimate, down, outage = state.items, state.edges, state.estimate, state.down, state.outage
    latency_s, hit_chunks, neighbour_chunks = measured
    for i in range(begin, end):
        now, m, e = time_s[i], item[i], edge[i]
        while outage[0] < change_s.size and change_s[outage[0]] <= now:
            down[change_node[outage[0]]] += change[outage[0]]
            outage[0] += 1
        bits, least = items[e, m].contents, fetching.edge_s
        hit_chunks[i] = how_many(bits)
        for chunk in range(k):
            if has(items[e, m].contents, chunk):
                continue
            near = far = np.inf
            for f in range(items.shape[0]):
                if has(items[f, m].contents, chunk):
                    near = min(near, between_s[e, f])
            if near == np.inf:
                continue
            for copy in range(node_of.shape[2]):
                node = node_of[m, chunk, copy]
                if node >= 0 and down[node] == 0:
                    far = min(far, estimate[e, node])
            if near <= far:
                bits |= np.uint64(1) << np.uint64(chunk)
                least = max(least, near)
                neighbour_chunks[i] += 1
        # to what serves the rest, chunks of neighbours are at hand, and a read takes as long as they do at least
        nearby = Fetching(
            fetching.latency_s, least, fetching.decode_s, fetching.key, fetching.sigma, fetching.memory
        )
        latency_s[i] = serve(stored, nearby, state, sources, bits, e, m, i)
        count_read(items, edges, inputs.half_life_s, e, m, now)
