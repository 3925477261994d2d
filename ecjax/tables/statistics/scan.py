"""One pass over a trace, or over each of its pieces by itself and a merge: everything that the analysis keeps of it."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from queue import Queue
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.importers.trace import Piece, Trace
from ecjax.tables.statistics.scanner import Scanner, TraceStatistics

__all__ = [
    "Merge",
    "Scanner",
    "TraceStatistics",
    "scan",
    "scan_piece",
    "with_services_of_channels",
]

_AHEAD = 2  # batches decoded while one is counted


def scan(
    trace: Trace,
    seed: int = 0,
    progress: Callable[[int], Any] | None = None,
    background: frozenset[str] = frozenset(),
) -> TraceStatistics:
    """Read a trace once and gather its statistics.

    Memory follows the number of distinct files, not of rows. One thread decodes while another counts. Where finish
    times tell of nodes with several channels, it is read once more for their service times.

    Args:
        trace: what to read.
        seed: of the spreading of ties and of the sample of requests.
        progress: called with the number of rows read so far, after each batch.
        background: service classes of accesses that are no users' requests.

    Raises:
        UserError: a row is malformed; the message names the first such row.
    """
    scanner = Scanner(trace, seed, background=background)
    _count(scanner, trace, progress)
    return with_services_of_channels(scanner.finish(), trace, seed, background)


def with_services_of_channels(
    statistics: TraceStatistics, trace: Trace, seed: int, background: frozenset[str] = frozenset()
) -> TraceStatistics:
    """The statistics of a trace, with services inferred for as many channels as its finish times tell.

    Args:
        statistics: of one pass, in which each node was taken for a single server.
        trace: it, which is read once more if a node has several channels.
        seed: as for ``scan``.
        background: as for ``scan``.
    """
    channels = statistics.channels
    if not channels.inferred or not np.any(channels.servers > 1):
        return statistics
    scanner = Scanner(trace, seed, channels, background)
    _count(scanner, trace, None)
    return scanner.finish()


def scan_piece(piece: Piece, seed: int = 0, progress: Callable[[int], Any] | None = None) -> Scanner:
    """Read a piece of a trace, and gather what ``merge`` needs of it; can be pickled.

    What is wrong with its rows is in there too, since a piece before it may have a mistake that comes first.

    Args:
        piece: what to read.
        seed: as for ``scan``; the same for all pieces.
        progress: called with the number of rows of the piece read so far, after each batch.
    """
    scanner = Scanner(piece, seed)
    try:
        _count(scanner, piece, progress)
    except UserError as mistake:
        scanner.mistake = mistake
    return scanner


class Merge:
    """The statistics of a trace from those of its pieces, as they come: ``scan`` gives the same.

    Integers and ids are the same; sums of floats differ by rounding.
    """

    def __init__(self) -> None:
        self._whole: Scanner | None = None

    def add(self, part: Scanner) -> None:
        """Add what ``scan_piece`` gathered of the next piece, beginning with the first.

        Raises:
            UserError: a row is malformed; the message names the first such row.
        """
        # arrays from another process may be in memory that is shared and read-only, and are not to hold it back
        part = deepcopy(part)
        if self._whole is not None:
            self._whole.absorb(part)
        elif part.mistake is not None:
            raise part.mistake
        else:
            self._whole = part

    def finish(self) -> TraceStatistics:
        """The statistics, once all pieces were added."""
        assert self._whole is not None
        return self._whole.finish()


def _count(scanner: Scanner, rows_of: Trace | Piece, progress: Callable[[int], Any] | None) -> None:
    for batch in _read_ahead(rows_of.batches()):
        scanner.add(batch)
        if progress is not None:
            progress(scanner.rows)


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
