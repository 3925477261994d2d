"""Replay of reads through caches at edges (the rules are those of ``ecjax.cache``).

A read that fails fetches nothing and moves no estimate, and nothing is kept after it; it counts as a read of the
item. An outage is from <= time < until. The order of the chunks of an item, and so what they are worth, is by the
estimates of all their nodes, whether up or down. Estimates begin with the means.
"""

import math
import time
from collections.abc import Callable

import numpy as np

from ecjax.cache.candidate_samples import partition_table
from ecjax.cache.edge_state import begin_empty, order_scratch
from ecjax.cache.exchange import EXACT, NEAR_OPTIMAL, SAMPLEX
from ecjax.cache.item_caches import DECAYED_LFU, LFU, LRU
from ecjax.cache.knapsack import exact
from ecjax.cache.loop import FIXED, rank_edge, run
from ecjax.cache.system import Network, Outcome, Policy, Reads, Stored
from ecjax.cache.whole_plans import plan_edge
from ecjax.streams import streams

NETWORK, _SAMPLES = 20, 21  # purposes of random numbers
_KIND = {
    "none": FIXED,
    "lru": LRU,
    "lfu": LFU,
    "decayed_lfu": DECAYED_LFU,
    "exact": EXACT,
    "near_optimal": NEAR_OPTIMAL,
    "samplex": SAMPLEX,
    "agar": FIXED,
    "optimal_static": FIXED,
    "samplex_static": FIXED,
}
POLICIES = tuple(_KIND)
_MOST_CHUNKS = 60


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
    node_of = _writable(stored.node_of, np.int64)
    if (node_of[:, :k] < 0).all(axis=2).any():
        raise ValueError("node_of: a data chunk without a copy")
    kind, count = _KIND[policy.name], len(reads.time_s)
    state = begin_empty(edges, items, network, policy)
    scratch = order_scratch(k)
    read = (
        _writable(reads.time_s, float),
        _writable(reads.item, np.int64),
        _writable(reads.edge, np.int64),
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
            state.down,
            policy.capacity,
            e,
            scratch,
        )
        if kind == EXACT:
            rank_edge(kind, node_of, k, state, scratch, e)
        if count:
            result[2][max(at, 0)] += time.perf_counter() - begun
        return new

    if policy.name in ("optimal_static", "samplex_static"):
        planner = exact if policy.name == "optimal_static" else _sampler(policy)
        known = _counted(reads, edges, items) if popularity is None else _writable(popularity, float)
        filled += sum(plan(planner, known, e, -1) for e in range(edges))
    sigma = math.sqrt(math.log1p(network.jitter**2))
    numbers = np.uint64(streams.key(policy.seed, NETWORK)), sigma
    outages = outages_of(network)
    draw = _draw(k, policy)
    begin = 0
    while begin < count:
        end = count
        if policy.name == "agar":
            period = math.floor((read[0][begin] - read[0][0]) / policy.period_s)
            end = int(np.searchsorted(read[0], read[0][0] + (period + 1) * policy.period_s))
            end = max(end, begin + 1)
        begin = run(
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
            (_writable(network.latency_s, float), float(network.edge_s))
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


def _writable(values: np.ndarray, dtype: type) -> np.ndarray:
    """The same values as an array for which nothing is compiled once more."""
    return np.require(values, dtype, ["C", "A", "W"])


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


def outages_of(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times at which outages begin and end, ascending, with nodes and +1 or -1; ends first."""
    lasting = np.asarray(network.down_until_s) > np.asarray(network.down_from_s)
    node = np.asarray(network.down_node, dtype=np.int64)[lasting]
    times = np.concatenate((np.asarray(network.down_until_s)[lasting], network.down_from_s[lasting]))
    change = np.repeat(np.array([-1, 1]), len(node))
    order = np.argsort(times, kind="stable")
    return times[order].astype(float), np.concatenate((node, node))[order], change[order]
