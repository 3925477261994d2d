"""Latencies of replays: distributions beside bound, estimate and what was observed; means and tails."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import COLOURS, DASHES, SYMBOLS, bars, numbers
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import WHOLE, Results, distinct, labelled, pick, words
from ecjax.tables.cumulative import cumulative

_VALUES = (
    ("mean_s", "replayed"),
    ("estimated_mean_s", "expected, Poisson arrivals"),
    ("trace_estimated_mean_s", "expected, arrivals as they come"),
    ("latency_s", "bound, Poisson arrivals"),
    ("observed_mean_s", "observed"),
)
_TAIL = (
    ("p99_s", "replayed"),
    ("estimated_p99_s", "expected, Poisson arrivals"),
    ("trace_estimated_p99_s", "expected, arrivals as they come"),
    ("promised_p99_s", "bound, Poisson arrivals"),
    ("observed_p99_s", "observed"),
)
_BY_NAME = {"importance": "importance", "class_rate_scale": "class rates", "slow": "slow"}  # columns of JSON
_NAMES = ("method", "theta", "policy", "queue", "service", *_BY_NAME, "rate_scale", "size_scale")
_QUANTILES = (("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99), ("p999_s", 0.999))
_WORDS = {"estimated": "expected", "trace_estimated": "expected, arrivals as they come", "bound": "bound"}
_SHARES = ["replay", "source", "latency_s", "share_below"]
_POINTS, _MOST_RUNS = 400, 6
_VISIBLE = 1.03  # ratio of the ends of a gap


def section(results: Results) -> Section | None:
    """Distributions and bars of replays."""
    if results.job != "replay":
        return None
    named = _named(results.runs)
    few = f": {_MOST_RUNS} of {len(named)} runs" if len(named) > _MOST_RUNS else ""
    best = results.run["run_id"] if results.run else None
    chosen = pa.concat_tables(
        [
            named.filter(pc.equal(named.column("run_id"), best)),
            named.filter(pc.not_equal(named.column("run_id"), best)),
        ]
    ).slice(0, _MOST_RUNS)
    shares = _shares(results, chosen)
    points = _predicted(results, chosen)
    charts = [
        _distributions(f"Distribution of latency{few}", shares, points, False),
        _distributions(f"Tail of latency{few}", shares, points, True),
        bars("Mean latency", named, "replay", _VALUES, ("replay", "mean latency (s)")),
        bars("99th percentile", named, "replay", _TAIL, ("replay", "99th percentile of latency (s)")),
    ]
    drawn = [chart for chart in charts if chart is not None]
    return Section("Replays", charts=drawn) if drawn else None


def _named(runs: pa.Table) -> pa.Table:
    """Runs with a column that says what tells them apart: what was swept, and plans where that is not all."""
    worded = runs
    for place, name in enumerate(runs.column_names):
        if name in _BY_NAME or name == "plan_run":
            texts = [_in_words(name, value) for value in runs.column(name).to_pylist()]
            worded = worded.set_column(place, name, pa.array(texts, pa.string()))
    names = _differing(worded, _NAMES)
    if len(set(words(labelled(worded, names, "label"), "label", WHOLE))) < len(worded):
        names += _differing(worded, ("plan_run",))
    labels = words(labelled(worded, names or ["run_id"], "label"), "label")
    return runs.append_column("replay", pa.array(distinct(labels), pa.string()))


def _differing(runs: pa.Table, names: Sequence[str]) -> list[str]:
    return [name for name in pick(runs, names).column_names if len(pc.unique(runs.column(name))) > 1]


def _in_words(name: str, value: str | None) -> str | None:
    """A plan by the beginning of its id, and what is JSON by class or node."""
    if value is None or name == "plan_run":
        return value and f"plan {value[:6]}"
    each = (f"{key} {number:g}" for key, number in json.loads(value).items())
    return f"{_BY_NAME[name]} {', '.join(each)}"


def _of_all(results: Results, dataset: str, columns: tuple[str, ...], chosen: pa.Table) -> pa.Table | None:
    """Rows about all reads, with what their run is called."""
    table = results.table(dataset, ("run_id", "group", *columns))
    if table is None:
        return None
    rows = table.filter(pc.equal(table.column("group"), "all"))
    places = pc.index_in(rows.column("run_id"), value_set=chosen.column("run_id").combine_chunks())
    rows = rows.append_column("replay", chosen.column("replay").take(places)).filter(pc.is_valid(places))
    return rows if len(rows) else None


def _shares(results: Results, chosen: pa.Table) -> pa.Table | None:
    """By run and source the share of reads below latencies: some hundred points, and where no reads lie between."""
    table = _of_all(results, "latency_bins", ("source", "lower_s", "upper_s", "count"), chosen)
    if table is None:
        return None
    table = table.filter(pc.greater(table.column("count"), 0))
    keys = list(zip(words(table, "replay", WHOLE), words(table, "source"), strict=True))
    parts = []
    for key in sorted(set(keys)):
        part = table.take([row for row, each in enumerate(keys) if each == key])
        edges = (part.column(name).to_numpy() for name in ("lower_s", "upper_s", "count"))
        latency, below = cumulative(*edges)
        gaps = np.flatnonzero((np.diff(below) == 0) & (latency[1:] > _VISIBLE * latency[:-1]))
        kept = np.unique(
            np.concatenate([np.linspace(0, len(below) - 1, _POINTS).astype(int), gaps, gaps + 1])
        )
        words_of = [pa.array([word] * len(kept), pa.string()) for word in key]
        parts.append(pa.table([*words_of, pa.array(latency[kept]), pa.array(below[kept])], _SHARES))
    return pa.concat_tables(parts) if parts else None


def _predicted(results: Results, chosen: pa.Table) -> pa.Table | None:
    """By run and source the quantiles that need no replay."""
    columns = ("source", *(name for name, _ in _QUANTILES))
    table = _of_all(results, "latencies", columns, chosen)
    if table is None:
        return None
    rows = [
        {"replay": row["replay"], "source": row["source"], "latency_s": row[name], "share_below": share}
        for row in table.to_pylist()
        if row["source"] in _WORDS
        for name, share in _QUANTILES
        if row[name] is not None and np.isfinite(row[name])
    ]
    return pa.Table.from_pylist(rows) if rows else None


def _distributions(title: str, shares: pa.Table | None, points: pa.Table | None, tail: bool) -> Chart | None:
    """Lines of what was replayed and observed, marks of what was predicted, a colour per run."""
    if shares is None:
        return None
    runs = list(dict.fromkeys(words(shares, "replay", WHOLE)))
    value = "share_above" if tail else "share_below"
    behind = pa.concat_tables(
        [shares, points.select(shares.column_names).cast(shares.schema)] if points is not None else [shares]
    )
    above = pc.subtract(1.0, behind.column("share_below"))
    behind = behind.append_column("share_above", pc.if_else(pc.greater(above, 1e-9), above, None))
    sources = list(zip(words(behind, "replay", WHOLE), words(behind, "source"), strict=True))
    traces: list[dict[str, Json]] = []
    for run, source in dict.fromkeys(sources):
        part = behind.take([row for row, each in enumerate(sources) if each == (run, source)])
        label = _WORDS.get(source, source)
        trace: dict[str, Json] = {
            "type": "scatter",
            "mode": "markers" if source in _WORDS else "lines",
            "name": f"{run}: {label}" if len(runs) > 1 else label,
            "x": numbers(part, "latency_s"),
            "y": numbers(part, value),
            "hovertemplate": "%{x:.5g}, %{y:.5g}",
        }
        colour = COLOURS[runs.index(run) % len(COLOURS)]
        if source in _WORDS:
            symbol = SYMBOLS[1 + list(_WORDS).index(source)]
            trace["marker"] = {
                "color": colour,
                "symbol": symbol,
                "size": 11,
                "line": {"width": 1, "color": "#8a8a8a"},
            }
        elif source == "observed":
            trace["line"] = {"color": "#8a8a8a", "dash": "longdash", "width": 3}
        else:
            trace["line"] = {"color": colour, "dash": DASHES[runs.index(run) % len(DASHES)], "width": 2}
        traces.append(trace)
    layout: dict[str, Json] = {"xaxis": {"type": "log"}, "yaxis": {"type": "log"} if tail else {}}
    label = "share of reads above" if tail else "share of reads at or below"
    return Chart(title, traces, "latency (s)", label, behind, layout)
