"""Latencies of a plan under the arrivals of a log, without simulation: mean and quantiles of groups of reads.

Workloads come from the two-moment recursion (``ecjax.traffic``). Where queues are as under a constant load, latencies
have the exact laws of the nodes and the copula of ``ecjax.queueing.estimate``, so that a Poisson log has the estimate
of Poisson arrivals; elsewhere reads are sampled in time, and nodes are independent given the path of the workload.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack

from ecjax.predict.jackknife import BLOCKS, log_margins, without_each
from ecjax.predict.read_samples import FileKinds, Groups, Sample, all_reads, file_kinds, sampled
from ecjax.predict.steady_laws import steady_laws
from ecjax.queueing.workload import Workload
from ecjax.traffic.latency_laws import Readers, Seen, grid, latency_laws, law_means, readers
from ecjax.traffic.node_work import Arrivals, Placed
from ecjax.traffic.paths import Pieces, paths

LEVELS = (0.5, 0.9, 0.99, 0.999)
_AT_ONCE = 512  # situations of one call
_READERS = jax.jit(readers, static_argnames="most")
_LAWS = jax.jit(latency_laws, static_argnames="most")


class TraceEstimate(NamedTuple):
    """Latencies in s of all reads, then classes, then files: G groups; nan where nothing is read."""

    mean: np.ndarray  # (G,)
    quantiles: np.ndarray  # (G, 4) of ``LEVELS``
    log_margins: (
        np.ndarray
    )  # (5,) half widths of the 95 % intervals of log mean and log quantiles, of all reads
    wait_s: float  # mean of chunks
    load: np.ndarray  # (m,) of the whole log
    end_s: np.ndarray  # (m,) workload that is left after the last bin
    branch: str  # raw or denoised
    dispersion: float  # I within blocks of constant rate


def trace_estimate(
    arrivals: Arrivals, placed: Placed, workload: Workload, groups: Groups | None = None
) -> TraceEstimate:
    """Estimate the latencies of reads of r files.

    Args:
        arrivals: of the files, by bins.
        placed: where their chunks are; nodes serve first come, first served.
        workload: chunk sizes, service and connection delays; its rates and its background do not count.
        groups: of files; None: all reads only.

    Raises:
        ValueError: nothing is read.
    """
    if not len(arrivals.reads.reads):
        raise ValueError("no reads, so there is no latency")
    way = paths(arrivals, placed)
    groups = groups or all_reads()
    kinds = file_kinds(placed.probabilities, placed.chunk_bytes)
    pieces = way.chosen
    service = np.asarray(workload.service.moments(placed.chunk_bytes[kinds.first][:, None])[0])
    longest = max(float(np.max(each.mean)) for each in (pieces, way.raw)) + float(service.max())
    points = grid(float(service[placed.probabilities[kinds.first] > 0].min()), longest)
    of = _READERS(
        jnp.asarray(points),
        jnp.asarray(placed.probabilities[kinds.first]),
        jnp.asarray(placed.chunk_bytes[kinds.first]),
        workload.sizes,
        workload.service,
        workload.connect,
        most=workload.most,
    )
    law = partial(_sampled_laws, points=points, of=of, kinds=kinds, most=workload.most)
    sample = sampled(pieces.reads, ~pieces.steady[pieces.reads.bin], groups)
    laws, weights = law(pieces, sample, groups.count)
    if pieces.steady.any():
        steady, shares = steady_laws(pieces, placed, workload, kinds, groups, points)
        laws, weights = np.concatenate([laws, steady]), hstack([weights, shares], "csr")
    mixed = mixture(laws, weights)
    return TraceEstimate(
        np.asarray(law_means(jnp.asarray(points), jnp.asarray(mixed))),
        quantiles_of(points, mixed),
        np.zeros(1 + len(LEVELS)) if arrivals.certain else _margins(way.raw, law, points),
        pieces.wait_s,
        way.at.load,
        pieces.end,
        way.branch,
        way.dispersion,
    )


def _sampled_laws(
    pieces: Pieces, sample: Sample, count: int, points: np.ndarray, of: Readers, kinds: FileKinds, most: int
) -> tuple[np.ndarray, csr_matrix]:
    """Laws of what a sample meets, (cells, P), and reads of each of so many groups that they stand for."""
    reads = pieces.reads
    key = reads.bin[sample.entry] * len(kinds.first) + kinds.of_file[reads.file[sample.entry]]
    cells, place = np.unique(key, return_inverse=True)
    bins, kind = cells // len(kinds.first), cells % len(kinds.first)
    laws = np.zeros((len(cells), len(points)))
    for begin in range(0, len(cells), _AT_ONCE):
        chosen = np.minimum(np.arange(begin, begin + _AT_ONCE), len(cells) - 1)
        seen = Seen(
            *(jnp.asarray(each[bins[chosen]]) for each in (pieces.mean, pieces.variance, pieces.busy))
        )
        part = _LAWS(jnp.asarray(points), seen, jnp.asarray(kind[chosen]), of, most=most)
        laws[begin : begin + _AT_ONCE] = np.asarray(part)[: len(cells) - begin]
    return laws, csr_matrix((sample.weight, (sample.group, place)), shape=(count, len(cells)))


def _margins(
    raw: Pieces, law: Callable[[Pieces, Sample, int], tuple[np.ndarray, csr_matrix]], points: np.ndarray
) -> np.ndarray:
    """Of mean and quantiles of all reads, by leaving out tenths of the time; from the counts as they are."""
    sample = sampled(raw.reads, np.ones(len(raw.reads.bin), bool), all_reads(), _OF_MARGINS)
    end = np.cumsum(raw.reads.width_s)
    tenth = np.minimum((end / end[-1] * BLOCKS).astype(np.int64), BLOCKS - 1)
    tenths = sample._replace(group=tenth[raw.reads.bin[sample.entry]])
    laws, weights = law(raw, tenths, BLOCKS)
    mixed = mixture(laws, without_each(weights.toarray()))
    mean = np.asarray(law_means(jnp.asarray(points), jnp.asarray(mixed)))
    return log_margins(np.column_stack([mean, quantiles_of(points, mixed)]))


_OF_MARGINS = 2000


def mixture(laws: np.ndarray, weights: csr_matrix | np.ndarray) -> np.ndarray:
    """Laws of groups, (G, P), from laws (cells, P) and reads (G, cells); nan where a group has none."""
    total = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.asarray(weights @ laws) / total, 0.0, 1.0)


def quantiles_of(points: np.ndarray, laws: np.ndarray) -> np.ndarray:
    """Quantiles of laws, (G, 4), s: linear in log x and log(1 - F) between the points."""
    scores = -np.log(np.maximum(1 - laws, 1e-15))
    levels = -np.log1p(-np.asarray(LEVELS))
    rows = [
        np.exp(np.interp(levels, score, np.log(points))) if np.isfinite(score[0]) else np.full(4, np.nan)
        for score in scores
    ]
    return np.array(rows)
