"""Figures of replayed transfers as bars: improvement by width, source rules side by side, distance to the bound."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ecjax.plotting.grid import grid, spread, telling
from ecjax.plotting.panels import few, legend
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.schedule.words import (
    BASELINE,
    POINT,
    SOURCES,
    colours,
    groups,
    rows,
    scheduler_name,
    sources_name,
)

_WHISKERS: dict[str, Any] = {"fmt": "none", "ecolor": "black", "capsize": 2, "linewidth": 1}
_ALL = "all"
_NOTHING = 1e-4  # a distance that is not drawn


def improvement(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Improvement over fair, all coflows and by width, a panel per source rule (Fig. 3a and 3b of the D-Target paper).

    Bars are means over the seeds, whiskers go from the least to the largest.

    Returns:
        None where there is nothing beside fair.
    """
    runs = runs[(runs["scheduler"] != BASELINE) & runs["improvement"].notna()]
    if runs.empty:
        return None
    by_width = rows(out, "coflow_widths", runs, ["width_class", "improvement"])
    parts = groups(runs, (*POINT, "setting", "sources"))
    shown = telling(parts, "mean_s", "scheduler")
    schedulers, classes = list(dict.fromkeys(runs["scheduler"])), _classes(by_width)
    figure, panels = grid(len(shown), max(5.0, 0.11 * len(schedulers) * len(classes) + 1.6), 3.6)
    for axes, (title, replays) in zip(panels, shown, strict=True):
        widths = by_width[by_width["run_id"].isin(replays["run_id"])]
        every = pd.concat([replays.assign(width_class=_ALL), widths])
        table = every[["scheduler", "width_class", "improvement"]]
        if len(classes) == 1:
            table = table[table["width_class"] == _ALL]
        _bars(axes, table, "scheduler", colours(schedulers), "width_class", classes, "improvement")
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("coflows by width (flows)" if len(classes) > 1 else "")
    panels[0].set_ylabel("mean completion time of fair / own")
    _finish(figure, panels, {scheduler_name(name): colour for name, colour in colours(schedulers).items()})
    figure.suptitle(f"Improvement over max-min fair sharing{few(len(shown), len(parts), 'panels')}")
    return figure


def sources(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean completion time by scheduler, a bar per source rule (Fig. 3c of the D-Target paper), a panel per point.

    Returns:
        None where there is one source rule only.
    """
    if runs["sources"].nunique() < 2:
        return None
    return _by_scheduler(runs, "mean_s", "mean completion time", "Source selection")


def gap(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Distance of the mean completion time to its lower bound, by scheduler and source rule, a panel per point.

    Returns:
        None where no lower bound is known, or every mean is as good as it.
    """
    runs = runs[runs["gap"].notna()]
    if runs.empty or runs["gap"].max() < _NOTHING:
        return None
    label = "mean completion time / lower bound - 1"
    return _by_scheduler(runs, "gap", label, "Distance to the lower bound of every schedule")


def _by_scheduler(runs: pd.DataFrame, value: str, label: str, title: str) -> Figure:
    parts = groups(runs, (*POINT, "setting"))
    shown = telling(parts, "mean_s", "sources" if runs["sources"].nunique() > 1 else "scheduler")
    rules, schedulers = (list(dict.fromkeys(runs[name])) for name in ("sources", "scheduler"))
    shades = colours(rules, SOURCES)
    figure, panels = grid(len(shown), max(5.0, 0.55 * len(schedulers) + 1.6), 3.8)
    for axes, (words, replays) in zip(panels, shown, strict=True):
        _bars(axes, replays, "sources", shades, "scheduler", schedulers, value)
        names = [scheduler_name(name) for name in schedulers]
        axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
        axes.set_title(words, fontsize=10)
        if value.endswith("_s"):
            time_axis(axes.yaxis, label if axes is panels[0] else "", time_unit(runs[value]))
    if not value.endswith("_s"):
        panels[0].set_ylabel(label)
    _finish(figure, panels, {sources_name(name): colour for name, colour in shades.items()})
    figure.suptitle(f"{title}{few(len(shown), len(parts), 'panels')}")
    return figure


def _bars(
    axes: Axes,
    table: pd.DataFrame,
    key: str,
    shades: dict[str, Any],
    group: str,
    order: list[str],
    value: str,
) -> None:
    """A bar per ``key`` in every ``group``: mean over seeds, with whiskers from the least to the largest."""
    thick = 0.84 / len(shades)
    for place, (name, colour) in enumerate(shades.items()):
        for at, category in enumerate(order):
            values = table.loc[(table[key] == name) & (table[group] == category), value].astype(float)
            if values.empty:
                continue
            mean, reach = spread(values)
            where = at - 0.42 + thick * (place + 0.5)
            axes.bar(where, mean, 0.92 * thick, color=colour)
            if len(values) > 1:
                axes.errorbar(where, mean, reach, **_WHISKERS)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(order)), order)


def _classes(by_width: pd.DataFrame) -> list[str]:
    """All coflows together, then the classes of widths in their order; where there is one class it is all."""
    classes = by_width["width_class"].drop_duplicates()
    least = classes.str.extract(r"\[(\d+)")[0].astype(int)
    ordered = classes.iloc[np.argsort(least.to_numpy(), kind="stable")].tolist()
    return [_ALL] if len(ordered) == 1 else [_ALL, *ordered]


def _finish(figure: Figure, panels: list[Axes], entries: dict[str, Any]) -> None:
    """Panels alike in height, and a legend."""
    top = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(0, top if top > 0 else 1.0)  # a gap of nothing has no scale
    if len(entries) > 1:
        legend(figure, [Patch(color=colour, label=word) for word, colour in entries.items()])
