"""Figures of replays by service class: against what is swept, and against the size of files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.class_values import class_names
from ecjax.plotting.looks import COLOURS, tapering
from ecjax.plotting.panels import few, legend, panels, scale
from ecjax.plotting.runs import names, rows, swept
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.replay.assumptions import source_label
from ecjax.studies.replay.words import LATENCY, SOURCES, STYLES
from ecjax.tables.datasets import batches_written
from ecjax.tables.results import read_results

_MOST_PANELS = 4
_MOST_CLASSES = 8
_MOST_SIZES = 50
_WAYS = ("-", "--", ":", "-.")  # lines of queues
_REACH = 1.96  # standard errors of a 95 % interval


def class_sweep(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of every class over what is swept: as replayed, estimated and bounded, a panel per queue.

    Returns:
        None where nothing is swept.
    """
    axis = swept(out, runs)
    if axis is None:
        return None
    column, across, label = axis
    labels = pd.Series(names(runs, column), runs["run_id"])
    table = rows(out, "latencies", runs, "class")
    table["panel"] = table["run_id"].map(labels)
    table["at"] = table["run_id"].map(pd.Series(across.to_numpy(), runs["run_id"]))
    return _panels(table, label, runs)


def queue_sweep(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Replayed mean latency of every class over what is swept, all queues on one axis (Fig. 8 of the paper on classes).

    Returns:
        None where nothing is swept.
    """
    axis = swept(out, runs)
    if axis is None:
        return None
    column, across, label = axis
    table = rows(out, "latencies", runs, "class")
    table = table[(table["source"] == "replayed") & np.isfinite(table["mean_s"])]
    table["way"] = table["run_id"].map(pd.Series(names(runs, column), runs["run_id"]))
    table["at"] = table["run_id"].map(pd.Series(across.to_numpy(), runs["run_id"]))
    ways, classes = list(dict.fromkeys(table["way"])), list(dict.fromkeys(table["class"]))
    drawn, styles = ways[: len(_WAYS)], dict(zip(ways, _WAYS, strict=False))
    figure, (axes,) = panels(1, 7.5, 5.0)
    for (way, name), line in table.groupby(["way", "class"], sort=False):
        place = classes.index(name)
        if way not in drawn or place >= _MOST_CLASSES:
            continue
        ordered = line.sort_values("at")
        half = ordered["ci_s"].to_numpy() if ordered["ci_s"].notna().any() else None
        look: dict[str, Any] = {**tapering(place, len(classes)), "linestyle": styles[way]}
        words = f"class {name}" if len(ways) == 1 else f"class {name}, {way}"
        axes.errorbar(
            ordered["at"],
            ordered["mean_s"],
            half,
            color=COLOURS[place % len(COLOURS)],
            capsize=2,
            label=words,
            **look,
        )
    axes.set_xlabel(label)
    scale(axes, table["mean_s"])
    time_axis(axes.yaxis, "mean " + LATENCY + ", replayed", time_unit(table["mean_s"]))
    legend(figure, axes.get_legend_handles_labels()[0])
    cut = few(min(len(classes), _MOST_CLASSES), len(classes), "classes") + few(
        len(drawn), len(ways), "queues"
    )
    figure.suptitle(f"Latency by class{cut}")
    return figure


def class_sizes(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of every class over the size of files: as replayed, estimated and bounded, a panel per run.

    Intervals add up what single files leave uncertain by their own number of reads and, as files share the queues, the
    relative interval of their class.

    Returns:
        None where all files have one size, or too many to tell apart, or there are none of single files.
    """
    if not batches_written(out, "inputs/files"):
        return None
    shown = runs.iloc[:_MOST_PANELS]
    labels = dict(zip(runs["run_id"], names(runs), strict=True))
    table = rows(out, "latencies", shown)
    parts = []
    for run in shown.to_dict("records"):
        of_run = table[table["run_id"] == run["run_id"]]
        files = read_results(out, "inputs/files")
        files = files[files["input_id"] == run["input_id"]].set_index("file_id")
        columns = files[["bytes", "rate_per_s"]].assign(**{"class": class_names(files)})
        by_file = of_run[of_run["group"] == "file"].drop(columns="class").join(columns, on="file_id")
        by_file["at"] = by_file["bytes"] * run["size_scale"] / 1e6
        if not 1 < by_file["at"].nunique() <= _MOST_SIZES:
            return None
        whole = of_run[(of_run["group"] == "class") & (of_run["source"] == "replayed")].set_index("class")
        parts += list(_by_size(by_file, whole["ci_s"] / whole["mean_s"], labels[run["run_id"]]))
    if not parts:
        return None
    return _panels(pd.DataFrame(parts), "file size (MB)", shown, few(len(shown), len(runs), "runs"))


def _by_size(files: pd.DataFrame, common: pd.Series, panel: str) -> Iterator[dict[str, Any]]:
    """Means over the files of a size, weighted by rates (as replayed: by reads)."""
    for (source, name, at), alike in files.groupby(["source", "class", "at"], sort=False):
        alike = alike[np.isfinite(alike["mean_s"])]
        if alike.empty:
            continue
        weight = alike["requests"] if source == "replayed" else alike["rate_per_s"]
        share = (weight / weight.sum()).to_numpy(float)
        mean = float(share @ alike["mean_s"].to_numpy(float))
        half = np.nan
        if source == "replayed":
            own = _REACH * alike["std_s"] / np.sqrt(alike["requests"])
            half = np.hypot(np.linalg.norm(share * own.fillna(0.0).to_numpy(float)), mean * common[name])
        yield {"panel": panel, "class": name, "source": source, "at": at, "mean_s": mean, "ci_s": half}


def _panels(table: pd.DataFrame, label: str, runs: pd.DataFrame, title: str = "") -> Figure:
    """A panel per value of ``panel``, alike in their axes: class by colour, source by style."""
    ways, classes = list(dict.fromkeys(table["panel"])), list(dict.fromkeys(table["class"]))
    shown, drawn = ways[:_MOST_PANELS], classes[:_MOST_CLASSES]
    table = table[table["panel"].isin(shown) & table["class"].isin(drawn)]
    figure, axes = panels(len(shown), max(7.0, 1.0 + 4.2 * len(shown)), 5.0)
    used: dict[str, Line2D] = {}
    for each, way in zip(axes, shown, strict=True):
        for place, (name, colour) in enumerate(zip(drawn, COLOURS, strict=False)):
            for source, style in STYLES.items():
                line = table[(table["panel"] == way) & (table["class"] == name) & (table["source"] == source)]
                line = line[np.isfinite(line["mean_s"])].sort_values("at")
                if line.empty:
                    continue
                look: dict[str, Any] = {**tapering(place, len(drawn)), "linestyle": style}
                if source not in ("replayed", "observed"):
                    look["marker"] = "_" if len(line) == 1 else ""
                half = line["ci_s"].to_numpy() if line["ci_s"].notna().any() else None
                each.errorbar(line["at"], line["mean_s"], half, color=colour, capsize=2, **look)
                plain: dict[str, Any] = {"color": "grey", "linestyle": style, "linewidth": 1.6}
                word = source_label(source, SOURCES[source][0], runs)
                used.setdefault(source, Line2D([], [], label=word, **plain))
        each.set_xlabel(label)
        each.set_title(way if len(shown) > 1 else "", fontsize=9)
        scale(each, table.loc[np.isfinite(table["mean_s"]), "mean_s"])
        words = "mean " + LATENCY if each is axes[0] else ""
        time_axis(each.yaxis, words, time_unit(table["mean_s"]))
        if each is not axes[0]:
            each.tick_params(labelleft=False)
    low, high = (pick(each.get_ylim()[side] for each in axes) for pick, side in ((min, 0), (max, 1)))
    left, right = (pick(each.get_xlim()[side] for each in axes) for pick, side in ((min, 0), (max, 1)))
    for each in axes:
        each.set(xlim=(left, right), ylim=(low, high))
    colours = [
        Line2D([], [], color=colour, label=f"class {name}", **tapering(place, len(drawn)))
        for place, (name, colour) in enumerate(zip(drawn, COLOURS, strict=False))
    ]
    handles = [*colours, *used.values()]
    legend(figure, handles)
    title += few(len(shown), len(ways), "panels") + few(len(drawn), len(classes), "classes")
    figure.suptitle(f"Latency by class{title}")
    return figure
