"""Bars and lines of schedulers, adaptive coding, caches, Ceph clusters and benchmarks: a row of a table per chart."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import bars, lines
from ecjax.report.parts import Chart, Section
from ecjax.report.results import Results, labelled, pick


@dataclass(frozen=True)
class Bars:
    """Bars by the columns ``names`` together; values are columns with what they are called.

    Those of ``same`` change no value.
    """

    title: str
    dataset: str
    names: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    axes: tuple[str, str]
    log: bool = False
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lines:
    """A line for each combination of ``by``.

    Columns of ``same`` do not tell lines apart.
    """

    title: str
    dataset: str
    x: str
    y: str
    by: tuple[str, ...]
    axes: tuple[str, str]
    log: bool = False
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shares:
    """The share of rows at or below a value, a line for each combination of ``by``."""

    title: str
    dataset: str
    value: str
    by: tuple[str, ...]
    axes: tuple[str, str]


# columns of ``runs`` that may differ between runs of one name: rows of several of them are no seeds of one
_POINT = {
    "schedule": ("rate_scale", "size_scale", "n", "k", "share_at_zero", "input_id"),
    "adapt": (
        *("n", "k", "delays", "arrivals", "rate_per_s", "rate_scale"),
        *("threads", "memory", "requests", "input_id"),
    ),
    "cache": (
        "neighbour_s",
        "k",
        "copies",
        "items",
        "zipf",
        "failed",
        "half_life_s",
        "rate_scale",
        "rate_per_s",
        *("parity", "buckets", "edge_s", "decode_s", "jitter", "memory", "warm_up"),
        *("period_s", "replan_reads", "neighbours", "rounds"),
        "input_id",
    ),
}
# in ``params`` only
_SETTINGS = {
    "adapt": {"threads": pa.int64(), "memory": pa.float64(), "requests": pa.int64()},
    "cache": {
        **dict.fromkeys(("parity", "buckets", "replan_reads", "rounds"), pa.int64()),
        **dict.fromkeys(("edge_s", "decode_s", "jitter", "memory", "warm_up", "period_s"), pa.float64()),
        "neighbours": pa.string(),
    },
}
_EVERY_RUN = ("runs", "bench", "coflow_widths", "coflows")
_LEVELS = np.linspace(0, 1, 201)
_LATENCIES = (("mean_s", "mean"), ("p50_s", "median"), ("p99_s", "99th percentile"))
_SECTIONS: dict[str, tuple[str, tuple[Bars | Lines | Shares, ...]]] = {
    "schedule": (
        "Schedulers",
        (
            Bars(
                "Completion of coflows",
                "runs",
                ("scheduler", "sources", "rate_scale"),
                (*_LATENCIES, ("lower_bound", "lower bound of the mean")),
                ("scheduler", "time to completion (s)"),
            ),
            Shares(
                "Distribution of completion times",
                "coflows",
                "completion_s",
                ("scheduler", "sources"),
                ("time to completion (s)", "share of coflows at or below"),
            ),
            Bars(
                "Against fair sharing, and alone on the fabric",
                "runs",
                ("scheduler", "sources", "rate_scale"),
                (
                    ("improvement", "mean of fair / mean"),
                    ("slowdown", "time / time alone"),
                ),
                ("scheduler", "ratio"),
                log=True,
            ),
            Bars(
                "By width",
                "coflow_widths",
                ("width_class", "scheduler", "sources"),
                _LATENCIES,
                ("width, scheduler", "time to completion (s)"),
            ),
        ),
    ),
    "adapt": (
        "Adaptive coding",
        (
            Bars(
                "Latency by strategy",
                "runs",
                ("strategy", "rate_per_s"),
                _LATENCIES,
                ("strategy, rate (1/s)", "latency (s)"),
            ),
            Lines(
                "Latency against rate",
                "runs",
                "rate_per_s",
                "mean_s",
                ("strategy",),
                ("rate (1/s)", "mean latency (s)"),
                same=("rate_scale",),
            ),
            Bars(
                "Codes that were used",
                "codes",
                ("class", "n", "k"),
                (("share", "share"),),
                ("class, n, k", "share of requests"),
            ),
            Bars(
                "Rate that can be served",
                "runs",
                ("strategy",),
                (("capacity_per_s", "capacity"),),
                ("strategy", "largest rate (1/s)"),
                same=("arrivals", "rate_per_s", "rate_scale", "requests"),
            ),
            Lines("Latency over time", "timeline", "start_s", "mean_s", (), ("time (s)", "mean latency (s)")),
        ),
    ),
    "cache": (
        "Caches",
        (
            Bars(
                "Latency by policy",
                "runs",
                ("policy", "scheme", "capacity", "samples"),
                _LATENCIES,
                ("policy", "latency (s)"),
            ),
            Bars(
                "Reads from caches",
                "runs",
                ("policy", "scheme", "capacity", "samples"),
                (
                    ("chunk_hit_ratio", "chunks"),
                    ("full_hit_ratio", "whole reads"),
                    ("neighbour_hit_ratio", "from neighbours"),
                ),
                ("policy", "share of reads (of 1)"),
            ),
            Bars(
                "Time of a decision",
                "runs",
                ("policy", "scheme", "capacity", "samples"),
                (("decision_mean_s", "mean"), ("decision_p99_s", "99th percentile")),
                ("policy", "time of a decision (s)"),
            ),
            Lines(
                "Plans of sampled partitions",
                "partitions",
                "place",
                "mean_s",
                (),
                ("place among all partitions (0: first, 1: last)", "mean latency (s)"),
            ),
        ),
    ),
    "ceph": (
        "Ceph before and after",
        (
            Bars(
                "Load of OSDs",
                "osds",
                ("osd",),
                (("load_before", "before"), ("load", "after")),
                ("OSD", "load (of the mean)"),
            ),
            Bars(
                "Share of reads",
                "osds",
                ("osd",),
                (("read_share_before", "before"), ("read_share", "after")),
                ("OSD", "share of reads (of 1)"),
            ),
            Bars(
                "Expected latency",
                "batches",
                ("batch",),
                (("estimated_mean_s", "mean"), ("estimated_p99_s", "99th percentile")),
                ("batch of commands (0: as it is)", "expected latency (s)"),
            ),
            Bars(
                "Shards that are copied",
                "batches",
                ("batch",),
                (("moved_chunks", "shards"),),
                ("batch of commands", "shards copied"),
            ),
            Lines(
                "Evenness by batch",
                "batches",
                "batch",
                "max_over_mean",
                (),
                ("batch of commands (0: as it is)", "largest load / mean load"),
            ),
            Bars(
                "Failures",
                "scenarios",
                ("scenario", "placement"),
                (("max_over_mean", "largest load / mean load"),),
                ("scenario", "largest load / mean load"),
            ),
            Bars(
                "Latency under failures",
                "scenarios",
                ("scenario", "placement"),
                (("estimated_mean_s", "mean"), ("estimated_p99_s", "99th percentile")),
                ("scenario", "expected latency (s)"),
            ),
        ),
    ),
    "bench": (
        "Benchmark beside alternatives",
        (
            Bars(
                "Time",
                "bench",
                ("case", "variant", "size"),
                (("median_s", "median"), ("min_s", "least"), ("target_s", "target of the least")),
                ("case, variant, size", "time (s)"),
                log=True,
            ),
            Bars(
                "Memory",
                "bench",
                ("case", "variant", "size"),
                (("peak_rss_bytes", "peak"), ("target_bytes", "target")),
                ("case, variant, size", "memory (B)"),
            ),
        ),
    ),
}


def section(results: Results) -> Section | None:
    """The section of the job."""
    if results.job not in _SECTIONS:
        return None
    title, wanted = _SECTIONS[results.job]
    charts = []
    for item in wanted:
        table = results.table(item.dataset) if item.dataset in _EVERY_RUN else results.of_run(item.dataset)
        if table is None:
            continue
        if results.job in _SETTINGS and item.dataset == "runs":
            table = _with_settings(table, _SETTINGS[results.job])
        point = _POINT.get(results.job, ()) if item.dataset in _EVERY_RUN else ()
        if isinstance(item, Lines):
            by = _telling(table, item.by, [name for name in point if name not in (item.x, *item.same)])
            if by:
                table, by = labelled(table, by, "label"), ("label",)
            if item.dataset in _EVERY_RUN:
                table = _over_seeds(table, by, item)
            charts.append(lines(item.title, table, item.x, item.y, by, item.axes, item.log))
        elif isinstance(item, Shares):
            table = _with_point(table, results.runs, point)
            charts.append(_shares(item, table, _telling(table, item.by, point)))
        else:
            table = _with_point(table, results.runs, point)
            means = _means(
                table,
                _telling(table, item.names, [name for name in point if name not in item.same]),
                item.values,
            )
            charts.append(bars(item.title, means, "label", item.values, item.axes, item.log))
    drawn = [chart for chart in charts if chart is not None]
    return Section(title, charts=drawn) if drawn else None


def _with_settings(runs: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Runs with what only ``params`` tells as columns, n and k of static codes only: other strategies choose theirs."""
    parameters = [json.loads(text) for text in runs.column("params").to_pylist()]
    columns = {name: runs.column(name) for name in runs.column_names}
    for name, kind in kinds.items():
        values = [each.get(name) for each in parameters]
        if pa.types.is_string(kind):
            values = [None if value is None else json.dumps(value) for value in values]
        columns[name] = pa.array(values, kind)
    for name in ("n", "k"):
        if {name, "strategy"} <= columns.keys():
            pairs = zip(columns["strategy"].to_pylist(), columns[name].to_pylist(), strict=True)
            of_static = [value if strategy == "static" else None for strategy, value in pairs]
            columns[name] = pa.array(of_static, columns[name].type)
    return pa.table(columns)


