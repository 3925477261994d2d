"""Plans of all that an edge keeps: of ``agar`` once per period, of ``exact`` every so many reads, and fixed ones.

- ``optimal_static``: the best plan for known rates, from the start to the end.
- ``samplex_static``: that of Algorithm 1.
- ``agar`` (Halalai, Felber, Kermarrec and Taiani, "Agar: A caching system for erasure-coded data", ICDCS 2017), in our
  reading: at the end of every period the options (item, j slowest chunks) have the value tau_j, by the popularity of
  rule 4 and the estimated latencies, and the weight j; the best configuration is found by dynamic programming, and
  what is missing is fetched at once. Agar smooths the frequencies of periods instead, and its programme updates one
  configuration per weight by heuristics: ours finds at least as good a configuration.

A plan adds a chunk only if it can be had when the plan is made: from a node that is up, or decoded from K others that
are at the edge or up. Fixed plans are made before the first outage.
"""

from collections.abc import Callable

import numba
import numpy as np

from ecjax.cache.chunk_order import choices, chunks_of, slowest_first
from ecjax.cache.serving import has, how_many


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_hand(node_of, k, kept, down, e, m, chunk):
    """Whether the edge keeps the chunk, or a node that is up has it."""
    if chunk < k and has(kept[e, m], chunk):
        return True
    for copy in range(node_of.shape[2]):
        node = node_of[m, chunk, copy]
        if node >= 0 and down[node] == 0:
            return True
    return False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _to_be_had(node_of, k, kept, down, e, m, order):
    """How many chunks, slowest first (row k of ``order``), come before the first that is lost for now."""
    count = 0
    for chunk in range(node_of.shape[1]):
        if _at_hand(node_of, k, kept, down, e, m, chunk):
            count += 1
            if count >= k:
                return k
    for j in range(k):
        if not _at_hand(node_of, k, kept, down, e, m, order[k, j]):
            return j
    return k


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _values(node_of, k, kept, weight, estimate, down, e, scratch, tau):
    latency, order = scratch[0], scratch[1]
    for m in range(tau.shape[0]):
        tau[m, 0] = 0.0
        if weight[e, m] > 0.0:
            slowest_first(node_of, k, estimate, kept[e, m], e, m, k, latency, order)
            limit = _to_be_had(node_of, k, kept, down, e, m, order)
            for j in range(1, k + 1):
                tau[m, j] = weight[e, m] * (latency[k, 0] - latency[k, min(j, limit)])
        else:
            tau[m, 1:] = 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _keep(node_of, k, kept, weight, estimate, down, e, scratch, plan):
    """Keep the slowest chunks of every item, as many as the plan says, can be had and are worth anything."""
    latency, order, size, value = scratch
    filled = used = 0
    for m in range(plan.size):
        new = np.uint64(0)
        if plan[m] > 0 and weight[e, m] > 0.0:
            slowest_first(node_of, k, estimate, kept[e, m], e, m, k, latency, order)
            limit = min(plan[m], _to_be_had(node_of, k, kept, down, e, m, order))
            count = choices(latency, k, limit, weight[e, m], size, value)
            new = chunks_of(order, k, size[k, count - 1])
        filled += how_many(new & ~kept[e, m])
        used += how_many(new)
        kept[e, m] = new
    return filled, used


def plan_edge(
    planner: Callable[[np.ndarray, int], np.ndarray],
    node_of: np.ndarray,
    k: int,
    kept: np.ndarray,
    weight: np.ndarray,
    free: np.ndarray,
    estimate: np.ndarray,
    down: np.ndarray,
    capacity: int,
    e: int,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> int:
    """Plan what edge e keeps; returns how many chunks are new.

    Args:
        planner: (values (M, K + 1), capacity) -> chunks per item (M,).
        node_of: (M, K + R, copies).
        k: K.
        kept: (E, M) uint64, updated.
        weight: (E, M) popularity, in any unit.
        free: (E,) chunks that are free, updated.
        estimate: (E, N) s.
        down: (N,) above 0 where the node is down.
        capacity: C.
        e: edge.
        scratch: latency, order, size and value of ``chunk_order``.
    """
    tau = np.empty((len(node_of), k + 1))
    _values(node_of, k, kept, weight, estimate, down, e, scratch, tau)
    tau /= max(tau.max(initial=0.0), 1e-300)  # weights may be far from 1
    plan = np.asarray(planner(tau, capacity), dtype=np.int64)
    filled, used = _keep(node_of, k, kept, weight, estimate, down, e, scratch, plan)
    free[e] = capacity - used
    return filled
