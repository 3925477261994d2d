"""Latency by class and by file under the plan; many files as a histogram."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import COLOURS, bars
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import Results

_BINS = 40
_EQUAL = 1e-9  # relative: latencies that differ by less are one, but for rounding
_AROUND = 1e-3  # relative: half the width of the bar that stands for one latency


def section(results: Results) -> Section | None:
    """Bars by class, a histogram of files."""
    charts = []
    classes = results.of_run("class_plans")
    if classes is not None:
        values = [("latency_s", "bound"), ("estimated_mean_s", "estimate"), ("deadline_s", "deadline")]
        charts.append(
            bars("Mean latency by class", classes, "service_class", values, ("class", "mean latency (s)"))
        )
    files = results.of_run("file_plans", ("latency_s",))
    latencies = pc.drop_null(files.column("latency_s")) if files is not None else pa.array([], pa.float64())
    finite = latencies.filter(pc.is_finite(latencies)).to_numpy()
    if len(finite):
        charts.append(_histogram(finite))
    drawn = [chart for chart in charts if chart is not None]
    return Section("Latency by class and file", charts=drawn) if drawn else None


def _histogram(latencies_s: np.ndarray) -> Chart:
    low, high = latencies_s.min(), latencies_s.max()
    if high - low <= _EQUAL * high:
        counts, edges = np.histogram(latencies_s, 1, (low * (1 - _AROUND), high * (1 + _AROUND)))
    else:
        counts, edges = np.histogram(latencies_s, _BINS)
    table = pa.table({"lower_s": edges[:-1], "upper_s": edges[1:], "files": counts})
    trace: dict[str, Json] = {
        "type": "bar",
        "name": "files",
        "x": ((edges[:-1] + edges[1:]) / 2).tolist(),
        "y": counts.tolist(),
        "width": np.diff(edges).tolist(),
        "marker": {"color": COLOURS[0]},
        "hovertemplate": "about %{x:.4g} s: %{y} files<extra></extra>",
    }
    return Chart(
        "Files by the bound on their mean latency", [trace], "mean latency, bound (s)", "files", table
    )
