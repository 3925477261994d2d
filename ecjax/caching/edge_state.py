"""What edges keep and believe between two reads of a replay, what they decide by, and room for what they compute.

What belongs to an item at an edge is one record, and so is what belongs to an edge: compiled loops count references to
every array that they take from a tuple, at 10 ns each, and a read touches most of these fields.
"""

from typing import NamedTuple

import numpy as np

from ecjax.caching.experts import Experts, begin_experts
from ecjax.caching.returns import Returns, begin_returns
from ecjax.caching.system import Network

ITEM = np.dtype(
    [
        ("contents", np.uint64),  # data chunks that the edge keeps, as bits
        ("weight", np.float64),  # of ``popularity``
        ("key", np.float64),  # of ``ranking``: the least goes first,
        ("tie", np.int64),  # of equal keys the least tie
        ("place", np.int64),  # in the heap; -1: the item is not there
        ("revision", np.int64),  # ``moved`` of the edge when the key was set
        ("weighed", np.int64),  # clock of ``experts`` when the weight was set
    ]
)
EDGE = np.dtype(
    [
        ("free", np.int64),  # chunks
        ("reference_s", np.float64),  # of ``popularity``
        ("moved", np.int64),  # changes of estimates so far
        ("ranked", np.int64),  # items in the heap
        ("unplanned", np.int64),  # reads since the last plan
        ("turn", np.int64),  # place in the heap whose weight is taken anew next
    ]
)


class State(NamedTuple):
    """What all edges keep and believe between two reads."""

    items: np.ndarray  # (E, M) ITEM
    edges: np.ndarray  # (E,) EDGE
    heap: np.ndarray  # (E, places) int64, items, of ``ranking``
    estimate: np.ndarray  # (E, N) s, to fetch a chunk from a node
    down: np.ndarray  # (N,) int64, outages that hold
    outage: np.ndarray  # (1,) int64, the next one to begin or end
    experts: Experts  # of no item where popularity is by decayed counters
    returns: Returns  # the same


class Rules(NamedTuple):
    """What edges decide by, checked; for compiled loops."""

    kind: int  # FIXED or WHOLE, or one of ``item_caches`` and ``exchange``
    capacity: int  # C, chunks per edge
    half_life_s: float  # H of the popularity
    mixture: bool  # popularity is that of ``experts``
    replan_reads: int  # reads of an edge until it is to be planned; 0: never
    samples: int  # S of ``samplex``
    partitions: (
        np.ndarray
    )  # ``partition_table`` of 3K chunks and K + 2 items, of ``near_optimal`` and ``samplex``
    random_state: np.ndarray  # (1,) uint64, of ``samplex``; updated


class Scratch(NamedTuple):
    """Room for the chunks of up to K + 3 items that are compared with each other; row by row."""

    latency: np.ndarray  # (rows, K + 1) s, of the chunks, the slowest first; ``edge_s`` after the last
    order: np.ndarray  # (rows, K) int64, the chunks in this order
    size: np.ndarray  # (rows, K + 1) int64, chunks of each choice of ``choices``
    value: np.ndarray  # (rows, K + 1) of each choice


class Candidates(NamedTuple):
    """Room for the plan of these items."""

    options: np.ndarray  # (rows,) int64, number of choices
    item: np.ndarray  # (rows,) int64
    plan: np.ndarray  # (rows,) int64, a choice
    grown: np.ndarray  # (rows,) weight by its previous value, of items in turn
    best: np.ndarray  # (3K + 1,) of ``best_plan``
    choice: np.ndarray  # (rows, 3K + 1) int64, of ``best_plan``


def begin_empty(items: int, network: Network, capacity: int, mixture: bool = False) -> State:
    """Nothing is kept, all nodes are up, and estimates are the means."""
    edges, nodes = network.latency_s.shape
    state = State(
        items=np.zeros((edges, items), ITEM),
        edges=np.zeros(edges, EDGE),
        heap=np.zeros((edges, min(items, max(capacity, 1)) + 1), np.int64),
        estimate=np.array(network.latency_s, dtype=float),
        down=np.zeros(nodes, np.int64),
        outage=np.zeros(1, np.int64),
        experts=begin_experts(edges, items if mixture else 0),
        returns=begin_returns(edges, items if mixture else 0),
    )
    state.items["place"] = -1
    state.edges["free"] = capacity
    return state


def scratch_for(k: int, edge_s: float) -> Scratch:
    """Room for items of K chunks, of which those that are kept take ``edge_s``."""
    rows = k + 3
    return Scratch(
        latency=np.full((rows, k + 1), edge_s),
        order=np.empty((rows, k), np.int64),
        size=np.empty((rows, k + 1), np.int64),
        value=np.empty((rows, k + 1)),
    )


def candidates_for(k: int) -> Candidates:
    """Room for items of K chunks."""
    rows, width = k + 3, 3 * k + 1
    return Candidates(
        options=np.empty(rows, np.int64),
        item=np.empty(rows, np.int64),
        plan=np.empty(rows, np.int64),
        grown=np.empty(rows),
        best=np.empty(width),
        choice=np.empty((rows, width), np.int64),
    )
