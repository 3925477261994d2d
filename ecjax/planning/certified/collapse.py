"""Placement rows that are priced alike gathered into some hundred, whatever their number.

With one chunk size what a row chooses depends on its class (k, code length, chunks, bytes, allowed nodes, surcharges,
price of a read) and on its rate. Rows of a class are cut into steps of the rate, 1/128 wide at most, and steps into
bins; a bin counts as so many rows with their mean rate. Prices made for bins are good prices for the rows.

The cheapest cost A of a row is concave in its rate. Of w rows with mean x in a step [a, b] it is hence no less than
w [(b - x) A(a) + (x - a) A(b)]/(b - a): the lower bound takes the ends of the steps for many rows, at a loss of 1e-7.
"""

from threading import RLock
from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.data import Rows, rates_of

LEAST_BINS = 6  # of a class
_STEP_BITS = 7  # of the fraction of a rate that tell its step
_FRACTION_BITS = 52
_MANY = 20_000  # rows whose bound is that of steps
_MOST_OWN = 8192  # bins of rows that are not alike


class Collapsed(NamedTuple):
    """Bins of rows.

    Attributes:
        of_row: (R,) bin of each row.
        rank: (R,) number of each row among all in the order of their bins.
        size: (G,) rows in each bin.
        rate: (G,) 1/s, mean reads of one.
        example: (G,) a row of each bin, which has its class.
        alike: whether the rows of a bin are priced alike; otherwise the example is one of many.
    """

    of_row: np.ndarray
    rank: np.ndarray
    size: np.ndarray
    rate: np.ndarray
    example: np.ndarray
    alike: bool


class Steps(NamedTuple):
    """Rows by class and step of their rate.

    Attributes:
        of_row: (R,) step of each row.
        size: (S,) rows in each step.
        total: (S,) 1/s, their reads.
        low: (S,) 1/s, the least rate in it.
        high: (S,) 1/s, the largest.
        kind: (S,) its class.
        example: (S,) a row of it.
    """

    of_row: np.ndarray
    size: np.ndarray
    total: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kind: np.ndarray
    example: np.ndarray


