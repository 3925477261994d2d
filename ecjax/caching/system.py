"""What a replay of caches is given, and what it finds; plain arrays."""

from typing import NamedTuple

import numpy as np


class Stored(NamedTuple):
    """M items of K data and R parity chunks, each at one node or more."""

    k: int  # K, at most 60
    node_of: (
        np.ndarray
    )  # (M, K + R, copies) int64, node of each copy; data chunks first; -1 where there is no copy


class Network(NamedTuple):
    """How E edges reach N nodes."""

    latency_s: np.ndarray  # (E, N) mean time to fetch a chunk, s
    jitter: float  # coefficient of variation of one fetch (lognormal around the mean); 0: none
    edge_s: float  # time to serve a chunk that the edge keeps
    decode_s: float  # time to decode, once per read that needs parity
    down_node: np.ndarray  # (O,) int64, node of each outage
    down_from_s: np.ndarray  # (O,) s
    down_until_s: np.ndarray  # (O,) s


class Reads(NamedTuple):
    """Q reads, in order of time."""

    time_s: np.ndarray  # (Q,) ascending
    item: np.ndarray  # (Q,) int64, 0 to M - 1
    edge: np.ndarray  # (Q,) int64, 0 to E - 1


class NodeChanges(NamedTuple):
    """When outages begin and end, in order of time; those that end come first."""

    time_s: np.ndarray  # (2 O,)
    node: np.ndarray  # (2 O,) int64
    change: np.ndarray  # (2 O,) +1: an outage more, -1: one less


class Policy(NamedTuple):
    """Who decides what an edge keeps; not every policy uses all of it."""

    name: str
    capacity: int  # C, chunks per edge
    half_life_s: float | None  # H of the popularity; None: ``exact`` learns it by a mixture of ``experts``
    memory: float  # a, weight of the past in the estimates of node latencies
    samples: int  # S of ``samplex``
    period_s: float  # between two plans of ``agar`` and ``exact_periodic``
    replan_reads: int  # reads of an edge between two plans of all items by ``exact``; 0: never
    seed: int  # of sampled partitions


class Outcome(NamedTuple):
    """What became of Q reads."""

    latency_s: np.ndarray  # (Q,) inf where the read failed
    hit_chunks: np.ndarray  # (Q,) uint8, data chunks that the edge had
    decision_s: np.ndarray  # (Q,) what the policy took to decide after the read
    filled: int  # chunks fetched to be kept, beside reads
    contents: np.ndarray  # (E, M) uint64, bit j: data chunk j is kept at the end
