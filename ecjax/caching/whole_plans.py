"""Plans of all that an edge keeps: once per period, of ``exact`` every so many reads, and fixed ones.

- ``optimal_static``: the best plan for known rates, from the start to the end.
- ``samplex_static``: that of Algorithm 1.
- ``agar``: at the end of every period the options (item, j slowest chunks) have the value tau_j, by the frequencies of
  the periods so far, smoothed, and the estimated latencies, and the weight j; the configuration is that of Agar's own
  programme (``ecjax.caching.agar``), and what is missing is fetched at once.
- ``exact_periodic``, ours: likewise, by the popularity of rule 4, and the best configuration.

A plan adds a chunk only if it can be had when the plan is made: from a node that is up, or decoded from K others that
are at the edge or up. Fixed plans are made before the first outage.
"""

import math
from collections.abc import Callable

import numpy as np

from ecjax.by_reference import by_reference
from ecjax.caching.chunk_order import choices, chunks_of, slowest_first
from ecjax.caching.edge_state import Scratch, State
from ecjax.caching.serving import has, how_many
from ecjax.caching.system import Stored
from ecjax.machine_code import njit

EdgesPlanner = Callable[[np.ndarray, int], np.ndarray]
"""(values (B, M, K + 1), capacity) -> chunks per item of each of B edges (B, M)."""

_TOGETHER_BYTES = 2**28  # of the values of edges that are planned together


@njit(inner=True, error_model="numpy")
def _at_hand(stored, state, e, m, chunk):
    """Whether the edge keeps the chunk, or a node that is up has it."""
    if chunk < stored.k and has(state.items[e, m].contents, chunk):
        return True
    for copy in range(stored.node_of.shape[2]):
        node = stored.node_of[m, chunk, copy]
        if node >= 0 and state.down[node] == 0:
            return True
    return False


@njit(inner=True, error_model="numpy")
def _to_be_had(stored, state, e, m, order):
    """How many chunks, slowest first (row k of ``order``), come before the first that is lost for now."""
    k, count = stored.k, 0
    for chunk in range(stored.node_of.shape[1]):
        if _at_hand(stored, state, e, m, chunk):
            count += 1
            if count >= k:
                return k
    for j in range(k):
        if not _at_hand(stored, state, e, m, order[k, j]):
            return j
    return k


@njit(error_model="numpy")
def _values(stored, state, weight, e, scratch, tau):
    stored, state = by_reference(stored), by_reference(state)
    k, latency, order = stored.k, scratch.latency, scratch.order
    for m in range(tau.shape[0]):
        tau[m, 0] = 0.0
        if weight[e, m] > 0.0:
            contents = state.items[e, m].contents
            slowest_first(stored.node_of, k, state.estimate, contents, e, m, k, latency, order)
            limit = _to_be_had(stored, state, e, m, order)
            for j in range(1, k + 1):
                tau[m, j] = weight[e, m] * (latency[k, 0] - latency[k, min(j, limit)])
        else:
            tau[m, 1:] = 0.0


@njit(error_model="numpy")
def _keep(stored, state, weight, e, scratch, plan):
    """Keep the slowest chunks of every item, as many as the plan says, can be had and are worth anything."""
    stored, state = by_reference(stored), by_reference(state)
    latency, order, size, value = scratch.latency, scratch.order, scratch.size, scratch.value
    k = stored.k
    filled = used = 0
    for m in range(plan.size):
        contents, new = state.items[e, m].contents, np.uint64(0)
        if plan[m] > 0 and weight[e, m] > 0.0:
            slowest_first(stored.node_of, k, state.estimate, contents, e, m, k, latency, order)
            limit = min(plan[m], _to_be_had(stored, state, e, m, order))
            count = choices(latency, k, limit, weight[e, m], size, value)
            new = chunks_of(order, k, size[k, count - 1])
        filled += how_many(new & ~contents)
        used += how_many(new)
        state.items[e, m].contents = new
    return filled, used


def plan_edge(
    planner: Callable[[np.ndarray, int], np.ndarray],
    stored: Stored,
    state: State,
    weight: np.ndarray,
    capacity: int,
    e: int,
    scratch: Scratch,
) -> int:
    """Plan what edge e keeps; returns how many chunks are new.

    Args:
        planner: (values (M, K + 1), capacity) -> chunks per item (M,).
        stored: where chunks are.
        state: of all edges; what e keeps and what is free there is updated.
        weight: (E, M) popularity, in any unit.
        capacity: C.
        e: edge.
        scratch: of this replay.
    """
    tau = np.empty((len(stored.node_of), stored.k + 1))
    _weigh(stored, state, weight, e, scratch, tau)
    return _kept(stored, state, weight, capacity, e, scratch, planner(tau, capacity))


def plan_edges(
    planner: EdgesPlanner,
    stored: Stored,
    state: State,
    weight: np.ndarray,
    capacity: int,
    scratch: Scratch,
) -> int:
    """As ``plan_edge`` of every edge, a call of the planner for as many as fit into memory; how many chunks are new.

    Args:
        planner: plans edges together; all its calls have the same shape.
        stored: where chunks are.
        state: of all edges, updated.
        weight: (E, M) popularity, in any unit.
        capacity: C of each edge.
        scratch: of this replay.
    """
    edges, shape = len(weight), (len(stored.node_of), stored.k + 1)
    together = min(edges, max(1, _TOGETHER_BYTES // max(1, 8 * math.prod(shape))))
    filled = 0
    for first in range(0, edges, together):
        some = range(first, min(first + together, edges))
        tau = np.zeros((together, *shape))
        for lane, e in enumerate(some):
            _weigh(stored, state, weight, e, scratch, tau[lane])
        plans = planner(tau, capacity)
        for lane, e in enumerate(some):
            filled += _kept(stored, state, weight, capacity, e, scratch, plans[lane])
    return filled


def _weigh(
    stored: Stored, state: State, weight: np.ndarray, e: int, scratch: Scratch, tau: np.ndarray
) -> None:
    """Write what chunks are worth at edge e, as parts of the largest value, to tau (M, K + 1)."""
    _values(stored, state, weight, e, scratch, tau)
    tau /= max(tau.max(initial=0.0), 1e-300)  # weights may be far from 1


def _kept(
    stored: Stored,
    state: State,
    weight: np.ndarray,
    capacity: int,
    e: int,
    scratch: Scratch,
    plan: np.ndarray,
) -> int:
    """Keep what a plan (M,) says at edge e; how many chunks are new."""
    filled, used = _keep(stored, state, weight, e, scratch, np.ascontiguousarray(plan, np.int64))
    state.edges[e]["free"] = capacity - used
    return int(filled)
