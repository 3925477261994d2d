"""Figures of replays as bars: runs, classes and nodes, each as replayed, estimated and bounded."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ecjax.natural_order import natural
from ecjax.plotting.looks import COLOURS, ink
from ecjax.plotting.panels import few, legend, limit, panels
from ecjax.plotting.runs import names, rows
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.replay.assumptions import estimate_label, source_label
from ecjax.studies.replay.words import EARLIER, LATENCY, MOST_BARS, SOURCES

_MOST_RUNS = 30
_MOST_PANELS = 6
_MOST_NODE_RUNS = 4
_INTERVAL: dict[str, Any] = {"fmt": "none", "ecolor": "black", "capsize": 2, "linewidth": 1}


def latency(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean and 99 % quantile of every run: as replayed (with the interval of the mean), estimated and promised."""
    shown = runs.iloc[:_MOST_RUNS]
    table = rows(out, "latencies", shown, "all")
    sources = _sources(table)
    table = table[table["source"].isin(sources)]
    figure, axes = panels(2, 11.0, 1.7 + len(shown) * (0.12 + 0.17 * len(sources)))
    places = dict(zip(shown["run_id"], range(len(shown)), strict=True))
    for each, value, title in ((axes[0], "mean_s", "mean"), (axes[1], "p99_s", "99 % quantile")):
        thick, end = 0.84 / len(sources), limit(table[value])
        # bars of a run stand around its name, whichever sources it has
        present = table[np.isfinite(table[value])].groupby("run_id")["source"].agg(set)
        unit = time_unit(end)
        for place, source in enumerate(sources):
            part = table[(table["source"] == source) & np.isfinite(table[value])]
            order = [
                sum(each in present[run] for each in sources[:place]) - (len(present[run]) - 1) / 2
                for run in part["run_id"]
            ]
            where = part["run_id"].map(places).to_numpy(float) + thick * np.array(order)
            word, colour = SOURCES[source]
            word = source_label(source, word, runs)
            half = part["ci_s"].fillna(0.0).to_numpy() if value == "mean_s" else np.zeros(len(part))
            each.barh(where, part[value], thick * 0.92, color=colour, label=word)
            measured = half > 0
            each.errorbar(part[value][measured], where[measured], xerr=half[measured], **_INTERVAL)
            for place, length, reach in zip(where, part[value], part[value] + half, strict=True):
                cut = reach > end
                at, ha, shade = (
                    (end, "right", ink(colour))
                    if cut and length > end
                    else (min(reach, end), "left", "black")
                )
                style: dict[str, Any] = {
                    "xytext": (-3 if ha == "right" else 3, 0),
                    "textcoords": "offset points",
                    "fontsize": 7,
                }
                each.annotate(unit.text(length), (at, place), ha=ha, va="center", color=shade, **style)
        each.grid(visible=False, axis="y")
        each.set(title=title, ylim=(len(shown) - 0.4, -0.6), xlim=(0, 1.14 * end))
        time_axis(each.xaxis, LATENCY, unit)
    axes[0].set_yticks(range(len(shown)), names(runs)[: len(shown)], fontsize=8)
    axes[1].set_yticks(range(len(shown)), [""] * len(shown))
    legend(figure, axes[0].get_legend_handles_labels()[0])
    figure.suptitle(f"Latency of reads{few(len(shown), len(runs), 'runs')}")
    return figure


