"""Figure of latency against cost, drawn from the result tables of plans only."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.labels import label_points
from ecjax.plotting.looks import COLOURS, tapering
from ecjax.plotting.method_names import BY_CLASS, MARKERS
from ecjax.plotting.panels import few, legend, panels
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.optimize.figures.plans import COST, MOST_LINES, line_names, per_file

_BY_LOG, _EXPECTED, _BOUND = "trace_estimated_mean_s", "estimated_mean_s", "latency_s"
# words and dashes
_STYLES = {_EXPECTED: ("expected", "-"), _BOUND: ("bound, Poisson arrivals", "--")}
_LOG_STYLES = {
    _BY_LOG: ("expected, the log's arrivals", "-")
}  # beside them, figures for Poisson arrivals are void


def tradeoff(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency against cost, a point per theta, a colour per method; queues by class only where theta varies.

    Solid lines are the mean that is expected, dashed ones its bound; a ring marks the plan that is recommended.

    Args:
        out: folder of the tables.
        runs: rows of ``runs``; with a column ``recommended`` where it is known which plan is.
    """
    if runs["theta"].nunique() == 1:
        runs = runs[~runs["method"].isin(BY_CLASS)]
    if runs.empty:
        return None
    by_log = _BY_LOG in runs and runs[_BY_LOG].notna().any()
    styles, expected = (_LOG_STYLES, _BY_LOG) if by_log else (_STYLES, _EXPECTED)
    figure, (axes,) = panels(1, 7.0, 5.0)
    every = list(runs.groupby(line_names(runs, "theta"), sort=False))
    groups = every[:MOST_LINES]
    handles = []
    used: dict[str, None] = {}
    for place, (name, group) in enumerate(groups):
        look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], **tapering(place, len(groups))}
        look["marker"] = MARKERS[group["method"].iloc[0]]
        ordered = group.sort_values("theta")
        for column, (word, style) in styles.items():
            if ordered[column].notna().any():
                axes.plot(
                    per_file(ordered), ordered[column], linestyle=style, label=f"{name}: {word}", **look
                )
                used[column] = None
        if len(groups) > 1:
            handles.append(Line2D([], [], label=name, **look))
    axes.set(xlabel=COST, title=f"Latency against storage cost{few(len(groups), len(every), 'lines')}")
    time_axis(axes.yaxis, "mean latency of a read", time_unit(runs[expected if by_log else _BOUND]))
    axes.margins(0.1, 0.1)
    colour = "grey" if len(groups) > 1 else COLOURS[0]
    for column in used:
        words, style = styles[column]
        look = {"color": colour, "linestyle": style, "linewidth": 1.6}
        handles.append(Line2D([], [], label=words, **look))
    handles += _ring(axes, runs, expected)
    legend(figure, handles)
    _name_thetas(figure, axes, groups[0][1], expected)
    return figure


def _ring(axes: Axes, runs: pd.DataFrame, expected: str) -> list[Line2D]:
    """A ring around the plan that is recommended, where one is; its entry of a legend."""
    best = runs[runs["recommended"]] if "recommended" in runs else runs.iloc[:0]
    if best.empty:
        return []
    look: dict[str, Any] = {"color": "black", "markerfacecolor": "none", "markersize": 13}
    value = best[expected].fillna(best[_BOUND])
    axes.plot(per_file(best), value, "o", **look)
    return [Line2D([], [], marker="o", linestyle="", label="recommended", **look)]


def _name_thetas(figure: Figure, axes: Axes, plans: pd.DataFrame, expected: str) -> None:
    """The thetas of one line beside its points; plans that do not differ bear theirs together."""
    value = plans[expected] if plans[expected].notna().all() else plans[_BOUND]
    places = pd.DataFrame({"cost": per_file(plans), "value": value, "theta": plans["theta"]})
    alike = [places["cost"].map("{:.4g}".format), places["value"].map("{:.4g}".format)]
    points, words = [], []
    for _, group in places.sort_values("theta").groupby(alike, sort=False):
        points.append((group["cost"].iloc[0], group["value"].iloc[0]))
        words.append("θ = " + ", ".join(f"{theta:g}" for theta in group["theta"].unique()))
    label_points(figure, axes, points, words)
