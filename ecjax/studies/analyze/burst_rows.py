"""Result tables of the arrivals of a trace: how bursty they are by time scale, busiest times, rates over time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.studies.analyze.burst_words import burstier_from, burstiness_text, scale_text
from ecjax.tables.statistics.poisson import too_coarse
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.statistics.ticks import TickCounts
from ecjax.traffic.burstiness import Dispersion, busiest, dispersion, verdicts
from ecjax.units import time_text

WINDOWS_S = (1.0, 60.0, 3600.0, 86400.0)
_INTERVALS, _READS_EACH = 1024, 32  # of a rate curve: at most, and on average at least
_FEW = 1000  # requests
_PARTIAL = 4.0  # standard errors below its neighbour, that a tick is a part of one


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
    """The datasets ``burstiness``, ``busiest`` and ``rates``, those of them that have rows.

    Args:
        statistics: of the trace.
        notices: what cannot be told, and what still can, is added.
    """
    kinds = statistics.times.classes
    kind = pa.int64() if kinds and isinstance(next(iter(kinds)), int) else pa.string()
    tables = {
        "burstiness": _joined([_burstiness(each, kind) for each in _series(statistics)]),
        "busiest": _joined([_busiest(each, kind) for each in _series(statistics)]),
        "rates": _joined([_rates(each, kind) for each in _curves(statistics)]),
    }
    notices += _notices(statistics)
    return {name: table for name, table in tables.items() if table is not None and table.num_rows}


def _joined(tables: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(tables) if tables else None


def _named(series: _Series, kind: pa.DataType, rows: int) -> dict[str, pa.Array]:
    return {
        "op": pa.repeat(pa.scalar(series.op), rows),
        "service_class": pa.repeat(pa.scalar(series.service_class, kind), rows),
    }


def _whole_ticks(counts: TickCounts) -> tuple[int, int]:
    """Ticks from and to (not included) without a first or last one that the log holds but a part of.

    With a thousand arrivals per tick of a coarse clock such a one alone would look like a burst. It is told by a count
    far below that of its neighbour.
    """
    begin, end = 0, counts.length
    if len(counts.tick) > 2:
        sizes = counts.count[[0, 1, -2, -1]].astype(float)
        partial = (sizes[[1, 2]] - sizes[[0, 3]]) > _PARTIAL * np.sqrt(sizes[[1, 2]] + sizes[[0, 3]])
        begin += int(partial[0] and counts.tick[1] == 1)
        end -= int(partial[1] and counts.tick[-2] == end - 2)
    return begin, end


def _dispersion(counts: TickCounts) -> Dispersion:
    return dispersion(counts, [_whole_ticks(counts)])


def _burstiness(series: _Series, kind: pa.DataType) -> pa.Table:
    """A row per scale that has a complete pair of windows with arrivals."""
    table = _dispersion(series.counts)
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
    rows = [(window, busiest(series.counts, window)) for window in WINDOWS_S]
    told = [(window, row) for window, row in rows if row is not None]
    return pa.table(
        {
            **_named(series, kind, len(told)),
            "window_s": pa.array([window for window, _ in told], pa.float64()),
            "start_s": pa.array([row.start_s for _, row in told], pa.float64()),
            "requests": pa.array([row.arrivals for _, row in told], pa.int64()),
            "mean_ratio": pa.array([row.ratio for _, row in told], pa.float64()),
        }
    )


def _curves(statistics: TraceStatistics) -> list[_Series]:
    """Reads by class where there are classes, else all of them: a table of rates says one of both."""
    reads = [each for each in _series(statistics) if each.op == "read"]
    return [each for each in reads if each.service_class is not None] or reads


def _rates(series: _Series, kind: pa.DataType) -> pa.Table:
    """A row per interval: its rate to the mean rate of the series. No rows where all arrive in one tick."""
    counts = series.counts
    most = int(min(_INTERVALS, max(1, counts.count.sum() // _READS_EACH)))
    together = max(-(-counts.length // most), counts.least)
    intervals = -(-counts.length // together) if counts.length > 1 else 0
    reads = np.bincount(counts.tick // together, counts.count, intervals)[:intervals]
    ticks = (
        np.minimum(np.arange(1, intervals + 1) * together, counts.length) - np.arange(intervals) * together
    )
    mean = counts.count.sum() / counts.length
    return pa.table(
        {
            "service_class": pa.repeat(pa.scalar(series.service_class, kind), intervals),
            "start_s": np.arange(intervals) * (together * counts.tick_s),
            "factor": reads / (ticks * mean),
            "duration_s": ticks * counts.tick_s,
            "reads": pa.array(reads.astype(np.int64)),
        }
    )


def _notices(statistics: TraceStatistics) -> list[str]:
    """What a log is too short, too coarse or too broken for, and what is known nevertheless; a sentence each."""
    times, arrivals = statistics.times, statistics.arrivals
    found = []
    if statistics.requests < _FEW and arrivals.span_s > 0:
        error = 100 / np.sqrt(statistics.requests)
        found.append(
            f"{statistics.requests} requests are few: their rate is known to ± {error:.0f} % if they are Poisson; at "
            "scales where burstiness says that it cannot tell, nothing is known of bursts."
        )
    if len(statistics.file_ids) == 1 and statistics.requests > 1:
        found.append(
            "All requests are for one file: its rates, delays and bursts are known; popularity, and whether bursts are "
            "common or of single files, cannot be told."
        )
    if times.class_count and not times.classes and times.reads is not None:
        found.append(
            f"{times.class_count:,} service classes are too many to be told apart: burstiness and rates are those of "
            "all reads."
        )
    step = times.step_s
    if arrivals.span_s > 0 and too_coarse(step, arrivals.ties, statistics.requests, arrivals.span_s):
        found.append(
            f"The clock ticks every {scale_text(step)}: nothing is known of bursts shorter than that, nor of waits; "
            f"rates, popularity and burstiness from {scale_text(step)} on are."
        )
    if len(times.silences):
        found.append(_silence(statistics))
    bursty = _burstier(times.reads)
    if bursty is not None:
        found.append(
            f"Reads are burstier than Poisson at scales above {scale_text(bursty)}: bounds and estimates of latency at "
            "mean rates, as those of ecjax optimize, assume Poisson arrivals and are too low for this log; replay its "
            "own arrivals (ecjax replay plan=OUT trace=LOG arrivals=trace)."
        )
    return found


def _burstier(counts: TickCounts | None) -> float | None:
    if counts is None:
        return None
    table = _dispersion(counts)
    return burstier_from(table.scale_s.tolist(), verdicts(table))


def _silence(statistics: TraceStatistics) -> str:
    """That nothing arrives for long, and what the rest of the log says by itself."""
    silences, span = statistics.times.silences, statistics.arrivals.span_s
    lengths = silences[:, 1] - silences[:, 0]
    longest = int(np.argmax(lengths))
    share = f"{100 * lengths.sum() / span:.2g} % of the log"
    where = f"{time_text(lengths[longest])} from {time_text(silences[longest, 0])} on"
    text = f"No request comes for {where}: {share}. If it was not recorded then"
    if len(silences) > 1:
        text = (
            f"No request comes in {len(silences)} silent stretches, the longest {where}: {share}. If it was not "
            "recorded then"
        )
    counts = statistics.times.reads or statistics.times.writes
    assert counts is not None
    table = dispersion(counts, _segments(counts, silences))
    rate = counts.count.sum() / (span - lengths.sum())
    kind = "reads" if statistics.times.reads is not None else "writes"
    words = burstiness_text(table.scale_s.tolist(), verdicts(table))
    return f"{text}, {kind} come at {rate:.4g} per s and are, in between, {words}."


def _segments(counts: TickCounts, silences: np.ndarray) -> list[tuple[int, int]]:
    """Ticks between silent stretches, from and to (not included)."""
    ticks = np.floor(silences / counts.tick_s + 1e-6).astype(np.int64)
    first, last = _whole_ticks(counts)
    begins, ends = [first, *ticks[:, 1].tolist()], [*(ticks[:, 0] + 1).tolist(), last]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if end > begin]
