"""Figures of latencies against the rate: static codes, strategies, deviations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.grid import grid
from ecjax.plotting.panels import COLOURS, few, legend, plain_numbers, scale
from ecjax.studies.adapt.words import BEST_STATIC, LATENCIES, STATIC, basic, colours, over_seeds

_RATE = "requests/s"
_TITLES = {"mean_s": "mean", "p50_s": "median", "p90_s": "90 % quantile", "p99_s": "99 % quantile"}
_STYLES: tuple[Any, ...] = (":", "--", "-.", "-")  # of a code with 0, 1, 2, 3 or more extra chunks
_MOST_ROWS = 3
_MOST_CODES = 5  # more static codes are shown as a cloud
_ENVELOPE: dict[str, Any] = {"color": "black", "linewidth": 1.6, "marker": "o", "markersize": 3}


def tradeoff(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of static codes against the rate, coloured by k (Fig. 1 of the TOFEC paper); a panel per law.

    A line ends where its code is overloaded. The black line is the least of all.

    Returns:
        None where there are not two static codes and two rates.
    """
    told = over_seeds(runs[runs["method"] == STATIC].dropna(subset=["n", "k"]))
    if told.empty or told["name"].nunique() < 2 or told["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(told)
    shown = parts[:_MOST_ROWS]
    dimensions = sorted(told["k"].unique())
    shades = dict(zip(dimensions, COLOURS, strict=False))
    figure, panels = grid(len(shown), 6.4, 4.6)
    for axes, (title, own) in zip(panels, shown, strict=True):
        served = own[~own["overloaded"]]
        for (n, k), line in served.groupby(["n", "k"]):
            style = _STYLES[min(int(n - k), len(_STYLES) - 1)]
            axes.plot(line["rate_per_s"], line["mean_s"], style, color=shades.get(k, "grey"), linewidth=1.1)
        least = served.groupby("rate_per_s")["mean_s"].min()
        axes.plot(least.index, least, color="black", linewidth=2.2, alpha=0.6)
        axes.set(xlabel=_RATE, ylabel="mean latency (s)", title=title, yscale="log")
        axes.set_xlim(left=0)
        plain_numbers(axes.yaxis)
    handles = [
        Line2D([], [], color=shades.get(k, "grey"), linewidth=3, label=f"k = {k:.0f}") for k in dimensions
    ]
    extra = sorted({min(int(own.n - own.k), len(_STYLES) - 1) for own in told.itertuples()})
    handles += [
        Line2D(
            [], [], color="grey", linestyle=_STYLES[e], label=f"n - k = {e}" + (" or more" if e == 3 else "")
        )
        for e in extra
    ]
    legend(figure, [*handles, Line2D([], [], color="black", linewidth=2.2, alpha=0.6, label="least")])
    figure.suptitle(f"Static codes: latency against rate{few(len(shown), len(parts), 'laws')}")
    return figure


def delay(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean, median, 90 % and 99 % quantile against the rate, a line per strategy (Fig. 7 of the TOFEC paper).

    The best static code is the envelope: its quantiles are the least that any static code has. A row of panels per law.

    Returns:
        None where there are not two rates.
    """
    told = over_seeds(runs)
    if told["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(told)
    shown = parts[:_MOST_ROWS]
    figure = Figure(figsize=(15.5, 4.0 * len(shown) + 0.9), layout="constrained")
    for place, (title, own) in enumerate(shown):
        for column, (value, words) in enumerate(_TITLES.items()):
            axes = _axes(figure, len(shown), len(_TITLES), place * len(_TITLES) + column + 1)
            _lines(axes, own, runs, value)
            axes.set(title=f"{words}, {title}" if title else words, xlabel=_RATE)
            if column == 0:
                axes.set_ylabel("latency (s)")
    legend(figure, _entries(told))
    figure.suptitle(f"Latency against rate{few(len(shown), len(parts), 'laws')}")
    return figure


def deviation(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Standard deviation of latencies against the rate, a line per strategy (Fig. 9); a panel per law.

    Returns:
        None where there are not two rates.
    """
    told = over_seeds(runs)
    if told["rate_per_s"].nunique() < 2:
        return None
    parts = _parts(told)
    shown = parts[:_MOST_ROWS]
    figure, panels = grid(len(shown), 6.0, 4.2)
    for axes, (title, own) in zip(panels, shown, strict=True):
        _lines(axes, own, runs, "std_s")
        axes.set(title=title, xlabel=_RATE)
    panels[0].set_ylabel("standard deviation of latency (s)")
    legend(figure, _entries(told))
    figure.suptitle(f"Deviation of latencies{few(len(shown), len(parts), 'laws')}")
    return figure


def _parts(told: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """By law of the delays, the rates of each in order, with what tells them apart."""
    ordered = told.sort_values("rate_per_s", kind="stable")
    names = list(dict.fromkeys(told["delays"]))
    title = {name: Path(name).name if len(names) > 1 else "" for name in names}
    return [(title[name], ordered[ordered["delays"] == name]) for name in names]


def _axes(figure: Figure, lines: int, columns: int, place: int) -> Axes:
    axes = figure.add_subplot(lines, columns, place)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _lines(axes: Axes, told: pd.DataFrame, runs: pd.DataFrame, value: str) -> None:
    """A line per strategy, as far as it is not overloaded."""
    served = told[~told["overloaded"] & told[value].notna()]
    for (name, method), line in served.groupby(["name", "method"], sort=False):
        look = _look(told, name, method, line)
        across, up = line["rate_per_s"].to_numpy(), line[value].to_numpy()
        if method == BEST_STATIC and value in _TITLES and value != "mean_s":
            up = _least(line, runs, value)
        half = line[LATENCIES[value]].to_numpy()
        axes.errorbar(
            across, up, half if np.isfinite(half).all() and look.get("marker") else None, capsize=2, **look
        )
    if not served.empty:
        shown = served[~served["name"].isin(_cloud(told))]
        scale(axes, shown[value] + shown[LATENCIES[value]].fillna(0.0))
    axes.set_xlim(left=0)


def _least(line: pd.DataFrame, runs: pd.DataFrame, value: str) -> np.ndarray:
    """Of each rate the least quantile of any static code, mean over the seeds."""
    own = runs[(runs["method"] == BEST_STATIC) & runs["delays"].isin(line["delays"])].dropna(
        subset="envelope"
    )
    known = [json.loads(text)[value]["value"] for text in own["envelope"]]
    found = pd.Series(known, own["rate_per_s"].to_numpy(), float).groupby(level=0).mean()
    return line["rate_per_s"].map(found).fillna(line[value]).to_numpy()


def _cloud(told: pd.DataFrame) -> set[str]:
    """Static codes that are not told apart: where there are many, all but (1, 1)."""
    names = set(told.loc[told["method"] == STATIC, "name"])
    return names - {basic()} if len(names) > _MOST_CODES else set()


def _look(told: pd.DataFrame, name: str, method: str, line: pd.DataFrame) -> dict[str, Any]:
    if name in _cloud(told):
        return {"color": "lightgrey", "linewidth": 0.8, "zorder": 1}
    if method == BEST_STATIC:
        return _ENVELOPE
    look: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.4}
    if method == STATIC:
        codes = [
            each
            for each in dict.fromkeys(told.loc[told["method"] == STATIC, "name"])
            if each not in _cloud(told)
        ]
        return look | {
            "color": "grey",
            "linestyle": ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)))[codes.index(name)],
        }
    return look | {"color": colours(list(told["method"]))[method]}


def _entries(told: pd.DataFrame) -> list[Line2D]:
    """Of a legend."""
    entries = []
    for (name, method), line in told.groupby(["name", "method"], sort=False):
        if name not in _cloud(told):
            entries.append(Line2D([], [], label=name, **_look(told, name, method, line)))
    if _cloud(told):
        entries.append(Line2D([], [], color="lightgrey", linewidth=0.8, label="other static codes"))
    return entries
