"""Latency against cost of the plans, with the bound below which no plan lies."""

import pyarrow as pa

from ecjax.report.drawing import look, numbers
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import Results, pick, words

_COST = "cost_dollars_per_period"
_COLUMNS = (
    "run_id",
    "method",
    "theta",
    _COST,
    "latency_s",
    "estimated_mean_s",
    "objective",
    "lower_bound",
    "gap",
    "mean_n",
)


def section(results: Results) -> Section | None:
    """A point per plan, a line per method."""
    if results.job != "optimize":
        return None
    table = pick(results.runs, _COLUMNS)
    if not {_COST, "latency_s", "method"} <= set(table.column_names):
        return None
    table = table.sort_by([("method", "ascending"), (_COST, "ascending")])
    methods = words(table, "method")
    names = sorted(set(methods))
    traces: list[dict[str, Json]] = []
    for number, method in enumerate(names):
        part = table.take([row for row, name in enumerate(methods) if name == method])
        plans = [
            f"run {run}, theta {theta}"
            for run, theta in zip(words(part, "run_id"), _words(part, "theta"), strict=True)
        ]
        for column, label in (("latency_s", "bound"), ("estimated_mean_s", "estimate")):
            if column in part.column_names:
                traces.append(
                    {
                        "type": "scatter",
                        "mode": "lines+markers",
                        "name": f"{method}, {label}",
                        "x": numbers(part, _COST),
                        "y": numbers(part, column),
                        "text": plans,
                        "hovertemplate": "%{x:.5g} $/period, %{y:.5g} s<br>%{text}",
                        **look(2 * number + (column != "latency_s")),
                    }
                )
    charts = [Chart("Mean latency against cost", traces, "cost ($/period)", "mean latency (s)", table)]
    if {"lower_bound", "objective", "theta"} <= set(table.column_names):
        ordered = table.sort_by("theta")
        bound: list[dict[str, Json]] = [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": label,
                "x": numbers(ordered, "theta"),
                "y": numbers(ordered, column),
                "hovertemplate": "theta %{x:.5g}: %{y:.5g} s",
                **look(number),
            }
            for number, (column, label) in enumerate(
                (("objective", "objective"), ("lower_bound", "lower bound"))
            )
        ]
        charts.append(
            Chart(
                "Objective and its lower bound",
                bound,
                "theta (s/$)",
                "objective (s)",
                ordered,
                {"xaxis": {"type": "log"}},
            )
        )
    return Section("Latency against cost", charts=charts)


def _words(table: pa.Table, name: str) -> list[str]:
    return words(table, name) if name in table.column_names else [""] * len(table)
