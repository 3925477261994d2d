"""Figures of caches as lines: latency, hits and time to decide against what is swept."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ecjax.plotting.grid import panel
from ecjax.plotting.looks import line_look
from ecjax.plotting.panels import few, legend, scale
from ecjax.plotting.units import plain_numbers, time_axis, time_unit
from ecjax.studies.cache.figures.panels import by_point
from ecjax.studies.cache.tables import COOPERATIVE
from ecjax.studies.cache.words import NEVER_DECIDES, POINT_WORDS, colours, over_seeds, parts, varying

_MOST_ROWS = 3
_VALUES = {
    "mean_s": "mean latency of a read",
    "above_optimum": "above the static optimum (%)",
    "chunk_hit_ratio": "chunk hit ratio",
    "decision_mean_s": "mean time to decide",
}
_OF_DECISIONS = ("above_optimum", "decision_mean_s")
_FAR_APART = 4.0  # an axis is logarithmic whose largest value is so many times its least


def neighbours(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of edges that serve each other against how far they are, a panel per point.

    Level lines are policies of edges that do not.

    Returns:
        None where edges are at less than two distances.
    """
    means = over_seeds(runs)
    if means["neighbour_s"].nunique() < 2:
        return None
    alone = list(dict.fromkeys(means.loc[means["policy"] != COOPERATIVE, "name"]))
    figure, panels, cut = by_point(means, 5.6, 4.0)
    look: dict[str, Any] = {"color": "black", "marker": "o", "markersize": 4}
    looks = {name: line_look(place, len(alone)) | {"marker": ""} for place, name in enumerate(alone)}
    unit = time_unit(means["mean_s"])
    distances = time_unit(means["neighbour_s"])
    for axes, part in panels:
        line = part[part["neighbour_s"].notna()].sort_values("neighbour_s")
        half = line["ci_s"] if line["ci_s"].notna().all() else None
        axes.errorbar(line["neighbour_s"], line["mean_s"], half, capsize=2, **look)
        for name, colour in colours(alone).items():
            for mean in part.loc[part["name"] == name, "mean_s"]:
                axes.axhline(mean, color=colour, **looks[name])
        axes.set_ylim(0, None)
        axes.set_xlim(left=0)
        time_axis(axes.xaxis, "time to take a chunk from a neighbour", distances)
        time_axis(axes.yaxis, _VALUES["mean_s"] if axes is panels[0][0] else "", unit)
    entries = [Line2D([], [], label="edges that serve each other", **look)]
    for name, colour in colours(alone).items():
        entries.append(Line2D([], [], color=colour, label=name, **looks[name]))
    legend(figure, entries)
    figure.suptitle(f"Cooperation of edges{cut}")
    return figure


def sweep(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency, its distance to the static optimum, hits and time to decide, a line per policy, against a sweep.

    Fig. 11 to 14 of the SampleX paper. A row of panels per value of whatever else is swept.

    Returns:
        None where none of K, C, copies, M, the exponent of popularity and the half-life is swept.
    """
    means = over_seeds(runs)
    numeric = [name for name in varying(means) if name not in ("failed", "setting")]
    if not numeric:
        return None
    column = max(numeric, key=lambda name: means[name].nunique())
    every = parts(means, varying(means, but=column))
    shown = every[:_MOST_ROWS]
    names = list(dict.fromkeys(means["name"]))
    shades = colours(names)
    looks = {
        name: {"color": shades[name], **line_look(place, len(names))} for place, name in enumerate(names)
    }
    units = {value: time_unit(means[value]) for value in _VALUES if value.endswith("_s")}
    figure = Figure(figsize=(16.5, 3.9 * len(shown) + 0.9), layout="constrained")
    for line, (title, part) in enumerate(shown):
        for place, (value, label) in enumerate(_VALUES.items()):
            axes = panel(figure, len(shown), len(_VALUES), line * len(_VALUES) + place)
            for name in names:
                of = part[part["name"] == name].sort_values(column)
                if value in _OF_DECISIONS and of["policy"].isin(NEVER_DECIDES).all():
                    continue
                half = of["ci_s"] if value == "mean_s" and of["ci_s"].notna().all() else None
                axes.errorbar(
                    of[column],
                    100 * of[value] if value == "above_optimum" else of[value],
                    half,
                    capsize=2,
                    **looks[name],
                )
            axes.set(xlabel=POINT_WORDS[column], ylabel=label)
            axes.set_title(title, fontsize=10)
            if value == "decision_mean_s":
                axes.set_yscale("log")
            elif value == "above_optimum":
                shares = 100 * part.loc[~part["policy"].isin(NEVER_DECIDES), value].dropna()
                if len(shares) and shares.min() > 0:
                    scale(axes, shares)
            else:
                axes.set_ylim(bottom=0)
            if value in units:
                time_axis(axes.yaxis, label, units[value])
            if part[column].min() > 0 and part[column].max() > _FAR_APART * part[column].min():
                axes.set_xscale("log")
                plain_numbers(axes.xaxis)
            axes.set_xticks(sorted(part[column].unique()), [f"{v:g}" for v in sorted(part[column].unique())])
            axes.xaxis.set_minor_locator(NullLocator())
    legend(figure, [Line2D([], [], label=name, **look) for name, look in looks.items()])
    figure.suptitle(f"Caches against {POINT_WORDS[column]}{few(len(shown), len(every), 'rows')}")
    return figure
