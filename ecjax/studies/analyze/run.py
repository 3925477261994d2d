"""The analysis of a trace: its statistics, in one pass here or piece by piece in workers, and the tables of them."""

import math
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.console import log
from ecjax.engine import Engine, Failed, Task, Worker
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.analyze.background import (
    check_background,
    check_found,
    say_missing,
    warn_of_writes,
    with_background,
    without_writes,
)
from ecjax.studies.analyze.burst_rows import arrival_tables
from ecjax.studies.analyze.catalogs import with_catalog
from ecjax.studies.analyze.descriptions import described
from ecjax.studies.analyze.file_rates import counted, with_shrunk_rates
from ecjax.studies.analyze.node_rows import delay_tables, node_table, warn_of_overload
from ecjax.studies.analyze.rows import arrival_table, file_table, reject_table, trace_table
from ecjax.studies.analyze.tables import TABLES
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.background import WRITES, without_background
from ecjax.tables.datasets import conform
from ecjax.tables.ids import id_types
from ecjax.tables.importers.trace import Piece, Trace
from ecjax.tables.statistics.scan import (
    Merge,
    Scanner,
    TraceStatistics,
    scan,
    scan_piece,
    with_services_of_channels,
)

# More pieces are more to merge, one after another: where files are many, a piece in a tenth of the time that it takes
# to be read. Fewer would leave workers without work at the end, and much to do again where one is lost.
_PIECES_PER_WORKER = 2
_MOST_ROWS = 1 << 25


@dataclass(frozen=True)
class Item:
    """The analysis of one trace."""

    run: Run


class Settings(NamedTuple):
    """How a trace is analysed."""

    seed: int
    k: int | None  # chunks that rebuild a file, where the trace does not tell
    reference_bytes: float | None  # chunk size of the moments of nodes
    reading: dict[str, str]  # columns of ``traces`` that say how the trace was read
    window_s: float | None = None  # busiest window that rates of files are taken from; None: the whole trace
    nodes: pa.Table | None = None  # checked, with what a trace does not tell of nodes
    shrink: bool = False  # whether rates are estimated from those of all files
    catalog: pa.Table | None = None  # checked, of all that is stored
    background: frozenset[str] = frozenset()  # classes of accesses that are no users' requests; WRITES

    @property
    def classes(self) -> frozenset[str]:
        """Those that are classes of the log."""
        return self.background - {WRITES}


def solve(
    settings: Settings,
    trace: Trace,
    items: dict[str, Item],
    engine: Engine,
    advance: Callable[[float], Any],
) -> tuple[Rows, dict[str, pa.Table]]:
    """The row of ``runs`` of an analysis, and its other datasets in their schemas.

    Args:
        settings: of the study.
        trace: what to read.
        items: the analysis, by its run id.
        engine: where pieces of the trace are read.
        advance: called with the number of rows just read.

    Raises:
        UserError: a row is malformed, or the log has no background work of the classes, or nothing else.
        Failed: something else went wrong; the statistics of a part of the trace would be those of another one.
        Lost: a worker or its node died, every time that a piece was tried.
    """
    ((name, item),) = items.items()
    check_background(settings.classes, trace)
    with Stopwatch(of_process=True) as stopwatch:
        statistics = gather(trace, settings.seed, engine, advance, settings.classes)
        check_found(settings.classes, statistics, trace)
        tables = result_tables(statistics, trace, settings)
    loads = tables["nodes"]["load"].drop_null().to_pylist() if "nodes" in tables else []
    row = item.run.row() | {
        "status": str(Status.OK),
        "max_load": max(loads, default=None),
        "file_count": tables["files"].num_rows,
        "node_count": tables["nodes"].num_rows if "nodes" in tables else None,
        "solve_s": stopwatch.own_s,
    }
    types = result_types(trace, settings.nodes)
    return [row], {
        dataset: conform(_of_run(name, table), dataset_schema(TABLES, dataset, types))
        for dataset, table in tables.items()
    }


def result_types(trace: Trace, nodes: pa.Table | None) -> dict[str, pa.DataType]:
    """Types of ids in the datasets of a trace, by column: its own, and that of the sites of a nodes table."""
    sites = [] if nodes is None or "site" not in nodes.column_names else [nodes.select(["site"])]
    return id_types(trace.schema.empty_table(), *sites)