def _with_point(table: pa.Table, runs: pa.Table, point: Sequence[str]) -> pa.Table:
    """Rows of a dataset with the columns ``point`` of their runs that it lacks."""
    lacking = [name for name in point if name in runs.column_names and name not in table.column_names]
    if not lacking or "run_id" not in table.column_names:
        return table
    places = pc.index_in(table.column("run_id"), value_set=runs.column("run_id").combine_chunks())
    for name in lacking:
        table = table.append_column(name, runs.column(name).take(places))
    return table


def _telling(table: pa.Table, names: Sequence[str], point: Sequence[str]) -> tuple[str, ...]:
    """``names``, and those columns of ``point`` that tell rows apart which the ones before them do not."""
    telling = [name for name in names if name in table.column_names]
    for name in point:
        if name in table.column_names and name not in telling:
            before, after = (
                len(table.group_by(keys).aggregate([])) if keys else 1 for keys in (telling, [*telling, name])
            )
            telling += [name] * (after > before)
    return tuple(telling)


def _over_seeds(table: pa.Table, by: Sequence[str], item: Lines) -> pa.Table:
    """A row per line and place on it: the mean over rows, as of seeds."""
    if item.x not in table.column_names or item.y not in table.column_names:
        return table
    # without threads groups come in their order
    means = table.group_by([*by, item.x], use_threads=False).aggregate([(item.y, "mean")])
    return means.rename_columns([*by, item.x, item.y])