def classes(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency of every class as replayed, estimated and bounded, a panel per run (Fig. 11 of the JLCM paper)."""
    shown = runs.iloc[:_MOST_PANELS]
    table = rows(out, "latencies", shown, "class")
    sources, every = _sources(table), list(dict.fromkeys(table["class"]))
    groups = every[:MOST_BARS]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    width = max(4.2, 0.28 * len(groups) * len(sources) + 1.2)
    figure = Figure(figsize=(min(columns * width, 16.0), 3.2 * lines + 0.6), layout="constrained")
    top = limit(table["mean_s"] + table["ci_s"].fillna(0.0))
    for place, (run, title) in enumerate(zip(shown["run_id"], names(runs), strict=False)):
        axes = figure.add_subplot(lines, columns, place + 1)
        of_run = table[table["run_id"] == run]
        _bars(axes, of_run, groups, _sources(of_run) or sources, top)
        axes.set(ylim=(0, 1.08 * top), xlabel="class of files")
        time_axis(axes.yaxis, "mean " + LATENCY if place % columns == 0 else "", time_unit(top))
        if len(runs) > 1:
            axes.set_title(title, fontsize=9)
    legend(
        figure,
        [
            Patch(color=SOURCES[source][1], label=source_label(source, SOURCES[source][0], runs))
            for source in sources
        ],
    )
    cut = few(len(groups), len(every), "classes") + few(len(shown), len(runs), "runs")
    figure.suptitle(f"Latency by class{cut}")
    return figure


class _NodeBar(NamedTuple):
    """Bars of one run and source, one at every node."""

    run: str
    source: str
    label: str
    colour: str


def utilisation(out: Path, runs: pd.DataFrame) -> Figure:
    """Share of time that nodes gave service, beside their load rho, and the mean sojourn of their chunks.

    Predictions from a log have no utilisation: of them sojourns alone, beside those observed.
    """
    shown = runs.iloc[:_MOST_NODE_RUNS]
    table = rows(out, "latencies", shown, "node")
    measured = table[table["source"].isin(("replayed", "observed"))]
    busy = bool(measured["utilisation"].notna().any())
    nodes = natural(measured["node_id"].unique())
    of = len(nodes)
    if of > MOST_BARS:
        most = measured.groupby("node_id")["utilisation" if busy else "requests"].max()
        chosen = set(most.nlargest(MOST_BARS).index)
        nodes = [node for node in nodes if node in chosen]
    figure = Figure(figsize=(max(7.0, 0.3 * len(nodes) + 2.5), 6.4 if busy else 3.8), layout="constrained")
    upper = figure.add_subplot(2, 1, 1) if busy else None
    lower = figure.add_subplot(2, 1, 2, sharex=upper) if busy else figure.add_subplot()
    panels_of = [(lower, "mean_s")] if upper is None else [(upper, "utilisation"), (lower, "mean_s")]
    bars = _node_bars(shown, names(runs, alone="replayed"), table)
    marks: dict[str, Line2D] = {}
    for order, bar in enumerate(bars):
        thick = 0.84 / len(bars)
        across = thick * (order + 0.5) - 0.42
        of_run = table[table["run_id"] == bar.run]
        for axes, value in panels_of:
            where, values, half = _placed(of_run, bar.source, "node_id", nodes, value)
            axes.bar(where + across, values, 0.92 * thick, color=bar.colour, label=bar.label)
            if value == "mean_s":
                axes.errorbar(where + across, values, half, **_INTERVAL)
            mark, word = ("_", "load rho") if value == "utilisation" else ("o", estimate_label(runs))
            where, values, _ = _placed(of_run, "estimated", "node_id", nodes, value)
            if len(values) and bar.source == "replayed":
                size = min(9.0, 180 * thick / len(nodes)) if mark == "_" else 3.5
                style: dict[str, Any] = {
                    "color": "black",
                    "linestyle": "",
                    "marker": mark,
                    "markersize": size,
                }
                axes.plot(where + across, values, **style)
                marks[word] = Line2D([], [], label=word, **style)
    for axes, _ in panels_of:
        axes.grid(alpha=0.3, axis="y")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    if upper is not None:
        upper.set(ylabel="utilisation", ylim=(0, max(1.0, upper.get_ylim()[1])))
        upper.tick_params(labelbottom=False)
    lower.set_xlabel("node")
    sojourns = table.loc[table["node_id"].isin(nodes), "mean_s"]
    time_axis(lower.yaxis, "mean sojourn of a chunk", time_unit(sojourns))
    slanted = max(len(str(node)) for node in nodes) * len(nodes) > 90
    angle: dict[str, Any] = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    lower.set_xticks(range(len(nodes)), [str(node) for node in nodes], fontsize=8, **angle)
    lower.set_xlim(-0.7, len(nodes) - 0.3)
    handles = [*(lower.get_legend_handles_labels()[0] if len(bars) > 1 else []), *marks.values()]
    if handles:
        legend(figure, handles)
    cut = few(len(nodes), of, "nodes, the busiest" if busy else "nodes, the most read")
    figure.suptitle(f"Nodes in the replay{cut}{few(len(shown), len(runs), 'runs')}")
    return figure


def _node_bars(runs: pd.DataFrame, names_of: list[str], table: pd.DataFrame) -> list[_NodeBar]:
    """Bars of what each run replayed, after those of what was observed: once, as a study is of one log."""
    bars = [
        _NodeBar(run, "replayed", name, colour)
        for run, name, colour in zip(runs["run_id"], names_of, COLOURS, strict=False)
    ]
    observed = table.loc[table["source"] == "observed", "run_id"]
    word, colour = SOURCES["observed"]
    return [*(_NodeBar(run, "observed", word, colour) for run in observed.iloc[:1]), *bars]


def _sources(table: pd.DataFrame) -> list[str]:
    """Sources that have anything to show about these runs, in the order of ``SOURCES``."""
    return [each for each in SOURCES if each not in EARLIER and (table["source"] == each).any()]


def _placed(
    table: pd.DataFrame, source: str, key: str, groups: list, value: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions of groups, their values and half widths (0 where there is none), from one source."""
    part = table[(table["source"] == source) & table[key].isin(groups) & np.isfinite(table[value])]
    positions = part[key].map({group: place for place, group in enumerate(groups)}).to_numpy(float)
    return positions, part[value].to_numpy(float), part["ci_s"].fillna(0.0).to_numpy(float)


def _bars(axes: Axes, table: pd.DataFrame, groups: list, sources: list[str], top: float) -> None:
    """A bar per class and source, with intervals; one that leaves the panel bears its value."""
    thick = 0.84 / len(sources)
    for order, source in enumerate(sources):
        where, values, half = _placed(table, source, "class", groups, "mean_s")
        where = where - 0.42 + thick * (order + 0.5)
        word, colour = SOURCES[source]
        axes.bar(where, values, 0.92 * thick, color=colour, label=word)
        inside = (half > 0) & (values <= top)
        axes.errorbar(where[inside], values[inside], half[inside], **_INTERVAL)
        for at, value in zip(where, values, strict=True):
            if value > top:
                style: dict[str, Any] = {
                    "rotation": 90,
                    "ha": "center",
                    "va": "top",
                    "fontsize": 7,
                    "color": ink(colour),
                }
                axes.text(at, 1.05 * top, time_unit(top).text(value), **style)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xticks(range(len(groups)), [str(group) for group in groups], fontsize=8)
    axes.set_xlim(-0.6, len(groups) - 0.4)
