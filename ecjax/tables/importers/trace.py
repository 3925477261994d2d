"""A trace opened for reading: batches of requests in one schema, whatever the format, and what the format loses."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.importers.rejects import Tally

RATES, SOJOURN, SERVICE, PLACEMENT = "rates", "sojourn", "service", "placement"
OBJECT_BYTES = (
    "object_bytes"  # a column of batches beside those of ``requests``: the size of the whole object (B)
)
MOST_REJECTS = 0.1
BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class Piece:
    """Rows of a trace that follow each other, to be read anywhere: can be pickled, and names files by whole paths.

    Attributes:
        name, schema, clock_resolution_s: as of the trace.
        first_row: number of its first row in the trace.
        rows: number of its rows, at least one.
        first_arrival_s: the trace's first arrival (s).
        read: starts reading; rows are checked as those of the trace, except that the first is not held against the one
            before.
    """

    name: str
    schema: pa.Schema
    clock_resolution_s: float
    first_row: int
    rows: int
    first_arrival_s: float
    read: Callable[[], Iterator[pa.RecordBatch]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As ``Trace.batches``; row numbers in messages are those of the trace."""
        return self.read()


@dataclass(frozen=True)
class Trace:
    """Requests of a log, read anew from its beginning by each call of ``batches``.

    Attributes:
        path: file, folder, or what stands for several files; nothing else finds all that its text may mean.
        format: key of the importer that reads it.
        schema: columns of the batches, those of the ``requests`` table that the trace has. Ids are int64 or string,
            times float64 seconds, ``op`` a dictionary of "read" and "write". Without ``node_id`` each row is one access
            of a file; where ``request_id`` is given nevertheless, consecutive rows that share it arrived as one.
        read: starts reading; rows come in order of arrival and are checked.
        provides: which of "rates", "sojourn" (arrival to finish), "service" (start to finish) and "placement" (the
            nodes of files) it can tell.
        loses: what is missing or was decided in reading, sentences for the user.
        clock_resolution_s: the step of its clock (s); 0 where times are as good as continuous.
        step_s: to which its arrivals may be rounded (s), so that accesses seem to begin before them; 0: they are exact.
        fingerprint: SHA-256 (hex) of its content.
        rows: number of rows, where that is known beforehand.
        extent_bytes: size of the extents that stand for files, for a block trace.
        cut: cuts it into a number of pieces or fewer; None where it cannot be cut.
        tasks: whether a row is one connection of a proxy from arrival to finish, whatever waits behind it.
        background: classes of accesses, and ``writes``, that it goes without; see ``tables.background``.
        tally: what of the last pass over it was no access; None where every row has to be one.
    """

    path: Path
    format: str
    schema: pa.Schema
    read: Callable[[], Iterator[pa.RecordBatch]]
    provides: frozenset[str]
    loses: tuple[str, ...]
    clock_resolution_s: float
    fingerprint: str
    rows: int | None = None
    extent_bytes: int | None = None
    cut: Callable[[int], list[Piece]] | None = None
    tally: Tally | None = None
    tasks: bool = False
    background: frozenset[str] = frozenset()
    step_s: float = 0.0

    @property
    def name(self) -> str:
        """Its path, for messages."""
        return str(self.path)

    def pieces(self, count: int) -> list[Piece] | None:
        """The trace in up to ``count`` pieces, about equal in rows, in the order of their rows.

        None where it can only be read from its beginning: what is not Parquet, is to be sorted, or is a block trace.

        Raises:
            UserError: a file cannot be read.
        """
        return None if self.cut is None else self.cut(count)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches in the ``requests`` schema, in order of arrival.

        Raises:
            UserError: a row is malformed, impossible or out of order; the message names it.
        """
        return self.read()


@dataclass(frozen=True)
class Source:
    """What the user gave: a path, and how to read it."""

    path: Path
    columns: Mapping[str, Any] | None = None
    extent_bytes: int | None = None
    sort: bool = False
    keep_ids: bool = False
    max_rejects: float = MOST_REJECTS

    def extents(self) -> int:
        """The size of the extents of a block trace (B).

        Raises:
            UserError: it was not given, or is no positive integer.
        """
        if self.extent_bytes is None:
            raise UserError(
                f"{self.path}: a block trace has no files; give extent_bytes=, the size of the extents to take for "
                "files (65536, say)"
            )
        if self.extent_bytes < 1:
            raise UserError(f"extent_bytes: found {self.extent_bytes}; allowed: integers >= 1")
        return self.extent_bytes

    @property
    def sorting(self) -> tuple[str, ...]:
        """The sentence that sorting adds to what a trace loses."""
        return ("Rows were sorted by arrival, in memory.",) if self.sort else ()


@dataclass(frozen=True)
class Head:
    """The beginning of a trace, by which its format is recognised.

    Attributes:
        path: the file or folder.
        start: its first bytes, decompressed; empty for a folder.
        lines: its first lines where these are text, else none.
        columns: column names of a table (Parquet, Arrow or CSV with a header), else none.
        members: the first lines of files in a folder without Parquet files.
    """

    path: Path
    start: bytes
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    members: tuple[tuple[str, ...], ...] = ()


class Importer(Protocol):
    """One format: a module-level object in a module of its own, listed in the package's registry."""

    @property
    def name(self) -> str:
        """As ``format=`` has it."""

    def recognises(self, head: Head) -> bool:
        """Whether a trace that begins like this is of the format."""

    def open(self, source: Source) -> Trace:
        """Open a trace of this format.

        Raises:
            UserError: it cannot be one, or an option is missing.
        """
