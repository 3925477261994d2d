"""Counts of a log as rates that are constant over blocks of time, so that noise does not pass for bursts.

A dyadic tree over the bins: a block is split where the counts of its halves differ by more than Poisson arrivals do, or
where a part of it is split. What remains are blocks of constant rate; the counts in pairs of windows within them tell
how far arrivals are from Poisson at a scale: I = sum (n1 - n2)^2 / sum (n1 + n2).

Counts are reads of all files, and with them whatever else is to be told apart: work of nodes, reads of groups of files.
"""

from typing import NamedTuple

import numpy as np

from ecjax.traffic.bins import BinnedReads, regrouped

ALL_DEVIATIONS = 3.5  # of the reads of all files
PART_DEVIATIONS = 5.0  # of a node's work or the reads of a group of files
_LEAST_READS = 200  # in the windows that tell I


class Counts(NamedTuple):
    """What blocks are told apart by, C columns in every bin."""

    amount: np.ndarray  # (B, C) sums over arrivals, the first of all reads
    square: np.ndarray  # (B, C) sums of squares over arrivals: the variance of ``amount`` under Poisson
    deviations: np.ndarray  # (C,) how many standard deviations make a split


class Blocks(NamedTuple):
    """Blocks of constant rate that cover the log, A of them."""

    begin: np.ndarray  # (A,) int64, in units of the bins
    width_s: np.ndarray  # (A,) s
    of_bin: np.ndarray  # (B,) int64, block of each bin; of one that is empty, that of its begin
    dispersion: (
        np.ndarray
    )  # (L,) I of pairs of windows of unit 2^l s within blocks; nan where there are no pairs
    window_reads: np.ndarray  # (L,) reads in those pairs
    unit_s: float  # width of a bin that is not empty


def blocks_of(width_s: np.ndarray, counts: Counts) -> Blocks:
    """Blocks within which no half differs from the other.

    Args:
        width_s: (B,) of the bins: whole multiples of the shortest; only bins of that width have arrivals.
        counts: of the bins.
    """
    unit = float(width_s.min())
    ends = np.cumsum(np.rint(width_s / unit).astype(np.int64))
    begins, units = np.concatenate([[0], ends[:-1]]), int(ends[-1])
    used = np.flatnonzero(counts.amount[:, 0] + counts.square.sum(axis=1) > 0)
    # bins longer than the unit that are not empty count where they begin
    place, amount, square = begins[used], counts.amount[used], counts.square[used]
    split = np.zeros(len(place), bool)
    levels, dispersion, reads = [], [], []
    length = 1
    while length < units:
        levels.append((place, split))
        parent, first = np.unique(place >> 1, return_index=True)
        right = (place & 1).astype(bool)
        halves = [
            np.add.reduceat(np.where(side[:, None], amount, 0.0), first, axis=0) for side in (~right, right)
        ]
        total = np.add.reduceat(square, first, axis=0)
        exposure = [np.clip(units - (2 * parent + half) * length, 0, length)[:, None] for half in (0, 1)]
        # counts as they would be over equal times; the variance of the difference with them
        apart = np.abs(halves[0] * exposure[1] - halves[1] * exposure[0])
        spread = np.sqrt(total * exposure[0] * exposure[1])
        parts = np.logical_or.reduceat(split, first)
        split = parts | np.any(apart > counts.deviations * spread, axis=1)
        whole = ~split & (exposure[1][:, 0] == length)
        n1, n2 = halves[0][whole, 0], halves[1][whole, 0]
        reads.append(float(np.sum(n1 + n2)))
        dispersion.append(float(np.sum((n1 - n2) ** 2)) / reads[-1] if reads[-1] > 0 else np.nan)
        place, amount, square = parent, halves[0] + halves[1], total
        length *= 2
    begin = _leaves(levels, place, split, length, units)
    edges = np.append(begin, units)
    of_bin = np.searchsorted(begin, begins, side="right") - 1
    return Blocks(begin, np.diff(edges) * unit, of_bin, np.array(dispersion), np.array(reads), unit)


def _leaves(
    levels: list[tuple[np.ndarray, np.ndarray]],
    place: np.ndarray,
    split: np.ndarray,
    length: int,
    units: int,
) -> np.ndarray:
    """Begins of the blocks, from the top of the tree down."""
    begins = []
    open_blocks = place[split]  # to be taken apart
    begins.append(place[~split] * length)
    if not len(place):
        begins.append(np.zeros(1, np.int64))
    for below, below_split in reversed(levels):
        length //= 2
        children = np.sort(np.concatenate([2 * open_blocks, 2 * open_blocks + 1]))
        children = children[children * length < units]
        at = np.minimum(np.searchsorted(below, children), len(below) - 1)
        taken_apart = (below[at] == children) & below_split[at]
        begins.append(children[~taken_apart] * length)
        open_blocks = children[taken_apart]
    return np.sort(np.concatenate(begins)).astype(np.int64)


def dispersion_at(blocks: Blocks, scale_s: float) -> float:
    """I within blocks at windows of the length nearest to a scale, shorter where they have fewer than 200 reads.

    1 where there are no two windows in any block.
    """
    if not len(blocks.dispersion):
        return 1.0
    nearest = round(float(np.log2(max(scale_s / blocks.unit_s, 1.0))))
    level = min(nearest, len(blocks.dispersion) - 1)
    while level > 0 and blocks.window_reads[level] < _LEAST_READS:
        level -= 1
    value = float(blocks.dispersion[level])
    return value if np.isfinite(value) else 1.0


def counts_of(reads: BinnedReads, amounts: np.ndarray, squares: np.ndarray) -> Counts:
    """All reads, and parts of the arrivals.

    Args:
        reads: of all files.
        amounts: (B, C) sums over the arrivals of a bin, of nodes or of groups of files.
        squares: (B, C) sums of the squares.
    """
    every = np.bincount(reads.bin, reads.reads, reads.bins)[:, None]
    parts = np.full(amounts.shape[1], PART_DEVIATIONS)
    return Counts(
        np.hstack([every, amounts]), np.hstack([every, squares]), np.concatenate([[ALL_DEVIATIONS], parts])
    )


def averaged(reads: BinnedReads, blocks: Blocks) -> BinnedReads:
    """Reads by block instead of by bin: the denoised counts, which stay linear in any plan."""
    return regrouped(reads, blocks.of_bin[reads.bin], reads.file, blocks.width_s)
