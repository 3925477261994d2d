"""Reads of files by bins of time, as sparse counts, and the work that they bring to nodes.

A clock that ticks coarser than a service tells no more than the reads of a tick: its ticks are the bins, and the reads
of a tick are spread over it. A finer clock gets bins as long as a mean service, at most 2^22 of them, and each of as
many ticks as the others: bins of five and of six ticks in turn would make Poisson reads look burstier. Bins without
arrivals that follow each other are one bin: the recursions over bins take any width.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

MOST_BINS = 2**22
# of all bins and nodes: an estimate keeps fifteen arrays of them at a time, of 0.5 GB each
MOST_NUMBERS = 2**26
_BORDER = 0.1  # of a tick: times since 1970 are within 0.075 of theirs (``clock_resolution``)


class BinnedReads(NamedTuple):
    """Reads (or writes) by bin and file: P pairs with a count, in the order of the bins."""

    width_s: np.ndarray  # (B,) s, lengths of bins that follow each other
    bin: np.ndarray  # (P,) int64, not decreasing
    file: np.ndarray  # (P,) int64, increasing within a bin
    reads: np.ndarray  # (P,) float64, above 0
    files: int  # number of files

    @property
    def bins(self) -> int:
        """Number of bins B."""
        return len(self.width_s)

    @property
    def length_s(self) -> float:
        """Of all bins together, s."""
        return float(self.width_s.sum())


def bin_width(length_s: float, service_mean_s: float, tick_s: float = 0.0) -> float:
    """Width of bins: a mean service, at least length / 2^22, in whole ticks of the clock and at least one (s).

    Args:
        length_s: of the log.
        service_mean_s: of a chunk, over nodes and files.
        tick_s: resolution of the clock; 0: continuous.
    """
    least = length_s / MOST_BINS
    if tick_s <= 0:
        return max(service_mean_s, least)
    ticks = max(1, round(service_mean_s / tick_s), math.ceil(least / tick_s))
    return tick_s * ticks


def bin_arrivals(
    times_s: np.ndarray,
    file: np.ndarray,
    files: int,
    width_s: float,
    write: np.ndarray | None = None,
    interval_s: tuple[float, float] | None = None,
    tick_s: float = 0.0,
) -> tuple[BinnedReads, BinnedReads]:
    """Reads and writes by the same bins.

    Args:
        times_s: (N,) arrivals, in order.
        file: (N,) file of each, below ``files``.
        files: number of files.
        width_s: of the bins, see ``bin_width``.
        write: (N,) bool, which are writes; None: none is.
        interval_s: begin and end of the log; None: from the first arrival to the end of the last one's bin. It is
            lengthened to whole bins.
        tick_s: resolution of the clock, of which bins are whole ticks; 0: continuous.

    Raises:
        ValueError: there is no arrival, or one outside the interval.
    """
    if not len(times_s):
        raise ValueError("no arrivals, so there are no bins")
    begin, end = (times_s[0], None) if interval_s is None else interval_s
    # arrivals on the ticks of a clock are at the borders of bins, but for a rounding that may be of times since 1970
    place = np.floor((times_s - begin + _BORDER * tick_s) / width_s).astype(np.int64)
    last = int(place[-1]) if end is None else max(int(np.ceil((end - begin) / width_s)) - 1, int(place[-1]))
    if place[0] < 0 or (end is not None and times_s[-1] > end):
        raise ValueError(f"arrivals from {times_s[0]} to {times_s[-1]} s are not within {interval_s}")
    used = np.unique(place)
    edges = np.unique(np.concatenate([used, used + 1, [0, last + 1]]))
    widths = np.diff(edges) * width_s
    at = np.searchsorted(edges, place)
    writes = np.zeros(len(at), bool) if write is None else write
    return _counts(widths, at[~writes], file[~writes], files), _counts(
        widths, at[writes], file[writes], files
    )


def _counts(width_s: np.ndarray, at: np.ndarray, file: np.ndarray, files: int) -> BinnedReads:
    pair, count = np.unique(at.astype(np.int64) * files + file, return_counts=True)
    return BinnedReads(width_s, pair // files, pair % files, count.astype(float), files)


def regrouped(counts: BinnedReads, bin_of: np.ndarray, file: np.ndarray, width_s: np.ndarray) -> BinnedReads:
    """Counts by other bins and files: pairs that become one are added up.

    Args:
        counts: P pairs.
        bin_of: (P,) the bin of each instead.
        file: (P,) its file instead, of as many.
        width_s: of these bins, s.
    """
    pair, place = np.unique(bin_of * counts.files + file, return_inverse=True)
    total = np.bincount(place, counts.reads, len(pair))
    return BinnedReads(width_s, pair // counts.files, pair % counts.files, total, counts.files)


def count_matrix(binned: BinnedReads) -> csr_matrix:
    """Counts as a sparse matrix (B, files)."""
    return csr_matrix((binned.reads, (binned.bin, binned.file)), shape=(binned.bins, binned.files))


def work_of_nodes(
    binned: BinnedReads, probabilities: np.ndarray, service_mean_s: np.ndarray | float
) -> np.ndarray:
    """Work that arrives at every node in every bin, s: sum_i N_ib pi_ij m_1[i, j], (B, m).

    It is linear in the probabilities. Of writes, ``probabilities`` are 1 where a node holds a chunk of the file.

    Args:
        binned: counts.
        probabilities: pi, (files, m).
        service_mean_s: m_1 of a chunk, (files, m), (m,) or one number.
    """
    return np.asarray(count_matrix(binned) @ (probabilities * service_mean_s))


def prices_of_reads(
    binned: BinnedReads, prices: np.ndarray, service_mean_s: np.ndarray | float
) -> np.ndarray:
    """Prices of reads from prices of work in every bin: P_ij = m_1[i, j] sum_b N_ib p_bj, (files, m).

    The transpose of ``work_of_nodes``: the gradient, by the probabilities, of what has gradient ``prices`` by the work.

    Args:
        binned: counts.
        prices: (B, m), of work.
        service_mean_s: m_1 of a chunk, (files, m), (m,) or one number.
    """
    return np.asarray(count_matrix(binned).T @ prices) * service_mean_s
