"""Latency against cost of the plans, with the bound below which no plan lies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import DASHES, MOST_SERIES, lines, look, numbers
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import WHOLE, Results, labelled, legend_names, pick, words

_COST, _PLANNED, _BOUND = "cost_dollars_per_period", "latency_shared_z_s", "latency_s"
_DEMAND = (
    "queue",
    "code",
    "k",
    "d",
    "what_if",
    "rate_scale",
    "size_scale",
    "class_rate_scale",
    "importance",
    "input_id",
)
_SHOWN = (
    "run_id",
    "method",
    "demand",
    "theta",
    _COST,
    _PLANNED,
    _BOUND,
    "estimated_mean_s",
    "estimated_p99_s",
    "trace_estimated_mean_s",
    "objective",
    "lower_bound",
    "gap",
    "mean_n",
)
# what else of a run's ``params`` says which plans there are, and what they come to
_ALLOWED_PLANS = (
    "max_chunks_per_site",
    "max_chunks_per_node",
    "min_extra_chunks",
    "fixed_groups",
    "size_scaling",
    "network",
    "service",
    "stripe_unit_bytes",
)
_LIMIT = "no plan is below"
_POINTS = 60  # of the line that no plan is below
_SAME = 1e-6  # relative: an objective that is latency + theta * cost but for rounding
_AXES = ("cost ($/period)", "mean latency (s)")


def section(results: Results) -> Section | None:
    """Plans as points, a line per method; what no plan can beat; gaps by theta."""
    if results.job != "optimize" or not {_COST, "method", "theta"} <= set(results.runs.column_names):
        return None
    runs = results.runs.filter(pc.is_finite(results.runs.column(_COST).cast(pa.float64())))
    if not len(runs):
        return None
    table = labelled(runs, ["method"], "methods").sort_by(
        [("method", "ascending"), (_COST, "ascending"), ("theta", "ascending")]
    )
    table = labelled(table, _varying(table), "demand")
    best = results.recommendation.run_id if results.recommendation else None
    expected = [
        _Measure(name, label)
        for name, label in (
            ("trace_estimated_mean_s", "expected, the log's arrivals"),
            ("estimated_mean_s", "expected, Poisson arrivals"),
            (_BOUND, "bound, Poisson arrivals"),
        )
    ]
    planned = [_Measure(_PLANNED, "bound, one z for all files")]
    charts = [
        _chart("Expected mean latency against cost", table, expected, best),
        _chart("Bound that plans are chosen by, against cost", table, planned, best, _limits(table)),
        _gaps(table),
    ]
    sentences = []
    if charts[1] is not None and any(str(trace["name"]).endswith(_LIMIT) for trace in charts[1].traces):
        sentences = [
            "No plan of the same files and nodes lies below the dotted line: it is the largest of lower bound - "
            "theta * cost over the thetas that were solved."
        ]
    return Section("Latency against cost", sentences, [chart for chart in charts if chart is not None])


@dataclass(frozen=True)
class _Measure:
    """A column of plans and what it is called."""

    column: str
    label: str


def _varying(table: pa.Table) -> list[str]:
    """What is asked of the cluster, as far as it differs."""
    return [name for name in _DEMAND if name in table.column_names and len(pc.unique(table.column(name))) > 1]


def _groups(table: pa.Table, *names: str) -> dict[tuple[str, ...], pa.Table]:
    keys = list(zip(*(words(table, name, WHOLE) for name in names), strict=True))
    return {
        key: table.take([row for row, each in enumerate(keys) if each == key]) for key in dict.fromkeys(keys)
    }


def _chart(
    title: str,
    table: pa.Table,
    measures: Sequence[_Measure],
    best: str | None,
    limits: dict[str, pa.Table] | None = None,
) -> Chart | None:
    """Lines of methods; a star at the plan that is recommended; lines that no plan is below, by demand."""
    present = [each for each in measures if each.column in pick(table, [each.column]).column_names]
    traces: list[dict[str, Json]] = []
    names = legend_names(words(table, "demand", WHOLE))
    for number, ((method, demand), part) in enumerate(_groups(table, "methods", "demand").items()):
        for place, measure in enumerate(present):
            if part.column(measure.column).null_count < len(part):
                label = ", ".join(filter(None, (method, names[demand], measure.label)))
                traces.append(_points(part, measure, label, _look(number, place)))
    if not traces:
        return None
    if len(traces) > MOST_SERIES:
        title = f"{title}: {MOST_SERIES} of {len(traces)} lines, all in the table"
        traces = traces[:MOST_SERIES]
    behind = pick(table, _SHOWN)
    for demand, limit in list((limits or {}).items())[:MOST_SERIES]:
        label = ", ".join(filter(None, (names[demand], _LIMIT)))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": numbers(limit, _COST),
                "y": numbers(limit, _PLANNED),
                "hovertemplate": "no plan at %{x:.5g} $/period is below %{y:.5g} s<extra></extra>",
                "line": {"color": "#8a8a8a", "dash": "dot", "width": 3},
            }
        )
        behind = pa.concat_tables(
            [behind, limit.append_column("method", pa.array([label] * len(limit)))], promote_options="default"
        )
    star = _recommended(table, present, best)
    return Chart(title, [*traces, *star], *_AXES, behind)


def _look(number: int, place: int) -> dict[str, Json]:
    """Colour and symbol of the method, dash and filling of the measure."""
    series = look(number)
    line, marker = series["line"], series["marker"]
    assert isinstance(line, dict) and isinstance(marker, dict)
    hollow = "" if place == 0 else "-open"
    return {
        "line": {**line, "dash": DASHES[place]},
        "marker": {**marker, "symbol": f"{marker['symbol']}{hollow}"},
    }


def _points(part: pa.Table, measure: _Measure, label: str, looks: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": numbers(part, _COST),
        "y": numbers(part, measure.column),
        "text": _plans(part),
        "hovertemplate": "%{x:.5g} $/period, %{y:.5g} s<br>%{text}",
        **looks,
    }


def _plans(part: pa.Table) -> list[str]:
    """What a plan is, for who points at it."""
    names = pick(part, ("theta", "gap", "mean_n", "max_load")).column_names
    rows = part.select(["run_id", *names]).to_pylist()
    return [
        ", ".join(
            [f"run {row['run_id']}", *(f"{name} {row[name]:.5g}" for name in names if row[name] is not None)]
        )
        for row in rows
    ]


def _recommended(table: pa.Table, present: Sequence[_Measure], best: str | None) -> list[dict[str, Json]]:
    plan = table.filter(pc.equal(table.column("run_id"), best)) if best else table.slice(0, 0)
    columns = [each.column for each in present if len(plan) and plan.column(each.column)[0].is_valid]
    if not columns:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "recommended",
            "x": numbers(plan, _COST),
            "y": numbers(plan, columns[0]),
            "text": _plans(plan),
            "hovertemplate": "%{x:.5g} $/period, %{y:.5g} s<br>%{text}",
            "marker": {"symbol": "circle-open", "size": 18, "color": "#8a8a8a", "line": {"width": 3}},
        }
    ]


def _limits(table: pa.Table) -> dict[str, pa.Table]:
    """By demand the latency that no plan of a cost is below: where plans minimise latency + theta * cost.

    That a plan of latency T and cost C has an objective of at least L at theta says T >= L - theta C.
    """
    needed = {"lower_bound", "objective", _PLANNED, "file_count", "theta_per", "theta"}
    if not needed <= set(table.column_names):
        return {}
    limits = {}
    for (demand,), part in _groups(table, "demand").items():
        rows = [
            row
            for row in part.to_pylist()
            if all(row[name] is not None for name in needed)
            and np.isfinite(row["lower_bound"])
            and _is_plain(row)
        ]
        if len({_allowed_plans(row) for row in rows}) != 1:
            continue  # a bound of those with fewer choices is none of the others
        best: dict[float, float] = {}
        for row in rows:
            best[_price(row)] = max(row["lower_bound"], best.get(_price(row), -np.inf))
        costs = np.array([row[_COST] for row in rows])
        grid = np.linspace(costs.min(), costs.max(), _POINTS) if costs.max() > costs.min() else costs[:1]
        latencies = np.max([bound - price * grid for price, bound in best.items()], axis=0)
        limits[demand] = pa.table({_COST: grid, _PLANNED: latencies})
    return limits


def _allowed_plans(row: dict[str, float | str]) -> str:
    """What two runs have in common whose bounds are of the same plans."""
    parameters = json.loads(str(row.get("params") or "{}"))
    return json.dumps([parameters.get(name) for name in _ALLOWED_PLANS])


def _price(row: dict[str, float | str]) -> float:
    """Seconds per dollar of all files together."""
    return float(row["theta"]) / (float(row["file_count"]) if row["theta_per"] == "file" else 1.0)


def _is_plain(row: dict[str, float | str]) -> bool:
    """Whether the objective is the latency and the cost, and nothing else."""
    plain = float(row[_PLANNED]) + _price(row) * float(row[_COST])
    return bool(np.isclose(plain, float(row["objective"]), rtol=_SAME)) and row.get("moved_chunks") is None


def _gaps(table: pa.Table) -> Chart | None:
    if "gap" not in pick(table, ["gap"]).column_names:
        return None
    axes = ("theta (s/$)", "(objective - lower bound) / lower bound")
    return lines(
        "How far a plan may be from the best", table, "theta", "gap", ("methods", "demand"), axes, True
    )
