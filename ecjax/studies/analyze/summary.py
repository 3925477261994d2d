"""What ``ecjax analyze`` prints: what the trace tells, what it lacks, and the nodes."""

import math
from typing import Any

import pandas as pd
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ecjax.console import say
from ecjax.display import displayed
from ecjax.studies.analyze.burst_summary import burst_facts, show_burstiness
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.tables.statistics.poisson import too_coarse
from ecjax.units import Unit, bytes_text, count_text, fitting_unit, time_text

_NODES_SHOWN = 24
_PLAUSIBLE_SHARE = 0.1
_TIMES = ("mean", "±", "sd")


def show(runs: pd.DataFrame, tables: dict[str, pa.Table], console: Console, out: str) -> None:
    """Print the summary of a trace from its result tables, or what went wrong."""
    rows = tables["traces"].to_pylist() if "traces" in tables else []
    for row in rows:
        _show_trace(row, burst_facts(tables), console, out)
    show_burstiness(tables, console)
    if "nodes" in tables:
        _show_nodes(tables["nodes"], console)
    for row in rows:
        for sentence in (row["notices"] or "").splitlines():
            say(console, f"note: {sentence}", "yellow")
    print_errors(runs, console)


def _show_trace(row: dict[str, Any], bursts: list[tuple[str, str]], console: Console, out: str) -> None:
    table = Table(
        title=Text(displayed(f"analyze: {row['trace']} in {out}")),
        box=box.SIMPLE_HEAD,
        show_header=False,
        title_justify="left",
        title_style="table.title",
    )
    table.add_column(no_wrap=True)
    table.add_column()
    for name, value in _facts(row, bursts):
        table.add_row(Text(name), Text(displayed(value)))
    console.print(table)


def _facts(row: dict[str, Any], bursts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What a row of ``traces`` tells, a name and words for each; no name where it belongs to the one before.

    Args:
        row: of the trace.
        bursts: what is said of how bursty its reads and writes are.
    """
    kinds = f"({count_text(row['reads'], 'read')}, {count_text(row['writes'], 'write')})"
    facts = [("format", f"{row['format']}; provides {row['provides']}")]
    facts += [("", sentence) for sentence in (row["loses"] or "").splitlines()]
    facts.append(
        ("rows", f"{count_text(row['rows'], 'row')}, {count_text(row['requests'], 'request')} {kinds}")
    )
    facts.append(("span", f"{time_text(row['span_s'])}; clock {_clock(row)}"))
    if row["read_rate_per_s"] is not None:
        rates = f"{row['read_rate_per_s']:.4g} reads/s, {row['write_rate_per_s']:.4g} writes/s"
        facts.append(("rates", rates))
    facts.append(("files", f"{row['file_count']:,} distinct, {bytes_text(row['bytes'])} asked for"))
    if row["zipf_exponent"] is not None:
        exponent = f"Zipf exponent {row['zipf_exponent']:.4f} ± {row['zipf_error']:.2g} (reads)"
        facts.append(("popularity", exponent))
    facts.append(("arrivals", _arrivals(row)))
    facts += bursts
    if row["mean_delay_s"] is not None:
        facts.append(
            (row["delay_quantity"], f"mean {time_text(row['mean_delay_s'])} (reads){_concurrency(row)}")
        )
    if row["chunk_correlation"] is not None:
        value = f"{row['chunk_correlation']:.3f}{_plus_minus(row['chunk_correlation_error'])}"
        between = f"between the {row['delay_quantity']} times of one request's chunks"
        facts.append(("correlation", f"{value} {between}"))
    return facts


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f" ± {error:.2g}"


def _concurrency(row: dict[str, Any]) -> str:
    return (
        "" if row["concurrency"] is None else f"; {row['concurrency']:.3g} accesses in the system on average"
    )


def _clock(row: dict[str, Any]) -> str:
    if row["clock_resolution_s"] == 0:
        return "continuous"
    text = f"ticks of {time_text(row['clock_resolution_s'])}"
    return text + (f", {row['ties']:,} ties spread within a tick" if row["ties"] else "")


def _arrivals(row: dict[str, Any]) -> str:
    parts = []
    if row["interarrival_cv"] is not None and not _coarse(row):
        parts.append(f"coefficient of variation of the gaps {row['interarrival_cv']:.3g} (Poisson: 1)")
    parts.append(verdict(row))
    return "; ".join(parts)


def verdict(row: dict[str, Any]) -> str:
    """What the test of Poisson arrivals says, in words."""
    share, p = row["poisson_rejected_share"], row["poisson_p"]
    if _coarse(row):
        return (
            f"from gap to gap the clock is too coarse to tell whether they are Poisson (ticks of "
            f"{row['clock_resolution_s']:g} s, {row['ties']:,} of {row['requests']:,} at the time of the one before, "
            f"mean gap {row['span_s'] / row['requests']:.3g} s)"
        )
    if p is None:
        return "too few requests to test for Poisson arrivals"
    numbers = f"{100 * share:.1f} % of {row['poisson_blocks']:,} blocks of 128 gaps rejected at 5 %"
    words = "agrees with" if p >= 0.05 else "close to" if share < _PLAUSIBLE_SHARE else "not"
    return f"from gap to gap {words} Poisson arrivals ({numbers})"


def _coarse(row: dict[str, Any]) -> bool:
    return too_coarse(row["clock_resolution_s"], row["ties"], row["requests"], row["span_s"])


def _show_nodes(nodes: pa.Table, console: Console) -> None:
    rows = nodes.slice(0, _NODES_SHOWN).to_pylist()
    title = f"nodes: service times ({rows[0]['service_source']})"
    unit = fitting_unit(row["observed_mean_s"] for row in rows)
    mean, margin, deviation = (f"{name} {unit.name}" for name in _TIMES)
    headings = ("node", "reads", "writes", mean, margin, deviation, "KS to\nexponential", "load", "in\nnode")
    print_table(
        console,
        title,
        headings,
        [_node_cells(row, unit) for row in rows],
        words=("node",),
        padding=(0, 1, 0, 0),
        least=("in\nnode", "KS to\nexponential", margin, "writes", deviation),
        dataset="nodes",
    )
    if nodes.num_rows > _NODES_SHOWN:
        say(console, f"... and {nodes.num_rows - _NODES_SHOWN} more nodes")


def _node_cells(row: dict[str, Any], unit: Unit) -> list[str]:
    variance = row["observed_second_s2"] - row["observed_mean_s"] ** 2
    return [
        str(row["node_id"]),
        f"{row['chunk_reads']:,}",
        f"{row['chunk_writes']:,}",
        unit.cell(row["observed_mean_s"]),
        unit.cell(row["observed_mean_error_s"], 2),
        unit.cell(math.sqrt(max(variance, 0.0))),
        number(row["exponential_distance"], ".3f"),
        number(row["load"], ".3f"),
        number(row["concurrency"], ".3g"),
    ]