def _shares(item: Shares, table: pa.Table, by: Sequence[str]) -> Chart | None:
    """Quantiles of a column by group, however many rows there are."""
    if item.value not in table.column_names:
        return None
    named = labelled(table, by, "label")
    parts = []
    for label in pc.unique(named.column("label")).to_pylist():
        part = pc.drop_null(named.filter(pc.equal(named.column("label"), label)).column(item.value))
        if len(part):
            values = pc.quantile(part, q=_LEVELS)
            labels = pa.array([label] * len(_LEVELS), pa.string())
            parts.append(pa.table({"label": labels, item.value: values, "share_below": _LEVELS}))
    if not parts:
        return None
    shown = pa.concat_tables(parts)
    return lines(item.title, shown, item.value, "share_below", ("label",), item.axes, True)


def _means(table: pa.Table, names: Sequence[str], values: Sequence[tuple[str, str]]) -> pa.Table:
    """A row per combination of some columns, its name in ``label``: the mean of the values over rows, as of seeds."""
    measures = pick(table, [name for name, _ in values])
    order = [(name, "ascending") for name in names if name in table.column_names]
    if order and "case" not in names:  # a benchmark has ecjax first
        table = table.sort_by(order)
    named = labelled(table, names, "label").select(["label", *measures.column_names])
    grouped = named.group_by("label").aggregate([(name, "mean") for name in measures.column_names])
    # groups come in no order
    places = pc.index_in(pc.unique(named.column("label")), value_set=grouped.column("label").combine_chunks())
    means = grouped.take(places)
    return means.rename_columns([name.removesuffix("_mean") for name in means.column_names])
