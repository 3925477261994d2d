"""The log as plans see it: counts constant over blocks of time, so that noise does not pass for bursts.

Blocks are split where the reads of all files change by more than Poisson arrivals do, or those of one of the most read
files, or of a group of files that are read at the same times; never by a plan, so that J stays convex in it. Groups are
the two signs of each of the first principal components of when files are read.

Within a block steps grow: a queue that fills or drains does so at a constant speed, and a step of a sixteenth of the
time since the block began puts the area under it 3 % wrong.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from ecjax.planning.trace.data import Bins
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.denoise import averaged, blocks_of, counts_of

_NAMED = 16  # most read files that are told apart by name
_COMPONENTS = 4
_WINDOWS = 256  # of the log, in which components are looked for
_LEAST_READS = 20  # of a file that says when it is read
_GROWTH = 1 / 16


class Steady(NamedTuple):
    """Reads and writes by blocks, and the bins of the recursion."""

    reads: BinnedReads
    writes: BinnedReads
    bins: Bins


def steady(reads: BinnedReads, writes: BinnedReads) -> Steady:
    """Counts averaged over the blocks within which nothing changes.

    Args:
        reads: of all files, by bins of which all that are not empty have one width.
        writes: by the same bins; there may be none.
    """
    groups = _groups(reads)
    columns = (
        sparse.csr_matrix((reads.reads, (reads.bin, reads.file)), shape=(reads.bins, reads.files)) @ groups
    )
    written = np.bincount(writes.bin, writes.reads, reads.bins)[:, None]
    amounts = np.hstack([columns.toarray(), written])
    blocks = blocks_of(reads.width_s, counts_of(reads, amounts, amounts))
    widths, edge = _steps(blocks.width_s, blocks.unit_s)
    return Steady(averaged(reads, blocks), averaged(writes, blocks), Bins(widths, edge))


def _groups(reads: BinnedReads) -> sparse.csr_matrix:
    """Which files count together, (files, groups) 0 or 1."""
    total = np.bincount(reads.file, reads.reads, reads.files)
    named = np.argsort(-total, kind="stable")[:_NAMED]
    columns = [
        sparse.csr_matrix((np.ones(len(named)), (named, np.arange(len(named)))), (reads.files, len(named)))
    ]
    often = total >= _LEAST_READS
    if np.count_nonzero(often) > 1:
        columns.append(_components(reads, total, often))
    return sparse.hstack(columns, "csr")


def _components(reads: BinnedReads, total: np.ndarray, often: np.ndarray) -> sparse.csr_matrix:
    end = np.cumsum(reads.width_s)
    window = np.minimum((end - 0.5 * reads.width_s) / end[-1] * _WINDOWS, _WINDOWS - 1).astype(np.int64)
    scale = np.where(often, 1 / np.sqrt(np.maximum(total, 1)), 0.0)
    # (counts - total mean profile) / sqrt(total): of variance about 1 where a file goes with all others
    profile = sparse.csr_matrix(
        (reads.reads * scale[reads.file], (reads.file, window[reads.bin])), shape=(reads.files, _WINDOWS)
    )
    mean = np.asarray((scale * total) @ profile) / np.sum(total[often])
    weight = scale * total
    gram = (profile.T @ profile).toarray()
    cross = np.outer(np.asarray(profile.T @ weight), mean)
    gram = gram - cross - cross.T + np.sum(weight**2) * np.outer(mean, mean)
    vectors = linalg.eigh(gram, subset_by_index=[_WINDOWS - _COMPONENTS, _WINDOWS - 1])[1]
    scores = profile @ vectors - np.outer(weight, mean @ vectors)
    signs = np.hstack([scores > 0, scores < 0]) & often[:, None]
    return sparse.csr_matrix(signs.astype(float))


def _steps(block_s: np.ndarray, unit_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Widths of the steps of all blocks (B,), and the first step of each block (K + 1,)."""
    ladder = [0.0]
    longest = float(block_s.max())
    while ladder[-1] < longest:
        ladder.append(ladder[-1] + max(unit_s, _GROWTH * ladder[-1]))
    marks = np.array(ladder)
    # steps that begin before the end of the block; the last one is cut there, a sliver joins its neighbour
    count = np.maximum(np.searchsorted(marks, block_s * (1 - 1e-9) - 0.5 * unit_s), 1)
    edge = np.append(0, np.cumsum(count))
    place = np.arange(edge[-1]) - np.repeat(edge[:-1], count)
    ends = np.where(
        place + 1 == np.repeat(count, count),
        np.repeat(block_s, count),
        marks[np.minimum(place + 1, len(marks) - 1)],
    )
    return ends - marks[place], edge
