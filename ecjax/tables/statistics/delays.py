"""Delays of chunks, gathered in cells: one cell per quantity, node, operation and size class.

A cell keeps moments to order six and a histogram with bins 2.2 % wide, each bin with its count, sum and sum of squares.
Size classes are 4.4 % wide; a class whose chunks all have one size has exactly that size. Memory follows the number of
cells and of the bins they use, not the number of rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.bins import BINS, DELAY_BINS_PER_OCTAVE, SIZE_BINS_PER_OCTAVE, log_bin
from ecjax.tables.statistics.index import IntegerIndex, grown
from ecjax.tables.statistics.moments import WIDTH, merge_rows, sample_rows

SERVICE, SOJOURN = 0, 1
QUANTITIES = ("service", "sojourn")


@dataclass(frozen=True)
class Cells:
    """The cells of a trace, sorted by quantity, node, operation and size.

    Attributes:
        quantity: 0 service, 1 sojourn, (cells,).
        node: node number, (cells,).
        write: whether writes, else reads, (cells,).
        bytes: mean size of the chunks (B), (cells,).
        moments: count, mean (s) and central sums, (cells, 7), see ``moments``.
        bin_cell: cell of each used histogram bin, ascending, (bins,).
        bin: its place, ascending within a cell, see ``bins.bin_edges``, (bins,).
        bin_sums: its count, sum (s) and sum of squares (s^2), (bins, 3).
    """

    quantity: np.ndarray
    node: np.ndarray
    write: np.ndarray
    bytes: np.ndarray
    moments: np.ndarray
    bin_cell: np.ndarray
    bin: np.ndarray
    bin_sums: np.ndarray

    def choose(self, mask: np.ndarray) -> "Cells":
        """The cells for which ``mask`` (cells,) is true."""
        new = np.cumsum(mask) - 1
        bin_mask = mask[self.bin_cell]
        return Cells(
            self.quantity[mask],
            self.node[mask],
            self.write[mask],
            self.bytes[mask],
            self.moments[mask],
            new[self.bin_cell[bin_mask]],
            self.bin[bin_mask],
            self.bin_sums[bin_mask],
        )


@njit()
def _cell_keys(quantity, nodes, writes, sizes, delays, keys):
    """Key of each row's cell; returns how many rows have a delay (NaN: none), which come first in ``keys[1]``."""
    count = 0
    for i in range(nodes.shape[0]):
        if not np.isnan(delays[i]):
            code = (quantity * 2 + (1 if writes[i] else 0)) * BINS + log_bin(sizes[i], SIZE_BINS_PER_OCTAVE)
            keys[0, count] = nodes[i] * (4 * BINS) + code
            keys[1, count] = i
            count += 1
    return count


@njit()
def _bin_keys(cells, delays, keys):
    for i in range(cells.shape[0]):
        keys[i] = cells[i] * BINS + log_bin(delays[i], DELAY_BINS_PER_OCTAVE)


@njit()
def _add_bins(places, delays, sums):
    for i in range(places.shape[0]):
        row = sums[places[i]]
        row[0] += 1.0
        _add_exactly(row, 1, delays[i])
        _add_exactly(row, 2, delays[i] * delays[i])


@njit(inline="always")
def _add_exactly(row, place, value):
    """Add to a sum whose rounding errors are kept two places further on (Knuth's two-sum)."""
    total = row[place] + value
    part = total - row[place]
    row[place + 2] += (row[place] - (total - part)) + (value - part)
    row[place] = total


@njit()
def _merge_bins(places, other, sums):
    for i in range(places.shape[0]):
        row, new = sums[places[i]], other[i]
        row[0] += new[0]
        for place in (1, 2):
            _add_exactly(row, place, new[place])
            row[place + 2] += new[place + 2]


@njit()
def _add_sizes(places, sizes, totals):
    """Smallest, largest and sum of the sizes in each cell; a new cell has largest 0 and smallest 0."""
    for i in range(places.shape[0]):
        row = totals[places[i]]
        row[0] = min(row[0], sizes[i]) if row[3] > 0 else sizes[i]
        row[1] = max(row[1], sizes[i])
        row[2] += sizes[i]
        row[3] += 1.0


