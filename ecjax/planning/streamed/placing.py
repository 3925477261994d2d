"""Whole choices for files as they come: systematic sampling from the marginals of their bins."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.systematic import GOLDEN
from ecjax.planning.certified.waits import work_of
from ecjax.planning.streamed import busiest
from ecjax.planning.streamed.relaxation import Lane, Relaxed, Sites
from ecjax.planning.streamed.tally import STEPS, Counts, Piece, codes_of, steps_of
from ecjax.programs import program
from ecjax.queueing.bounds import latency_bound, shared_z
from ecjax.queueing.mg1 import Delay, waiting

_PART = 1 << 14  # files that a thread places at a time, at least;
_MOST_PARTS = (
    32  # of a piece, however many threads there are: sums of other parts would differ in their last digits
)
_MOST_TABLE_BYTES = 1 << 28
_DEARER = (
    1e4  # times the price of an overload, where a plan has one: about what the dollars of any plan are worth
)
_SETS = 1 << 12  # sets of nodes whose latency is computed at a time
_BOUND = program(latency_bound)
_SHARED = program(shared_z)


class Masks(NamedTuple):
    """Bit masks of nodes, (r, bytes): bit j % 8 of byte j // 8 is node j.

    Attributes:
        read: nodes that reads use.
        stored: nodes that keep a chunk, those among them.
        code: (r,) number of the code of each file among those of the counts.
    """

    read: np.ndarray
    stored: np.ndarray
    code: np.ndarray


class Totals(NamedTuple):
    """What whole choices come to.

    Attributes:
        loads: (m,) 1/s, reads of each node.
        chunks: (codes, m) chunks that each node keeps, by code of their files.
        reads: (G, m + 1) 1/s, of the files of a bin that read from the same nodes; see ``_edges``. The busiest files
            are left out.
    """

    loads: np.ndarray
    chunks: np.ndarray
    reads: np.ndarray


class Figures(NamedTuple):
    """A plan in numbers.

    Attributes:
        objective: s.
        latency: s, mean latency bound with one z for each file.
        latency_shared_z: s, with one for all files.
        z: s, that one; minus infinity where all reads take one chunk.
        cost: dollars per period.
        load: (m,) share of time that nodes are busy.
        node_cost: (m,) dollars per period.
        bytes_stored: (m,) B.
    """

    objective: float
    latency: float
    latency_shared_z: float
    z: float
    cost: float
    load: np.ndarray
    node_cost: np.ndarray
    bytes_stored: np.ndarray


class _Law(NamedTuple):
    """What tells the nodes of a file from its bin and its position; as in ``Relaxed``, and by code of files."""

    code_of_bin: np.ndarray  # (G,)
    sums: np.ndarray  # (G, m)
    edges: np.ndarray  # (G, m)
    order: np.ndarray  # (m,)
    cold_order: np.ndarray  # (codes, m)
    read: np.ndarray  # (codes,)
    extra: np.ndarray  # (codes,)
    site: np.ndarray  # (m,)
    per_site: int


class _Table(NamedTuple):
    """The choices of every bin, one for each interval between its edges, and how often each was taken.

    Attributes:
        read: (G, m + 1, bytes) masks of the nodes that reads use.
        stored: (G, m + 1, bytes) masks of the nodes that keep a chunk.
        files: (G, m + 1) that were placed so.
        busy_reads: (G, m + 1) 1/s, of the busiest of them.
    """

    read: np.ndarray
    stored: np.ndarray
    files: np.ndarray
    busy_reads: np.ndarray


class _Busy(NamedTuple):
    """The busiest files of a piece: which they are (F,), their reads (F,) 1/s, and the masks of the piece."""

    which: np.ndarray
    rate: np.ndarray
    masks: Masks


class Placing:
    """Places files piece by piece, in the order in which they were counted or in another.

    Args:
        counts: of all files.
        relaxed: of their steps.
        lane: what is planned for.
        sites: failure domains; None where they limit nothing.
        threads: at most.

    Attributes:
        totals: of the files that are placed, once all are.
    """

    def __init__(
        self, counts: Counts, relaxed: Relaxed, lane: Lane, sites: Sites | None, threads: int
    ) -> None:
        m = len(relaxed.order)
        self._counts, self._relaxed, self._lane, self._threads = counts, relaxed, lane, threads
        self._number = {code: number for number, code in enumerate(counts.codes)}
        self._bin = np.full((len(counts.codes), STEPS), -1, np.int32)
        self._bin[counts.code, counts.step] = relaxed.bin_of_step
        self._next = relaxed.first_of_bin.copy()
        self._law = _Law(
            relaxed.code_of_bin,
            relaxed.sums,
            _edges(relaxed.sums),
            relaxed.order,
            relaxed.cold_order,
            np.array([code.read for code in counts.codes]),
            np.array([code.length - code.read for code in counts.codes]),
            np.arange(m) if sites is None else np.unique(sites.site, return_inverse=True)[1],
            1 if sites is None else sites.per_site,
        )
        self._busiest = busiest.Selection(counts, m)
        self._busy: list[_Busy] = []
        self._table = self._tabulated()
        self.totals = self._nothing()

    def _tabulated(self) -> _Table | None:
        """The choices of all bins, where files are so many that looking one up takes less than making it."""
        bins, m = self._relaxed.sums.shape
        width = -(-m // 8)
        if bins * (m + 1) > self._counts.files or 2 * bins * (m + 1) * width > _MOST_TABLE_BYTES:
            return None
        which = np.stack(np.divmod(np.arange(bins * (m + 1)), m + 1), axis=1)
        read, stored = (np.zeros((len(which), width), np.uint8) for _ in range(2))
        _representatives(self._law, which, read, stored)
        shape = (bins, m + 1)
        return _Table(
            read.reshape(*shape, width),
            stored.reshape(*shape, width),
            np.zeros(shape, np.int64),
            np.zeros(shape),
        )

    def _nothing(self) -> Totals:
        bins, m = self._relaxed.sums.shape
        return Totals(np.zeros(m), np.zeros((len(self._counts.codes), m), np.int64), np.zeros((bins, m + 1)))

    def place(self, pieces: Iterator[Piece]) -> Iterator[Masks]:
        """Masks of every piece; what they come to is added to ``totals``."""
        with ThreadPoolExecutor(self._threads) as pool:
            for piece in pieces:
                yield self._placed(piece, pool)
        if self._table is not None:
            self._add_tabulated(self._table)

    def _add_tabulated(self, table: _Table) -> None:
        """Add to ``totals`` what is counted by choices."""
        m = len(self._relaxed.order)
        reads = self.totals.reads + table.busy_reads
        for number, code in enumerate(self._relaxed.code_of_bin):
            read, stored = (
                np.unpackbits(masks[number], axis=1, bitorder="little")[:, :m]
                for masks in (table.read, table.stored)
            )
            self.totals.loads[:] += reads[number] @ read
            self.totals.chunks[code] += table.files[number] @ stored.astype(np.int64)

    def _placed(self, piece: Piece, pool: ThreadPoolExecutor) -> Masks:
        m = len(self._relaxed.order)
        which, codes = codes_of(piece)
        code = np.array([self._number[each] for each in codes])[which]
        step = steps_of(piece.rate)
        bins = self._bin[code, step]
        position = np.empty(len(bins))
        _number(bins, self._next, position)
        number, width = len(bins), -(-m // 8)
        masks = Masks(
            np.zeros((number, width), np.uint8),
            np.zeros((number, width), np.uint8),
            code.astype(np.min_scalar_type(len(self._counts.codes))),
        )
        rate = self._lane.rate_scale * piece.rate
        busy = self._busiest.of(step)

        size = max(_PART, -(-number // _MOST_PARTS))
        table = self._table

        def part(first: int) -> tuple[Totals, _Table | None]:
            sums, last = self._nothing(), min(first + size, number)
            if table is None:
                _place(first, last, bins, position, rate, busy, self._law, masks, sums)
                return sums, None
            counted = table._replace(
                files=np.zeros_like(table.files), busy_reads=np.zeros_like(table.busy_reads)
            )
            _look_up(first, last, bins, position, rate, busy, self._law.edges, counted, masks, sums.reads)
            return sums, counted

        for sums, counted in pool.map(part, range(0, number, size)):
            for total, more in zip(self.totals, sums, strict=True):
                total += more
            if table is not None and counted is not None:
                table.files[:] += counted.files
                table.busy_reads[:] += counted.busy_reads
        which = np.flatnonzero(busy)
        self._busy.append(_Busy(which, rate[which], masks))
        return masks

    def place_again(self, target: float) -> None:
        """Place the busiest files once more, where that is needed; their masks change, and ``totals``, if it helps.

        Args:
            target: s; an objective that is good enough.
        """
        before = self._objective()
        if before <= target:
            return
        relaxed, first = self._relaxed, self._counts.first
        service, files = relaxed.service, self._busy_files()
        if not np.isfinite(before):
            # the price of an overload was less than what it saves
            service = service._replace(penalty=_DEARER * service.penalty)
        sums = self.totals.loads, self.totals.chunks
        kinds = busiest.place_again(files, service, relaxed.rows, first, sums, target)
        again = files._replace(kinds=kinds)
        self._exchange(files, again)
        # near saturation they trade at prices of an overload that are finite
        if not self._objective() < before:
            self._exchange(again, files)
            return
        done = 0
        for which, _, masks in self._busy:
            here = kinds[done : done + len(which)]
            done += len(which)
            masks.read[which] = np.packbits(here == HOT, axis=1, bitorder="little")
            masks.stored[which] = np.packbits(here != NONE, axis=1, bitorder="little")

    def _exchange(self, files: busiest.Files, others: busiest.Files) -> None:
        """Take others for some files in ``totals``."""
        for each, sign in ((files, -1), (others, 1)):
            loads, chunks = busiest.sums_of(each)
            self.totals.loads[:] += sign * loads
            self.totals.chunks[: len(chunks)] += sign * chunks

    def _busy_files(self) -> busiest.Files:
        m = len(self._relaxed.order)
        code = np.concatenate([masks.code[which] for which, _, masks in self._busy]).astype(np.int64)
        rate = np.concatenate([rate for _, rate, _ in self._busy])
        read, stored = (
            np.unpackbits(np.concatenate(parts), axis=1, bitorder="little")[:, :m].astype(bool)
            for parts in (
                [masks.read[which] for which, _, masks in self._busy],
                [masks.stored[which] for which, _, masks in self._busy],
            )
        )
        kinds = np.where(read, HOT, np.where(stored, COLD, NONE)).astype(np.int8)
        return busiest.Files(code, rate, kinds)

    def figures(self) -> Figures:
        """The plan in numbers, once all files are placed."""
        node_cost, shared, z = self._node_cost(), *self._shared()
        cost = float(node_cost.sum())
        work = self._work()
        latency = self._latency(work) if work[:, 0].max() < 1 else np.inf
        size = self._relaxed.rows.bytes[self._counts.first, None]
        bytes_stored = np.sum(self.totals.chunks * size, axis=0)
        return Figures(self._objective(), latency, shared, z, cost, work[:, 0], node_cost, bytes_stored)

    def _objective(self) -> float:
        return self._shared()[0] + self._lane.theta / self._counts.files * float(self._node_cost().sum())

    def _shared(self) -> tuple[float, float]:
        """The latency with one z for all files, and that z, s; infinite where a node is overloaded."""
        service, work = self._relaxed.service, self._work()
        if not work[:, 0].max() < 1:
            return np.inf, np.inf
        delay, read = self._delay(work), self.totals.loads / service.rate
        if service.alone:
            # sums of many rates are 1 but for rounding, which the other form takes for more reads
            return float(read @ np.asarray(delay.mean)), -np.inf
        value, z = _SHARED(jnp.asarray(read), delay.mean, delay.variance)
        return float(value), float(z)

    def _work(self) -> np.ndarray:
        return work_of(self._relaxed.service, self.totals.loads[:, None])

    def _delay(self, work: np.ndarray) -> Delay:
        """Time from request to the last byte of a chunk at every node."""
        mean, variance = self._relaxed.service.mean[:, 0], self._relaxed.service.variance[:, 0]
        return waiting(*jnp.asarray(work.T)).plus(mean, variance)

    def _node_cost(self) -> np.ndarray:
        rows = self._relaxed.rows
        size = rows.bytes[self._counts.first, None]
        return np.sum(self.totals.chunks * (rows.chunk_price + size * rows.byte_price), axis=0)

    def _latency(self, work: np.ndarray) -> float:
        """Mean latency bound with a z for each file, s: one for each set of nodes that files of a bin read from."""
        delay, m, total = self._delay(work), len(self._relaxed.order), 0.0
        for masks, reads in self._sets():
            if len(masks) < _SETS:
                masks = np.concatenate(
                    [masks, np.broadcast_to(masks[:1], (_SETS - len(masks), masks.shape[1]))]
                )
            read = np.unpackbits(masks, axis=1, bitorder="little")[:, :m].astype(float)
            total += reads @ np.asarray(_BOUND(jnp.asarray(read), delay))[: len(reads)]
        return float(total / self._relaxed.service.rate)

    def _sets(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Masks of sets of nodes, at most ``_SETS`` of them, with the reads of the files that read from each, 1/s."""
        which = np.argwhere(self.totals.reads > 0)
        reads = self.totals.reads[which[:, 0], which[:, 1]]
        width = -(-len(self._relaxed.order) // 8)
        for first in range(0, len(which), _SETS):
            some = which[first : first + _SETS]
            masks, stored = (np.zeros((len(some), width), np.uint8) for _ in range(2))
            _representatives(self._law, some, masks, stored)
            yield masks, reads[first : first + _SETS]
        read = np.concatenate([masks.read[which] for which, _, masks in self._busy])
        distinct, number = np.unique(read, axis=0, return_inverse=True)
        reads = np.bincount(number.ravel(), np.concatenate([rate for _, rate, _ in self._busy]))
        for first in range(0, len(distinct), _SETS):
            yield distinct[first : first + _SETS], reads[first : first + _SETS]


def _edges(sums: np.ndarray) -> np.ndarray:
    """Positions at which the choice of a bin changes, (G, m) rising: the fractional parts of its summed marginals."""
    return np.sort(sums % 1.0, axis=1)


@njit()
def _number(bins, following, position):
    for i in range(len(bins)):
        position[i] = following[bins[i]] * GOLDEN % 1.0
        following[bins[i]] += 1


@njit()
def _place(first, last, bins, position, rate, busy, law, masks, totals):
    """Write the masks of files first..last - 1, and add what they come to to ``totals``.

    As in ``systematic.place``: a file reads from the nodes at which u, u + 1, ... fall among the summed marginals, u
    its position: the fractional part of its rank times the golden ratio.
    """
    m = len(law.order)
    used = np.zeros(m, np.int64)
    chosen = np.zeros(m, np.bool_)
    for i in range(first, last):
        b, u = bins[i], position[i]
        c = law.code_of_bin[b]
        _choose(b, c, u, law, chosen, used, masks.read[i], masks.stored[i])
        for j in range(m):
            if chosen[j]:
                totals.chunks[c, j] += 1
                if masks.read[i, j >> 3] >> (j & 7) & 1:
                    totals.loads[j] += rate[i]
        if not busy[i]:
            totals.reads[b, np.searchsorted(law.edges[b], u, side="right")] += rate[i]


@njit()
def _look_up(first, last, bins, position, rate, busy, edges, table, masks, reads):
    """Write the masks of files first..last - 1 as ``_place`` does, from the table, and count them there."""
    m = edges.shape[1]
    width = masks.read.shape[1]
    for i in range(first, last):
        b, u = bins[i], position[i]
        low, high = 0, m
        while low < high:
            middle = (low + high) >> 1
            if edges[b, middle] <= u:
                low = middle + 1
            else:
                high = middle
        for byte in range(width):
            masks.read[i, byte] = table.read[b, low, byte]
            masks.stored[i, byte] = table.stored[b, low, byte]
        table.files[b, low] += 1
        if busy[i]:
            table.busy_reads[b, low] += rate[i]
        else:
            reads[b, low] += rate[i]


@njit()
def _choose(b, c, u, law, chosen, used, read_mask, stored_mask):
    """The nodes of a file of bin b and code c at position u."""
    m = len(law.order)
    by = law.sums[b]
    k, left = law.read[c], law.extra[c]
    hot = 0
    chosen[:] = False
    used[:] = 0
    before = 0.0
    for place in range(m):
        here = by[place]
        j = law.order[place]
        if here > u + hot and here > before and used[law.site[j]] < law.per_site:
            chosen[j] = True
            used[law.site[j]] += 1
            read_mask[j >> 3] |= 1 << (j & 7)
            stored_mask[j >> 3] |= 1 << (j & 7)
            hot += 1
            if hot == k:
                break
        before = here
    for place in range(m):
        if hot == k and left == 0:
            break
        j = law.cold_order[c, place]
        if chosen[j] or used[law.site[j]] >= law.per_site:
            continue
        chosen[j] = True
        used[law.site[j]] += 1
        stored_mask[j >> 3] |= 1 << (j & 7)
        if hot < k:
            # rounding of the sums lost one at the end
            read_mask[j >> 3] |= 1 << (j & 7)
            hot += 1
        else:
            left -= 1


@njit()
def _representatives(law, which, read_masks, stored_masks):
    """Masks of one file of each of the sets ``which`` (n, 2) of a bin and an interval between its edges."""
    m = len(law.order)
    used, chosen = np.zeros(m, np.int64), np.zeros(m, np.bool_)
    for i in range(len(which)):
        b, interval = which[i]
        low = law.edges[b, interval - 1] if interval else 0.0
        high = law.edges[b, interval] if interval < m else 1.0
        middle = 0.5 * (low + high)
        _choose(b, law.code_of_bin[b], middle, law, chosen, used, read_masks[i], stored_masks[i])
