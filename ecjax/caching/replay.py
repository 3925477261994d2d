"""Replay of reads through caches at edges (the rules are those of ``ecjax.caching``).

A read that fails fetches nothing and moves no estimate, and nothing is kept after it; it counts as a read of the
item. An outage is from <= time < until. The order of the chunks of an item, and so what they are worth, is by the
estimates of all their nodes, whether up or down. Estimates begin with the means.
"""

import math
import time
from collections.abc import Callable

import numpy as np

from ecjax.caching.agar import agar, smoothed
from ecjax.caching.candidate_samples import partition_table
from ecjax.caching.edge_state import Rules, begin_empty, candidates_for, scratch_for
from ecjax.caching.exchange import EXACT, NEAR_OPTIMAL, NEAR_OPTIMAL_DP, SAMPLEX, rank_all, weigh_all
from ecjax.caching.item_caches import DECAYED_LFU
from ecjax.caching.item_replay import replay_whole_items
from ecjax.caching.knapsack import exact
from ecjax.caching.loop import FIXED, WHOLE, Inputs, run
from ecjax.caching.peers import NAMES
from ecjax.caching.serving import Fetching
from ecjax.caching.system import Network, NodeChanges, Outcome, Policy, Reads, Stored
from ecjax.caching.whole_plans import EdgesPlanner, plan_edge, plan_edges
from ecjax.machine_code import writable
from ecjax.streams import streams

NETWORK, _SAMPLES = 20, 21  # purposes of random numbers
_KIND = {
    "none": FIXED,
    "lru": WHOLE,
    "lfu": WHOLE,
    "decayed_lfu": DECAYED_LFU,
    "exact": EXACT,
    "near_optimal": NEAR_OPTIMAL,
    "near_optimal_dp": NEAR_OPTIMAL_DP,
    "samplex": SAMPLEX,
    "agar": FIXED,
    "exact_periodic": FIXED,
    "optimal_static": FIXED,
    "samplex_static": FIXED,
} | dict.fromkeys(NAMES, WHOLE)
POLICIES = tuple(_KIND)
_PERIODIC = ("agar", "exact_periodic")
PLANS_OF_EDGES = ("optimal_static", "exact_periodic")  # exact plans of all edges at the same time
_MOST_CHUNKS = 60
MOST_CLEARED = 20  # K of ``near_optimal``: up to 28,376 markets per read are cleared (Table IV of the paper)
AT_ONCE = 1 << 14  # reads in a call of a compiled loop


