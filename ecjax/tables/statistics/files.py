"""Totals of each file: one row of eight numbers, one cache line, per distinct file."""

from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.machine_code import copy_into, njit
from ecjax.tables.statistics.index import IntegerIndex, grown

READS, WRITES, READ_BYTES, WRITE_BYTES, LARGEST, FIRST, LAST, GAP_SQUARES = range(8)
_COUNTS = 1 << 24  # of chunks of a read; keys of as many files as memory holds fit in 63 bits beside them


@njit(inline="always")
def _gap_added(row, arrival):
    """Squares about the mean of the gaps of a file, after one more gap: from its last arrival to this one."""
    gaps = row[0] + row[1] - 1.0
    gap = arrival - row[6]
    if gaps == 0.0:
        return 0.0
    distance = gap - (row[6] - row[5]) / gaps
    return row[7] + distance * distance * (gaps / (gaps + 1.0))


@njit()
def _add(files, arrivals, writes, sizes, pieces, totals):
    for i in range(files.shape[0]):
        row = totals[files[i]]
        arrival, size = arrivals[i], sizes[i]
        if row[0] + row[1] == 0.0:
            row[5] = arrival
        else:
            row[7] = _gap_added(row, arrival)
        row[6] = arrival
        if writes[i]:
            row[1] += 1.0
            row[3] += size
        else:
            row[0] += 1.0
            row[2] += size
        row[4] = max(row[4], size / pieces[i])


@njit()
def _absorb(totals, places, later):
    """Add the totals of accesses that came later; ``places`` are their files' rows in ``totals``."""
    for i in range(later.shape[0]):
        new = later[i]
        if new[0] + new[1] == 0.0:
            continue
        row = totals[places[i]]
        if row[0] + row[1] == 0.0:
            copy_into(row, new)
            continue
        # the gap between the two, then both sets of gaps moved to their common mean
        squares = _gap_added(row, new[5])
        before, after = row[0] + row[1], new[0] + new[1] - 1.0
        if after > 0.0:
            distance = (new[6] - new[5]) / after - (new[5] - row[5]) / before
            squares += new[7] + distance * distance * (before * after / (before + after))
        row[7] = squares
        row[6] = new[6]
        for column in range(4):
            row[column] += new[column]
        row[4] = max(row[4], new[4])


@njit()
def _most_frequent(keys, counts, files):
    """Chunk count met most often per file (the smaller on a tie), 0 where none was met."""
    best = np.zeros(files, np.int64)
    highest = np.zeros(files)
    for i in range(keys.shape[0]):
        file, chunks = keys[i] // _COUNTS, keys[i] % _COUNTS
        if counts[i] > highest[file] or (counts[i] == highest[file] and chunks < best[file]):
            best[file], highest[file] = chunks, counts[i]
    return best


class FileTotals:
    """Accesses, bytes and times of each file.

    ``totals`` is (files, 8): reads, writes, bytes read, bytes written, largest chunk (B; an access of a whole file
    is one), first and last arrival (s),
    and the sum of squares of the gaps between consecutive arrivals about their mean (s^2). The mean of n gaps is known
    without adding them up: last arrival less first, over n.
    """

    def __init__(self) -> None:
        self._files = 0
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
        file_count: int,
    ) -> None:
        """Add accesses in order of arrival: file numbers, seconds, whether a write, bytes and chunks, each (n,).

        ``file_count`` is the number of distinct files so far.
        """
        self._files = file_count
        self._totals = grown(self._totals, file_count)
        _add(files, arrivals, writes, sizes, pieces, self._totals)

    def add_stored(self, files: np.ndarray, stored: np.ndarray) -> None:
        """Raise the largest size of files, of which parts were read perhaps: their whole bytes, NaN: not known."""
        known = ~np.isnan(stored)
        np.maximum.at(self._totals[:, LARGEST], files[known], stored[known])

    def add_chunk_counts(self, files: np.ndarray, writes: np.ndarray, chunks: np.ndarray) -> None:
        """Count for each read how many chunks it took, all (n,).

        Raises:
            UserError: it is too many.
        """
        files, chunks = files[~writes], chunks[~writes]
        most = int(chunks.max(initial=0))
        if most >= _COUNTS:
            raise UserError(
                f"requests table, column request_id: found a read of {most} chunks; allowed: at most {_COUNTS - 1}"
            )
        places = self._chunk_counts.number(files * _COUNTS + chunks)
        self._met = grown(self._met, self._chunk_counts.count)
        self._met[: self._chunk_counts.count] += np.bincount(places, minlength=self._chunk_counts.count)

    def absorb(self, other: "FileTotals", files: np.ndarray, file_count: int) -> None:
        """Add accesses that came later.

        Args:
            other: their totals.
            files: the number here of each of its files, (files of the other,).
            file_count: number of distinct files here.
        """
        self._files = file_count
        self._totals = grown(self._totals, file_count)
        _absorb(self._totals, files, other._totals[: len(files)])
        keys = other._chunk_counts.values
        places = self._chunk_counts.number(files[keys // _COUNTS] * _COUNTS + keys % _COUNTS)
        self._met = grown(self._met, self._chunk_counts.count)
        self._met[places] += other._met[: len(places)]

    def __getstate__(self) -> dict[str, Any]:
        used = {"_totals": self._totals[: self._files], "_met": self._met[: self._chunk_counts.count]}
        return self.__dict__ | used

    def totals(self, file_count: int) -> np.ndarray:
        """Totals of the first ``file_count`` files, (file_count, 8)."""
        self._totals = grown(self._totals, file_count)
        return self._totals[:file_count]

    def chunks_read(self, file_count: int) -> np.ndarray:
        """Number of chunks that most reads of each file took, 0 where no chunk was read, (file_count,)."""
        return _most_frequent(self._chunk_counts.values, self._met, file_count)


def interarrival_cv(totals: np.ndarray) -> np.ndarray:
    """Coefficient of variation of the gaps between the arrivals at each file, as recorded, (files,).

    NaN for files with fewer than three arrivals or none apart.
    """
    gaps = totals[:, READS] + totals[:, WRITES] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (totals[:, LAST] - totals[:, FIRST]) / gaps
        cv = np.sqrt(totals[:, GAP_SQUARES] / (gaps - 1)) / mean
    return np.where((gaps >= 2) & (mean > 0), cv, np.nan)
