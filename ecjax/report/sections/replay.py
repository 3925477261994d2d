"""Latencies of replays: distributions, and means beside estimate, bound and what was observed."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import bars, lines
from ecjax.report.parts import Chart, Section
from ecjax.report.results import Results, pick

_VALUES = (
    ("mean_s", "replayed"),
    ("estimated_mean_s", "estimate"),
    ("latency_s", "bound"),
    ("observed_mean_s", "observed"),
)
_TAIL = (
    ("p99_s", "replayed"),
    ("estimated_p99_s", "estimate"),
    ("promised_p99_s", "bound"),
    ("observed_p99_s", "observed"),
)
_NAMES = ("method", "theta", "policy", "queue", "service", "rate_scale")


def section(results: Results) -> Section | None:
    """Distributions and bars of replays."""
    if results.job != "replay":
        return None
    named = _labelled(results.runs)
    charts = [
        _distributions(results),
        bars("Mean latency", named, "replay", _VALUES, ("replay", "mean latency (s)")),
        bars("99th percentile", named, "replay", _TAIL, ("replay", "99th percentile of latency (s)")),
    ]
    return Section("Replays", charts=[chart for chart in charts if chart is not None])


def _labelled(runs: pa.Table) -> pa.Table:
    """Runs with a column that says what tells them apart."""
    names = [name for name in pick(runs, _NAMES).column_names if len(pc.unique(runs.column(name))) > 1]
    labels = [
        ", ".join(f"{name} {row[name]}" for name in names) or f"run {row['run_id']}"
        for row in runs.to_pylist()
    ]
    return runs.append_column("replay", pa.array(labels, pa.string()))


def _distributions(results: Results) -> Chart | None:
    table = results.of_run("latency_bins")
    if table is None:
        return None
    if "group" in table.column_names:
        overall = table.filter(pc.is_in(table.column("group"), pa.array(["all", "overall", "total"])))
        table = overall if len(overall) else table
    sums = table.group_by(["group", "class", "source", "lower_s", "upper_s"]).aggregate([("count", "sum")])
    sums = sums.sort_by(
        [("group", "ascending"), ("class", "ascending"), ("source", "ascending"), ("upper_s", "ascending")]
    )
    keys = [
        f"{row['group']}|{row['class']}|{row['source']}"
        for row in sums.select(["group", "class", "source"]).to_pylist()
    ]
    counts = sums.column("count_sum").to_numpy()
    below = np.zeros(len(counts))
    for key in set(keys):
        rows = np.array([each == key for each in keys])
        below[rows] = np.cumsum(counts[rows]) / max(counts[rows].sum(), 1)
    shown = sums.append_column("share_below", pa.array(below))
    axes = ("latency (s)", "share of reads below")
    return lines(
        "Distribution of latency", shown, "upper_s", "share_below", ("group", "class", "source"), axes, True
    )
