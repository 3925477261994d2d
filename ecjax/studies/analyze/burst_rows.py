"""Result tables of the arrivals of a trace: how bursty they are by time scale, busiest times, rates over time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.studies.analyze.burst_notices import burst_notices, whole_dispersion
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.statistics.ticks import TickCounts
from ecjax.traffic.burstiness import busiest, verdicts

WINDOWS_S = (1.0, 60.0, 3600.0, 86400.0)
_TOLERANCE = 0.03  # of these lengths: 1.024 s, of milliseconds that were joined, is a second
_INTERVALS, _READS_EACH = 1024, 32  # of a rate curve: at most, and on average at least


class _Series(NamedTuple):
    """Reads, writes, or the reads of a class."""

    op: str
    service_class: int | str | None
    counts: TickCounts


def _series(statistics: TraceStatistics) -> Iterator[_Series]:
    times = statistics.times
    if times.reads is not None:
        yield _Series("read", None, times.reads)
    if times.writes is not None:
        yield _Series("write", None, times.writes)
    for name, counts in times.classes.items():
        yield _Series("read", name, counts)


def arrival_tables(statistics: TraceStatistics, notices: list[str]) -> dict[str, pa.Table]:
    """The datasets ``burstiness``, ``busiest``, ``rates`` and ``class_rates``, those of them that have rows.

    Args:
        statistics: of the trace.
        notices: what cannot be told, and what still can, is added.
    """
    series, names = list(_series(statistics)), statistics.times.classes
    kind = pa.int64() if any(isinstance(name, int) for name in names) else pa.string()
    tables = {
        "burstiness": _joined([_burstiness(each, kind) for each in series]),
        "busiest": _joined([_busiest(each, kind) for each in series]),
        "rates": _joined(
            [_rates(each) for each in series if each.op == "read" and each.service_class is None]
        ),
        "class_rates": _joined(
            [_class_rates(each, kind) for each in series if each.service_class is not None]
        ),
    }
    notices += burst_notices(statistics)
    return {name: table for name, table in tables.items() if table is not None and table.num_rows}


def _joined(tables: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(tables) if tables else None


def _named(series: _Series, kind: pa.DataType, rows: int) -> dict[str, pa.Array]:
    return {
        "op": pa.repeat(pa.scalar(series.op), rows),
        "service_class": pa.repeat(pa.scalar(series.service_class, kind), rows),
    }


def _burstiness(series: _Series, kind: pa.DataType) -> pa.Table:
    """A row per scale that has a complete pair of windows with arrivals."""
    table = whole_dispersion(series.counts)
    some = table.arrivals > 0
    return pa.table(
        {
            **_named(series, kind, int(np.count_nonzero(some))),
            "scale_s": table.scale_s[some],
            "dispersion": table.dispersion[some],
            "standard_error": table.standard_error[some],
            "pairs": table.pairs[some],
            "verdict": pa.array(np.array(verdicts(table), object)[some], pa.string()),
        }
    )


def _busiest(series: _Series, kind: pa.DataType) -> pa.Table:
    """A row per length of window that the log has two of, and its clock can tell."""
    rows = [(window, busiest(series.counts, window, _TOLERANCE)) for window in WINDOWS_S]
    known = [(window, row) for window, row in rows if row is not None]
    return pa.table(
        {
            **_named(series, kind, len(known)),
            "window_s": pa.array([window for window, _ in known], pa.float64()),
            "start_s": pa.array([row.start_s for _, row in known], pa.float64()),
            "requests": pa.array([row.arrivals for _, row in known], pa.int64()),
            "mean_ratio": pa.array([row.ratio for _, row in known], pa.float64()),
        }
    )


def _class_rates(series: _Series, kind: pa.DataType) -> pa.Table:
    table = _rates(series)
    return table.add_column(0, "service_class", pa.repeat(pa.scalar(series.service_class, kind), len(table)))


def _rates(series: _Series) -> pa.Table:
    """A row per interval: its rate to the mean rate of the series. No rows where all arrive in one tick."""
    counts = series.counts
    most = int(min(_INTERVALS, max(1, counts.arrivals.sum() // _READS_EACH)))
    together = max(-(-counts.length // most), counts.least)
    # what is left at the end is an interval of its own if it is half of one or more: its rate goes on in replays
    intervals = max((counts.length + together // 2) // together, 1) if counts.length > 1 else 0
    place = np.minimum(counts.tick // together, max(intervals - 1, 0))
    reads = np.bincount(place, counts.arrivals, intervals)[:intervals]
    number = np.arange(intervals)
    ticks = np.diff(number * together, append=counts.length)
    mean = counts.arrivals.sum() / counts.length
    return pa.table(
        {
            "start_s": number * (together * counts.tick_s),
            "factor": reads / (ticks * mean),
            "duration_s": ticks * counts.tick_s,
            "reads": pa.array(reads.astype(np.int64)),
        }
    )
