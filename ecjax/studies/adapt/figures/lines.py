"""Figures of latencies against the rate: static codes, strategies, deviations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.intervals import HALF_WIDTHS
from ecjax.plotting.grid import grid
from ecjax.plotting.looks import COLOURS, line_look
from ecjax.plotting.panels import few, legend, scale
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.adapt.words import basic, by_setting, colours, over_seeds

_RATE = "requests/s"
_TITLES = {"mean_s": "mean", "p50_s": "median", "p90_s": "90 % quantile", "p99_s": "99 % quantile"}
_STYLES: tuple[Any, ...] = (":", "--", "-.", "-")  # of a code with 0, 1, 2, 3 or more extra chunks
_MOST_ROWS = 3
_MOST_CODES = 5  # more static codes are shown as a cloud
_ENVELOPE: dict[str, Any] = {
    "color": "black",
    "linewidth": 3.6,
    "marker": "o",
    "markersize": 7,
    "zorder": 1.5,
}
_LEAST: dict[str, Any] = {"color": "silver", "linewidth": 5.0, "zorder": 1.5}  # below the codes


def tradeoff(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of static codes against the rate, coloured by k (Fig. 1 of the TOFEC paper); a panel per law.

    A line ends where its code is overloaded. The wide grey line is the least of all.

    Returns:
        None where there are not two static codes and two rates.
    """
    means = over_seeds(runs[runs["strategy"] == STATIC].dropna(subset=["n", "k"]))
    if means.empty or means["name"].nunique() < 2 or means["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(means)
    shown = parts[:_MOST_ROWS]
    dimensions = sorted(means["k"].unique())
    shades = dict(zip(dimensions, COLOURS, strict=False))
    figure, panels = grid(len(shown), 6.4, 4.6)
    for axes, (title, part) in zip(panels, shown, strict=True):
        served = part[~part["overloaded"]]
        for (n, k), line in served.groupby(["n", "k"]):
            style = _STYLES[min(int(n - k), len(_STYLES) - 1)]
            axes.plot(line["rate_per_s"], line["mean_s"], style, color=shades.get(k, "grey"), linewidth=1.1)
        least = served.groupby("rate_per_s")["mean_s"].min()
        axes.plot(least.index, least, **_LEAST)
        axes.set(xlabel=_RATE, title=title, yscale="log")
        axes.set_xlim(left=0)
        time_axis(axes.yaxis, "mean latency", time_unit(served["mean_s"]))
    handles = [
        Line2D([], [], color=shades.get(k, "grey"), linewidth=3, label=f"k = {k:.0f}") for k in dimensions
    ]
    extra = sorted({min(int(row.n - row.k), len(_STYLES) - 1) for row in means.itertuples()})
    handles += [
        Line2D(
            [], [], color="grey", linestyle=_STYLES[e], label=f"n - k = {e}" + (" or more" if e == 3 else "")
        )
        for e in extra
    ]
    legend(figure, [*handles, Line2D([], [], label="least", **_LEAST)])
    figure.suptitle(f"Static codes: latency against rate{few(len(shown), len(parts), 'laws')}")
    return figure


def delay(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean, median, 90 % and 99 % quantile against the rate, a line per strategy (Fig. 7 of the TOFEC paper).

    The best static code is the envelope: its quantiles are the least that any static code has. A row of panels per law.

    Returns:
        None where there are not two rates.
    """
    means = over_seeds(runs)
    if means["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(means)
    shown = parts[:_MOST_ROWS]
    figure, panels = grid(len(shown) * len(_TITLES), 3.9, 4.0, columns=len(_TITLES))
    for row, (title, part) in enumerate(shown):
        line = panels[row * len(_TITLES) : (row + 1) * len(_TITLES)]
        unit = time_unit(part.loc[~part["overloaded"], list(_TITLES)])
        for axes, (value, words) in zip(line, _TITLES.items(), strict=True):
            _lines(axes, part, runs, value)
            axes.set(title=f"{words}, {title}" if title else words, xlabel=_RATE)
            time_axis(axes.yaxis, "latency" if axes is line[0] else "", unit)
    legend(figure, _entries(means))
    figure.suptitle(f"Latency against rate{few(len(shown), len(parts), 'laws')}")
    return figure


def deviation(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Standard deviation of latencies against the rate, a line per strategy (Fig. 9); a panel per law.

    Returns:
        None where there are not two rates.
    """
    means = over_seeds(runs)
    if means["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(means)
    shown = parts[:_MOST_ROWS]
    figure, panels = grid(len(shown), 6.0, 4.2)
    for axes, (title, part) in zip(panels, shown, strict=True):
        _lines(axes, part, runs, "std_s")
        axes.set(title=title, xlabel=_RATE)
        unit = time_unit(means.loc[~means["overloaded"], "std_s"])
        time_axis(axes.yaxis, "standard deviation of latency" if axes is panels[0] else "", unit)
    legend(figure, _entries(means))
    figure.suptitle(f"Deviation of latencies{few(len(shown), len(parts), 'laws')}")
    return figure


def _parts(means: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """By law of the delays and setting, the rates of each in order, with what tells them apart."""
    ordered = means.sort_values("rate_per_s", kind="stable")
    several = means["delays"].nunique() > 1
    parts = []
    for delays, setting in means[["delays", "setting"]].drop_duplicates().itertuples(index=False, name=None):
        title = ", ".join(filter(None, [Path(delays).name if several else "", setting]))
        parts.append((title, ordered[(ordered["delays"] == delays) & (ordered["setting"] == setting)]))
    return parts


def _lines(axes: Axes, means: pd.DataFrame, runs: pd.DataFrame, value: str) -> None:
    """A line per strategy, as far as it is not overloaded."""
    served = means[~means["overloaded"] & means[value].notna()]
    for (name, strategy), line in served.groupby(["name", "strategy"], sort=False):
        look = _look(means, name, strategy)
        across, up = line["rate_per_s"].to_numpy(), line[value].to_numpy()
        if strategy == BEST_STATIC and value in _TITLES and value != "mean_s":
            up = _least(line, runs, value)
        half = line[HALF_WIDTHS[value]].to_numpy()
        axes.errorbar(
            across, up, half if np.isfinite(half).all() and look.get("marker") else None, capsize=2, **look
        )
    if not served.empty:
        outside = ~served["name"].isin(_cloud(means))
        shown = served[outside] if outside.any() else served
        scale(axes, shown[value] + shown[HALF_WIDTHS[value]].fillna(0.0))
    axes.set_xlim(left=0)


def _least(line: pd.DataFrame, runs: pd.DataFrame, value: str) -> np.ndarray:
    """Of each rate the least quantile of any static code, mean over the seeds."""
    runs = by_setting(runs)
    best = runs[(runs["strategy"] == BEST_STATIC) & runs["delays"].isin(line["delays"])]
    best = best[best["setting"].isin(line["setting"])]
    best = best.dropna(subset="envelope")
    values = [json.loads(text)[value]["value"] for text in best["envelope"]]
    least = pd.Series(values, best["rate_per_s"].to_numpy(), float).groupby(level=0).mean()
    return line["rate_per_s"].map(least).fillna(line[value]).to_numpy()


def _cloud(means: pd.DataFrame) -> set[str]:
    """Static codes that share a colour: where there are many, all but (1, 1)."""
    names = set(means.loc[means["strategy"] == STATIC, "name"])
    return names - {basic()} if len(names) > _MOST_CODES else set()


def _look(means: pd.DataFrame, name: str, strategy: str) -> dict[str, Any]:
    if name in _cloud(means):
        return {"color": "lightgrey", "linewidth": 0.8, "zorder": 1}
    if strategy == BEST_STATIC:
        return _ENVELOPE
    look: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.4}
    if strategy == STATIC:
        codes = [
            each
            for each in dict.fromkeys(means.loc[means["strategy"] == STATIC, "name"])
            if each not in _cloud(means)
        ]
        return look | {
            "color": "grey",
            "linestyle": ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)))[codes.index(name)],
        }
    shades = colours(list(means["strategy"]))
    place = list(shades).index(strategy)
    return {"color": shades[strategy], **line_look(place + 1, len(shades) + 1)}


def _entries(means: pd.DataFrame) -> list[Line2D]:
    """Of a legend."""
    entries = []
    for name, strategy in means[["name", "strategy"]].drop_duplicates().itertuples(index=False):
        if name not in _cloud(means):
            entries.append(Line2D([], [], label=name, **_look(means, name, strategy)))
    if _cloud(means):
        label = "other static codes" if entries else "static codes"
        entries.append(Line2D([], [], color="lightgrey", linewidth=0.8, label=label))
    return entries