def result_tables(statistics: TraceStatistics, trace: Trace, settings: Settings) -> dict[str, pa.Table]:
    """The datasets that a trace supports, without their ``run_id``."""
    notices: list[str] = []
    say_missing(settings.classes, statistics, notices)
    users = without_background(trace, settings.classes)
    accesses = counted(statistics, users, settings.window_s, notices)
    files = with_catalog(
        file_table(statistics, trace, settings.k, accesses, notices), settings.catalog, settings.k, notices
    )
    if settings.shrink:
        complete = settings.catalog is not None or accesses.window is not None
        files = with_shrunk_rates(files, statistics, accesses, complete, notices)
    if WRITES in settings.background:
        files = without_writes(files)
    tables = {
        "files": files,
        "arrivals": arrival_table(statistics),
    }
    channels_given = settings.nodes is not None and "channels" in settings.nodes.column_names
    nodes = node_table(statistics, settings.reference_bytes, notices, channels_given)
    if nodes is not None:
        if settings.background:
            nodes = with_background(nodes, statistics, WRITES in settings.background)
        warn_of_writes(statistics, WRITES in settings.background, notices)
        tables["nodes"] = described(nodes, settings.nodes, notices)
        warn_of_overload(tables["nodes"], notices)
    elif settings.nodes is not None:
        notices.append(
            "The nodes table is left aside: it adds to the service times of nodes, of which this log tells none; plan "
            "with ecjax optimize nodes=TABLE files=OUT/files."
        )
    if statistics.cells.quantity.size:
        tables["delays"], tables["delay_bins"] = delay_tables(statistics)
    tables |= arrival_tables(statistics, notices)
    if trace.tally is not None and trace.tally.rejected:
        tables["rejects"] = reject_table(trace.tally)
    return tables | {"traces": trace_table(statistics, trace, settings.reading, accesses.window, notices)}


def _of_run(name: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, "run_id", pa.repeat(pa.scalar(name), table.num_rows))


def gather(
    trace: Trace,
    seed: int,
    engine: Engine,
    advance: Callable[[float], Any],
    background: frozenset[str] = frozenset(),
) -> TraceStatistics:
    """Gather the statistics of a trace.

    With several workers a trace that can be cut is read in pieces, which are merged here in their order as they come;
    the result is that of one pass to rounding, integers and ids exactly. What cannot be cut is read here.

    Args:
        trace: what to read.
        seed: as for ``scan``.
        engine: where the work runs.
        advance: called with the number of rows just read.
        background: classes of accesses that are no users' requests; a log with such is not cut.

    Raises:
        UserError: a row is malformed; the message names the first such row.
        Failed: something else went wrong.
        Lost: a worker or its node died, every time that a piece was tried.
    """
    count = max(_PIECES_PER_WORKER * engine.workers, math.ceil((trace.rows or 0) / _MOST_ROWS))
    pieces = trace.pieces(count) if engine.workers > 1 and not background else None
    if pieces is not None:
        return _merged(trace, pieces, seed, engine, advance)
    if engine.workers > 1:
        log.info(
            "%s (format %s) can only be read from its beginning: in this process", trace.name, trace.format
        )
    reported = 0

    def report(rows: int) -> None:
        nonlocal reported
        advance(rows - reported)
        reported = rows

    try:
        return scan(trace, seed, report, background)
    except UserError:
        raise
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}", traceback.format_exc()) from error


def _merged(
    trace: Trace, pieces: list[Piece], seed: int, engine: Engine, advance: Callable[[float], Any]
) -> TraceStatistics:
    names = [f"rows {piece.first_row} to {piece.first_row + piece.rows - 1}" for piece in pieces]
    tasks = [Task(seed, {name: piece}) for name, piece in zip(names, pieces, strict=True)]
    rows = sum(piece.rows for piece in pieces) / len(pieces)
    merge, next_one, early = Merge(), 0, dict[str, Scanner]()
    for _, value, error in engine.map(_scanned, tasks, lambda items: advance(items * rows)):
        if error is not None:
            raise error
        early |= value
        while next_one < len(names) and names[next_one] in early:
            merge.add(early.pop(names[next_one]))
            next_one += 1
    return with_services_of_channels(merge.finish(), trace, seed)


def _scanned(seed: int, items: dict[str, Piece], worker: Worker) -> dict[str, Scanner]:
    scanners = {}
    for name, piece in items.items():
        reported = 0

        def report(rows: int, piece: Piece = piece) -> None:
            nonlocal reported
            worker.advance((rows - reported) / piece.rows)
            reported = rows

        part = scan_piece(piece, seed, report)
        if (
            worker.remote
            and part.mistake is not None
            and isinstance(part.mistake.__cause__, FileNotFoundError)
        ):
            part.mistake = UserError(
                f"{part.mistake}, on {socket.gethostname()}; allowed: a path that all nodes of the cluster share, or "
                "an object store"
            )
        scanners[name] = part
    return scanners
