"""What is counted of the rows of a trace, or of a part of it that others can follow."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.background import of_classes
from ecjax.tables.importers.checking import out_of_order, place_of
from ecjax.tables.importers.trace import OBJECT_BYTES, Piece, Trace
from ecjax.tables.statistics.arrivals import ArrivalProcess
from ecjax.tables.statistics.channels import (
    MOST,
    Channels,
    ChannelServices,
    FinishedServices,
    StartedServices,
)
from ecjax.tables.statistics.correlation import LATE, Correlation, RequestSample, chunk_groups
from ecjax.tables.statistics.delays import SERVICE, SOJOURN, Cells, DelayCells
from ecjax.tables.statistics.files import FileTotals
from ecjax.tables.statistics.index import IdIndex, hash_strings, string_buffers
from ecjax.tables.statistics.moments import pooled_rows
from ecjax.tables.statistics.requests import RequestGrouper, Requests
from ecjax.tables.statistics.service import ServiceInference
from ecjax.tables.statistics.timing import Timing, TrafficTimes


@dataclass(frozen=True)
class TraceStatistics:
    """What one pass over a trace gathered.

    Attributes:
        rows: rows read.
        requests: requests, each of one or more rows.
        reads, writes: requests of each kind.
        bytes: bytes asked for.
        arrivals: the arrival process of the requests.
        file_ids: distinct files in order of appearance, (files,).
        files: totals of each file, (files, 8), see ``files.FileTotals``.
        chunks_read: chunks that most reads of each file took, 0 where unknown, (files,); None without chunk rows.
        node_ids: distinct nodes in order of appearance, (nodes,); None where the trace has none.
        node_accesses: reads and writes of chunks at each node, (nodes, 2).
        cells: delays in cells; node numbers are those of ``node_ids``, or 0 where there are none.
        service_reason: why there are no service times; None where there are.
        service_inferred: whether service times were inferred from finish times.
        channels: how many accesses each node serves at once, as far as the log tells.
        background: service times of the accesses that are no users' requests and came between the first and the last
            of these, rows of ``moments``, (nodes, 7); such accesses are in nothing else but ``channels`` and what is
            inferred from finishes.
        background_classes: those of the classes of such accesses that the log has.
        correlation: of the chunk delays of one request (service times, else sojourn times).
        returned: requests whose rows were seen not to follow each other.
        times: reads and writes, and reads by class, by tick of the clock; and where the log is silent.
    """

    rows: int
    requests: int
    reads: int
    writes: int
    bytes: float
    arrivals: ArrivalProcess
    file_ids: pa.Array
    files: np.ndarray
    chunks_read: np.ndarray | None
    node_ids: pa.Array | None
    node_accesses: np.ndarray
    cells: Cells
    service_reason: str | None
    service_inferred: bool
    channels: Channels
    background: np.ndarray
    background_classes: frozenset[str]
    correlation: Correlation
    returned: int
    times: TrafficTimes


class _Rows(NamedTuple):
    """A record batch as arrays, each (n,), with the rows' numbers in the log; nodes, starts, finishes may be None."""

    numbers: np.ndarray
    files: np.ndarray
    arrivals: np.ndarray
    writes: np.ndarray
    sizes: np.ndarray
    nodes: np.ndarray | None
    starts: np.ndarray | None
    finishes: np.ndarray | None


class _Late(NamedTuple):
    """Accesses whose service time is not known yet, each field (n,): node, write or read, bytes."""

    nodes: np.ndarray
    writes: np.ndarray
    sizes: np.ndarray


