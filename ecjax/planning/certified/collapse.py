"""Placement rows that are priced alike gathered into some hundred, whatever their number.

With one chunk size what a row chooses depends on its class (k, code length, chunks, bytes, allowed nodes, surcharges,
price of a read) and on its rate. Rows of a class are cut into bins of similar rates; a bin counts as so many rows with
their mean rate. Prices found for bins are good prices for the rows; the lower bound is taken over the rows themselves.
"""

from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.data import Rows, rates_of

_LEAST_BINS = 6  # of a class


class Collapsed(NamedTuple):
    """Bins of rows.

    Attributes:
        of_row: (R,) bin of each row.
        rank: (R,) number of each row among all in the order of their classes and rates.
        size: (G,) rows in each bin.
        rate: (G,) 1/s, mean reads of one.
        example: (G,) a row of each bin, which has its class.
    """

    of_row: np.ndarray
    rank: np.ndarray
    size: np.ndarray
    rate: np.ndarray
    example: np.ndarray


def collapse(rows: Rows, most: int) -> Collapsed:
    """Gather rows into bins; each row is a bin of its own where there are few, or where hardly any two are alike.

    Args:
        rows: the rows.
        most: bins, about.
    """
    rate = rates_of(rows)
    number = rows.number
    alone = np.arange(number)
    classes = classes_of(rows, rate)
    order = np.lexsort((rate, classes))
    place = np.empty(number, np.int64)
    place[order] = alone
    itself = Collapsed(alone, place, np.ones(number), rate, alone)
    if number <= 1.5 * most:
        return itself
    kinds = int(classes.max()) + 1
    bins = max(most // kinds, _LEAST_BINS)
    if kinds * bins > number // 2:
        return itself
    by_class = classes[order]
    first = np.searchsorted(by_class, np.arange(kinds + 1))
    sorted_rate = rate[order]
    sums = np.append(0.0, np.cumsum(sorted_rate))
    # half by their number, half by their reads: neither many rare rows nor a few busy ones share one bin
    begin, size = first[by_class], np.diff(first)[by_class]
    total = (sums[first[1:]] - sums[first[:-1]])[by_class]
    share = (alone - begin) / size
    busy = np.where(total > 0, (sums[alone] - sums[begin]) / np.where(total > 0, total, 1.0), share)
    within = np.minimum((bins * 0.5 * (share + busy)).astype(np.int64), bins - 1)
    code = by_class * bins + within
    _, start, which = np.unique(code, return_index=True, return_inverse=True)
    of_row = np.empty(number, np.int64)
    of_row[order] = which
    count = np.bincount(of_row)
    mean = np.bincount(of_row, rate) / count
    return Collapsed(of_row, place, count.astype(float), mean, order[start])


def classes_of(rows: Rows, rate: np.ndarray) -> np.ndarray:
    """Number of the class of every row, (R,)."""
    result = np.zeros(rows.number, np.int64)
    for column in (rows.hot, rows.length, rows.chunks, rows.bytes):
        result = _refined(result, column)
    if len(rows.allowed):
        result = _refined_by_bytes(result, np.packbits(rows.allowed, axis=1))
    if len(rows.surcharge):
        result = _refined_by_bytes(result, rows.surcharge.astype(np.float32))
    if len(rows.reading):
        # the price of one read, which is what rows have in common whose clients are at one place
        by_read = rows.reading / np.where(rate > 0, rate, 1.0)[:, None]
        result = _refined_by_bytes(result, by_read.astype(np.float32))
    return result


def _refined(classes: np.ndarray, column: np.ndarray) -> np.ndarray:
    if column.min() == column.max():
        return classes
    which = np.unique(column, return_inverse=True)[1]
    return np.unique(classes * (which.max() + 1) + which, return_inverse=True)[1]


def _refined_by_bytes(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    whole = np.ascontiguousarray(values).view(np.dtype((np.void, values.dtype.itemsize * values.shape[1])))
    which = np.unique(whole[:, 0], return_inverse=True)[1]
    return np.unique(classes * (which.max() + 1) + which, return_inverse=True)[1]
