"""Accesses of each file that its rates are taken from: of the whole log, or of its busiest window."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.importers import Trace
from ecjax.tables.statistics.files import READS, WRITES
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.statistics.shrinkage import shrinkage_sentence, shrunk_rates
from ecjax.traffic.peak import Window, busiest_window, window_statistics
from ecjax.units import count_text


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


def with_shrunk_rates(
    files: pa.Table, statistics: TraceStatistics, accesses: Counted, complete: bool, notices: list[str]
) -> pa.Table:
    """The ``files`` table with rates of reads that all files together make likely, and their standard errors.

    Args:
        files: with rates as counted; those that are not of the log have none.
        statistics: of the log.
        accesses: that its rates were counted from.
        complete: whether files without a read are in it; else the log names only files that were accessed.
        notices: what was done is added.
    """
    if files["rate_per_s"].null_count:
        return files  # a log without a span has no rates
    rows = pc.index_in(files["file_id"], value_set=statistics.file_ids).combine_chunks()
    counts = np.append(accesses.reads, 0.0)[rows.fill_null(len(accesses.reads)).to_numpy()]
    shrunk = shrunk_rates(counts, accesses.duration_s, not complete)
    notices.append(shrinkage_sentence(shrunk))
    for name, values in (("rate_per_s", shrunk.rate), ("rate_standard_error_per_s", shrunk.error)):
        files = files.set_column(files.column_names.index(name), name, pa.array(values))
    return files


def counted(statistics: TraceStatistics, trace: Trace, window_s: float | None, notices: list[str]) -> Counted:
    """What the rates of a log's files are taken from.

    Args:
        statistics: of the log.
        trace: it, without background work; read once more for a window.
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
        f"many windows; {count_text(unread, 'file that is', 'files that are')} read at other times "
        f"{'has' if unread == 1 else 'have'} rate 0. Loads of nodes are means over the log."
    )
    return Counted(counts[:, 0], counts[:, 1], window.length_s, window)
