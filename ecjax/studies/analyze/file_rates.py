"""Accesses of each file that its rates are taken from: of the whole log, or of its busiest window."""

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from ecjax.tables.importers import Trace
from ecjax.tables.statistics.files import READS, WRITES
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.traffic.peak import Window, busiest_window, window_statistics


class Counted(NamedTuple):
    """Accesses of each file, and the time that they came in.

    Attributes:
        reads, writes: (files,).
        duration_s: of the log, or of the window.
        window: the busiest one of the log; None: the whole log.
    """

    reads: np.ndarray
    writes: np.ndarray
    duration_s: float
    window: Window | None = None


def counted(statistics: TraceStatistics, trace: Trace, window_s: float | None, notices: list[str]) -> Counted:
    """What the rates of a log's files are taken from.

    Args:
        statistics: of the log.
        trace: it, which is read once more for a window.
        window_s: length of the busiest window to take (s); None: the whole log.
        notices: what holds only under an assumption is added.

    Raises:
        UserError: the log has no reads, or no window of this length can be told.
    """
    totals = statistics.files
    if window_s is None:
        return Counted(totals[:, READS], totals[:, WRITES], statistics.arrivals.span_s)
    window = busiest_window(statistics.times.reads, window_s)
    inside = window_statistics(trace, window, statistics.arrivals.first_s)
    rows = pc.index_in(inside.file_ids, value_set=statistics.file_ids).to_numpy()
    counts = np.zeros((len(statistics.file_ids), 2))
    counts[rows] = inside.files[:, [READS, WRITES]]
    unread = int(np.count_nonzero((counts[:, 0] == 0) & (totals[:, READS] > 0)))
    notices.append(
        f"Rates are those of the busiest {window.length_s:g} s, {window.start_s:.6g} s after the first arrival: "
        f"{window.ratio:.3g} times the mean. They stand for peaks that read the same files as this one, the largest of "
        f"many windows; {unread} files that are read at other times have rate 0. Loads of nodes are means over the log."
    )
    return Counted(counts[:, 0], counts[:, 1], window.length_s, window)
