"""What a plan makes of the arrivals of a log at its nodes: work by bin, and the constants of the recursion.

g_j is the part of the Poisson variance of a node's chunks that the counts of reads hold: sum pi^2 / sum pi, 1 where
each read of a file uses the node. Where bins resolve it, it must not be counted again.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ecjax.queueing.service_law import ServiceLaw
from ecjax.traffic.bins import BinnedReads, count_matrix
from ecjax.traffic.denoise import Counts, counts_of
from ecjax.traffic.host_service import host_moments
from ecjax.traffic.two_moments import Constants

LEAST_C = 0.05  # of c_0: where bins resolve what a node meets
MOST_MET = 0.9  # load that reads meet, in relaxation times


class Arrivals(NamedTuple):
    """Reads and writes of a log by the same bins."""

    reads: BinnedReads
    writes: BinnedReads | None = None  # each loads every chunk of its file
    certain: bool = False  # counts are expected numbers by known rates, without noise


class Placed(NamedTuple):
    """A plan for r files on m nodes."""

    probabilities: np.ndarray  # (r, m) pi; rows sum to the k of their file
    chunk_bytes: np.ndarray  # (r,) B
    service: ServiceLaw  # laws of the work that a chunk brings to each of the m nodes
    stored: np.ndarray  # (r, m) 1 where a node holds a chunk, which writes load
    background: np.ndarray  # (3, m) load, A_2 (s), A_3 (s^2) of other work, at constant rate
    write_bytes: np.ndarray | None = None  # (r,) B, of a chunk that is written; None: chunk_bytes
    write_service: ServiceLaw | None = None  # laws of the work that a written chunk brings; None: service

    @property
    def written(self) -> tuple[np.ndarray, ServiceLaw]:
        """Bytes of the chunks that are written, (r,), and the laws of their work at the m nodes."""
        size = self.chunk_bytes if self.write_bytes is None else self.write_bytes
        return size, self.service if self.write_service is None else self.write_service


class NodeWork(NamedTuple):
    """Work at nodes by bin, and of all bins together."""

    work: np.ndarray  # (B, m) s
    counts: Counts  # of the bins, of all reads and of the nodes
    load: np.ndarray  # (m,) of the whole log
    c: np.ndarray  # (m,) s, m_2/(2 m_1): c_0
    q: np.ndarray  # (m,) s
    shared_s: np.ndarray  # (m,) s, g m_1
    relaxation_s: np.ndarray  # (m,) s, tau
    chunks: np.ndarray  # (m,) chunks read
    background: np.ndarray  # (m,) load of other work, at constant rate
    work_s: float  # mean of the chunks read


def node_work(arrivals: Arrivals, placed: Placed) -> NodeWork:
    """Gather what arrives at the nodes.

    Args:
        arrivals: of r files.
        placed: where they are read.
    """
    width = arrivals.reads.width_s
    work = np.outer(width, placed.background[0])
    square = np.zeros_like(work)
    sums = placed.background[1:] * width.sum()
    for counts, marginals, (first, second, third) in _operations(arrivals, placed):
        matrix = count_matrix(counts)
        work += matrix @ (marginals * first)
        square += matrix @ (marginals * first) ** 2
        total = np.asarray(matrix.sum(axis=0)).ravel()
        sums = sums + np.stack([total @ (marginals * each) for each in (second, third)])
    total_work = work.sum(axis=0)
    busy = total_work > 0
    safe = np.where(busy, total_work, 1.0)
    service = host_moments(placed.service, placed.chunk_bytes)[0]
    some = service.mean(axis=0)
    c = np.where(busy, sums[0] / (2 * safe), some)
    q = np.where(busy, 2 * sums[1] / (3 * np.where(busy, sums[0], 1.0)), 2 * some)
    # chunks meet the load of the others in their bin
    met = np.sum((work**2 - square) / width[:, None], axis=0) / safe
    relaxation = c / (1 - np.clip(met, 0.0, MOST_MET)) ** 2
    times_read = np.asarray(count_matrix(arrivals.reads).sum(axis=0)).ravel()
    read = times_read @ placed.probabilities
    return NodeWork(
        work,
        counts_of(arrivals.reads, work - np.outer(width, placed.background[0]), square),
        total_work / width.sum(),
        c,
        q,
        np.minimum(square.sum(axis=0) / safe, 2 * c),
        relaxation,
        read,
        placed.background[0],
        float(np.sum(times_read @ (placed.probabilities * service)) / read.sum()),
    )


def _operations(
    arrivals: Arrivals, placed: Placed
) -> Iterator[tuple[BinnedReads, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Counts of reads and of writes, what of each file goes to every node, (r, m), and moments of its work."""
    yield arrivals.reads, placed.probabilities, host_moments(placed.service, placed.chunk_bytes)
    if arrivals.writes is not None:
        yield arrivals.writes, placed.stored, written_moments(placed)


def written_moments(placed: Placed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw moments of the work of a chunk that is written, of every file at every node: each (r, m)."""
    size, service = placed.written
    return host_moments(service, size)


def raw_constants(at: NodeWork, unit_s: float) -> tuple[Constants, np.ndarray]:
    """Constants where the counts themselves are the work, and what a read must not count of itself, s, (m,).

    Args:
        at: work.
        unit_s: width of the bins that arrivals are in.
    """
    tau = at.relaxation_s
    resolved = tau / (unit_s + tau)
    itself = at.shared_s * tau / (unit_s + 2 * tau)
    return Constants(np.maximum(at.c - at.shared_s * resolved / 2, LEAST_C * at.c), at.q), itself


def denoised_constants(at: NodeWork, dispersion: float) -> tuple[Constants, np.ndarray]:
    """Constants where counts are averaged over blocks, and what a read meets beyond the mean workload, s, (m,).

    Args:
        at: work.
        dispersion: I within blocks at the scale of the relaxation.
    """
    c = np.maximum(at.c + (dispersion - 1) * at.shared_s / 2, LEAST_C * at.c)
    return Constants(c, at.q), c - at.c
