"""Figures of replayed transfers as lines: distributions of completion times, and improvement over a sweep."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ecjax.plotting.grid import MOST_PANELS, beside, grid, spread, telling
from ecjax.plotting.looks import line_look
from ecjax.plotting.panels import few, legend
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.schedule.words import (
    BASELINE,
    POINT,
    POINT_WORDS,
    colours,
    groups,
    rows,
    scheduler_name,
    sources_name,
)

_SHORTEST = 1e-3  # an axis of times starts at this quantile: single tiny coflows would stretch it by decades


def cdf(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution of completion times, all seeds together, a panel per source rule.

    Fig. 5b and 5d of the D-Target paper. The thin black line is that of every coflow alone on the fabric.
    """
    parts = groups(runs, (*POINT, "setting", "sources"))
    shown = telling(parts, "mean_s", "scheduler")
    schedulers = list(dict.fromkeys(runs["scheduler"]))
    figure, panels = grid(len(shown), 5.4, 3.8)
    shades = colours(schedulers)
    looks: dict[str, dict[str, Any]] = {
        name: {"color": shades[name], **line_look(place, len(schedulers)), "marker": ""}
        for place, name in enumerate(schedulers)
    }
    unit = None
    for axes, (title, replays) in zip(panels, shown, strict=True):
        times = rows(out, "coflows", replays, ["completion_s", "isolation_s"])
        for name in schedulers:
            part = times[times["scheduler"] == name]
            if len(part):
                axes.plot(*_steps(part["completion_s"]), **looks[name])
        first = times[times["scheduler"] == times["scheduler"].iloc[0]]
        axes.plot(*_steps(first["isolation_s"]), color="black", linewidth=1)
        axes.set(xscale="log", ylim=(0, 1.01))
        axes.set_title(title, fontsize=10)
        axes.set_xlim(left=max(first["isolation_s"].quantile(_SHORTEST), 1e-9))
        unit = unit or time_unit(times["completion_s"])
        time_axis(axes.xaxis, "completion time", unit)
    panels[0].set_ylabel("share of coflows at or below")
    handles = [Line2D([], [], label=scheduler_name(name), **look) for name, look in looks.items()]
    legend(figure, [*handles, Line2D([], [], color="black", linewidth=1, label="alone on the fabric")])
    figure.suptitle(f"Completion times{few(len(shown), len(parts), 'panels')}")
    return figure


def sweep(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Improvement over fair against what is swept, a line per scheduler, a panel per source rule.

    Fig. 4 of the D-Target paper. Points are means over the seeds, whiskers go from the least to the largest. Where fair
    was replayed with random sources, further panels show what scheduler and source rule gain over that together.

    Returns:
        None where nothing is swept, or there is nothing beside fair.
    """
    together = _over_random(runs)
    runs = runs[(runs["scheduler"] != BASELINE) & runs["improvement"].notna()]
    varying = [name for name in POINT if runs[name].nunique() > 1]
    if not varying:
        return None
    column, *others = varying
    # reads of a log, or transfers, beside generated reads have no value of what these are swept over
    runs, together = (each[each[column].notna()] for each in (runs, together))
    parts = groups(runs, (*others, "setting", "sources"))
    for _, of_rule in together.groupby("sources", sort=False):
        rule = sources_name(of_rule["sources"].iloc[0])
        for title, part in groups(of_rule, (*others, "setting")):
            words = f"{rule} over fair with random sources"
            parts.append((f"{title}, {words}" if title else words, part))
    shown = parts[:MOST_PANELS]
    schedulers = list(dict.fromkeys(runs["scheduler"]))
    figure, panels = grid(len(shown), 5.0, 3.8)
    shades = colours(schedulers)
    looks: dict[str, dict[str, Any]] = {
        name: {"color": shades[name], **line_look(place, len(schedulers))}
        for place, name in enumerate(schedulers)
    }
    swept = np.sort(runs[column].unique()).astype(float)
    logarithmic = column.endswith("_scale")
    low = high = 1.0
    for axes, (title, replays) in zip(panels, shown, strict=True):
        for place, name in enumerate(schedulers):
            line = replays[replays["scheduler"] == name].groupby(column)["improvement"]
            if not len(line):
                continue
            at = beside(
                np.array(list(line.groups), float), swept, place - (len(schedulers) - 1) / 2, logarithmic
            )
            spreads = [spread(values.astype(float)) for _, values in line]
            reach = np.hstack([half for _, half in spreads])
            means = np.array([mean for mean, _ in spreads])
            axes.errorbar(at, means, reach, capsize=2, **looks[name])
            low, high = min(low, np.min(means - reach[0])), max(high, np.max(means + reach[1]))
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(POINT_WORDS[column])
        if logarithmic:
            axes.set_xscale("log")
        axes.set_xticks(swept, [f"{value:g}" for value in swept])
        axes.xaxis.set_minor_locator(NullLocator())
    room = max(0.08 * (high - low), 0.01)
    for axes in panels:
        axes.set_ylim(max(low - room, 0.0), high + room)
    panels[0].set_ylabel("mean completion time of fair / own")
    handles = [Line2D([], [], label=scheduler_name(name), **look) for name, look in looks.items()]
    legend(figure, handles)
    figure.suptitle(f"Improvement over max-min fair sharing{few(len(shown), len(parts), 'panels')}")
    return figure


def _over_random(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with other sources than random ones, their improvement that over fair with random sources, same seed."""
    keys = [*POINT, "setting", "seed"]
    fair = runs[(runs["scheduler"] == BASELINE) & (runs["sources"] == "random")]
    others = runs[(runs["scheduler"] != BASELINE) & (runs["sources"] != "random")]
    both = others.drop(columns="improvement").merge(fair[[*keys, "mean_s"]], on=keys, suffixes=("", "_fair"))
    return both.assign(improvement=both["mean_s_fair"] / both["mean_s"])


def _steps(times: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Times in order and the share at or below each."""
    ordered = np.sort(times.to_numpy(float))
    return np.repeat(ordered, 2)[1:], np.repeat(np.arange(1, len(ordered) + 1) / len(ordered), 2)[:-1]
