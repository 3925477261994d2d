"""Laws of latencies in pieces of time whose queues are steady: the estimate of Poisson arrivals at their loads.

Pieces of like loads at all nodes are taken together: at most eight kinds of them, each with its rates of the files as
the mean read meets them (of two loads that of the higher counts more than time has it: there are more reads).
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix

from ecjax.predict.common_writes import common_writes
from ecjax.predict.mixtures import Cells, joined, laws_of_quantiles
from ecjax.predict.plan_estimates import MOST_KINDS, Kinds, arrivals_of, calibrated_sample, padded
from ecjax.predict.read_samples import FileKinds, Groups, group_reads, within
from ecjax.predict.workload import ESTIMATE
from ecjax.queueing.condense import condense
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.node_work import Placed, written_moments
from ecjax.traffic.paths import Pieces

_CLUSTERS = (1, 2, 4, 8)
_NEAR = 0.1  # root mean square of log(1 - load) within a cluster
_ROUNDS = 20
_OF_CLASS = 64  # draws that a class needs


def steady_laws(
    pieces: Pieces,
    placed: Placed,
    workload: Workload,
    kinds: FileKinds,
    groups: Groups,
    points: np.ndarray,
) -> Cells:
    """Laws of kinds of files in kinds of pieces, and the reads that groups have of each.

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
    cells = []
    for number in range(cluster.max() + 1):
        member = cluster == number
        # per time, of what comes in each piece
        per_s = np.where(member, by_piece / by_piece[member].sum() / pieces.reads.width_s, 0.0)
        part = within(pieces.reads, member)
        met = np.bincount(kinds.of_file[part.file], part.reads * per_s[part.bin], len(kinds.first))
        used = np.flatnonzero(met)
        marginals, size = placed.probabilities[kinds.first[used]], placed.chunk_bytes[kinds.first[used]]
        rows = Kinds(marginals, met[used], size, np.rint(marginals.sum(axis=1)))
        chosen, rate, weights = _chosen(rows, placed, group_reads(part, groups, kinds)[:, used], groups)
        full = padded(Kinds(*(each[chosen] for each in rows))._replace(rate=rate))
        beside, common = placed.background, workload.common_writes
        if pieces.writes is not None:
            written = _write_rates(within(pieces.writes, member), per_s)
            beside = beside + _written(written, placed)
            common = _common(written, placed)
        connect = workload.connect
        load = Workload.of(
            full.rate,
            full.chunk_bytes,
            full.k,
            workload.service,
            None if connect is None else (connect.mean, connect.variance),
            beside,
            workload.channels,
        )
        load = replace(load, common_writes=common)
        if len(chosen) < len(used):
            load = replace(load, arrivals=arrivals_of(rows, workload.service))
        marginals = jnp.asarray(full.probabilities)
        estimate = ESTIMATE(marginals, load, condensed=condense(marginals, load))
        mean, quantiles = (
            np.asarray(each)[: len(chosen)] for each in (estimate.file_mean, estimate.file_quantiles)
        )
        cells.append(Cells(laws_of_quantiles(points, quantiles), mean, weights))
    return joined(cells)


def _chosen(
    rows: Kinds, placed: Placed, reads: csr_matrix, groups: Groups
) -> tuple[np.ndarray, np.ndarray, csr_matrix]:
    """Kinds whose laws are taken: of many a sample that stands for all reads, and what groups need besides.

    Args:
        rows: K kinds with their rates.
        placed: for the services.
        reads: (G, K) reads of each kind in each group.
        groups: of files.

    Returns:
        Places of n of them, the rates (n,) that load the nodes as all kinds do, 0 of those that groups need, and the
        reads (G, n) of groups that each stands for.
    """
    drawn, rate = calibrated_sample(rows, placed.service)
    count = len(rows.rate)
    if len(drawn) == count:
        return drawn, rate, reads
    mixed = 1 + groups.classes
    draws, rates = np.bincount(drawn, minlength=count), np.bincount(drawn, rate, count)
    few = int(np.clip(MOST_KINDS // mixed, 1, _OF_CLASS))
    weight = rates / rows.rate
    # one by one: classes may be as many as files, which together fill gigabytes
    kind, amount = (np.split(each, reads.indptr[1 : 1 + mixed]) for each in (reads.indices, reads.data))
    stands_for = [_conditional(kind[group], amount[group], draws, weight, few) for group in range(mixed)]
    # a file is its own kind, however seldom it is read
    data = np.concatenate([*stands_for, amount[mixed]])
    weights = csr_matrix((data, reads.indices, reads.indptr), reads.shape, copy=True)
    weights.eliminate_zeros()
    chosen = np.union1d(drawn, weights.indices)
    return chosen, rates[chosen], weights[:, chosen]


def _conditional(
    kind: np.ndarray, amount: np.ndarray, draws: np.ndarray, weight: np.ndarray, few: int
) -> np.ndarray:
    """Reads of a group, (n,), as those kinds that are drawn, or, where few of its kinds are, as so many of its own.

    Args:
        kind: that the group reads, (n,).
        amount: its reads of each, (n,).
        draws: how often each kind is drawn, (K,).
        weight: rate of what is drawn, in that of the kind, (K,).
        few: draws.
    """
    total = amount.sum()
    if draws[kind].sum() >= few:
        sample = amount * weight[kind]
        return sample * (total / sample.sum())
    if total == 0:
        return amount
    drawn = np.searchsorted(np.cumsum(amount), (np.arange(few) + 0.5) / few * total)
    return np.bincount(drawn, minlength=len(kind)) * (total / few)


def _write_rates(writes: BinnedReads, per_s: np.ndarray) -> np.ndarray:
    """Writes of every file per second, (r,), of pieces that count ``per_s`` (T,)."""
    return np.bincount(writes.file, writes.reads * per_s[writes.bin], writes.files)


def _written(rates: np.ndarray, placed: Placed) -> np.ndarray:
    """Rates times m_n of the chunks written to every node, (3, m)."""
    return np.stack([rates @ (placed.stored * moment) for moment in written_moments(placed)])


def _common(rates: np.ndarray, placed: Placed) -> jax.Array:
    """What these writes bring to two nodes at once, (2, m, m)."""
    size, service = placed.written
    return jax.device_put(common_writes(rates, placed.stored, np.stack([size, size]), service))


def like_loads(load: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Clusters of pieces with like loads at all nodes, (T,) from 0 on: weighted k-means of -log(1 - load).

    As few as make loads within a cluster differ by so little that latencies, nearly proportional to 1/(1 - load), are
    right; at most eight.

    Args:
        load: (T, m), below 1.
        weight: (T,) reads.
    """
    place = -np.log1p(-load)
    # begins in the order of the loads, with as many reads each
    order = np.argsort(place.sum(axis=1), kind="stable")
    passed = np.cumsum(weight[order])
    label = np.zeros(len(load), np.int64)
    for count in _CLUSTERS:
        starts = np.searchsorted(passed, (np.arange(count) + 0.5) / count * passed[-1])
        centres = np.unique(place[order[starts]], axis=0)
        for _ in range(_ROUNDS):
            nearest = np.argmin(np.sum((place[:, None] - centres[None]) ** 2, axis=2), axis=1)
            label = np.unique(nearest, return_inverse=True)[1]
            total = np.bincount(label, weight)
            centres = np.stack([np.bincount(label, weight * column) / total for column in place.T], axis=1)
        apart = np.average((place - centres[label]) ** 2, axis=0, weights=weight)
        if apart.max() <= _NEAR**2:
            break
    return label
