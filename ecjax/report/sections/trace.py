"""What the log looks like: rates over time, burstiness by scale, popularity, service times."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import lines, series
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import Results, words
from ecjax.tables.cumulative import cumulative

_MOST_POINTS = 400


def section(results: Results) -> Section | None:
    """The charts of an analysis."""
    if results.job != "analyze":
        return None
    charts = [_rates(results), _burstiness(results), _popularity(results), _delays(results)]
    drawn = [chart for chart in charts if chart is not None]
    traces = results.of_run("traces")
    sentences = [text for name in ("loses", "notices") for text in _sentences(traces, name)]
    return Section("The log", sentences, drawn) if drawn or sentences else None


def _sentences(traces: pa.Table | None, name: str) -> list[str]:
    if traces is None or name not in traces.column_names:
        return []
    return [line for text in traces.column(name).to_pylist() if text for line in text.splitlines()]


def _rates(results: Results) -> Chart | None:
    table = results.of_run("arrivals", ("start_s", "duration_s", "reads", "writes"))
    if table is None:
        return None
    group = -(-len(table) // _MOST_POINTS)
    place = pa.array(np.arange(len(table)) // group)
    sums = (
        table.append_column("place", place)
        .group_by("place")
        .aggregate([("start_s", "min"), ("duration_s", "sum"), ("reads", "sum"), ("writes", "sum")])
        .sort_by("place")
    )
    length = sums.column("duration_s_sum")
    shown = pa.table(
        {
            "start_s": sums.column("start_s_min"),
            "reads_per_s": pc.divide(pc.cast(sums.column("reads_sum"), pa.float64()), length),
            "writes_per_s": pc.divide(pc.cast(sums.column("writes_sum"), pa.float64()), length),
        }
    )
    drawn = [
        series(shown, "start_s", f"{name}_per_s", name, number, "lines")
        for number, name in enumerate(("reads", "writes"))
    ]
    return Chart("Requests over time", drawn, "since the first arrival (s)", "rate (1/s)", shown)


def _burstiness(results: Results) -> Chart | None:
    table = results.of_run("burstiness")
    axes = ("length of windows (s)", "dispersion of counts (1: Poisson)")
    if table is None:
        return None
    return lines("Burstiness by scale", table, "scale_s", "dispersion", ("op", "service_class"), axes, True)


def _popularity(results: Results) -> Chart | None:
    table = results.of_run("files", ("rate_per_s",))
    if table is None:
        return None
    rates = np.sort(pc.drop_null(table.column("rate_per_s")).to_numpy())[::-1]
    rates = rates[rates > 0]
    if not len(rates):
        return None
    ranks = np.unique(np.geomspace(1, len(rates), _MOST_POINTS).astype(int))
    shown = pa.table({"rank": ranks, "rate_per_s": rates[ranks - 1]})
    drawn = [series(shown, "rank", "rate_per_s", "files", 0)]
    layout: dict[str, Json] = {"xaxis": {"type": "log"}, "yaxis": {"type": "log"}}
    return Chart(
        "Popularity of files", drawn, "rank of the file (1: read most)", "read rate (1/s)", shown, layout
    )


def _delays(results: Results) -> Chart | None:
    table = results.of_run("delay_bins", ("quantity", "op", "lower_s", "upper_s", "count"))
    if table is None:
        return None
    table = table.filter(pc.greater(table.column("count"), 0))
    if not len(table):
        return None
    keys = list(zip(words(table, "quantity"), words(table, "op"), strict=True))
    parts = []
    for key in sorted(set(keys)):
        part = table.take([row for row, each in enumerate(keys) if each == key])
        times, below = cumulative(*(part.column(name).to_numpy() for name in ("lower_s", "upper_s", "count")))
        words_of = [pa.array([word] * len(times), pa.string()) for word in key]
        parts.append(
            pa.table(
                [*words_of, pa.array(times), pa.array(below)], ["quantity", "op", "time_s", "share_below"]
            )
        )
    axes = ("time (s)", "share of accesses below")
    shown = pa.concat_tables(parts)
    return lines("Times of accesses", shown, "time_s", "share_below", ("quantity", "op"), axes, True)
