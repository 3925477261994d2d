"""What ``ecjax analyze`` prints: what the trace tells, what it lacks, and the nodes."""

import math
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

_NODES_SHOWN = 24
_PLAUSIBLE_SHARE = 0.1


def show(tables: dict[str, pa.Table], console: Console, out: str) -> None:
    """Print the summary of a trace from its result tables."""
    if "traces" in tables:
        row = tables["traces"].to_pylist()[0]
        _show_trace(row, console, out)
    if "nodes" in tables:
        _show_nodes(tables["nodes"], console)
    if "traces" in tables:
        for sentence in (row["notices"] or "").splitlines():
            console.print(f"note: {sentence}", style="yellow", highlight=False)


def _show_trace(row: dict[str, Any], console: Console, out: str) -> None:
    table = Table(title=f"analyze: {row['trace']} in {out}", box=box.SIMPLE_HEAD, show_header=False)
    table.title_justify = "left"
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("format", f"{row['format']}; provides {row['provides']}")
    for sentence in (row["loses"] or "").splitlines():
        table.add_row("", sentence)
    table.add_row(
        "rows",
        f"{row['rows']:,} rows, {row['requests']:,} requests ({row['reads']:,} reads, {row['writes']:,} writes)",
    )
    table.add_row("span", f"{duration(row['span_s'])}; clock {_clock(row)}")
    if row["read_rate_per_s"] is not None:
        table.add_row(
            "rates", f"{row['read_rate_per_s']:.4g} reads/s, {row['write_rate_per_s']:.4g} writes/s"
        )
    table.add_row("files", f"{row['files']:,} distinct, {size(row['bytes'])} asked for")
    if row["zipf_exponent"] is not None:
        table.add_row(
            "popularity", f"Zipf exponent {row['zipf_exponent']:.4f} ± {row['zipf_error']:.2g} (reads)"
        )
    table.add_row("arrivals", _arrivals(row))
    if row["mean_delay_s"] is not None:
        table.add_row(row["delay_quantity"], f"mean {row['mean_delay_s']:.4g} s (reads){_concurrency(row)}")
    if row["chunk_correlation"] is not None:
        table.add_row(
            "correlation",
            f"{row['chunk_correlation']:.3f}{_plus_minus(row['chunk_correlation_error'])} between the "
            f"{row['delay_quantity']} times of one request's chunks",
        )
    console.print(table, highlight=False)


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f" ± {error:.2g}"


def _concurrency(row: dict[str, Any]) -> str:
    return (
        "" if row["concurrency"] is None else f"; {row['concurrency']:.3g} accesses in the system on average"
    )


def _clock(row: dict[str, Any]) -> str:
    if row["clock_resolution_s"] == 0:
        return "continuous"
    text = f"ticks of {row['clock_resolution_s']:g} s"
    return text + (f", {row['ties']:,} ties spread within a tick" if row["ties"] else "")


def _arrivals(row: dict[str, Any]) -> str:
    parts = []
    if row["interarrival_cv"] is not None:
        parts.append(f"coefficient of variation of the gaps {row['interarrival_cv']:.3g} (Poisson: 1)")
    parts.append(verdict(row))
    return "; ".join(parts)


def verdict(row: dict[str, Any]) -> str:
    """What the test of Poisson arrivals says, in words."""
    share, p = row["poisson_rejected_share"], row["poisson_p"]
    if p is None:
        return "too few requests to test for Poisson arrivals"
    numbers = f"{100 * share:.1f} % of {row['poisson_blocks']:,} blocks rejected at 5 %, p {_p(p)})"
    if p >= 0.05:
        return f"agrees with Poisson arrivals ({numbers}"
    return f"{'close to' if share < _PLAUSIBLE_SHARE else 'not'} Poisson arrivals ({numbers}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 1e-16 else "< 1e-16"


def _show_nodes(nodes: pa.Table, console: Console) -> None:
    rows = nodes.to_pylist()
    title = f"nodes: service times ({rows[0]['service_source']})"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    headings = ("node", "reads", "writes", "mean s", "± s", "sd s", "KS to\nexponential", "load", "in\nnode")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "node" else "right", no_wrap=True)
    for row in rows[:_NODES_SHOWN]:
        variance = row["observed_second_s2"] - row["observed_mean_s"] ** 2
        table.add_row(
            str(row["node_id"]),
            f"{row['chunk_reads']:,}",
            f"{row['chunk_writes']:,}",
            f"{row['observed_mean_s']:.4g}",
            _number(row["observed_mean_error_s"], ".2g"),
            f"{math.sqrt(max(variance, 0.0)):.4g}",
            _number(row["exponential_distance"], ".3f"),
            _number(row["load"], ".3f"),
            _number(row["concurrency"], ".3g"),
        )
    console.print(table, highlight=False)
    if len(rows) > _NODES_SHOWN:
        console.print(f"... and {len(rows) - _NODES_SHOWN} more nodes", highlight=False)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def duration(seconds: float) -> str:
    """A length of time in words."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds:,.6g} s ({seconds / length:.3g} {unit})"
    return f"{seconds:,.6g} s"


def size(count: float) -> str:
    """A number of bytes in words."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} PB"
