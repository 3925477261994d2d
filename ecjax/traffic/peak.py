"""The busiest window of a log, and the accesses of each file in it: rates of a peak.

Of all windows of one length that begin at a tick of the clock with a read, it is the one with the most reads of all
files together, and the first of these. It is one window for all files, since rates of each file in its own busiest
window would add up to more than the cluster ever served.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.importers.trace import Trace
from ecjax.tables.statistics.scan import TraceStatistics, scan
from ecjax.tables.statistics.ticks import Clock, TickCounts, TickHistogram
from ecjax.traffic.burstiness import busiest


class Window(NamedTuple):
    """The busiest window of a log.

    Attributes:
        start_s: since the log's first arrival.
        length_s: a whole number of ticks.
        reads: in it.
        ratio: of them to the mean number in so long a time.
    """

    start_s: float
    length_s: float
    reads: int
    ratio: float


def busiest_window(counts: TickCounts | None, window_s: float) -> Window:
    """The window of so many seconds with the most reads.

    Args:
        counts: reads by tick; None: there are none.
        window_s: length (s), taken in whole ticks.

    Raises:
        UserError: there are no reads, or the window is shorter than the clock tells or longer than half of the log.
    """
    if counts is None:
        raise UserError("rate=peak: found no reads in the log; allowed: a log with reads")
    window = busiest(counts, window_s)
    if window is None:
        least, most = counts.least * counts.tick_s, counts.length // 2 * counts.tick_s
        allowed = f"from {least:.6g} to {most:.6g} s, half of the log" if most >= least else "rate=mean"
        raise UserError(f"window_s: found {window_s:g}; allowed for this log: {allowed}")
    length_s = round(window_s / counts.tick_s) * counts.tick_s
    return Window(window.start_s, length_s, window.arrivals, window.ratio)


def window_of_requests(
    times: np.ndarray, write: np.ndarray, resolution_s: float, window_s: float
) -> tuple[Window, np.ndarray]:
    """The busiest window of requests in memory, and which of them are in it, (n,) bool.

    Args:
        times: (n,) s, in order.
        write: (n,) whether each is a write.
        resolution_s: step of the clock; 0 where it is as good as continuous.
        window_s: length (s).

    Raises:
        UserError: as ``busiest_window``.
    """
    clock, histogram = Clock(resolution_s), TickHistogram()
    histogram.add(clock.places(times), np.where(write, -1, 0))
    window = busiest_window(histogram.counts(0, clock) if histogram.series else None, window_s)
    return window, _inside(times, Clock(resolution_s), window)


def window_statistics(trace: Trace, window: Window, first_s: float) -> TraceStatistics:
    """The statistics of the requests of a trace that begin in a window.

    Args:
        trace: read once more, from its beginning; without the background work that its statistics go without.
        window: of it, which has a read.
        first_s: its first arrival.

    Raises:
        UserError: a row is malformed.
    """
    return scan(replace(trace, read=lambda: _rows_inside(trace, window, first_s), rows=None, cut=None))


def _inside(times: np.ndarray, clock: Clock, window: Window) -> np.ndarray:
    """Whether times are in a window, (n,) bool, with the ticks of the clock as they are counted."""
    begin, length = round(window.start_s / clock.unit_s), round(window.length_s / clock.unit_s)
    places = clock.places(times)
    return (places >= begin) & (places < begin + length)


def _rows_inside(trace: Trace, window: Window, first_s: float) -> Iterator[pa.RecordBatch]:
    """Rows of requests of which the first row is in the window."""
    clock = Clock(trace.clock_resolution_s, first_s)
    open_id, open_inside = None, False  # of the request that the last row belongs to
    for batch in trace.batches():
        inside = _inside(batch.column("arrival_s").to_numpy(), clock, window)
        if "request_id" in batch.schema.names and batch.num_rows:
            ids = batch.column("request_id").to_numpy(zero_copy_only=False)
            begins = np.concatenate([[ids[0] != open_id], ids[1:] != ids[:-1]])
            if not begins[0]:
                begins[0], inside[0] = True, open_inside
            inside = inside[np.flatnonzero(begins)][np.cumsum(begins) - 1]
            open_id, open_inside = ids[-1], bool(inside[-1])
        rows = batch.filter(pa.array(inside))
        if rows.num_rows:
            yield rows