class Gathered:
    """Steps of rows, and bins of these, each made when it is asked for first: they do not depend on theta.

    Threads may share it.

    Args:
        rows: the rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows, self._lock = rows, RLock()
        self._steps: Steps | None = None
        self._bins: dict[int, Collapsed] = {}

    @property
    def steps(self) -> Steps:
        """The rows by class and step of their rate."""
        with self._lock:
            if self._steps is None:
                self._steps = steps_of(self._rows)
            return self._steps

    def bins(self, most: int) -> Collapsed:
        """The rows gathered into so many bins, about."""
        with self._lock:
            if most not in self._bins:
                self._bins[most] = collapse(self._rows, self.steps, most)
            return self._bins[most]


def steps_of(rows: Rows) -> Steps:
    """All rows by class and step of their rate, in this order."""
    rate = np.ascontiguousarray(rates_of(rows))
    classes = classes_of(rows, rate)
    shift = _FRACTION_BITS - _STEP_BITS
    # positive floats are in the order of their bits
    bits = rate.view(np.int64) >> shift
    least = int(bits.min())
    width = int(bits.max()) - least + 1
    code = classes * width + (bits - least)
    of_row, present, size = _counted(code)
    low, high = np.full(len(present), np.inf), np.full(len(present), -np.inf)
    np.minimum.at(low, of_row, rate)
    np.maximum.at(high, of_row, rate)
    example = np.empty(len(present), np.int64)
    example[of_row] = np.arange(len(rate))
    total = np.bincount(of_row, rate)
    return Steps(of_row, size.astype(float), total, low, high, present // width, example)


def collapse(rows: Rows, steps: Steps, most: int) -> Collapsed:
    """Gather rows into bins; each row is a bin of its own where there are few that differ, or hardly any two alike.

    Of very many rows that are not alike, a bin has those of similar rates, and the costs of the one in its middle.

    Args:
        rows: the rows.
        steps: of the rows.
        most: bins, about.
    """
    number = rows.number
    by_kind = np.bincount(steps.kind)
    bins = max(most // len(by_kind), LEAST_BINS)
    # few rows share a bin only where that changes nothing
    if (number <= 1.5 * most and not _exact(steps)) or np.minimum(by_kind, bins).sum() > number // 2:
        return _of_their_own(rows, steps)
    by_step = collapse_steps(steps, bins)
    of_row = by_step.of_row[steps.of_row]
    rank = np.empty(number, np.int64)
    small = of_row.astype(np.uint16) if len(by_step.size) < 2**16 else of_row
    rank[np.argsort(small, kind="stable")] = np.arange(number)
    return by_step._replace(of_row=of_row, rank=rank)


def collapse_steps(steps: Steps, bins: int) -> Collapsed:
    """Gather steps into bins, so many of a class; the result has the bin of every step in place of those of rows.

    Args:
        steps: of rows.
        bins: of a class, about.
    """
    bin_of = _gathered(steps, bins)
    size = np.bincount(bin_of, steps.size)
    example = np.empty(len(size), np.int64)
    example[bin_of] = steps.example
    rank = np.zeros(0, np.int64)
    return Collapsed(bin_of, rank, size, np.bincount(bin_of, steps.total) / size, example, True)


def _of_their_own(rows: Rows, steps: Steps) -> Collapsed:
    number, rate = rows.number, rates_of(rows)
    rank, alone = np.empty(number, np.int64), np.arange(number)
    if number <= _MOST_OWN:
        rank[np.argsort(steps.of_row, kind="stable")] = alone
        return Collapsed(alone, rank, np.ones(number), rate, alone, True)
    classes = _codes_of(rows)
    order = np.lexsort((rate, classes))
    rank[order] = alone
    # every row is a step of its own
    each = Steps(alone, np.ones(number), rate[order], rate[order], rate[order], classes[order], order)
    bin_of = _gathered(each, max(_MOST_OWN // (int(classes.max()) + 1), LEAST_BINS))
    size = np.bincount(bin_of)
    example = order[np.cumsum(size) - 1 - size // 2]
    mean = np.bincount(bin_of, rate[order]) / size
    return Collapsed(bin_of[rank], rank, size.astype(float), mean, example, False)


def _gathered(steps: Steps, bins: int) -> np.ndarray:
    """Bin of every step, (S,): half by rows, half by reads, so that neither many rare nor few busy rows share one."""
    kinds = int(steps.kind.max()) + 1
    first = np.searchsorted(steps.kind, np.arange(kinds + 1))

    def share(values: np.ndarray) -> np.ndarray:
        sums = np.append(0.0, np.cumsum(values))
        begin, whole = sums[first[:-1]][steps.kind], np.diff(sums[first])[steps.kind]
        # up to the middle of each step
        return (sums[:-1] + 0.5 * values - begin) / np.where(whole > 0, whole, 1.0)

    rows, reads = share(steps.size), share(steps.total)
    within = np.minimum((bins * 0.5 * (rows + reads)).astype(np.int64), bins - 1)
    return np.unique(steps.kind * bins + within, return_inverse=True)[1]


def ends_of(rows: Rows, steps: Steps) -> tuple[Rows, np.ndarray, np.ndarray] | None:
    """Rows at the ends of the steps, their rates, and how often each counts in the lower bound.

    None where rows are few and differ, or where charges of their own may differ within a class.
    """
    if len(rows.surcharge) or len(rows.reading) or 2 * len(steps.size) > rows.number:
        return None
    return ends_of_all(rows, steps) if rows.number >= _MANY or _exact(steps) else None


def _exact(steps: Steps) -> bool:
    """Whether the rows of every step have one rate."""
    return bool(np.all(steps.low == steps.high))


def ends_of_all(rows: Rows, steps: Steps) -> tuple[Rows, np.ndarray, np.ndarray]:
    """The same, however many rows there are; they have no charges of their own."""
    width = steps.high - steps.low
    part = np.clip((steps.total / steps.size - steps.low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    weight = np.concatenate([steps.size * (1 - part), steps.size * part])
    rate = np.concatenate([steps.low, steps.high])
    at = np.concatenate([steps.example, steps.example])
    return like(rows, at, rate), rate, weight


def like(rows: Rows, at: np.ndarray, rate: np.ndarray) -> Rows:
    """Rows like the examples ``at`` (N,), with reads ``rate`` (N,) in 1/s, of one chunk size and without charges."""
    return rows._replace(
        start=np.arange(len(at) + 1),
        grid=np.zeros(len(at), np.int64),
        read=rate,
        write=np.zeros(len(at)),
        hot=rows.hot[at],
        length=rows.length[at],
        chunks=rows.chunks[at],
        bytes=rows.bytes[at],
        allowed=rows.allowed[at] if len(rows.allowed) else rows.allowed,
    )


def classes_of(rows: Rows, rate: np.ndarray) -> np.ndarray:
    """Number of the class of every row, (R,)."""
    result = _codes_of(rows)
    if len(rows.allowed):
        result = _refined_by_bytes(result, np.packbits(rows.allowed, axis=1))
    if len(rows.surcharge):
        result = _refined_by_charges(result, rows.surcharge)
    if len(rows.reading):
        # the price of one read, which is what rows have in common whose clients are at one place
        result = _refined_by_charges(result, rows.reading / np.where(rate > 0, rate, 1.0)[:, None])
    return result


def _codes_of(rows: Rows) -> np.ndarray:
    """Class of every row by its code and size alone, (R,)."""
    result = np.zeros(rows.number, np.int64)
    for column in (rows.hot, rows.length, rows.chunks, rows.bytes):
        result = _refined(result, column)
    return result


def _refined(classes: np.ndarray, column: np.ndarray) -> np.ndarray:
    if column.min() == column.max():
        return classes
    if column.dtype.kind == "i" and column.max() - column.min() < _MANY:
        return _numbered(classes * int(column.max() - column.min() + 1) + (column - column.min()))
    which = np.unique(column, return_inverse=True)[1]
    return _numbered(classes * (which.max() + 1) + which)


def _refined_by_bytes(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    whole = np.ascontiguousarray(values).view(np.dtype((np.void, values.dtype.itemsize * values.shape[1])))
    which = np.unique(whole[:, 0], return_inverse=True)[1]
    return _numbered(classes * (which.max() + 1) + which)


def _refined_by_charges(classes: np.ndarray, charges: np.ndarray) -> np.ndarray:
    """By a weighted sum of the charges, to single precision: what is alike but for rounding shares a class."""
    weights = np.random.default_rng(0).uniform(1, 2, charges.shape[1])
    return _refined(classes, (charges @ weights).astype(np.float32))


def _counted(code: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes by 0, 1, ... in their order, those that there are, and how often each of them is there."""
    if not _is_dense(code):
        present, number, times = np.unique(code, return_inverse=True, return_counts=True)
        return number, present, times
    times = np.bincount(code)
    present = np.flatnonzero(times)
    number = np.empty(len(times), np.int64)
    number[present] = np.arange(len(present))
    return number[code], present, times[present]


def _is_dense(code: np.ndarray) -> bool:
    """Whether a table of all codes up to the largest is small beside the codes themselves."""
    return bool(code.max() < 4 * len(code) + _MANY)


def _numbered(code: np.ndarray) -> np.ndarray:
    """Codes by 0, 1, ... in their order."""
    if _is_dense(code):
        present = np.bincount(code) > 0
        return (np.cumsum(present) - 1)[code]
    return np.unique(code, return_inverse=True)[1]
