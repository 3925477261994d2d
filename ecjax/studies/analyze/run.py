"""The statistics of a trace, gathered where an engine runs: in one pass here, or piece by piece in its workers."""

import logging
import math
import socket
import traceback
from collections.abc import Callable
from typing import Any

from ecjax.engine import Engine, Failed, Task, Worker
from ecjax.errors import UserError
from ecjax.tables.importers.trace import Piece, Trace
from ecjax.tables.statistics.scan import Merge, Scanner, TraceStatistics, scan, scan_piece

log = logging.getLogger("ecjax")

# More pieces are more to merge, one after another: where files are many, a piece in a tenth of the time that it takes
# to be read. Fewer would leave workers without work at the end, and much to do again where one is lost.
_PIECES_PER_WORKER = 2
_MOST_ROWS = 1 << 25


def gather(trace: Trace, seed: int, engine: Engine, advance: Callable[[float], Any]) -> TraceStatistics:
    """Gather the statistics of a trace.

    With several workers a trace that can be cut is read in pieces, which are merged here in their order as they come;
    the result is that of one pass to rounding, integers and ids exactly. What cannot be cut is read here.

    Args:
        trace: what to read.
        seed: as for ``scan``.
        engine: where the work runs.
        advance: called with the number of rows just read.

    Raises:
        UserError: a row is malformed; the message names the first such row.
        Failed: something else went wrong.
        Lost: a worker or its node died, every time that a piece was tried.
    """
    count = max(_PIECES_PER_WORKER * engine.workers, math.ceil((trace.rows or 0) / _MOST_ROWS))
    pieces = trace.pieces(count) if engine.workers > 1 else None
    if pieces is not None:
        return _merged(trace, pieces, seed, engine, advance)
    if engine.workers > 1:
        log.info(
            "%s (format %s) can only be read from its beginning: in this process", trace.name, trace.format
        )
    done = 0

    def report(rows: int) -> None:
        nonlocal done
        advance(rows - done)
        done = rows

    try:
        return scan(trace, seed, report)
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
    return merge.finish()


def _scanned(seed: int, items: dict[str, Piece], worker: Worker) -> dict[str, Scanner]:
    found = {}
    for name, piece in items.items():
        done = 0

        def report(rows: int, piece: Piece = piece) -> None:
            nonlocal done
            worker.advance((rows - done) / piece.rows)
            done = rows

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
        found[name] = part
    return found
