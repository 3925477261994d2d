"""Workloads that the reads of a log meet, from its counts as they are (raw) or as rates of blocks (denoised)."""

from typing import NamedTuple

import numpy as np

from ecjax.traffic.bins import MOST_NUMBERS, BinnedReads
from ecjax.traffic.denoise import Blocks, averaged, blocks_of, dispersion_at
from ecjax.traffic.node_work import (
    MOST_MET,
    Arrivals,
    NodeWork,
    Placed,
    denoised_constants,
    node_work,
    raw_constants,
)
from ecjax.traffic.two_moments import Path, workload_path

RAW, DENOISED = "raw", "denoised"
_LONG_WAIT = 1.5  # of c_0: beyond it episodes of overload make the wait
_GROWTH = 1.5  # of the pieces of a block, each to the one before
_MOST_GROWTH = 64.0  # where pairs are many
# of pieces and files: an estimate keeps ten arrays of them at a time, of 0.25 GB each
_MOST_PAIRS = 2**25
_STEADY = 0.05  # nearness of both moments to those of a steady queue
_MOST_STEADY_LOAD = 0.95
_MOSTLY, _AGREE = 0.6, 0.15  # share of the wait, and difference of mean waits
_PART, _MOST_PARTS, _MOST_PIECES = 2.0, 8, 2**20  # of c, in a bin, in all: pieces of coarse bins
_POISSON = 0.1  # distance of I from 1 that is none
_MISSED = 0.1  # of c_0: wait that blocks miss


class Pieces(NamedTuple):
    """Time cut into pieces of constant load, with what reads meet in them."""

    reads: BinnedReads  # of the pieces; B of them
    writes: BinnedReads | None  # of the same pieces
    load: np.ndarray  # (B, m) of the nodes
    mean: np.ndarray  # (B, m) s, workload that a read meets
    variance: np.ndarray  # (B, m) s^2
    busy: np.ndarray  # (B, m)
    steady: np.ndarray  # (B,) bool: queues of the nodes that are read are as under a constant load
    end: np.ndarray  # (m,) s, workload after the last
    wait_s: float  # mean wait of chunks


class Paths(NamedTuple):
    """Both branches, and which one is to be believed."""

    at: NodeWork
    raw: Pieces
    denoised: Pieces
    branch: str
    dispersion: float  # I within blocks

    @property
    def chosen(self) -> Pieces:
        """The pieces of the branch."""
        return self.raw if self.branch == RAW else self.denoised


def paths(arrivals: Arrivals, placed: Placed) -> Paths:
    """Workloads under the arrivals of a log."""
    at = node_work(arrivals, placed)
    blocks = _blocks(arrivals, at)
    load = _block_loads(arrivals.reads.width_s, at, blocks)
    dispersion = 1.0 if arrivals.certain else dispersion_at(blocks, _scale(at, load, blocks.width_s))
    if abs(dispersion - 1) < _POISSON:
        dispersion = 1.0
    denoised = _denoised(arrivals, at, blocks, load, dispersion)
    raw = denoised if arrivals.certain else _raw(arrivals, at)
    c = float(np.average(at.c, weights=at.chunks))
    long_wait = raw.wait_s > _LONG_WAIT * c
    # of a single file, each too short to split a block, they hardly show in I, which is of all reads
    missed = raw.wait_s - denoised.wait_s > max(_MISSED * c, _AGREE * denoised.wait_s)
    # bursts within blocks, and episodes of overload: the counts say when they are
    bursts = dispersion != 1 or missed or (long_wait and not _is_steady(denoised, raw))
    branch = RAW if bursts and not arrivals.certain else DENOISED
    return Paths(at, raw, denoised, branch, dispersion)


def _block_loads(width_s: np.ndarray, at: NodeWork, blocks: Blocks) -> np.ndarray:
    """Loads of the nodes in blocks, (A, m).

    An empty bin may be longer than the block in which it begins: other work of its time is that of the next ones, too.

    Args:
        width_s: of the bins, s.
        at: work of these.
        blocks: of them.
    """
    work = np.zeros((len(blocks.width_s), at.work.shape[1]))
    np.add.at(work, blocks.of_bin, at.work - np.outer(width_s, at.background))
    return np.maximum(work / blocks.width_s[:, None], 0.0) + at.background


def _scale(at: NodeWork, load: np.ndarray, width_s: np.ndarray) -> float:
    """Windows whose counts tell I, s: the relaxation time at the loads of the blocks.

    Args:
        at: work.
        load: of the nodes in the blocks, (A, m).
        width_s: of the blocks, s.
    """
    work = load * width_s[:, None]
    met = np.sum(load * work, axis=0) / np.maximum(work.sum(axis=0), 1e-300)
    tau = at.c / (1 - np.minimum(met, MOST_MET)) ** 2
    return float(np.average(tau, weights=at.chunks))


def _is_steady(denoised: Pieces, raw: Pieces) -> bool:
    """Whether waits are long because the load is high all the time, which both branches agree on."""
    work = denoised.load * denoised.reads.width_s[:, None] * denoised.mean
    share = float(work[denoised.steady].sum() / work.sum())
    return share > _MOSTLY and abs(denoised.wait_s / raw.wait_s - 1) < _AGREE


def _blocks(arrivals: Arrivals, at: NodeWork) -> Blocks:
    if not arrivals.certain:
        return blocks_of(arrivals.reads.width_s, at.counts)
    width = arrivals.reads.width_s
    begin = np.concatenate([[0], np.cumsum(width)[:-1]])
    return Blocks(begin, width, np.arange(len(width)), np.zeros(0), np.zeros(0), float(width.min()))


