"""Whole choices for files as they come: systematic sampling from the marginals of their bins."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.waits import best_z, slopes, work_of
from ecjax.planning.streamed.relaxation import Lane, Relaxed, Sites
from ecjax.planning.streamed.tally import Counts, Piece, codes_of, steps_of

_GOLDEN = 0.6180339887498949
_PART = 1 << 14  # files that a thread places at a time


class Masks(NamedTuple):
    """Bit masks of nodes, (r, bytes): bit j % 8 of byte j // 8 is node j.

    Attributes:
        read: nodes that reads use.
        stored: nodes that keep a chunk, those among them.
    """

    read: np.ndarray
    stored: np.ndarray


class Totals(NamedTuple):
    """What whole choices come to.

    Attributes:
        loads: (m,) 1/s, reads of each node.
        chunks: (codes, m) chunks that each node keeps, by code of their files.
    """

    loads: np.ndarray
    chunks: np.ndarray


class Figures(NamedTuple):
    """A plan in numbers.

    Attributes:
        objective: s.
        latency: s, mean latency bound with one z for all files.
        z: s.
        cost: dollars per period.
        load: (m,) share of time that nodes are busy.
        node_cost: (m,) dollars per period.
        bytes_stored: (m,) B.
    """

    objective: float
    latency: float
    z: float
    cost: float
    load: np.ndarray
    node_cost: np.ndarray
    bytes_stored: np.ndarray


class Placing:
    """Places files piece by piece, in the order in which they were counted or in another.

    Args:
        counts: of all files.
        relaxed: of their steps.
        lane: what is planned for.
        sites: failure domains; None where they limit nothing.
        threads: at most.
    """

    def __init__(
        self, counts: Counts, relaxed: Relaxed, lane: Lane, sites: Sites | None, threads: int
    ) -> None:
        m = len(relaxed.order)
        self._counts, self._relaxed, self._lane, self._threads = counts, relaxed, lane, threads
        self._number = {code: number for number, code in enumerate(counts.codes)}
        self._key = counts.code * (counts.step.max() + 1) + counts.step
        self._next = relaxed.first_of_bin.copy()
        self._site = np.arange(m) if sites is None else np.unique(sites.site, return_inverse=True)[1]
        self._per_site = 1 if sites is None else sites.per_site
        self._read = np.array([code.read for code in counts.codes])
        self._extra = np.array([max(code.length - code.read, 0) for code in counts.codes])
        self.totals = Totals(np.zeros(m), np.zeros((len(counts.codes), m), np.int64))

    def place(self, pieces: Iterator[Piece]) -> Iterator[Masks]:
        """Masks of every piece; what they come to is added to ``totals``."""
        with ThreadPoolExecutor(self._threads) as pool:
            for piece in pieces:
                yield self._placed(piece, pool)

    def _placed(self, piece: Piece, pool: ThreadPoolExecutor) -> Masks:
        relaxed, m = self._relaxed, len(self._relaxed.order)
        which, codes = codes_of(piece)
        code = np.array([self._number[each] for each in codes])[which]
        key = code * (self._counts.step.max() + 1) + steps_of(piece.rate)
        bins = relaxed.bin_of_step[np.searchsorted(self._key, key)]
        rank = np.empty(len(bins), np.int64)
        _number(bins, self._next, rank)
        number, width = len(bins), -(-m // 8)
        masks = Masks(np.zeros((number, width), np.uint8), np.zeros((number, width), np.uint8))
        rate = self._lane.rate_scale * piece.rate

        def part(first: int) -> Totals:
            sums = Totals(np.zeros(m), np.zeros_like(self.totals.chunks))
            _place(
                first,
                min(first + _PART, number),
                bins,
                rank,
                rate,
                relaxed.code_of_bin,
                relaxed.sums,
                relaxed.order,
                relaxed.cold_order,
                self._read,
                self._extra,
                self._site,
                self._per_site,
                masks.read,
                masks.stored,
                sums.loads,
                sums.chunks,
            )
            return sums

        for sums in pool.map(part, range(0, number, _PART)):
            self.totals.loads[:] += sums.loads
            self.totals.chunks[:] += sums.chunks
        return masks

    def figures(self) -> Figures:
        """The plan in numbers, once all files are placed."""
        relaxed, rows = self._relaxed, self._relaxed.rows
        loads = np.ascontiguousarray(self.totals.loads[:, None])
        first = np.searchsorted(self._counts.code, np.arange(len(self._counts.codes)))
        chunks, size = self.totals.chunks, rows.bytes[first, None]
        bytes_stored = np.sum(chunks * size, axis=0)
        node_cost = np.sum(chunks * (rows.chunk_price + size * rows.byte_price), axis=0)
        service = relaxed.service
        z = best_z(service, loads)
        latency = slopes(service, loads, z).value + (0.0 if service.alone else z)
        cost = float(node_cost.sum())
        objective = latency + self._lane.theta / self._counts.files * cost
        load = work_of(service, loads)[:, 0]
        return Figures(float(objective), float(latency), float(z), cost, load, node_cost, bytes_stored)


@njit()
def _number(bins, following, rank):
    for i in range(len(bins)):
        rank[i] = following[bins[i]]
        following[bins[i]] += 1


@njit()
def _place(
    first,
    last,
    bins,
    rank,
    rate,
    code_of_bin,
    sums,
    order,
    cold_order,
    read,
    extra,
    site,
    per_site,
    read_mask,
    stored_mask,
    loads,
    chunks,
):
    """Write the masks of files first..last - 1, and add their reads and chunks to ``loads`` and ``chunks``.

    As in ``systematic.place``: the file of rank i reads from the nodes at which u, u + 1, ... fall among the summed
    marginals, u the fractional part of i times the golden ratio.
    """
    m = len(order)
    used = np.zeros(m, np.int64)
    chosen = np.zeros(m, np.bool_)
    for i in range(first, last):
        b = bins[i]
        c = code_of_bin[b]
        by = sums[b]
        u = rank[i] * _GOLDEN % 1.0
        k, left = read[c], extra[c]
        hot = 0
        chosen[:] = False
        used[:] = 0
        before = 0.0
        for position in range(m):
            here = by[position]
            j = order[position]
            if here > u + hot and here > before and used[site[j]] < per_site:
                chosen[j] = True
                used[site[j]] += 1
                read_mask[i, j >> 3] |= 1 << (j & 7)
                stored_mask[i, j >> 3] |= 1 << (j & 7)
                loads[j] += rate[i]
                chunks[c, j] += 1
                hot += 1
                if hot == k:
                    break
            before = here
        for position in range(m):
            if hot == k and left == 0:
                break
            j = cold_order[c, position]
            if chosen[j] or used[site[j]] >= per_site:
                continue
            chosen[j] = True
            used[site[j]] += 1
            stored_mask[i, j >> 3] |= 1 << (j & 7)
            chunks[c, j] += 1
            if hot < k:
                # rounding of the sums lost one at the end
                read_mask[i, j >> 3] |= 1 << (j & 7)
                loads[j] += rate[i]
                hot += 1
            else:
                left -= 1
