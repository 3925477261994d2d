"""Laws of latencies in pieces of time whose queues are steady: the estimate of Poisson arrivals at their loads.

Pieces of like loads at all nodes are taken together: at most eight kinds of them, each with its rates of the files.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack

from ecjax.predict.plan_estimates import Kinds, calibrated_sample, padded
from ecjax.predict.read_samples import FileKinds, Groups, group_reads, within
from ecjax.queueing.class_queues import fcfs_queues
from ecjax.queueing.latency_law import Curves, latency_curves
from ecjax.queueing.monotone import interpolate
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.node_work import Placed
from ecjax.traffic.paths import Pieces

_CLUSTERS = 8
_ROUNDS = 20


def _laws(points: jax.Array, probabilities: jax.Array, load: Workload) -> jax.Array:
    """Pr(T <= x) of every file at these points, (r, P)."""
    curves: Curves = latency_curves(probabilities, load, fcfs_queues(probabilities, load))

    def of_file(index, weight, value):
        def at(row, value):
            own = curves.points[row]
            inside = interpolate(points, own, value)
            return jnp.where(points < own[0], 0.0, jnp.where(points > own[-1], 1.0, inside))

        return jnp.sum(weight[:, None] * jax.vmap(at)(index, value), axis=0)

    return jax.vmap(of_file)(curves.index, curves.weight, curves.value)


_LAWS = jax.jit(_laws)


def steady_laws(
    pieces: Pieces,
    placed: Placed,
    workload: Workload,
    kinds: FileKinds,
    groups: Groups,
    points: np.ndarray,
) -> tuple[np.ndarray, csr_matrix]:
    """Laws (cells, P) and the reads that groups have of each, (G, cells).

    Args:
        pieces: of time, some of them steady.
        placed: where files are read.
        workload: chunk sizes, services.
        kinds: of the files.
        groups: of files.
        points: s, where laws are taken.
    """
    by_piece = np.bincount(pieces.reads.bin, pieces.reads.reads, pieces.reads.bins)
    steady = np.flatnonzero(pieces.steady & (by_piece > 0))
    cluster = np.full(pieces.reads.bins, -1)
    cluster[steady] = like_loads(pieces.load[steady], by_piece[steady])
    laws, weights = [], []
    for number in range(cluster.max() + 1):
        member = cluster == number
        span = float(pieces.reads.width_s[member].sum())
        part = within(pieces.reads, member)
        reads = np.bincount(kinds.of_file[part.file], part.reads, len(kinds.first))
        used = np.flatnonzero(reads)
        marginals, size = placed.probabilities[kinds.first[used]], placed.chunk_bytes[kinds.first[used]]
        rows = Kinds(marginals, reads[used] / span, size, np.rint(marginals.sum(axis=1)))
        drawn, rate = calibrated_sample(rows, placed.service)
        full = padded(Kinds(*(each[drawn] for each in rows))._replace(rate=rate))
        beside = placed.background
        if pieces.writes is not None:
            beside = beside + _writes(within(pieces.writes, member), placed) / span
        connect = workload.connect
        load = Workload.of(
            full.rate,
            full.chunk_bytes,
            full.k,
            workload.service,
            None if connect is None else (connect.mean, connect.variance),
            beside,
        )
        of_kind = np.asarray(_LAWS(jnp.asarray(points), jnp.asarray(full.probabilities), load))
        laws.append(of_kind[: len(drawn)])
        share = group_reads(part, groups, kinds)[:, used[drawn]]
        weights.append(share.multiply((rate * span / reads[used[drawn]])[None, :]).tocsr())
    return np.concatenate(laws), hstack(weights, "csr")


def _writes(writes: BinnedReads, placed: Placed) -> np.ndarray:
    """Sums of m_n over the chunks written to every node, (3, m)."""
    count = np.bincount(writes.file, writes.reads, writes.files)
    moments = placed.service.moments(placed.chunk_bytes[:, None])
    return np.stack([count @ (placed.stored * np.asarray(moment)) for moment in moments])


def like_loads(load: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Clusters of pieces with like loads at all nodes, (T,) from 0 on: weighted k-means of -log(1 - load).

    Args:
        load: (T, m), below 1.
        weight: (T,) reads.
    """
    place = -np.log1p(-load)
    # begins in the order of the loads, with as many reads each
    order = np.argsort(place.sum(axis=1), kind="stable")
    passed = np.cumsum(weight[order])
    starts = np.searchsorted(passed, (np.arange(_CLUSTERS) + 0.5) / _CLUSTERS * passed[-1])
    centres = np.unique(place[order[starts]], axis=0)
    for _ in range(_ROUNDS):
        label = np.argmin(np.sum((place[:, None] - centres[None]) ** 2, axis=2), axis=1)
        label = np.unique(label, return_inverse=True)[1]
        total = np.bincount(label, weight)
        centres = np.stack([np.bincount(label, weight * column) / total for column in place.T], axis=1)
    return label
