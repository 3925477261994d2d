"""Result tables of a trace: its files, its arrivals over time, and one row about the whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.studies.analyze.file_rates import Counted
from ecjax.tables.importers import Trace
from ecjax.tables.importers.rejects import Tally
from ecjax.tables.importers.trace import PLACEMENT, RATES
from ecjax.tables.importers.trace import SERVICE as SERVICE_TIMES
from ecjax.tables.importers.trace import SOJOURN as SOJOURN_TIMES
from ecjax.tables.nulls import empty_to_null
from ecjax.tables.statistics.delays import QUANTITIES, SERVICE, SOJOURN
from ecjax.tables.statistics.files import (
    FIRST,
    LARGEST,
    LAST,
    READ_BYTES,
    READS,
    WRITE_BYTES,
    WRITES,
    interarrival_cv,
)
from ecjax.tables.statistics.moments import pooled_rows
from ecjax.tables.statistics.poisson import PoissonTest, poisson_test, too_coarse
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.statistics.shrinkage import poisson_error
from ecjax.tables.statistics.zipf import fit_zipf
from ecjax.traffic.peak import Window
from ecjax.units import count_text

_REJECT_TYPES = {
    "file": pa.string(),
    "line": pa.int64(),
    "reason": pa.string(),
    "lines": pa.int64(),
    "text": pa.string(),
}


def file_table(
    statistics: TraceStatistics, trace: Trace, k: int | None, accesses: Counted, notices: list[str]
) -> pa.Table:
    """The ``files`` table: what ``ecjax optimize`` plans, with counts and times.

    ``bytes`` is the mean asked for by a read (by a write, where a file was never read), rates those of ``accesses``.
    For chunk accesses both are per request, and ``k`` is the number of chunks that most reads of the file took; where
    ``k`` is given instead, ``bytes`` are those of ``k`` chunks.
    """
    totals = statistics.files
    reads, writes = totals[:, READS], totals[:, WRITES]
    chunks = _chunks(statistics, k, notices)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(reads > 0, totals[:, READ_BYTES] / reads, totals[:, WRITE_BYTES] / writes)
        rates = [counts / accesses.duration_s for counts in (accesses.reads, accesses.writes)]
        rate_error = poisson_error(accesses.reads, accesses.duration_s)
    stored = totals[:, LARGEST]
    if statistics.chunks_read is not None:
        # The largest piece is that of a chunk; a write has n of them, a file needs k.
        stored = np.where(chunks > 0, stored * chunks, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(reads > 0, size * chunks / statistics.chunks_read, stored)
    if trace.extent_bytes is not None:
        stored = np.full(len(size), float(trace.extent_bytes))
    if statistics.arrivals.span_s <= 0:
        rates, rate_error = [np.full(len(size), np.nan)] * 2, np.full(len(size), np.nan)
    table = pa.table(
        {
            "file_id": statistics.file_ids,
            "bytes": empty_to_null(size),
            "k": pa.array(chunks, mask=chunks == 0),
            "rate_per_s": empty_to_null(rates[0]),
            "rate_standard_error_per_s": empty_to_null(rate_error),
            "write_rate_per_s": empty_to_null(rates[1]),
            "stored_bytes": empty_to_null(stored),
            "reads": pa.array(reads.astype(np.int64)),
            "writes": pa.array(writes.astype(np.int64)),
            "first_arrival_s": pa.array(totals[:, FIRST].copy()),
            "last_arrival_s": pa.array(totals[:, LAST].copy()),
            "interarrival_cv": empty_to_null(interarrival_cv(totals)),
        }
    )
    without = int(np.count_nonzero(size == 0))
    if without:
        notices.append(
            f"{count_text(without, 'file')} of which no byte was asked for {'is' if without == 1 else 'are'} left out "
            "of the files table."
        )
        # files whose size is not known have no 0 there, but nothing
        table = table.filter(pc.fill_null(pc.not_equal(table["bytes"], 0.0), True))
    return table


def _chunks(statistics: TraceStatistics, k: int | None, notices: list[str]) -> np.ndarray:
    """Chunks k that rebuild each file, 0 where it is not known."""
    count = len(statistics.file_ids)
    if k is not None:
        return np.full(count, k)
    if statistics.chunks_read is None:
        notices.append("k is not in the trace: give k= (chunks that rebuild a file).")
        return np.zeros(count, np.int64)
    chunks = statistics.chunks_read
    unread = int(np.count_nonzero(chunks == 0))
    if unread:
        read = np.unique(chunks[chunks > 0])
        if read.size == 1:
            notices.append(
                f"{count_text(unread, 'file was', 'files were')} never read: k = {read[0]}, which all files read "
                "have, is taken."
            )
            return np.full(count, read[0])
        notices.append(
            f"{count_text(unread, 'file was', 'files were')} never read, so that k is not in the trace: give k=."
        )
    return chunks


def arrival_table(statistics: TraceStatistics) -> pa.Table:
    """The ``arrivals`` table: requests and bytes over time, in up to 1024 intervals."""
    width, bins = statistics.arrivals.time_bins()
    return pa.table(
        {
            "start_s": np.arange(len(bins)) * width,
            "duration_s": np.full(len(bins), width),
            "reads": bins[:, 0].astype(np.int64),
            "writes": bins[:, 1].astype(np.int64),
            "bytes": bins[:, 2].copy(),
        }
    )


def trace_table(
    statistics: TraceStatistics,
    trace: Trace,
    reading: dict[str, str],
    window: Window | None,
    notices: list[str],
) -> pa.Table:
    """The ``traces`` table: one row about the whole trace.

    Args:
        statistics: of the trace.
        trace: what was read.
        reading: columns that say how.
        window: that rates are taken from; None: the whole trace.
        notices: what the other tables lack; what this one lacks is added.
    """
    arrivals, span = statistics.arrivals, statistics.arrivals.span_s
    clock = trace.clock_resolution_s
    poisson = PoissonTest(0, np.nan, np.nan)
    if not too_coarse(clock, arrivals.ties, statistics.requests, span):
        poisson = poisson_test(*arrivals.block_distances())
    zipf = fit_zipf(statistics.files[:, READS])
    if span <= 0:
        notices.append(
            f"{count_text(statistics.requests, 'request arrives', 'requests arrive')}, all at one time: without a span "
            "there are no rates, loads or gaps; at least two different arrival times are needed."
        )
    if trace.tally is not None:
        notices += trace.tally.notices()
    if statistics.returned:
        notices.append(
            f"{count_text(statistics.returned, 'request has', 'requests have')} rows that do not follow each other; "
            "the parts count as requests of "
            "their own (sort=true brings rows with one arrival time together)."
        )
    provides = set(trace.provides) | (set() if statistics.service_reason else {SERVICE_TIMES})
    row: dict[str, Any] = {
        "trace": Path(trace.name).name,
        **reading,
        "format": trace.format,
        "provides": ", ".join(
            name for name in (RATES, SOJOURN_TIMES, SERVICE_TIMES, PLACEMENT) if name in provides
        ),
        "loses": "\n".join(trace.loses),
        "notices": "\n".join(notices),
        "rows": statistics.rows,
        "requests": statistics.requests,
        "reads": statistics.reads,
        "writes": statistics.writes,
        "bytes": statistics.bytes,
        "file_count": len(statistics.file_ids),
        "node_count": None if statistics.node_ids is None else len(statistics.node_ids),
        "span_s": span,
        "rate": "mean" if window is None else "peak",
        "window_s": span if window is None else window.length_s,
        "window_start_s": 0.0 if window is None else window.start_s,
        "read_rate_per_s": statistics.reads / span if span > 0 else None,
        "write_rate_per_s": statistics.writes / span if span > 0 else None,
        "clock_resolution_s": clock,
        "ties": arrivals.ties,
        "interarrival_cv": arrivals.interarrival_cv,
        "poisson_blocks": poisson.blocks,
        "poisson_p": poisson.p_value,
        "poisson_rejected_share": poisson.rejected_share,
        "zipf_exponent": zipf.exponent,
        "zipf_error": zipf.error,
        **_delay_columns(statistics),
    }
    cells = {
        name: None if isinstance(value, float) and np.isnan(value) else value for name, value in row.items()
    }
    return pa.Table.from_pylist([cells])


def reject_table(tally: Tally) -> pa.Table:
    """The ``rejects`` table: malformed lines of the log, the first of each reason."""
    columns: dict[str, list[Any]] = {
        "file": [each.file for each in tally.samples],
        "line": [each.line for each in tally.samples],
        "reason": [each.reason for each in tally.samples],
        "lines": [tally.reasons[each.reason] for each in tally.samples],
        "text": [each.text for each in tally.samples],
    }
    return pa.table({name: pa.array(cells, _REJECT_TYPES[name]) for name, cells in columns.items()})


def _delay_columns(statistics: TraceStatistics) -> dict[str, Any]:
    cells = statistics.cells
    if not cells.quantity.size:
        return {}
    quantity = SERVICE if np.any(cells.quantity == SERVICE) else SOJOURN
    delays = cells.choose((cells.quantity == quantity) & ~cells.write)
    pooled = pooled_rows(delays.moments, np.zeros(len(delays.bytes), np.int64), 1)[0]
    sojourn = cells.choose(cells.quantity == SOJOURN).moments
    span, correlation = statistics.arrivals.span_s, statistics.correlation
    return {
        "delay_quantity": QUANTITIES[quantity],
        "chunk_correlation": correlation.value,
        "chunk_correlation_error": correlation.error,
        "chunk_correlation_requests": correlation.requests,
        "mean_delay_s": float(pooled[1]) if pooled[0] else None,
        "concurrency": float(np.sum(sojourn[:, 0] * sojourn[:, 1]) / span) if span > 0 else None,
    }
