"""Files counted by code and step of their rate, piece by piece."""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit

_STEP_SHIFT = 45  # of the bits of a float64: what is left is its exponent, and 7 bits of its fraction
STEPS = 1 << 18  # of a code, at most
_MOST_KEYS = 1 << 22  # that a table is made for


class Code(NamedTuple):
    """How files are coded and read.

    Attributes:
        k: chunks that rebuild a file.
        read: chunks that a read takes.
        length: least code length, at least what a read takes.
    """

    k: int
    read: int
    length: int


class Piece(NamedTuple):
    """Some of the files.

    Attributes:
        k: (r,) int64.
        read: (r,) int64, chunks that a read takes.
        length: (r,) int64, least code length, at least what a read takes.
        rate: (r,) 1/s, reads; not negative.
    """

    k: np.ndarray
    read: np.ndarray
    length: np.ndarray
    rate: np.ndarray


class Counts(NamedTuple):
    """Files by code and step of their rate, S steps in all.

    Attributes:
        codes: of the files.
        code: (S,) which of them, rising.
        step: (S,) number of the step, rising for each code.
        size: (S,) files.
        total: (S,) 1/s, their reads.
        low: (S,) 1/s, the least rate among them.
        high: (S,) 1/s, the largest.
    """

    codes: tuple[Code, ...]
    code: np.ndarray
    step: np.ndarray
    size: np.ndarray
    total: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """The first step of every code."""
        return np.searchsorted(self.code, np.arange(len(self.codes)))

    @property
    def files(self) -> int:
        """How many files there are."""
        return int(self.size.sum())


class Tally:
    """Counts files as they come; the order of the pieces changes sums of rates in their last digits only.

    Steps have columns in the order in which they are met: rates are of few of all that there might be.
    """

    def __init__(self) -> None:
        self._codes: dict[Code, int] = {}
        self._steps, self._column = np.zeros(0, np.int64), np.full(STEPS, -1)
        self._size = np.zeros((0, 0), np.int64)
        self._total, self._low, self._high = (np.zeros((0, 0)) for _ in range(3))

    def add(self, piece: Piece) -> None:
        """Count the files of a piece."""
        code, step = self._code_of(piece), steps_of(piece.rate)
        met = np.zeros(STEPS, bool)
        met[step] = True
        new = np.flatnonzero(met & (self._column < 0))
        self._column[new] = len(self._steps) + np.arange(len(new))
        self._steps = np.append(self._steps, new)
        more = [(0, len(self._codes) - len(self._size)), (0, len(new))]
        if np.any(more):
            self._size, self._total = np.pad(self._size, more), np.pad(self._total, more)
            self._low = np.pad(self._low, more, constant_values=np.inf)
            self._high = np.pad(self._high, more, constant_values=-np.inf)
        _count(code, self._column[step], piece.rate, self._size, self._total, self._low, self._high)

    def counts(self) -> Counts:
        """What has been counted, by code."""
        order = sorted(self._codes)
        by_step = np.argsort(self._steps)
        cells = np.ix_(np.array([self._codes[code] for code in order]), by_step)
        size = self._size[cells]
        code, column = np.nonzero(size)
        total, low, high = (each[cells][code, column] for each in (self._total, self._low, self._high))
        step = self._steps[by_step][column]
        return Counts(tuple(order), code, step, size[code, column].astype(float), total, low, high)

    def _code_of(self, piece: Piece) -> np.ndarray:
        """Number of the code of every file in the order in which codes were met."""
        which, codes = codes_of(piece)
        numbers = np.array([self._codes.setdefault(code, len(self._codes)) for code in codes], np.int64)
        return numbers[which]


def codes_of(piece: Piece) -> tuple[np.ndarray, list[Code]]:
    """The codes of a piece, and the number of each file's among them, (r,)."""
    columns = piece.k, piece.read, piece.length
    base = 1 + max(int(column.max()) for column in columns)
    if base**3 > np.iinfo(np.int64).max:
        rows, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return which.reshape(-1), [Code(*map(int, row)) for row in rows.T]
    key = (piece.k * base + piece.read) * base + piece.length
    if base**3 <= _MOST_KEYS:
        present = np.flatnonzero(np.bincount(key))
        place = np.zeros(present[-1] + 1, np.int64)
        place[present] = np.arange(len(present))
        which = place[key]
    else:
        present, which = np.unique(key, return_inverse=True)
    codes = [Code(int(each // base**2), int(each // base % base), int(each % base)) for each in present]
    return which, codes


def steps_of(rate: np.ndarray) -> np.ndarray:
    """Number of the step of every rate, (r,): its leading bits, which rise with it."""
    # a negative zero would come first of all
    return np.ascontiguousarray(rate + 0.0).view(np.int64) >> _STEP_SHIFT


@njit()
def _count(code, column, rate, size, total, low, high):
    for i in range(len(code)):
        c, s, x = code[i], column[i], rate[i]
        size[c, s] += 1
        total[c, s] += x
        low[c, s] = min(low[c, s], x)
        high[c, s] = max(high[c, s], x)