def _raw(arrivals: Arrivals, at: NodeWork) -> Pieces:
    """Bins, those that a queue changes much in as several pieces."""
    width = arrivals.reads.width_s
    unit = float(width.min())
    constants, itself = raw_constants(at, unit)
    pieces = min(_MOST_PIECES, MOST_NUMBERS // len(at.c))
    parts = int(np.clip(np.ceil(unit / (_PART * at.c.min())), 1, min(_MOST_PARTS, 1 + pieces // len(width))))
    block, piece = np.repeat(np.arange(len(width)), parts), np.repeat(width / parts, parts)
    load = (at.work / width[:, None])[block]
    path = workload_path(load * piece[:, None], piece, constants)
    # without itself a read meets less, and less often something
    share = np.maximum(1 - itself / np.maximum(path.mean, 1e-300), 0.0)
    variance = np.maximum(path.variance - at.q * itself, path.variance * share)
    seen = Path(path.mean * share, variance, path.busy * share, path.end)
    cut_arrivals = arrivals if parts == 1 else _in_pieces(arrivals, block, piece, width)
    return _pieces(cut_arrivals, load, seen, np.zeros(len(piece), bool))


def _denoised(
    arrivals: Arrivals, at: NodeWork, blocks: Blocks, block_load: np.ndarray, dispersion: float
) -> Pieces:
    """Blocks, with loads (A, m), cut so that the queue's way to the load of a block is seen."""
    written = None if arrivals.writes is None else averaged(arrivals.writes, blocks)
    by_blocks = Arrivals(averaged(arrivals.reads, blocks), written)
    block, width = _cut_of_pairs(by_blocks, float(at.c.min()))
    load = block_load[block]
    constants, more = denoised_constants(at, dispersion)
    path = workload_path(load * width[:, None], width, constants)
    steady_load = np.minimum(load, _MOST_STEADY_LOAD)
    mean = constants.c * steady_load / (1 - steady_load)
    variance = mean**2 + constants.q * mean
    near = (np.abs(path.mean - mean) <= _STEADY * mean) & (
        np.abs(path.variance - variance) <= 2 * _STEADY * variance
    )
    steady = np.all((near & (load < _MOST_STEADY_LOAD)) | (load <= 0), axis=1) & (dispersion == 1)
    seen = path._replace(mean=np.maximum(path.mean + more, 0.0))
    return _pieces(_in_pieces(by_blocks, block, width, blocks.width_s), load, seen, steady)


def _cut_of_pairs(by_blocks: Arrivals, first_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Blocks ``cut``, into fewer pieces where their files, each in every piece of a block, would fill the memory."""
    width = by_blocks.reads.width_s
    pairs = np.bincount(by_blocks.reads.bin, minlength=len(width))
    if by_blocks.writes is not None:
        pairs = pairs + np.bincount(by_blocks.writes.bin, minlength=len(width))
    growth = _GROWTH
    while True:
        block, piece = cut(width, first_s, growth)
        if pairs[block].sum() <= _MOST_PAIRS or growth > _MOST_GROWTH:
            return block, piece
        growth *= _GROWTH


def cut(width_s: np.ndarray, first_s: float, growth: float = _GROWTH) -> tuple[np.ndarray, np.ndarray]:
    """Blocks cut into pieces that grow from their begin: block and width (s) of each piece.

    Args:
        width_s: of the blocks, s.
        first_s: of the first piece of a block, at most, s.
        growth: of each piece to the one before.
    """
    counts = np.ceil(np.log1p(width_s / first_s * (growth - 1)) / np.log(growth)).astype(np.int64)
    counts = np.maximum(counts, 1)
    block = np.repeat(np.arange(len(width_s)), counts)
    number = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
    part = growth**number
    return block, part * (width_s / np.bincount(block, part))[block]


def _in_pieces(
    arrivals: Arrivals, block: np.ndarray, width_s: np.ndarray, of_block_s: np.ndarray
) -> Arrivals:
    """Reads and writes of blocks, over their pieces."""
    writes = None if arrivals.writes is None else _spread(arrivals.writes, block, width_s, of_block_s)
    return Arrivals(_spread(arrivals.reads, block, width_s, of_block_s), writes)


def _spread(
    rates: BinnedReads, block: np.ndarray, width_s: np.ndarray, block_width_s: np.ndarray
) -> BinnedReads:
    """Reads of blocks, over their pieces in proportion to time."""
    first = np.searchsorted(block, np.arange(len(block_width_s)))
    pieces = np.bincount(block, minlength=len(block_width_s))
    many = pieces[rates.bin]
    entry = np.repeat(np.arange(len(rates.bin)), many)
    place = first[rates.bin][entry] + np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many)
    count = rates.reads[entry] * width_s[place] / block_width_s[block[place]]
    order = np.argsort(place, kind="stable")
    return BinnedReads(width_s, place[order], rates.file[entry][order], count[order], rates.files)


def _pieces(arrivals: Arrivals, load: np.ndarray, seen: Path, steady: np.ndarray) -> Pieces:
    work = load * arrivals.reads.width_s[:, None]
    mean, variance, busy, end = (np.asarray(each) for each in seen)
    wait = float(np.sum(work * mean) / np.sum(work))
    return Pieces(arrivals.reads, arrivals.writes, load, mean, variance, busy, steady, end, wait)