def replay(
    reads: Reads,
    stored: Stored,
    network: Network,
    policy: Policy,
    popularity: np.ndarray | None = None,
    advance: Callable[[float], None] = lambda share: None,
    edges_planner: EdgesPlanner | None = None,
) -> Outcome:
    """Replay reads through a cache at every edge; caches begin empty.

    Latencies are random by the number of the read, the node and the policy's seed: every policy meets the same network.

    Args:
        reads: Q reads.
        stored: M items.
        network: E edges, N nodes.
        policy: which, and its parameters.
        popularity: (E, M), in any unit, for ``optimal_static`` and ``samplex_static``; None: the reads counted.
        advance: called with the share of the reads just served.
        edges_planner: of exact plans of all edges, by policies ``PLANS_OF_EDGES``; None: one edge after the other.

    Raises:
        ValueError: an unknown policy, one without a half-life that needs it, a data chunk without a copy, K above 60,
            or above MOST_CLEARED with ``near_optimal``.
    """
    k, edges, items = stored.k, len(network.latency_s), len(stored.node_of)
    if policy.name not in _KIND:
        raise ValueError(f"policy: {policy.name!r}; allowed: {', '.join(POLICIES)}")
    kind = _KIND[policy.name]
    if policy.half_life_s is None and (kind not in (EXACT, FIXED, WHOLE) or policy.name == "exact_periodic"):
        raise ValueError(f"half_life_s: None; allowed: a number for {policy.name}")
    if not 1 <= k <= _MOST_CHUNKS:
        raise ValueError(f"k: {k}; allowed: 1 to {_MOST_CHUNKS}")
    if kind == NEAR_OPTIMAL and k > MOST_CLEARED:
        raise ValueError(f"k: {k}; allowed: 1 to {MOST_CLEARED} with near_optimal")
    node_of = writable(stored.node_of, np.int64)
    if (node_of[:, :k] < 0).all(axis=2).any():
        raise ValueError("node_of: a data chunk without a copy")
    count, stored = len(reads.time_s), Stored(k, node_of)
    # no more chunks than there are: some policies have tables of the size of the cache
    policy = policy._replace(capacity=min(policy.capacity, k * items))
    reads = Reads(
        writable(reads.time_s, float), writable(reads.item, np.int64), writable(reads.edge, np.int64)
    )
    rules, changes = _rules(k, policy), node_changes(network)
    hits = None
    if kind == WHOLE:
        hits = replay_whole_items(policy.name, reads, stored, changes, edges, policy.capacity)
    hit = np.zeros(0, np.bool_) if hits is None else hits.hit
    inputs = Inputs(reads, stored, fetching_of(network, policy), changes, hit, rules)
    state, scratch, candidates = (
        begin_empty(items, network, policy.capacity, rules.mixture),
        scratch_for(k, float(network.edge_s)),
        candidates_for(k),
    )
    if count:
        state.edges["reference_s"] = reads.time_s[0]
    measured = np.empty(count), np.empty(count, np.uint8), np.zeros(count)
    if hits is not None:
        measured[2][:] = hits.decision_s
        state.items["contents"][hits.kept] = 2**k - 1
    filled = 0

    def prolong(at: int, begun: float) -> None:
        """Count the time since then to the decision after read ``at``."""
        if count:
            measured[2][max(at, 0)] += time.perf_counter() - begun

    def plan(planner: Callable, weight: np.ndarray, e: int, at: int) -> int:
        """Plan edge e after read ``at``, whose decision it prolongs."""
        begun = time.perf_counter()
        new = plan_edge(planner, stored, state, weight, policy.capacity, e, scratch)
        if rules.kind == EXACT:
            rank_all(rules.kind, stored, state, scratch, e)
        prolong(at, begun)
        return new

    def plan_all(planner: Callable, weight: np.ndarray, at: int) -> int:
        """Plan all edges after read ``at``."""
        if edges_planner is None or planner is not exact:
            return sum(plan(planner, weight, e, at) for e in range(edges))
        begun = time.perf_counter()
        new = plan_edges(edges_planner, stored, state, weight, policy.capacity, scratch)
        prolong(at, begun)
        return new

    if policy.name in ("optimal_static", "samplex_static"):
        planner = exact if policy.name == "optimal_static" else _sampler(policy)
        rates = _counted(reads, edges, items) if popularity is None else writable(popularity, float)
        filled += plan_all(planner, rates, -1)
    begin = period_begin = planned = 0
    periodic = policy.name in _PERIODIC
    # of every read: those of one time are of one period however that is rounded
    periods = np.floor((reads.time_s - reads.time_s[:1]) / policy.period_s) if periodic else np.zeros(0)
    frequencies = np.zeros((edges, items))  # of ``agar``, smoothed
    while begin < count:
        end = count
        if periodic:
            period = int(periods[begin])
            end = int(np.searchsorted(periods, periods[begin], side="right"))
        before, stop = begin, min(end, begin + AT_ONCE)
        begin = run(begin, stop, inputs, state, scratch, candidates, measured)
        advance((begin - before) / count)
        if periodic and begin == end < count:
            weight, planner = state.items["weight"].copy(), exact
            if policy.name == "agar":
                counted = _counted(Reads(*(column[period_begin:begin] for column in reads)), edges, items)
                weight = frequencies = smoothed(frequencies, counted, period + 1 - planned)
                planner = agar
            filled += plan_all(planner, weight, begin - 1)
            period_begin, planned = begin, period + 1
        elif rules.replan_reads > 0:
            weight = state.items["weight"].copy()
            for e in np.flatnonzero(state.edges["unplanned"] >= rules.replan_reads):
                if rules.mixture:
                    weigh_all(state, int(e))
                    weight[e] = state.items["weight"][e]
                filled += plan(exact, weight, int(e), begin - 1)
                state.edges["unplanned"][e] = 0
    return Outcome(*measured, filled, state.items["contents"].copy())


def fetching_of(network: Network, policy: Policy) -> Fetching:
    """Latencies drawn by the policy's seed, the same for every policy."""
    return Fetching(
        latency_s=writable(network.latency_s, float),
        edge_s=float(network.edge_s),
        decode_s=float(network.decode_s),
        key=np.uint64(streams.key(policy.seed, NETWORK)),
        sigma=math.sqrt(math.log1p(network.jitter**2)),
        memory=float(policy.memory),
    )


def _rules(k: int, policy: Policy) -> Rules:
    """What compiled loops decide by."""
    kind = _KIND[policy.name]
    table = (
        partition_table(3 * k, k, k + 2) if kind in (NEAR_OPTIMAL, SAMPLEX) else np.zeros((1, 1, 1), np.int64)
    )
    return Rules(
        kind=kind,
        capacity=policy.capacity,
        half_life_s=float(policy.half_life_s or 1.0),
        mixture=kind == EXACT and policy.half_life_s is None,
        replan_reads=policy.replan_reads if kind == EXACT else 0,
        samples=policy.samples,
        partitions=table,
        random_state=np.array([streams.key(policy.seed, _SAMPLES)], np.uint64),
    )


def _sampler(policy: Policy) -> Callable[[np.ndarray, int], np.ndarray]:
    from ecjax.caching.sampling import samplex

    return lambda tau, capacity: samplex(tau, capacity, policy.samples, policy.seed)


def _counted(reads: Reads, edges: int, items: int) -> np.ndarray:
    """Reads of every item at every edge, (E, M)."""
    flat = np.asarray(reads.edge, dtype=np.int64) * items + np.asarray(reads.item, dtype=np.int64)
    return np.bincount(flat, minlength=edges * items).reshape(edges, items).astype(float)


def node_changes(network: Network) -> NodeChanges:
    """When outages begin and end; those that last no time are left out."""
    lasting = np.asarray(network.down_until_s) > np.asarray(network.down_from_s)
    node = np.asarray(network.down_node, dtype=np.int64)[lasting]
    times = np.concatenate((np.asarray(network.down_until_s)[lasting], network.down_from_s[lasting]))
    change = np.repeat(np.array([-1, 1]), len(node))
    order = np.argsort(times, kind="stable")
    return NodeChanges(times[order].astype(float), np.concatenate((node, node))[order], change[order])
