"""Figure of the distribution of latencies of a replay."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.looks import COLOURS, DASHES, tapering
from ecjax.plotting.panels import few, legend, limit, panels
from ecjax.plotting.runs import names, rows
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.replay.assumptions import bound_label, estimate_label
from ecjax.studies.replay.words import LATENCY, MOST_CURVES
from ecjax.tables.cumulative import cumulative

BOUND_MEAN, BOUND_QUANTILES = "bound on the mean", "bounds on the quantiles"
ESTIMATED_QUANTILES = "estimated quantiles"
_QUANTILES = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}


def cdf(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution of latency and its tail: of every class of one run, or of all reads of several runs.

    Estimated quantiles are dots, promised ones triangles, the bound on the mean is a vertical line (Fig. 10 of the JLCM
    paper is the first panel).
    """
    bins, latencies = rows(out, "latency_bins", runs), rows(out, "latencies", runs)
    curves: list[tuple[str, pd.DataFrame, pd.DataFrame]] = []
    if len(runs) == 1 and bins.loc[bins["group"] == "class", "class"].nunique() > 1:
        what = "classes"
        bins, latencies = (table[table["group"] == "class"] for table in (bins, latencies))
        for name, counts in bins.groupby("class", sort=False):
            label = name if str(name).startswith("k=") else f"class {name}"
            curves.append((label, counts, latencies[latencies["class"] == name]))
    else:
        what = "runs"
        bins, latencies = (table[table["group"] == "all"] for table in (bins, latencies))
        for run, label in zip(runs["run_id"], names(runs), strict=True):
            curves.append((label, *(table[table["run_id"] == run] for table in (bins, latencies))))
    shown = curves[:MOST_CURVES]
    figure, (left, right) = panels(2, 10.5, 4.4 + 0.22 * np.ceil(len(shown) / 3))
    one_log = _one_log([counts for _, counts, _ in shown])
    ends = []
    kinds: dict[str, Line2D] = {}
    for place, ((label, counts, summary), colour) in enumerate(zip(shown, COLOURS, strict=False)):
        width = tapering(place, len(shown))["linewidth"]
        for source, group in counts.groupby("source", sort=False):
            style = DASHES[place % len(DASHES)] if source == "replayed" else (0, (8, 2))
            edges, below = cumulative(group["lower_s"], group["upper_s"], group["count"])
            text = label if source == "replayed" else f"{label}, {source}"
            look: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": width}
            if source == "observed" and one_log:  # which all runs replay: it is drawn once
                if place:
                    continue
                text, look["color"] = source, "black"
            left.plot(edges, below, label=text, **look)
            right.plot(edges, 1 - below, **look)
            ends.append(float(edges[np.searchsorted(below, 0.995)]))
        kinds |= _predicted(left, right, summary, colour)
    end = 1.05 * limit(np.array(ends))
    left.set(ylabel="share of reads at or below", ylim=(0, 1.02), xlim=(0, end))
    right.set(ylabel="share of reads above", xscale="log", yscale="log", ylim=(5e-5, 1.2))
    for axes in (left, right):
        time_axis(axes.xaxis, LATENCY, time_unit(end))
    for word in (BOUND_MEAN, BOUND_QUANTILES):
        if word in kinds:
            kinds[word].set_label(bound_label(runs, word))
    if ESTIMATED_QUANTILES in kinds:
        kinds[ESTIMATED_QUANTILES].set_label(estimate_label(runs, ESTIMATED_QUANTILES))
    lines = [line for line in left.get_lines() if not str(line.get_label()).startswith("_")]
    legend(figure, [*lines, *kinds.values()])
    figure.suptitle(f"Latency of reads{few(len(shown), len(curves), what)}")
    return figure


def services(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution of the service time of a chunk, waits apart: of every class of one run, or of all reads of several.

    Fig. 6 of the JLCM paper, and Fig. 7 of the one on classes, whose shares of a node stretch the service.
    """
    table = rows(out, "services", runs)
    if len(runs) == 1 and (table["group"] == "class").any():
        what = "classes"
        table = table[table["group"] == "class"]
        curves = [
            (name if str(name).startswith("k=") else f"class {name}", each)
            for name, each in table.groupby("class", sort=False)
        ]
    else:
        what = "runs"
        table = table[table["group"] == "all"]
        labels = zip(runs["run_id"], names(runs), strict=True)
        curves = [(label, table[table["run_id"] == run]) for run, label in labels]
    shown = curves[:MOST_CURVES]
    figure, (axes,) = panels(1, 6.5, 4.4)
    for place, ((label, each), colour) in enumerate(zip(shown, COLOURS, strict=False)):
        look: dict[str, Any] = {"linestyle": DASHES[place % len(DASHES)], **tapering(place, len(shown))}
        look = {name: look[name] for name in ("linestyle", "linewidth")}
        axes.plot(each["service_s"], each["probability"], color=colour, label=label, **look)
    axes.set(ylabel="share of chunks served within it", ylim=(0, 1.02), xlim=(0, None))
    time_axis(axes.xaxis, "service of a chunk, without its wait", time_unit(table["service_s"]))
    if len(shown) > 1:
        legend(figure, axes.get_legend_handles_labels()[0])
    figure.suptitle(f"Service of chunks{few(len(shown), len(curves), what)}")
    return figure


def _one_log(bins: list[pd.DataFrame]) -> bool:
    """Whether several runs replay what was observed once."""
    logs = [
        counts.loc[counts["source"] == "observed", ["lower_s", "upper_s", "count"]].to_numpy()
        for counts in bins
    ]
    return len(logs) > 1 and len(logs[0]) > 0 and all(np.array_equal(log, logs[0]) for log in logs)


def _predicted(left: Axes, right: Axes, latencies: pd.DataFrame, colour: str) -> dict[str, Line2D]:
    """Quantiles and bounds that need no replay, on both panels; handles for a legend by what there was."""
    handles = {}
    for source, mark, word in (
        ("estimated", "o", ESTIMATED_QUANTILES),
        ("trace_estimated", "s", f"{ESTIMATED_QUANTILES}, arrivals as they come"),
        ("bound", "v", BOUND_QUANTILES),
    ):
        for row in latencies[latencies["source"] == source].to_dict("records"):
            points = {level: row[name] for name, level in _QUANTILES.items() if np.isfinite(row[name])}
            if points:
                times, levels = np.array(list(points.values())), np.array(list(points))
                style: dict[str, Any] = {
                    "color": colour,
                    "markersize": 4.5,
                    "markeredgecolor": "black",
                    "markeredgewidth": 0.5,
                }
                left.plot(times, levels, mark, **style)
                right.plot(times, 1 - levels, mark, **style)
                handles[word] = Line2D([], [], marker=mark, linestyle="", **style | {"color": "grey"})
            if source == "bound" and np.isfinite(row["mean_s"]):
                left.axvline(row["mean_s"], color=colour, linestyle=":", linewidth=1.2)
                handles[BOUND_MEAN] = Line2D([], [], color="grey", linestyle=":", linewidth=1.2)
    for word, handle in handles.items():
        handle.set_label(word)
    return handles
