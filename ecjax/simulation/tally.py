"""What a replay keeps while it runs, in memory that does not grow with the number of requests.

Histograms have logarithmic bins (64 per octave, 1.1 % wide); sums are kept by segment of the run, so that the warm-up
can be cut off once it is known, and by batch, for confidence intervals.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ecjax.machine_code import njit

BATCHES = 1024  # batches of a run, by order of arrival
SEGMENTS = (0, 32, 64, 128, 256, 512)  # first batches of the segments; a warm-up ends with one of them
_SUB_BITS = 6
PER_OCTAVE = 1 << _SUB_BITS
_LOWEST = -26  # 2^-26 s, 15 ns
_OCTAVES = 50
BINS = _OCTAVES * PER_OCTAVE + 1  # bin 0: below 2^-26 s
_FILE_SHIFT = 2
FILE_BINS = _OCTAVES * (PER_OCTAVE >> _FILE_SHIFT) + 1
# bin of a time: (its bits >> BIN_SHIFT) - BIN_OFFSET, within 0, ..., BINS - 1
BIN_SHIFT = 52 - _SUB_BITS
BIN_OFFSET = ((1023 + _LOWEST) << _SUB_BITS) - 1


@intrinsic
def _bits(typing_context: Any, value: Any = None) -> Any:
    """The bits of a float64 as an int64: its exponent and leading digits number logarithmic bins."""

    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), build


class Tally(NamedTuple):
    """Sums and histograms of one replay.

    Groups, in this order: C classes of reads, m nodes (sojourn times of the chunks of reads), and r files where those
    are kept (all, or none). S segments. Files have coarser histograms (16 bins per octave) and no batches.
    """

    segment: np.ndarray  # (BATCHES,) int64, segment of each batch
    per_request: np.ndarray  # (1,) batches per request
    classes: np.ndarray  # (1,) int64, C
    sums: np.ndarray  # (S, G, 3) of 1, x (s), x^2 (s^2)
    bins: np.ndarray  # (S, C + m, BINS) uint32
    batches: np.ndarray  # (C + m, BATCHES, 2) of 1, x (s)
    file_bins: np.ndarray  # (S, r, FILE_BINS) uint32; or (0, 0, FILE_BINS)
    busy: np.ndarray  # (S, m) s, service given, writes and background work too
    began: np.ndarray  # (BATCHES,) s, first arrival of each batch
    paths: np.ndarray  # (requests,) s, latency of every request; or (0,)


def empty(
    requests: int,
    classes: int,
    nodes: int,
    files: int = 0,
    file_bins: bool = False,
    paths: bool = False,
) -> Tally:
    """A tally for a run of so many requests.

    Args:
        requests: of the run, writes and background work among them.
        classes: of reads.
        nodes: number of nodes.
        files: number of files whose latencies are kept one by one; 0: none.
        file_bins: also histograms of every file.
        paths: keep the latency of every request.
    """
    segments, detailed = len(SEGMENTS), classes + nodes
    return Tally(
        segment=np.searchsorted(SEGMENTS, np.arange(BATCHES), side="right") - 1,
        per_request=np.array([min(1.0, BATCHES / max(requests, 1))]),
        classes=np.array([classes]),
        sums=np.zeros((segments, detailed + files, 3)),
        bins=np.zeros((segments, detailed, BINS), np.uint32),
        batches=np.zeros((detailed, BATCHES, 2)),
        file_bins=np.zeros((segments, files, FILE_BINS) if file_bins else (0, 0, FILE_BINS), np.uint32),
        busy=np.zeros((segments, nodes)),
        began=np.full(BATCHES, np.nan),
        paths=np.full(requests if paths else 0, np.nan),
    )


@njit(inline="always")
def batch_of(request, per_request):
    """Batch of a request."""
    return min(int(request * per_request), BATCHES - 1)


@njit(inline="always")
def bin_of(value):
    """Bin of a time, s."""
    return min(max((_bits(value) >> BIN_SHIFT) - BIN_OFFSET, 0), BINS - 1)


@njit(inline="always")
def count(sums, bins, batches, segment, batch, group, value):
    """Count a time, s, in a group. The arrays of a tally come one by one: taken from it in a loop they are slow."""
    sums[segment, group, 0] += 1.0
    sums[segment, group, 1] += value
    sums[segment, group, 2] += value * value
    bins[segment, group, bin_of(value)] += np.uint32(1)
    batches[group, batch, 0] += 1.0
    batches[group, batch, 1] += value


@njit(inline="always")
def count_file(sums, file_bins, segment, first, file, value):
    """Count a time, s, of a file; ``first`` is the group of file 0. Does nothing where files are not kept."""
    if first < sums.shape[1]:
        sums[segment, first + file, 0] += 1.0
        sums[segment, first + file, 1] += value
        sums[segment, first + file, 2] += value * value
        if file_bins.shape[0] > 0:
            place = ((bin_of(value) - 1) >> _FILE_SHIFT) + 1
            file_bins[segment, file, place] += np.uint32(1)


@njit()
def count_files(counts, segments, files, groups, latencies):
    """Count the latencies of reads with their files, of those that are kept.

    Args:
        counts: the tally.
        segments: (b,) of the requests.
        files: (b,)
        groups: (all files,) class of the reads of each; -1: none.
        latencies: (b,) s.
    """
    first = counts.classes[0] + counts.busy.shape[1]
    sums, file_bins = counts.sums, counts.file_bins
    for request in range(files.size):
        file = files[request]
        if groups[file] >= 0:
            count_file(sums, file_bins, segments[request], first, file, latencies[request])


def bin_edges(number: int = BINS) -> np.ndarray:
    """Edges of BINS or FILE_BINS bins, (number + 1,) s: bin b holds edge[b] <= x < edge[b + 1]."""
    parts = number // _OCTAVES
    octave, part = np.divmod(np.arange(number), parts)
    return np.concatenate(([0.0], np.ldexp(1.0 + part / parts, octave + _LOWEST)))
