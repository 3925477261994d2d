"""Replay of edges that serve each other, planned together once per period.

Rules are those of ``ecjax.cache``, with two changes. A data chunk that the edge does not keep comes from the nearest
edge that keeps it, in h[e, f], where that is not farther than the node it would come from (by estimate, of nodes that
are up); such a fetch has no jitter and tells nothing of nodes. And every ``period_s`` after the first read the caches
of all edges are planned together (``cooperative_plan``) from their rates and estimates of that moment; until the first
plan nothing is kept. With h = inf between edges this is the policy ``agar``, the exact plan of each edge for itself
once per period (and with ``edge_s``, which equation 1 leaves out): what cooperation gains is the difference.
"""

import math
import time
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np

from ecjax.cache.cooperative import cooperative_plan
from ecjax.cache.popularity import count_read
from ecjax.cache.replay import NETWORK, outages_of
from ecjax.cache.serving import has, how_many, serve
from ecjax.cache.system import Network, Outcome, Policy, Reads, Stored
from ecjax.errors import UserError
from ecjax.streams import streams

_NANOSECOND = 9  # decimals of estimates in plans: nodes that are alike but for rounding stay alike


class Cooperation(NamedTuple):
    """What became of Q reads."""

    outcome: Outcome  # decision times: of a plan, at the last read before it
    neighbour_chunks: np.ndarray  # (Q,) uint8, data chunks that came from other edges


def replay_cooperative(
    reads: Reads, stored: Stored, network: Network, between_s: np.ndarray, policy: Policy
) -> Cooperation:
    """Replay reads at edges that take chunks from each other.

    Args:
        reads: in order of time.
        stored: where chunks are.
        network: how edges reach nodes.
        between_s: (E, E) s, for edge e (row) to take a chunk that edge f keeps; the diagonal is not used.
        policy: capacity, half-life, memory, period and seed are used.

    Raises:
        UserError: ``between_s`` is not as above, or the period is not above 0.
    """
    edges, nodes = network.latency_s.shape
    items, total, _ = stored.node_of.shape
    count = len(reads.time_s)
    if not policy.period_s > 0:
        raise UserError(f"period_s: found {policy.period_s}; allowed: above 0")
    between = np.array(between_s, float)
    if between.shape != (edges, edges) or not (between >= 0).all():
        raise UserError(
            f"between_s: found shape {between.shape}, or less than 0; allowed: {(edges, edges)}, s"
        )
    np.fill_diagonal(between, network.edge_s)
    kept = np.zeros((edges, items), np.uint64)
    weight = np.zeros((edges, items))
    reference_s = np.full(edges, reads.time_s[0] if count else 0.0)
    estimate = np.array(network.latency_s, float)
    state = (kept, np.zeros_like(kept), estimate, np.zeros(edges, np.int64), weight, reference_s)
    place = (np.zeros(nodes, np.int64), np.zeros(1, np.int64))
    scratch = (np.zeros(total, np.int64), np.full(nodes, -1), np.zeros(nodes))
    found = (np.zeros(count), np.zeros(count, np.uint8), np.zeros(count, np.uint8))
    decision = np.zeros(count)
    read = (
        np.ascontiguousarray(reads.time_s, float),
        np.ascontiguousarray(reads.item, np.int64),
        np.ascontiguousarray(reads.edge, np.int64),
    )
    source = (
        np.ascontiguousarray(stored.node_of, np.int64),
        stored.k,
        np.ascontiguousarray(network.latency_s, float),
        float(network.edge_s),
        float(network.decode_s),
        np.uint64(streams.key(policy.seed, NETWORK)),
        math.sqrt(math.log1p(network.jitter**2)),
    )
    memory = (float(policy.half_life_s), float(policy.memory))
    period = np.floor((read[0] - read[0][:1]) / policy.period_s)
    begins = np.flatnonzero(np.diff(period, prepend=-1.0))
    filled = 0
    for begin, end in pairwise(np.append(begins, count)):
        if begin:
            started = time.perf_counter()
            now = read[0][0] + period[begin] * policy.period_s
            rates = weight * np.exp2((reference_s - now) / policy.half_life_s)[:, None]
            capacity = np.full(edges, policy.capacity)
            latency = _estimated(source[0][:, : stored.k], estimate)
            plan = cooperative_plan(
                rates * (math.log(2) / policy.half_life_s), latency, between, capacity
            ).kept
            bits = (plan << np.arange(stored.k, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
            filled += int(np.bitwise_count(bits & ~kept).sum())
            kept[:] = bits
            decision[begin - 1] = time.perf_counter() - started
        _run(begin, end, read, source, between, outages_of(network), place, memory, state, scratch, found)
    latency_s, own, others = found
    return Cooperation(Outcome(latency_s, own, decision, filled, kept), others)


def _estimated(node_of: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Estimates of data chunks from their nearest copies, up or down, (E, M, K) s."""
    nearest = np.full((len(estimate), *node_of.shape[:2]), np.inf)
    for copy in range(node_of.shape[2]):
        node = node_of[:, :, copy]
        np.minimum(nearest, estimate[:, node], out=nearest, where=node >= 0)
    return np.round(nearest, _NANOSECOND)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _run(begin, end, read, source, between_s, outages, place, memory, state, scratch, found):
    """Serve reads from ``begin`` to ``end`` while what is kept stays."""
    time_s, item, edge = read
    node_of, k, far_s, edge_s, decode_s, key, sigma = source
    change_s, change_node, change = outages
    down, outage = place
    half_life_s, past = memory
    kept, at_hand, estimate, moved, weight, reference_s = state
    latency_s, own_chunks, neighbour_chunks = found
    for i in range(begin, end):
        now, m, e = time_s[i], item[i], edge[i]
        while outage[0] < change_s.size and change_s[outage[0]] <= now:
            down[change_node[outage[0]]] += change[outage[0]]
            outage[0] += 1
        bits, least = kept[e, m], edge_s
        own_chunks[i] = how_many(bits)
        for chunk in range(k):
            if has(kept[e, m], chunk):
                continue
            near = far = np.inf
            for f in range(kept.shape[0]):
                if has(kept[f, m], chunk):
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
        at_hand[e, m] = bits
        network = (far_s, least, decode_s, key, sigma)
        latency_s[i] = serve(node_of, k, network, at_hand, estimate, moved, down, past, scratch, e, m, i)
        count_read(weight, reference_s, half_life_s, e, m, now)
