"""Traces that are already a ``requests`` table."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.importers.checking import COLUMNS, Checker, checked
from ecjax.tables.importers.clock import LEAST_TIMES, clock_resolution
from ecjax.tables.importers.rejects import Tally
from ecjax.tables.importers.row_groups import RowGroups, cut, is_parquet
from ecjax.tables.importers.trace import BATCH_ROWS, RATES, SERVICE, SOJOURN, Head, Piece, Source, Trace
from ecjax.tables.near_names import check_names
from ecjax.tables.place import Place
from ecjax.tables.read import open_batches

_REQUIRED = [column.name for column in COLUMNS.values() if column.required]
Reading = Callable[[], Iterator[pa.RecordBatch]]
_USED = [*_REQUIRED, "node_id", "start_s", "finish_s", "service_class"]
_CLOCK_ROWS = 8 * BATCH_ROWS  # that are read at most to tell the clock


class TableImporter:
    """Reads the ``requests`` table: a Parquet file or folder, Arrow IPC or CSV.

    Loses nothing. Times given as numbers stay as they are; timestamps become seconds since the first row's arrival.
    The clock's resolution is the largest power of ten that the first arrivals are multiples of: those of the first
    batch, and of as many more as have sixteen different ones.
    """

    name = "table"

    def recognises(self, head: Head) -> bool:
        """Whether all required columns are there."""
        return set(_REQUIRED) <= set(head.columns)

    def lacking(self, head: Head) -> list[str]:
        """The required columns that are not there, where most of them are."""
        missing = [name for name in _REQUIRED if name not in head.columns]
        return missing if 2 * len(missing) < len(_REQUIRED) else []

    def open(self, source: Source) -> Trace:
        """Open a ``requests`` table.

        Raises:
            UserError: columns are missing, or ``extent_bytes`` was given.
        """
        refuse_extents(source, self.name)
        path = str(source.path)
        schema = open_batches(source.path).schema
        missing = [name for name in _REQUIRED if name not in schema.names]
        if missing:
            names = ", ".join(schema.names) or "none"
            raise UserError(
                f"requests table ({path}): missing columns: {', '.join(missing)}; found: {names} (name the columns "
                "that take their place by columns=)"
            )
        check_names(schema.names, Place(schema.empty_table(), "requests", path))
        opened = open_batches(source.path, _USED)
        return trace_of_batches(
            source,
            self.name,
            lambda: open_batches(source.path, _USED).batches,
            (),
            opened.rows,
            (lambda count: [(g, g.batches) for g in cut(source.path, _USED, count)])
            if is_parquet(source.path)
            else None,
        )


def refuse_extents(source: Source, format_name: str) -> None:
    """Raise ``UserError`` where extents are asked for in a trace that names its files."""
    if source.extent_bytes is not None:
        raise UserError(
            f"extent_bytes: found {source.extent_bytes}; allowed: nothing, since {source.path} (format {format_name}) "
            "names its files"
        )


def trace_of_batches(
    source: Source,
    name: str,
    batches: Callable[[], Iterator[pa.RecordBatch]],
    loses: tuple[str, ...],
    rows: int | None,
    pieces: Callable[[int], list[tuple[RowGroups, Reading]]] | None = None,
    tally: Tally | None = None,
) -> Trace:
    """Trace of batches that have the columns of the ``requests`` table, yet to be checked.

    Args:
        source: what the user gave.
        name: key of the importer.
        batches: starts reading.
        loses: what the importer loses.
        rows: number of rows, where known.
        pieces: cuts the batches into a number of parts or fewer: row groups, and what starts reading them as
            ``batches`` would, which can be pickled. None where they cannot be cut.
        tally: what ``batches`` leaves out; None: nothing.

    Raises:
        UserError: there are no rows, or the first batch is malformed.
    """
    path = str(source.path)
    opening = batches()
    first = next(opening, None)
    if first is None and tally is not None and tally.others:
        raise UserError(
            f"{path}: found no access that reads or writes an object among {tally.lines:,} rows; allowed: at least "
            "one that columns= does not leave out"
        )
    if first is None:
        raise UserError(f"requests table ({path}): found no rows; allowed: at least one")
    checker = Checker(path, first)
    resolution, checker.step_s = _clock(checker, chain([first], opening))
    # the rows before a mistake, which is told where it is read: another part of the reader may find an earlier one
    head = next(checker.rows([first]))
    names = head.schema.names
    provides = {RATES} | ({SOJOURN} if "finish_s" in names else set())
    if {"start_s", "finish_s"} <= set(names):
        provides.add(SERVICE)

    def cut_checked(count: int) -> list[Piece]:
        assert pieces is not None
        first_s = head.column("arrival_s")[0].as_py()
        return [
            Piece(
                path,
                head.schema,
                resolution,
                groups.first_row,
                groups.rows,
                first_s,
                partial(_read_checked, checker, read, groups.first_row),
            )
            for groups, read in pieces(count)
        ]

    return Trace(
        path=source.path,
        format=name,
        schema=head.schema,
        read=lambda: checked(batches(), path, source.sort, checker.step_s),
        provides=frozenset(provides),
        loses=(*loses, *source.sorting),
        clock_resolution_s=resolution,
        step_s=checker.step_s,
        fingerprint=trace_fingerprint(source.path),
        rows=rows,
        cut=None if pieces is None or source.sort else cut_checked,
        tally=tally,
    )


def _clock(checker: Checker, batches: Iterator[pa.RecordBatch]) -> tuple[float, float]:
    """Resolution (s) of the clock of a log, and the step to which its arrivals may be rounded.

    Few times say nothing of the latter, which is 0 then.
    """
    arrivals, different = np.empty(0), 0
    with suppress(UserError):  # a mistake is told where it is read
        for batch in batches:
            arrivals = np.sort(np.append(arrivals, checker.arrivals(batch)))
            different = 1 + int(np.count_nonzero(np.diff(arrivals)))
            if different >= LEAST_TIMES or len(arrivals) >= _CLOCK_ROWS:
                break
    resolution = clock_resolution(arrivals)
    return resolution, resolution if different >= LEAST_TIMES else 0.0


def _read_checked(checker: Checker, read: Reading, first_row: int) -> Iterator[pa.RecordBatch]:
    return checker.in_order(read(), first_row)


TABLE = TableImporter()
