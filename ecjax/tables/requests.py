"""The requests of a trace as arrays: what a replay takes its arrivals from, and what it is held against."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.tables.background import of_users
from ecjax.tables.importers import Trace
from ecjax.tables.importers.checking import checked
from ecjax.tables.importers.columns import COLUMN_MAPPING
from ecjax.tables.importers.table import TABLE
from ecjax.tables.read import open_batches
from ecjax.tables.statistics.index import IdIndex, hash_strings, string_buffers
from ecjax.tables.statistics.requests import RequestGrouper, Requests
from ecjax.tables.statistics.ticks import UnevenTicks, uneven_ticks


@dataclass(frozen=True)
class Accesses:
    """Accesses of chunks, request after request, in the order of the log; a of them.

    Attributes:
        begin: (n + 1,) int64, place of the first access of each request.
        arrival: (a,) s since the trace's first arrival.
        node: (a,) int64, place in ``node_ids``.
        bytes: (a,) B.
        start: (a,) s, begin of service, NaN where the log has none; None where it has no such column.
        finish: (a,) s, as ``start``.
        node_ids: (m,) nodes in order of appearance.
    """

    begin: np.ndarray
    arrival: np.ndarray
    node: np.ndarray
    bytes: np.ndarray
    start: np.ndarray | None
    finish: np.ndarray | None
    node_ids: pa.Array

    @property
    def request(self) -> np.ndarray:
        """Request of each access, (a,) int64."""
        return np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin))


@dataclass(frozen=True)
class TraceRequests:
    """Requests in order of arrival, n of them.

    Attributes:
        name: of the trace, for messages.
        clock_resolution_s: step in which its times are written; 0 where they are as good as continuous.
        uneven: ticks of its clock, where they are no whole number of these steps; None: they are.
        arrival: (n,) s since the trace's first arrival.
        file: (n,) int64, place in ``file_ids``.
        write: (n,) bool.
        bytes: (n,) B asked for, all chunks together.
        file_ids: (r,) those that were given, else the trace's own in order of appearance.
        dropped: requests left out, of files that were not among those given.
        returned: requests whose rows were seen not to follow each other: their parts count as requests.
        accesses: of chunks; None where the trace names no nodes.
    """

    name: str
    clock_resolution_s: float
    uneven: UnevenTicks | None
    arrival: np.ndarray
    file: np.ndarray
    write: np.ndarray
    bytes: np.ndarray
    file_ids: pa.Array
    dropped: int
    returned: int
    accesses: Accesses | None

    @property
    def count(self) -> int:
        """Number of requests n."""
        return len(self.arrival)

    @property
    def tick_s(self) -> float:
        """Ticks of the clock, s; 0 where it is as good as continuous."""
        return self.clock_resolution_s if self.uneven is None else self.uneven.length_s

    def on_ticks(self, times_s: np.ndarray) -> np.ndarray:
        """When the clock ticked, for times that are written a little beside that, s, (n,) each.

        Those of a clock whose ticks are whole numbers of the steps that it is written in are as they are.
        """
        return times_s if self.uneven is None else self.uneven.on(times_s)


def requests(
    trace: Trace,
    ids: pa.Array | None = None,
    unknown: Literal["error", "drop"] = "error",
    limit: int | None = None,
) -> TraceRequests:
    """Read the requests of a trace, batch by batch.

    In memory a request takes 25 bytes, and an access of a chunk 24 and 8 more for each of start and finish; twice
    that while the pieces are put together. Where the trace names no nodes, every row is a request (of a block trace:
    one for each extent that an access touches), as in the files' rates that are counted from it.

    Args:
        trace: what to read.
        ids: (r,) file ids of a files table, all different; the trace's own where not given.
        unknown: what becomes of requests for files that are not among ``ids``.
        limit: read no further than so many requests (of known files); what comes after is not checked either.

    Raises:
        UserError: a row is malformed; ids differ in type; a file is not among ``ids``, or no request is left.
    """
    reader = _Reader(trace, ids, unknown)
    for batch in trace.batches():
        reader.add(batch)
        if limit is not None and reader.closed >= limit:
            break
    return reader.finish(limit)


class _Reader:
    def __init__(self, trace: Trace, ids: pa.Array | None, unknown: str) -> None:
        names = trace.schema.names
        kind = trace.schema.field("file_id").type
        self._trace, self._drop = trace, unknown == "drop"
        self._files = IdIndex(kind)
        self._ids = ids
        self._file_count: int | None = None
        if ids is not None:
            if ids.type != self._files.kind:
                raise UserError(
                    f"requests table ({trace.name}), column file_id: found ids of type {kind}; allowed: {ids.type}, "
                    "as in the files table"
                )
            self._files.number(ids)
            self._file_count = len(ids)
        self._nodes = IdIndex(trace.schema.field("node_id").type) if "node_id" in names else None
        self._times = [name for name in ("start_s", "finish_s") if name in names]
        self._grouper = RequestGrouper()
        self._requests: list[Requests] = []
        self._accesses: list[tuple[np.ndarray, ...]] = []  # arrival, node, bytes, start and finish if there
        self._rows = 0
        self._origin = np.nan
        self._total = 0  # requests closed, those that are dropped too
        self.closed = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        arrivals = batch.column("arrival_s").to_numpy()
        if np.isnan(self._origin) and len(arrivals):
            self._origin = float(arrivals[0])
        arrivals = arrivals - self._origin
        files = self._numbers(batch)
        operations = batch.column("op")
        words = np.array([word == "write" for word in operations.dictionary.to_pylist()], bool)
        writes = words[operations.indices.to_numpy()]
        sizes = batch.column("bytes").to_numpy()
        if self._nodes is None:
            self._close(Requests(files, arrivals, writes, sizes, np.ones(len(files), np.int64)))
        else:
            nodes = self._nodes.number(batch.column("node_id"))
            requests, _, mixed = self._grouper.add(_keys(batch), files, arrivals, writes, sizes)
            if mixed is not None:
                raise UserError(
                    f"requests table ({self._trace.name}), row {self._rows + mixed} (request_id "
                    f"{batch.column('request_id')[mixed].as_py()!r}): found another file or operation than in the "
                    "request's first row; allowed: one file and one operation per request"
                )
            self._close(requests)
            times = [batch.column(name).to_numpy(zero_copy_only=False) for name in self._times]
            mask = files >= 0
            self._accesses.append(tuple(column[mask] for column in (arrivals, nodes, sizes, *times)))
        self._rows += batch.num_rows

    def _numbers(self, batch: pa.RecordBatch) -> np.ndarray:
        """File of each row, -1 where it is none of those given."""
        files = self._files.number(batch.column("file_id"))
        if self._file_count is None:
            return files
        strange = files >= self._file_count
        if strange.any() and not self._drop:
            row = int(np.argmax(strange))
            raise UserError(
                f"requests table ({self._trace.name}), column file_id, row {self._rows + row}: found "
                f"{batch.column('file_id')[row].as_py()!r}; allowed: files of the files table"
            )
        return np.where(strange, -1, files)

    def _close(self, requests: Requests) -> None:
        mask = requests.file >= 0
        self._total += len(mask)
        self._requests.append(Requests(*(column[mask] for column in requests)))
        self.closed += int(np.count_nonzero(mask))

    def finish(self, limit: int | None) -> TraceRequests:
        """All that was added, or the first ``limit`` requests."""
        self._close(self._grouper.finish())
        if not self.closed:
            raise UserError(
                f"requests table ({self._trace.name}): found {self._total} requests, none for a file of the files "
                "table; allowed: at least one"
            )
        count = self.closed if limit is None else min(limit, self.closed)
        logged = Requests(*_joined(self._requests, count))
        accesses = None
        if self._nodes is not None:
            begin = np.concatenate(([0], np.cumsum(logged.rows)))
            arrival, node, size, *rest = _joined(self._accesses, int(begin[-1]))
            times = {name: v - self._origin for name, v in zip(self._times, rest, strict=True)}
            accesses = Accesses(
                begin, arrival, node, size, times.get("start_s"), times.get("finish_s"), self._nodes.ids
            )
        resolution = self._trace.clock_resolution_s
        return TraceRequests(
            name=self._trace.name,
            clock_resolution_s=resolution,
            uneven=uneven_ticks(logged.arrival, resolution),
            arrival=logged.arrival,
            file=logged.file,
            write=logged.write,
            bytes=logged.bytes,
            file_ids=self._files.ids if self._ids is None else self._ids,
            dropped=self._total - self.closed,
            returned=self._grouper.returned,
            accesses=accesses,
        )


def _joined(pieces: list, count: int) -> Iterator[np.ndarray]:
    """Columns of the pieces, cut to ``count`` rows."""
    for columns in zip(*pieces, strict=True):
        yield np.concatenate(columns)[:count]


def _keys(batch: pa.RecordBatch) -> np.ndarray:
    """Request ids as 64-bit integers; of strings, hashes: only neighbours are compared."""
    ids = batch.column("request_id")
    if pa.types.is_integer(ids.type):
        return ids.to_numpy()
    keys = np.empty(len(ids), np.int64)
    hash_strings(*string_buffers(ids), keys)
    return keys


def _names(trace: Trace) -> list[str]:
    """Columns of a log's own; none where its header cannot be read as a table's."""
    try:
        names: list[str] = open_batches(trace.path).schema.names
    except UserError:
        return []
    return names


class Edges:
    """A log whose column ``edge`` is noted, row by row, while it is read.

    Attributes:
        trace: to read instead.
        index: of the edges; None where the log has no such column.
        numbers: (rows,) of each batch that was read.
    """

    def __init__(self, trace: Trace, sort: bool) -> None:
        self.trace, self._log, self._sort = trace, trace, sort
        self.index: IdIndex | None = None
        self.numbers: list[np.ndarray] = []
        # formats other than our own table have no such column
        if trace.format == TABLE.name and "edge" in open_batches(trace.path).schema.names:
            self.trace = replace(trace, read=self._batches)
        elif trace.format == COLUMN_MAPPING.name and "edge" in _names(trace):
            log.warning(
                "trace=%s: column edge is not read with columns=, reads go to the edges or clients in turn; it is of a "
                "requests table, whose columns have the names of traces/README.md",
                trace.name,
            )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        opened = open_batches(self._log.path, [*self._log.schema.names, "edge"])
        for rows in checked(opened.batches, self._log.name, self._sort, self._log.step_s):
            batch = of_users(rows, self._log.background)
            if not batch.num_rows:
                continue
            edges = batch.column("edge")
            self.index = self.index or IdIndex(edges.type)
            self.numbers.append(self.index.number(edges))
            yield batch