class Scanner:
    """Counts the rows of a trace, or of a piece of it.

    A piece can be counted anywhere, and be pickled; ``absorb`` adds pieces to the rows before them. What the rows
    before must tell is left open until then: whether the first request began there, and what the first access of each
    node waited for. Memory follows the number of distinct files, not of rows.

    Args:
        rows_of: trace or piece whose rows are to be added.
        seed: of the spreading of ties and of the sample of requests.
        channels: of the nodes, in order of appearance, if services are to be inferred for these; not of a piece.
        background: service classes of accesses that are no users' requests; not of a piece.
    """

    def __init__(
        self,
        rows_of: Trace | Piece,
        seed: int,
        channels: Channels | None = None,
        background: frozenset[str] = frozenset(),
    ) -> None:
        self._name, self._names = rows_of.name, rows_of.schema.names
        first_row, first_s = 0, None
        if isinstance(rows_of, Piece):
            first_row, first_s = rows_of.first_row, rows_of.first_arrival_s
        continues = first_row > 0
        self._has_nodes, self._grouped = "node_id" in self._names, "request_id" in self._names
        self._file_index = IdIndex(rows_of.schema.field("file_id").type)
        self._node_index = IdIndex(rows_of.schema.field("node_id").type) if self._has_nodes else None
        self._files, self._grouper = FileTotals(), RequestGrouper(continues)
        self._arrivals = ArrivalProcess(rows_of.clock_resolution_s, seed, first_s, continues)
        self._timing = Timing(rows_of, continues and self._grouped)
        self._cells, self._inference = DelayCells(), ServiceInference(first_row, continues)
        self._started = StartedServices(rows_of.clock_resolution_s, continues)
        self._finished = FinishedServices(continues)
        self._channels = channels
        self._services = None if channels is None else ChannelServices(channels.servers)
        self._background, self._background_cells = background, DelayCells()
        self._met_classes: frozenset[str] = frozenset()  # those of the background
        # of the background since the last request of users: counts once another one comes
        self._since, self._begun = DelayCells(), False
        self._late: list[_Late] = []
        self._samples = {
            quantity: RequestSample(seed, first_row, continues) for quantity in (SERVICE, SOJOURN)
        }
        self._node_accesses = np.zeros((0, 2), np.int64)
        self._kinds = np.zeros(2, np.int64)
        self._bytes = 0.0
        self._first: pa.RecordBatch | None = None  # the first row
        self._last_arrival = -np.inf
        self._first_row = first_row
        self.rows = 0
        self.mistake: UserError | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows.

        Raises:
            UserError: a request is of several files or operations.
        """
        if self._first is None:
            # a copy, since a slice would be pickled with all that it is a part of
            self._first = batch.take(pa.array([0]))
        rows = self._arrays(batch)
        delays = {} if rows.finishes is None else self._delays(rows)
        self.rows += batch.num_rows
        if self._background:
            batch, rows, delays = self._without_background(batch, rows, delays)
            if not batch.num_rows:
                return
        rows = rows._replace(files=self._file_index.number(batch.column("file_id")))
        begins = None
        if self._grouped:
            begins = self._add_grouped(batch, rows)
        else:
            ones = np.ones(batch.num_rows, np.int64)
            self._add_requests(Requests(rows.files, rows.arrivals, rows.writes, rows.sizes, ones))
        if not self._has_nodes:
            chunks = np.ones(batch.num_rows, np.int64)
            self._files.add(
                rows.files, rows.arrivals, rows.writes, rows.sizes, chunks, self._file_index.count
            )
            if OBJECT_BYTES in batch.schema.names:
                self._files.add_stored(rows.files, batch.column(OBJECT_BYTES).to_numpy())
        if rows.nodes is not None and self._node_index is not None:
            nodes = self._node_index.count
            counted = np.bincount(rows.nodes * 2 + rows.writes, minlength=2 * nodes).reshape(nodes, 2)
            counted[: self._node_accesses.shape[0]] += self._node_accesses
            self._node_accesses = counted
        if rows.finishes is not None:
            if begins is None or self._has_nodes:
                self._add_delays(rows, delays, begins)
            else:
                accesses = _whole_accesses(rows, begins)
                self._add_delays(accesses, self._delays(accesses), begins)
        self._timing.add(batch, rows.arrivals, rows.writes, begins)
        self._bytes += float(rows.sizes.sum())
        self._last_arrival = float(rows.arrivals[-1])

    def absorb(self, other: "Scanner") -> None:
        """Add the rows that follow those of this one, which begin with the trace's first.

        Args:
            other: what was counted of them; not to be used any more.

        Raises:
            UserError: the first mistake in a row there, or between rows here and there.
        """
        nodes = np.zeros(1, np.int64)
        files = self._file_index.absorb(other._file_index)
        if self._node_index is not None and other._node_index is not None:
            nodes = self._node_index.absorb(other._node_index)
        self._hold_against(other, files)
        if other.mistake is not None:
            raise other.mistake
        continued = self._grouper.continued_by(other._grouper)
        if self._grouped:
            self._add_requests(self._grouper.absorb(other._grouper, files))
        self._files.absorb(other._files, files, self._file_index.count)
        self._arrivals.absorb(other._arrivals)
        self._timing.absorb(other._timing, continued)
        self._kinds += other._kinds
        self._cells.absorb(other._cells, nodes)
        late = self._infer_late(other, nodes)
        if self._node_index is not None:
            self._started.absorb(other._started, nodes, self._node_index.count)
            self._finished.absorb(other._finished, nodes, self._node_index.count)
        for quantity, sample in self._samples.items():
            sample.absorb(other._samples[quantity], continued, nodes, late)
        if self._node_index is not None:
            accesses = self._accesses()
            accesses[nodes] += other._node_accesses
            self._node_accesses = accesses
        self._bytes += other._bytes
        self._last_arrival = other._last_arrival
        self.rows += other.rows

    def _hold_against(self, other: "Scanner", files: np.ndarray) -> None:
        """Refuse a first row there that cannot follow the last one here."""
        if other._first is None:
            return
        place = place_of(other._first, self._name, other._first_row)
        arrival = other._first.column("arrival_s").to_numpy()[0]
        if arrival < self._last_arrival:
            raise out_of_order(arrival, np.float64(self._last_arrival), place, 0)
        if self._grouped and self._grouper.mixed_with(other._grouper, files):
            raise self._mixed(other._first_row, other._first.column("request_id")[0].as_py())

    def _mixed(self, row: int, request: object) -> UserError:
        return UserError(
            f"requests table ({self._name}), row {row} (request_id {request!r}): found another file or operation than "
            "in the request's first row; allowed: one file and one operation per request"
        )

    def _infer_late(self, other: "Scanner", nodes: np.ndarray) -> np.ndarray:
        """Add the service times that waited there for what is here; returns them by node there."""
        if self._node_index is None:
            return np.full(len(nodes), np.nan)
        service = self._inference.absorb(other._inference, nodes, self._node_index.count)
        for late in other._late:
            self._cells.add(SERVICE, nodes[late.nodes], late.writes, late.sizes, service[late.nodes])
        return service

    def _arrays(self, batch: pa.RecordBatch) -> _Rows:
        def numbers(name: str) -> np.ndarray | None:
            return batch.column(name).to_numpy(zero_copy_only=False) if name in batch.schema.names else None

        operations = batch.column("op")
        writes = np.array([word == "write" for word in operations.dictionary.to_pylist()], bool)
        arrivals, sizes = batch.column("arrival_s").to_numpy(), batch.column("bytes").to_numpy()
        return _Rows(
            self._first_row + self.rows + np.arange(batch.num_rows),
            np.zeros(batch.num_rows, np.int64),  # numbered once it is known which rows count
            arrivals,
            writes[operations.indices.to_numpy()],
            sizes,
            None if self._node_index is None else self._node_index.number(batch.column("node_id")),
            numbers("start_s"),
            numbers("finish_s"),
        )

    def _add_grouped(self, batch: pa.RecordBatch, rows: _Rows) -> np.ndarray:
        ids = batch.column("request_id")
        if pa.types.is_integer(ids.type):
            keys = ids.to_numpy()
        else:
            # Only neighbours are compared, by 64-bit hashes.
            keys = np.empty(len(ids), np.int64)
            hash_strings(*string_buffers(ids), keys)
        requests, begins, mixed = self._grouper.add(keys, rows.files, rows.arrivals, rows.writes, rows.sizes)
        if mixed is not None and self._has_nodes:
            raise self._mixed(int(rows.numbers[mixed]), ids[mixed].as_py())
        self._add_requests(requests)
        return begins

    def _accesses(self) -> np.ndarray:
        """Reads and writes of chunks at all nodes met so far, (nodes, 2): the last of them may have had neither."""
        accesses = np.zeros((0 if self._node_index is None else self._node_index.count, 2), np.int64)
        accesses[: len(self._node_accesses)] = self._node_accesses
        return accesses

    def _add_requests(self, requests: Requests) -> None:
        self._arrivals.add(requests.arrival, requests.write, requests.bytes)
        writes = int(np.count_nonzero(requests.write))
        self._kinds += (requests.write.shape[0] - writes, writes)
        if self._has_nodes:
            file_count = self._file_index.count
            self._files.add(*requests, file_count)
            self._files.add_chunk_counts(requests.file, requests.write, requests.rows)

    def _without_background(
        self, batch: pa.RecordBatch, rows: _Rows, delays: dict[int, np.ndarray]
    ) -> tuple[pa.RecordBatch, _Rows, dict[int, np.ndarray]]:
        """What is left of rows and their delays when those of background work are counted by themselves."""
        background = of_classes(batch, self._background)
        if background.any() and self._met_classes < self._background:
            met = batch.column("service_class").filter(pa.array(background)).unique()
            self._met_classes |= {str(name) for name in met.to_pylist()}
        left = ~background
        if SERVICE in delays:
            self._add_background(rows, delays[SERVICE], background)
        rows = _Rows(*(None if values is None else values[left] for values in rows))  # type: ignore[arg-type]
        return batch.filter(pa.array(left)), rows, {name: values[left] for name, values in delays.items()}

    def _add_background(self, rows: _Rows, services: np.ndarray, background: np.ndarray) -> None:
        """Count background work of the time that rates are of: from the first request of users to the last."""
        assert self._node_index is not None
        place, users = np.arange(len(background)), np.flatnonzero(~background)
        since = background & self._begun
        if users.size:
            self._background_cells.absorb(self._since, np.arange(self._node_index.count))
            self._since = DelayCells()
            inside = background & (self._begun | (place > users[0])) & (place < users[-1])
            _count_services(self._background_cells, rows, services, inside)
            since, self._begun = background & (place > users[-1]), True
        _count_services(self._since, rows, services, since)

    def _delays(self, rows: _Rows) -> dict[int, np.ndarray]:
        """Delays (s) of rows with finishes by quantity, (n,) each, NaN where they are not known (yet)."""
        assert rows.finishes is not None
        finishes = rows.finishes
        nodes = np.zeros_like(rows.files) if rows.nodes is None else rows.nodes
        delays = {SOJOURN: finishes - rows.arrivals}
        if rows.starts is not None:
            delays[SERVICE] = finishes - rows.starts
            if self._node_index is not None:
                self._started.add(nodes, rows.arrivals, rows.starts, finishes, self._node_index.count)
        elif self._node_index is not None:
            delays[SERVICE] = self._inferred(nodes, rows.arrivals, finishes, self._node_index.count)
        return delays

    def _add_delays(self, rows: _Rows, delays: dict[int, np.ndarray], begins: np.ndarray | None) -> None:
        nodes = np.zeros_like(rows.files) if rows.nodes is None else rows.nodes
        for quantity, values in delays.items():
            self._cells.add(quantity, nodes, rows.writes, rows.sizes, values)
        late = self._inference.waiting
        if late.size:
            self._late.append(_Late(nodes[late], rows.writes[late], rows.sizes[late]))
            delays[SERVICE][late] = LATE
        if begins is not None and self._has_nodes:
            groups = chunk_groups(nodes, rows.writes, rows.sizes)
            for quantity, values in delays.items():
                self._samples[quantity].add(begins, values, groups)

    def _inferred(
        self, nodes: np.ndarray, arrivals: np.ndarray, finishes: np.ndarray, count: int
    ) -> np.ndarray:
        if self._services is not None:
            return self._services.add(nodes, arrivals, finishes)
        self._finished.add(nodes, arrivals, finishes, count)
        return self._inference.add(nodes, arrivals, finishes, count)

    def finish(self) -> TraceStatistics:
        """The statistics of a whole trace, once all its rows were added."""
        if self._grouped:
            self._add_requests(self._grouper.finish())
        self._arrivals.finish()
        file_count = self._file_index.count
        reason, inferred = self._service_source()
        cells = self._cells.cells()
        if reason is not None:
            cells = cells.choose(cells.quantity != SERVICE)
        return TraceStatistics(
            rows=self.rows,
            requests=int(self._kinds.sum()),
            reads=int(self._kinds[0]),
            writes=int(self._kinds[1]),
            bytes=self._bytes,
            arrivals=self._arrivals,
            file_ids=self._file_index.ids,
            files=self._files.totals(file_count),
            chunks_read=self._files.chunks_read(file_count) if self._has_nodes else None,
            node_ids=None if self._node_index is None else self._node_index.ids,
            node_accesses=self._accesses(),
            cells=cells,
            service_reason=reason,
            service_inferred=inferred,
            channels=self._node_channels(),
            background=self._background_moments(reason is None),
            background_classes=self._met_classes,
            correlation=self._samples[SERVICE if reason is None else SOJOURN].correlation(),
            returned=self._grouper.returned,
            times=self._timing.times(int(self._kinds.sum()), self._arrivals.ties),
        )

    def _background_moments(self, known: bool) -> np.ndarray:
        count = 0 if self._node_index is None else self._node_index.count
        cells = self._background_cells.cells()
        return pooled_rows(
            cells.moments if known else cells.moments[:0], cells.node[: len(cells.node) * known], count
        )

    def _node_channels(self) -> Channels:
        if self._channels is not None:
            return self._channels
        if self._node_index is None or "finish_s" not in self._names:
            return Channels.none(0 if self._node_index is None else self._node_index.count)
        if "start_s" in self._names:
            return self._started.channels(self._node_index.count)
        channels = self._finished.channels(self._node_index.count)
        return channels if self._inference.complete else Channels.none(self._node_index.count)

    def _service_source(self) -> tuple[str | None, bool]:
        """Why there are no service times (None: there are), and whether they were inferred."""
        names = self._names
        if "finish_s" not in names:
            return "the trace has no finish times", False
        if "start_s" in names:
            return None, False
        if not self._has_nodes:
            return "the trace has finish times, but neither start_s nor node_id", False
        if self._services is not None:
            return None, True
        reason = self._inference.reason
        if reason is not None and self._inference.complete:
            reason += f", nor do up to {MOST} channels explain them"
        return reason, True


def _whole_accesses(rows: _Rows, begins: np.ndarray) -> _Rows:
    """One row per access of a block trace, which has a row per extent touched, all in one batch."""
    starts = np.flatnonzero(begins)
    accesses = _Rows(*(None if values is None else values[starts] for values in rows))  # type: ignore[arg-type]
    return accesses._replace(sizes=np.add.reduceat(rows.sizes, starts) if starts.size else rows.sizes[:0])


def _count_services(cells: DelayCells, rows: _Rows, services: np.ndarray, which: np.ndarray) -> None:
    assert rows.nodes is not None
    cells.add(SERVICE, rows.nodes[which], rows.writes[which], rows.sizes[which], services[which])
