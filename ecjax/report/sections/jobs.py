"""Bars and lines of schedulers, adaptive coding, caches, Ceph clusters and benchmarks: a row of a table per chart."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ecjax.report.drawing import bars, lines
from ecjax.report.parts import Section
from ecjax.report.results import Results, pick


@dataclass(frozen=True)
class Bars:
    """Bars by the columns ``names`` together; values are columns with what they are called."""

    title: str
    dataset: str
    names: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    axes: tuple[str, str]


@dataclass(frozen=True)
class Lines:
    """A line for each combination of ``by``."""

    title: str
    dataset: str
    x: str
    y: str
    by: tuple[str, ...]
    axes: tuple[str, str]
    log: bool = False


_LATENCIES = (("mean_s", "mean"), ("p50_s", "median"), ("p99_s", "99th percentile"))
_SECTIONS: dict[str, tuple[str, tuple[Bars | Lines, ...]]] = {
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
            ),
            Bars(
                "Codes that were used",
                "codes",
                ("class", "n", "k"),
                (("share", "share"),),
                ("class, n, k", "share of requests"),
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
            Lines(
                "Evenness by batch",
                "batches",
                "batch",
                "max_over_mean",
                (),
                ("batch", "largest load over mean"),
            ),
            Bars(
                "Failures",
                "scenarios",
                ("scenario", "placement"),
                (("max_over_mean", "largest load over mean"),),
                ("scenario", "largest load over mean"),
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
                (("median_s", "median"), ("min_s", "least"), ("target_s", "target")),
                ("case, variant, size", "time (s)"),
            ),
            Bars(
                "Memory",
                "bench",
                ("case", "variant", "size"),
                (("peak_rss_bytes", "peak"),),
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
        table = (
            results.table(item.dataset)
            if item.dataset in ("runs", "bench", "coflow_widths")
            else results.of_run(item.dataset)
        )
        if table is None:
            continue
        if isinstance(item, Lines):
            charts.append(lines(item.title, table, item.x, item.y, item.by, item.axes, item.log))
        else:
            charts.append(
                bars(item.title, _labelled(table, item.names, item.values), "label", item.values, item.axes)
            )
    drawn = [chart for chart in charts if chart is not None]
    return Section(title, charts=drawn) if drawn else None


def _labelled(table: pa.Table, names: tuple[str, ...], values: Sequence[tuple[str, str]]) -> pa.Table:
    """A row per combination of some columns, its name in ``label``: the mean of the values over rows, as of seeds."""
    shown, measures = pick(table, names), pick(table, [name for name, _ in values])
    labels = [
        ", ".join(
            f"{each:g}" if isinstance(each, float) else str(each) for each in row.values() if each is not None
        )
        for row in shown.to_pylist() or [{}] * len(table)
    ]
    means = (
        measures.append_column("label", pa.array(labels, pa.string()))
        .group_by("label", use_threads=False)
        .aggregate([(name, "mean") for name in measures.column_names])
    )
    return means.rename_columns([name.removesuffix("_mean") for name in means.column_names])
