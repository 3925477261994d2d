"""Figures of ``ecjax optimize`` with queues by class, drawn from its result tables only."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ecjax.plotting.class_values import by_class
from ecjax.plotting.looks import COLOURS, MARKS, line_look, tapering
from ecjax.plotting.panels import far_apart, few, legend, panels, scale
from ecjax.plotting.runs import names, rows, swept
from ecjax.plotting.units import time_axis, time_unit

BOUND = "mean latency, bound for Poisson arrivals"
_MOST_CLASSES = 10
_MOST_BARS = 48
_MOST_NUMBERED = 16  # bars that bear their values
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind words that cross a deadline
_MOST_DESCENTS = 4
_MOST_DOTS = 60  # steps that are told apart by dots


def class_latency(out: Path, runs: pd.DataFrame) -> Figure:
    """Latency bound of every class: lines over what is swept, a colour per class and a style per queue; else bars."""
    table = rows(out, "class_plans", runs)
    classes = list(dict.fromkeys(table["service_class"]))
    shown = classes[:_MOST_CLASSES]
    table = table[table["service_class"].isin(shown)]
    sweep = swept(out, runs)
    drawn = runs if sweep is not None else runs.iloc[: max(1, _MOST_BARS // len(shown))]
    figure = _bars(table, drawn, shown) if sweep is None else _lines(table, runs, sweep, shown)
    cut = few(len(shown), len(classes), "classes") + few(len(drawn), len(runs), "runs")
    figure.suptitle(f"Latency bound by class{cut}")
    return figure


def _lines(
    table: pd.DataFrame, runs: pd.DataFrame, sweep: tuple[str, pd.Series, str], classes: list[str]
) -> Figure:
    column, across, label = sweep
    labels = pd.Series(names(runs, column), runs["run_id"])
    at = pd.Series(across.to_numpy(), runs["run_id"])
    figure, (axes,) = panels(1, 7.5, 5.2)
    ways = list(dict.fromkeys(labels))
    for place, way in enumerate(ways):
        look = line_look(place, len(ways))
        for name, colour in zip(classes, COLOURS, strict=False):
            line = table[(table["run_id"].map(labels) == way) & (table["service_class"] == name)]
            line = line.assign(at=line["run_id"].map(at)).sort_values("at")
            axes.plot(line["at"], line["latency_s"], color=colour, **look)
    axes.set_xlabel(label)
    scale(axes, table["latency_s"])
    time_axis(axes.yaxis, BOUND, time_unit(table["latency_s"]))
    handles = _class_handles(classes)
    if len(ways) > 1:
        looks = [line_look(place, len(ways)) for place in range(len(ways))]
        handles += [
            Line2D([], [], color="grey", label=way, **look) for way, look in zip(ways, looks, strict=True)
        ]
    legend(figure, handles)
    return figure


def _bars(table: pd.DataFrame, runs: pd.DataFrame, classes: list[str]) -> Figure:
    ways = dict(zip(runs["run_id"], names(runs), strict=True))
    count = len(ways) * len(classes)
    figure, (axes,) = panels(1, min(15.0, max(6.0, 2.5 + 0.4 * count)), 4.8)
    thick = 0.84 / len(ways)
    drawn = table[table["run_id"].isin(ways)]
    unit = time_unit(drawn["latency_s"])
    measured = pd.concat([drawn["latency_s"], drawn["deadline_s"].dropna()])
    logarithmic = far_apart(measured)  # where bars have no length
    for place, run in enumerate(ways):
        by_name = drawn[drawn["run_id"] == run].set_index("service_class").reindex(classes)
        where = np.arange(len(classes)) - 0.42 + thick * (place + 0.5)
        latency = by_name["latency_s"].to_numpy(float)
        if logarithmic:
            look: dict[str, Any] = {"marker": MARKS[place % len(MARKS)], "markersize": 7, "linestyle": ""}
            axes.plot(where, latency, color=COLOURS[place % len(COLOURS)], label=ways[run], **look)
        else:
            axes.bar(where, latency, 0.92 * thick, color=COLOURS[place % len(COLOURS)], label=ways[run])
        for at, value in zip(where, latency, strict=True):
            if count <= _MOST_NUMBERED and np.isfinite(value):
                style: dict[str, Any] = {"xytext": (0, 5), "textcoords": "offset points", "bbox": _PLATE}
                axes.annotate(unit.text(value), (at, value), ha="center", va="bottom", fontsize=8, **style)
        deadline = by_name["deadline_s"].to_numpy(float)
        axes.hlines(deadline, where - 0.5 * thick, where + 0.5 * thick, color="black", linewidth=1.5)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(classes)), classes)
    axes.set_xlabel("class of files")
    scale(axes, measured)
    time_axis(axes.yaxis, BOUND, unit)
    # room for the numbers above the bars
    low, high = axes.get_ylim()
    axes.set_ylim(low if axes.get_yscale() == "log" else 0, high * 1.06)
    handles = list(axes.get_legend_handles_labels()[0]) if len(ways) > 1 else []
    if drawn["deadline_s"].notna().any():
        handles.append(Line2D([], [], color="black", linewidth=1.5, label="deadline"))
    if handles:
        legend(figure, handles)
    return figure


def class_convergence(out: Path, runs: pd.DataFrame) -> Figure:
    """Latency of every class and the objective in force, step by step of the alternation, two panels per run.

    Steps stand between the outer iterations that they belong to. The objective is that over its last value; where
    classes are planned in turn, each has one of its own. A search for deadlines has none.
    """
    shown = runs.iloc[:_MOST_DESCENTS]
    figure = Figure(figsize=(10.5, 3.0 * len(shown) + 1.2), layout="constrained")
    classes: list[str] = []
    together = False
    for place, (run, way) in enumerate(zip(shown["run_id"], names(shown), strict=True)):
        left, right = (figure.add_subplot(len(shown), 2, 2 * place + side) for side in (1, 2))
        steps = rows(out, "history", shown[shown["run_id"] == run])
        steps["at"] = _at(steps["iteration"])
        latency = by_class(steps["class_latency_s"])
        classes += [name for name in latency if name not in classes]
        look: dict[str, Any] = {"linewidth": 1.4, "marker": "o" if len(steps) <= _MOST_DOTS else ""}
        shown_classes = classes[:_MOST_CLASSES]
        for order, (name, colour) in enumerate(zip(shown_classes, COLOURS, strict=False)):
            width = tapering(order, len(shown_classes))["linewidth"]
            left.plot(steps["at"], latency[name], color=colour, markersize=3, **look | {"linewidth": width})
        together |= _objectives(right, steps, look, classes)
        right.set(ylabel="objective in force /\nits last value")
        scale(left, latency.stack())
        time_axis(left.yaxis, "mean latency, bound,\none z per class", time_unit(latency.stack()))
        for axes in (left, right):
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_title(way if len(shown) > 1 else "", fontsize=9)
            if place == len(shown) - 1:
                axes.set_xlabel("outer iteration")
    shown_classes = classes[:_MOST_CLASSES]
    handles = _class_handles(shown_classes)
    if together:
        handles.append(Line2D([], [], color="black", linewidth=4, label="all classes"))
    legend(figure, handles)
    cut = few(len(shown_classes), len(classes), "classes") + few(len(shown), len(runs), "runs")
    figure.suptitle(f"Convergence by class{cut}")
    return figure


def _objectives(axes: Axes, steps: pd.DataFrame, look: dict[str, Any], classes: list[str]) -> bool:
    """A line per objective: in the colour of its class, black where all classes have one; whether there was one."""
    in_turn = steps["service_class"].notna()
    for name in steps.loc[in_turn, "service_class"].unique():
        turn = steps[steps["service_class"] == name]
        colour = COLOURS[classes.index(name) % len(COLOURS)]
        axes.plot(
            turn["at"], turn["objective"] / turn["objective"].iloc[-1], color=colour, markersize=3, **look
        )
    # where classes are planned in turn nothing descends from the objective of all at the start
    together = steps[~in_turn & ((steps["iteration"] > 0) | ~in_turn.any())]
    known = together["objective"].dropna()
    if len(known):
        axes.plot(together["at"], together["objective"] / known.iloc[-1], color="black", markersize=3, **look)
    return len(known) > 0


def _at(iteration: pd.Series) -> np.ndarray:
    """Where steps stand: those of outer iteration i evenly in (i - 1, i]."""
    order, count = iteration.groupby(iteration).cumcount() + 1, iteration.groupby(iteration).transform("size")
    return np.where(iteration > 0, iteration - 1 + order / count, 0.0)


def _class_handles(classes: list[str]) -> list[Line2D]:
    return [
        Line2D([], [], color=colour, linewidth=4, label=f"class {name}")
        for name, colour in zip(classes, COLOURS, strict=False)
    ]
