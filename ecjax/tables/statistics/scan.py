"""One pass over a trace: everything that the analysis keeps of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Queue
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.importers.trace import Trace
from ecjax.tables.statistics.arrivals import ArrivalProcess
from ecjax.tables.statistics.bins import BINS, SIZE_BINS_PER_OCTAVE
from ecjax.tables.statistics.correlation import Correlation, RequestSample
from ecjax.tables.statistics.delays import SERVICE, SOJOURN, Cells, DelayCells
from ecjax.tables.statistics.files import FileTotals
from ecjax.tables.statistics.index import IdIndex, hash_strings, string_buffers
from ecjax.tables.statistics.requests import RequestGrouper, Requests
from ecjax.tables.statistics.service import ServiceInference

_AHEAD = 2  # batches decoded while one is counted


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
        correlation: of the chunk delays of one request (service times, else sojourn times).
        returned: requests whose rows were seen not to follow each other.
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
    correlation: Correlation
    returned: int


def scan(trace: Trace, seed: int = 0, progress: Callable[[int], Any] | None = None) -> TraceStatistics:
    """Read a trace once and gather its statistics.

    Memory follows the number of distinct files, not of rows. One thread decodes while another counts.

    Args:
        trace: what to read.
        seed: of the spreading of ties and of the sample of requests.
        progress: called with the number of rows read so far, after each batch.

    Raises:
        UserError: a row is malformed; the message names it.
    """
    scanner = _Scanner(trace, seed)
    for batch in _read_ahead(trace.batches()):
        scanner.add(batch)
        if progress is not None:
            progress(scanner.rows)
    return scanner.finish()


class _Rows(NamedTuple):
    """A record batch as arrays, each (n,); nodes, starts and finishes may be None."""

    files: np.ndarray
    arrivals: np.ndarray
    writes: np.ndarray
    sizes: np.ndarray
    nodes: np.ndarray | None
    starts: np.ndarray | None
    finishes: np.ndarray | None


class _Scanner:
    def __init__(self, trace: Trace, seed: int) -> None:
        self._trace = trace
        names = trace.schema.names
        self._has_nodes, self._grouped = "node_id" in names, "request_id" in names
        self._file_index = IdIndex(trace.schema.field("file_id").type)
        self._node_index = IdIndex(trace.schema.field("node_id").type) if self._has_nodes else None
        self._files, self._grouper = FileTotals(), RequestGrouper()
        self._arrivals = ArrivalProcess(trace.clock_resolution_s, seed)
        self._cells, self._inference = DelayCells(), ServiceInference()
        self._samples = {quantity: RequestSample(seed) for quantity in (SERVICE, SOJOURN)}
        self._node_accesses = np.zeros((0, 2), np.int64)
        self._kinds = np.zeros(2, np.int64)
        self._bytes = 0.0
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        rows = self._arrays(batch)
        begins = None
        if self._grouped:
            begins = self._add_grouped(batch, rows)
        else:
            ones = np.ones(batch.num_rows, np.int64)
            self._add_requests(Requests(rows.files, rows.arrivals, rows.writes, rows.sizes, ones))
        if not self._has_nodes:
            pieces = np.ones(batch.num_rows, np.int64)
            self._files.add(
                rows.files, rows.arrivals, rows.writes, rows.sizes, pieces, self._file_index.count
            )
        if rows.nodes is not None and self._node_index is not None:
            known = self._node_index.count
            counted = np.bincount(rows.nodes * 2 + rows.writes, minlength=2 * known).reshape(known, 2)
            counted[: self._node_accesses.shape[0]] += self._node_accesses
            self._node_accesses = counted
        if rows.finishes is not None:
            accesses = rows if begins is None or self._has_nodes else _whole_accesses(rows, begins)
            self._add_delays(accesses, begins)
        self._bytes += float(rows.sizes.sum())
        self.rows += batch.num_rows

    def _arrays(self, batch: pa.RecordBatch) -> _Rows:
        def numbers(name: str) -> np.ndarray | None:
            return batch.column(name).to_numpy(zero_copy_only=False) if name in batch.schema.names else None

        operations = batch.column("op")
        writes = np.array([word == "write" for word in operations.dictionary.to_pylist()], bool)
        arrivals, sizes = batch.column("arrival_s").to_numpy(), batch.column("bytes").to_numpy()
        return _Rows(
            self._file_index.number(batch.column("file_id")),
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
            raise UserError(
                f"requests table ({self._trace.name}), row {self.rows + mixed} (request_id {ids[mixed].as_py()!r}): "
                "found another file or operation than in the request's first row; allowed: one file and one operation "
                "per request"
            )
        self._add_requests(requests)
        return begins

    def _add_requests(self, requests: Requests) -> None:
        self._arrivals.add(requests.arrival, requests.write, requests.bytes)
        writes = int(np.count_nonzero(requests.write))
        self._kinds += (requests.write.shape[0] - writes, writes)
        if self._has_nodes:
            known = self._file_index.count
            self._files.add(*requests, known)
            self._files.add_chunk_counts(requests.file, requests.write, requests.rows)

    def _add_delays(self, rows: _Rows, begins: np.ndarray | None) -> None:
        assert rows.finishes is not None
        finishes = rows.finishes
        nodes = np.zeros_like(rows.files) if rows.nodes is None else rows.nodes
        delays = {SOJOURN: finishes - rows.arrivals}
        if rows.starts is not None:
            delays[SERVICE] = finishes - rows.starts
        elif self._node_index is not None:
            delays[SERVICE] = self._inference.add(nodes, rows.arrivals, finishes, self._node_index.count)
        groups = None
        if begins is not None and self._has_nodes:
            groups = (nodes * 2 + rows.writes) * BINS + _size_classes(rows.sizes)
        for quantity, values in delays.items():
            self._cells.add(quantity, nodes, rows.writes, rows.sizes, values)
            if begins is not None and groups is not None:
                self._samples[quantity].add(begins, values, groups)

    def finish(self) -> TraceStatistics:
        if self._grouped:
            self._add_requests(self._grouper.finish())
        self._arrivals.finish()
        known = self._file_index.count
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
            files=self._files.totals(known),
            chunks_read=self._files.chunks_read(known) if self._has_nodes else None,
            node_ids=None if self._node_index is None else self._node_index.ids,
            node_accesses=self._node_accesses,
            cells=cells,
            service_reason=reason,
            service_inferred=inferred,
            correlation=self._samples[SERVICE if reason is None else SOJOURN].correlation(),
            returned=self._grouper.returned,
        )

    def _service_source(self) -> tuple[str | None, bool]:
        """Why there are no service times (None: there are), and whether they were inferred."""
        names = self._trace.schema.names
        if "finish_s" not in names:
            return "the trace has no finish times", False
        if "start_s" in names:
            return None, False
        if not self._has_nodes:
            return "the trace has finish times, but neither start_s nor node_id", False
        return self._inference.reason, True


def _whole_accesses(rows: _Rows, begins: np.ndarray) -> _Rows:
    """One row per access of a block trace, which has a row per extent touched, all in one batch."""
    starts = np.flatnonzero(begins)
    chosen = _Rows(*(None if values is None else values[starts] for values in rows))  # type: ignore[arg-type]
    return chosen._replace(sizes=np.add.reduceat(rows.sizes, starts) if starts.size else rows.sizes[:0])


def _size_classes(sizes: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(sizes > 0, np.floor(np.log2(sizes) * SIZE_BINS_PER_OCTAVE), -1).astype(np.int64)


def _read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, decoded by a thread of their own; its errors are raised here."""
    queue: Queue[pa.RecordBatch | BaseException | None] = Queue(_AHEAD)
    stopped = Event()

    def produce() -> None:
        try:
            for batch in batches:
                queue.put(batch)
                if stopped.is_set():
                    return
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    thread = Thread(target=produce, daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        while thread.is_alive():
            while not queue.empty():
                queue.get_nowait()
            thread.join(0.01)