class DelayCells:
    """Accumulates delays."""

    def __init__(self) -> None:
        self._cells, self._bins = IntegerIndex(), IntegerIndex()
        self._moments = np.zeros((256, WIDTH))
        self._sizes = np.zeros((256, 4))
        # the fit of a law magnifies roundings, which depend on the order of the rows: sums come with their errors
        self._sums = np.zeros((4096, 5))

    def add(
        self, quantity: int, nodes: np.ndarray, writes: np.ndarray, sizes: np.ndarray, delays: np.ndarray
    ) -> None:
        """Add rows: node number, whether a write, bytes, delay in s (NaN: none), each (n,)."""
        keys = np.empty((2, nodes.shape[0]), np.int64)
        rows_timed = _cell_keys(quantity, nodes, writes, sizes, delays, keys)
        rows = keys[1, :rows_timed]
        delays, sizes = delays[rows], sizes[rows]
        cells = self._cells.number(keys[0, :rows_timed])
        count = self._cells.count
        self._moments, self._sizes = grown(self._moments, count), grown(self._sizes, count)
        touched, places = np.unique(cells, return_inverse=True)
        merge_rows(self._moments, sample_rows(delays, places, touched.shape[0]), touched)
        _add_sizes(cells, sizes, self._sizes)
        keys = np.empty(rows_timed, np.int64)
        _bin_keys(cells, delays, keys)
        bins = self._bins.number(keys)
        self._sums = grown(self._sums, self._bins.count)
        _add_bins(bins, delays, self._sums)

    def absorb(self, other: "DelayCells", nodes: np.ndarray) -> None:
        """Add what another one has gathered.

        Args:
            other: the other one.
            nodes: the number here of each of its nodes, (nodes of the other,).
        """
        keys = other._cells.values
        cells = self._cells.number(nodes[keys // (4 * BINS)] * (4 * BINS) + keys % (4 * BINS))
        count, more = self._cells.count, len(keys)
        self._moments, self._sizes = grown(self._moments, count), grown(self._sizes, count)
        merge_rows(self._moments, other._moments[:more], cells)
        fresh = self._sizes[cells, 3] == 0
        old, new = self._sizes[cells], other._sizes[:more]
        old[:, 0] = np.where(fresh, new[:, 0], np.minimum(old[:, 0], new[:, 0]))
        old[:, 1] = np.maximum(old[:, 1], new[:, 1])
        old[:, 2:] += new[:, 2:]
        self._sizes[cells] = old
        keys = other._bins.values
        bins = self._bins.number(cells[keys // BINS] * BINS + keys % BINS)
        self._sums = grown(self._sums, self._bins.count)
        _merge_bins(bins, other._sums, self._sums)

    def __getstate__(self) -> dict[str, Any]:
        cells, bins = self._cells.count, self._bins.count
        used = {"_moments": self._moments[:cells], "_sizes": self._sizes[:cells], "_sums": self._sums[:bins]}
        return self.__dict__ | used

    def cells(self) -> Cells:
        """What was gathered."""
        count = self._cells.count
        keys = self._cells.values
        node, code = keys // (4 * BINS), keys % (4 * BINS)
        order = np.lexsort((code % BINS, code // BINS % 2, node, code // (2 * BINS)))
        smallest, largest, total, number = self._sizes[:count].T
        # The mean of equal sizes must be that size exactly.
        sizes = np.where(smallest == largest, largest, total / np.maximum(number, 1))
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        bins = self._bins.values
        bin_cell = place[bins // BINS]
        bin_order = np.lexsort((bins % BINS, bin_cell))
        sums = self._sums[: self._bins.count]
        sums = np.column_stack([sums[:, 0], sums[:, 1:3] + sums[:, 3:]])
        code = code[order]
        return Cells(
            code // (2 * BINS),
            node[order],
            code // BINS % 2 == 1,
            sizes[order],
            self._moments[order],
            bin_cell[bin_order],
            bins[bin_order] % BINS,
            sums[bin_order],
        )
