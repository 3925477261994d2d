"""Codes beside each other: nines, overhead, repairs, what the nines rest on, and latencies."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import bars, look, numbers
from ecjax.report.parts import Chart, Json, Listing, Section
from ecjax.report.results import Results, pick, words

_NINES = (
    ("nines", "as described"),
    ("nines_double_afr", "disks fail twice as often"),
    ("nines_double_domain_losses", "domains are lost twice as often"),
    ("nines_double_repair", "repairs take twice as long"),
)
_STATES = (
    ("healthy", "healthy"),
    ("down", "with a node or its site down"),
    ("slow", "with it slow"),
    ("repairing", "under repair"),
)
_LATENCIES = (
    ("Mean latency of full reads", "", "mean", ("code", "expected mean latency (s)")),
    ("99th percentile of full reads", "", "p99", ("code", "99th percentile of latency (s)")),
    ("Mean latency of small reads", "small_", "mean", ("code", "expected mean latency (s)")),
    ("99th percentile of small reads", "small_", "p99", ("code", "99th percentile of latency (s)")),
)
_NAMED = 16  # codes whose names stand beside their points; of more they would cover each other


def section(results: Results) -> Section | None:
    """Charts of the dataset ``codes``."""
    table = results.of_run("codes") if results.job == "codes" else None
    if table is None:
        return None
    charts = [
        _tradeoff(table),
        bars("What the nines rest on", table, "code", _NINES, ("code", "nines of an object per year")),
        bars(
            "Any loss within a year",
            table,
            "code",
            [
                ("any_loss_probability", "any loss"),
                ("any_group_loss_probability", "whole groups"),
                ("latent_loss_probability", "latent errors"),
            ],
            ("code", "probability per year"),
            log=True,
        ),
        bars(
            "Repair of a disk",
            table,
            "code",
            [
                ("disk_repair_s", "until all of its groups are whole"),
                ("repair_s", "a group that lost a chunk"),
            ],
            ("code", "time with detection (s)"),
        ),
        bars(
            "Repair traffic",
            table,
            "code",
            [("repair_bytes_per_day", "read and written")],
            ("code", "repair traffic (B/day)"),
        ),
        _latencies_against_overhead(table),
        _combinations(results.of_run("combinations")),
        *(
            bars(
                title,
                table,
                "code",
                [(f"{kind}{state}_{what}_s", label) for state, label in _STATES],
                axes,
                log=True,
            )
            for title, kind, what, axes in _LATENCIES
        ),
    ]
    listings = [
        Listing(title, pick(rows, [name for name in rows.column_names if name != "run_id"]))
        for title, rows in (
            ("Codes", table),
            ("Codes by class of files", results.of_run("class_codes")),
            ("Combinations of codes", results.of_run("combinations")),
        )
        if rows is not None
    ]
    return Section(
        "Codes and durability", charts=[chart for chart in charts if chart is not None], listings=listings
    )


def _tradeoff(table: pa.Table) -> Chart | None:
    """Nines against overhead."""
    shown = pick(table, ("code", "overhead", "nines", "pareto", "durable", "dollars_per_period"))
    if not {"overhead", "nines"} <= set(shown.column_names):
        return None
    axes = ("overhead (stored bytes per byte)", "nines of an object per year")
    traces = _points(shown, "nines")
    return Chart("Durability against overhead", traces, *axes, shown, {"xaxis": {"rangemode": "normal"}})


def _latencies_against_overhead(table: pa.Table) -> Chart | None:
    """Mean latency of full reads against overhead, of codes that have one."""
    shown = pick(
        table, ("code", "overhead", "healthy_mean_s", "healthy_p99_s", "durable", "dollars_per_period")
    )
    if not {"overhead", "healthy_mean_s"} <= set(shown.column_names):
        return None
    shown = shown.filter(pc.is_valid(shown["healthy_mean_s"]))
    if not len(shown):
        return None
    axes = ("overhead (stored bytes per byte)", "expected mean latency of full reads (s)")
    traces = _points(shown, "healthy_mean_s")
    return Chart("Latency against overhead", traces, *axes, shown, {"xaxis": {"rangemode": "normal"}})


def _combinations(table: pa.Table | None) -> Chart | None:
    """Mean latency against dollars, of codes by class of files that were planned together."""
    if table is None:
        return None
    columns = ("codes", "dollars_per_period", "healthy_mean_s", "down_p99_s", "durable", "recommended")
    shown = pick(table, columns)
    if not {"dollars_per_period", "healthy_mean_s"} <= set(shown.column_names):
        return None
    shown = shown.filter(pc.is_valid(shown["healthy_mean_s"]))
    if not len(shown):
        return None
    axes = ("dollars for 30 days", "expected mean latency of full reads (s)")
    traces = _points(shown, "healthy_mean_s", "dollars_per_period", "codes")
    return Chart("Codes by class of files", traces, *axes, shown, {"xaxis": {"rangemode": "normal"}})


def _points(
    shown: pa.Table, value: str, against: str = "overhead", name: str = "code"
) -> list[dict[str, Json]]:
    """A value of the codes against another, apart by whether they are durable enough."""
    traces: list[dict[str, Json]] = []
    durability = shown["durable"].to_pylist() if "durable" in shown.column_names else [True] * len(shown)
    for number, (durable, label) in enumerate(((True, "durable enough"), (False, "not durable enough"))):
        rows = [place for place, each in enumerate(durability) if bool(each) is durable]
        if not rows:
            continue
        part = shown.take(rows)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text" if len(shown) <= _NAMED else "markers",
                "name": label,
                "x": numbers(part, against),
                "y": numbers(part, value),
                "text": words(part, name),
                "textposition": "top center",
                "hovertemplate": "%{text}: %{x:.5g}, %{y:.5g}",
                **look(number),
            }
        )
    return traces
