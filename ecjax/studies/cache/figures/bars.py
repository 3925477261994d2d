"""Figures of caches as bars: latency and hits by policy, time to decide, throughput, edges."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ecjax.natural_order import natural
from ecjax.plotting.grid import MOST_PANELS, own_rows, panel
from ecjax.plotting.looks import COLOURS, MARKS, ink
from ecjax.plotting.panels import few, legend
from ecjax.plotting.units import plain_numbers, time_axis, time_unit
from ecjax.studies.cache.figures.panels import by_point, name_bars, wide_enough
from ecjax.studies.cache.words import (
    DECISIONS,
    NEVER_DECIDES,
    POINT,
    colours,
    over_seeds,
    parts,
    varying,
)

_MOST_POINTS = MOST_PANELS // 2  # of two panels each
_MOST_EDGES = 12  # whose bars can be told apart
_TALL = 0.16  # share of the axis that the numbers of a bar take


def policies(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency and hit ratios by policy, two panels per point (Fig. 8 and 9a of the SampleX paper).

    Whiskers are 95 % intervals; dashes are 99 % quantiles. A higher hit ratio is not a lower latency: a read is as slow
    as the slowest of its chunks that is not there.
    """
    means = over_seeds(runs)
    cooperative = means["neighbour_hit_ratio"].notna().any()
    every = parts(means, varying(means))
    shown = every[:_MOST_POINTS]
    figure = Figure(figsize=(2 * wide_enough(means), 3.6 * len(shown) + 0.9), layout="constrained")
    unit = time_unit(*(part["p99_s"] for _, part in shown))
    every_shade = colours(list(means["name"]))
    for line, (title, part) in enumerate(shown):
        left, right = (panel(figure, len(shown), 2, 2 * line + column) for column in (0, 1))
        place = np.arange(len(part))
        shades = [every_shade[name] for name in part["name"]]
        half = part["ci_s"].fillna(0.0).to_numpy()
        left.bar(place, part["mean_s"], 0.8, color=shades, yerr=half, capsize=2)
        left.plot(place, part["p99_s"], "_", color="black", markersize=9)
        highest = part["p99_s"].max()
        for at, (mean, p99, above) in enumerate(
            zip(part["mean_s"], part["p99_s"], part["above_optimum"], strict=True)
        ):
            share = f"\n{100 * above:+.{0 if above >= 0.1 else 1}f} %" if np.isfinite(above) else ""
            height, shade = 0.0, ink(shades[at])
            if mean < _TALL * highest:  # too short: above the whisker, or above the dash where that is near
                top = mean + half[at]
                height, shade = p99 if top <= p99 < top + _TALL * highest else top, "black"
            words = unit.text(mean) + share
            style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 7, "color": shade}
            left.text(at, height + 0.02 * highest, words, **style)
        time_axis(left.yaxis, "latency of a read", unit)
        left.set_title(title, fontsize=10)
        right.bar(place - 0.2, part["chunk_hit_ratio"], 0.38, color=COLOURS[0])
        right.bar(place + 0.2, part["full_hit_ratio"], 0.38, color=COLOURS[1])
        if cooperative:
            near = part["neighbour_hit_ratio"].fillna(0.0)
            right.bar(place - 0.2, near, 0.38, bottom=part["chunk_hit_ratio"], color=COLOURS[2])
        right.set(ylabel="hit ratio", ylim=(0, 1))
        right.set_title(title, fontsize=10)
        for axes in (left, right):
            name_bars(axes, list(part["name"]))
    entries = [("chunks", COLOURS[0]), ("whole items", COLOURS[1])]
    if cooperative:
        entries.append(("chunks at a neighbour", COLOURS[2]))
    legend(figure, [Patch(color=colour, label=f"hits: {word}") for word, colour in entries])
    figure.suptitle(
        "Latency (mean, and against the static optimum; dash: 99 % quantile) and hits"
        + few(len(shown), len(every), "points")
    )
    return figure


