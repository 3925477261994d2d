"""Totals of each file: one row of eight numbers, one cache line, per distinct file."""

import numba
import numpy as np

from ecjax.tables.statistics.index import IntegerIndex, grown

READS, WRITES, READ_BYTES, WRITE_BYTES, LARGEST, FIRST, LAST, GAP_SQUARES = range(8)
_COUNTS = 64  # a request of 63 chunks or more counts as one of 63


@numba.njit(cache=True, nogil=True)
def _add(files, arrivals, writes, sizes, pieces, totals):
    for i in range(files.shape[0]):
        row = totals[files[i]]
        arrival, size = arrivals[i], sizes[i]
        if row[0] + row[1] == 0.0:
            row[5] = arrival
        else:
            gap = arrival - row[6]
            row[7] += gap * gap
        row[6] = arrival
        if writes[i]:
            row[1] += 1.0
            row[3] += size
        else:
            row[0] += 1.0
            row[2] += size
        row[4] = max(row[4], size / pieces[i])


@numba.njit(cache=True, nogil=True)
def _most_frequent(keys, counts, files):
    """Chunk count met most often per file (the smaller on a tie), 0 where none was met."""
    best = np.zeros(files, np.int64)
    seen = np.zeros(files)
    for i in range(keys.shape[0]):
        file, chunks = keys[i] // _COUNTS, keys[i] % _COUNTS
        if counts[i] > seen[file] or (counts[i] == seen[file] and chunks < best[file]):
            best[file], seen[file] = chunks, counts[i]
    return best


class FileTotals:
    """Accesses, bytes and times of each file.

    ``totals`` is (files, 8): reads, writes, bytes read, bytes written, largest chunk (B; an access of a whole file
    is one), first and last arrival (s),
    and the sum of the squared gaps between consecutive arrivals (s^2).
    """

    def __init__(self) -> None:
        self._totals = np.zeros((1024, 8))
        self._chunk_counts = IntegerIndex()
        self._met = np.zeros(1024)

    def add(
        self,
        files: np.ndarray,
        arrivals: np.ndarray,
        writes: np.ndarray,
        sizes: np.ndarray,
        pieces: np.ndarray,
        known: int,
    ) -> None:
        """Add accesses in order of arrival: file numbers, seconds, whether a write, bytes and chunks, each (n,).

        ``known`` is the number of distinct files so far.
        """
        self._totals = grown(self._totals, known)
        _add(files, arrivals, writes, sizes, pieces, self._totals)

    def add_chunk_counts(self, files: np.ndarray, writes: np.ndarray, chunks: np.ndarray) -> None:
        """Count for each read how many chunks it took, all (n,)."""
        reads = ~writes
        places = self._chunk_counts.number(files[reads] * _COUNTS + np.minimum(chunks[reads], _COUNTS - 1))
        self._met = grown(self._met, self._chunk_counts.count)
        self._met[: self._chunk_counts.count] += np.bincount(places, minlength=self._chunk_counts.count)

    def totals(self, known: int) -> np.ndarray:
        """Totals of the first ``known`` files, (known, 8)."""
        self._totals = grown(self._totals, known)
        return self._totals[:known]

    def chunks_read(self, known: int) -> np.ndarray:
        """Number of chunks that most reads of each file took, 0 where no chunk was read, (known,)."""
        return _most_frequent(self._chunk_counts.values, self._met, known)


def interarrival_cv(totals: np.ndarray) -> np.ndarray:
    """Coefficient of variation of the gaps between the arrivals at each file, as recorded, (files,).

    NaN for files with fewer than three arrivals or none apart.
    """
    gaps = totals[:, READS] + totals[:, WRITES] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (totals[:, LAST] - totals[:, FIRST]) / gaps
        variance = (totals[:, GAP_SQUARES] - gaps * mean**2) / (gaps - 1)
        cv = np.sqrt(np.maximum(variance, 0)) / mean
    return np.where((gaps >= 2) & (mean > 0), cv, np.nan)
