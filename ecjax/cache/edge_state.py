"""What edges keep and believe between two reads of a replay, as plain arrays."""

from typing import NamedTuple

import numpy as np

from ecjax.cache.system import Network, Policy


class State(NamedTuple):
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


def begin_empty(edges: int, items: int, network: Network, policy: Policy) -> State:
    """Nothing is kept, and estimates are the means."""
    nodes = network.latency_s.shape[1]
    places = min(items, max(policy.capacity, 1)) + 1
    return State(
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


def order_scratch(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Latency, order, size and value of ``chunk_order``."""
    rows = k + 3
    return (
        np.empty((rows, k + 1)),
        np.empty((rows, k), np.int64),
        np.empty((rows, k + 1), np.int64),
        np.empty((rows, k + 1)),
    )