def decisions(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Time to decide after a read: mean, 99 % and 99.99 % quantile, a panel per point (Fig. 9b and 9c).

    Returns:
        None where no policy decides anything.
    """
    means = over_seeds(runs[~runs["policy"].isin(NEVER_DECIDES)])
    if means.empty:
        return None
    figure, panels, cut = by_point(means, wide_enough(means, 0.55, 1.4))
    unit = time_unit(means["decision_p99_s"])
    looks: dict[str, dict[str, Any]] = {
        column: {"color": colour, "marker": mark, "linestyle": "", "markersize": 6}
        for column, colour, mark in zip(DECISIONS, COLOURS, MARKS, strict=False)
    }
    for axes, part in panels:
        place = np.arange(len(part))
        for step, (column, look) in enumerate(looks.items()):
            axes.plot(place + 0.2 * (step - 1), part[column], **look)
        axes.set_yscale("log")
        axes.set_xlim(-0.6, len(part) - 0.4)
        time_axis(axes.yaxis, "time to decide" if axes is panels[0][0] else "", unit)
        name_bars(axes, list(part["name"]))
    legend(figure, [Line2D([], [], label=DECISIONS[column], **look) for column, look in looks.items()])
    figure.suptitle(f"Time to decide after a read{cut}")
    return figure


def throughput(out: Path, runs: pd.DataFrame) -> Figure:
    """Reads that one core replays per second, decisions included, a panel per point (Fig. 10)."""
    means = over_seeds(runs)
    figure, panels, cut = by_point(means, wide_enough(means), 3.6)
    shades = colours(list(means["name"]))
    for axes, part in panels:
        for at, (name, rate) in enumerate(zip(part["name"], part["requests_per_s"], strict=True)):
            axes.plot([at], [rate / 1000], "o", color=shades[name], markersize=8)
        axes.set_yscale("log")
        axes.set_xlim(-0.6, len(part) - 0.4)
        plain_numbers(axes.yaxis)
        name_bars(axes, list(part["name"]))
    panels[0][0].set_ylabel("1000 reads/s")
    figure.suptitle(f"Reads per second of one core{cut}")
    return figure


def failures(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency with nodes or buckets down in turn: least, mean and largest, by policy (Fig. 15).

    The open circle is that with all up.

    Returns:
        None where nothing was down.
    """
    means = over_seeds(runs)
    down = means["failed"].notna()
    if not down.any():
        return None
    figure, panels, cut = by_point(means, wide_enough(means), but="failed", noun="panels")
    unit = time_unit(means["mean_s"])
    shades = colours(list(means["name"]))
    for axes, part in panels:
        names = list(dict.fromkeys(part["name"]))
        for at, name in enumerate(names):
            of = part[part["name"] == name]
            values = of.loc[of["failed"].notna(), "mean_s"]
            mean = values.mean()
            reach = [[mean - values.min()], [values.max() - mean]]
            axes.errorbar(at, mean, reach, fmt="o", capsize=4, color=shades[name])
            whole = of.loc[of["failed"].isna(), "mean_s"]
            axes.plot([at] * len(whole), whole, "o", color="black", markerfacecolor="none", markersize=8)
        name_bars(axes, names)
        time_axis(axes.yaxis, "mean latency of a read" if axes is panels[0][0] else "", unit)
    count = means.loc[down, "failed"].nunique()
    words = f"one of {count} down, in turn" if count > 1 else f"{means.loc[down, 'failed'].iloc[0]} down"
    ring: dict[str, Any] = {
        "linestyle": "",
        "marker": "o",
        "color": "black",
        "markerfacecolor": "none",
        "markersize": 8,
    }
    handles = [Line2D([], [], marker="o", color="grey", label="with failures: mean, least and largest")]
    if not down.all():
        handles.append(Line2D([], [], label="all up", **ring))
    legend(figure, handles)
    figure.suptitle(f"Failures: {words}{cut}")
    return figure


def edges(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency at each edge by policy, a panel per point; seeds together.

    Returns:
        None where there is one edge.
    """
    rows = own_rows(out, "latencies", runs, ["group", "edge", "mean_s"])
    rows = rows[rows["group"] == "edge"].merge(runs[["run_id", "name", "setting", *POINT]], on="run_id")
    if rows.empty:
        return None
    every = natural(rows["edge"].unique())
    names = every[:_MOST_EDGES]
    figure, panels, cut = by_point(rows, wide_enough(rows, 0.5))
    unit = time_unit(rows["mean_s"])
    for axes, part in panels:
        order = list(dict.fromkeys(part["name"]))
        thick = 0.84 / len(names)
        for step, (edge, colour) in enumerate(zip(names, COLOURS, strict=False)):
            mean = part[part["edge"] == edge].groupby("name")["mean_s"].mean().reindex(order)
            axes.bar(np.arange(len(order)) - 0.42 + thick * (step + 0.5), mean, 0.92 * thick, color=colour)
        name_bars(axes, order)
        time_axis(axes.yaxis, "mean latency of a read" if axes is panels[0][0] else "", unit)
    legend(figure, [Patch(color=c, label=e) for e, c in zip(names, COLOURS, strict=False)])
    figure.suptitle(f"Latency by edge{cut}{few(len(names), len(every), 'edges')}")
    return figure
