"""Figures of how reads come over time: their dispersion at every time scale, and the rates of classes."""

from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.looks import COLOURS, line_look
from ecjax.plotting.panels import few, legend, panels
from ecjax.plotting.texts import entry
from ecjax.plotting.units import plain_numbers, time_axis, time_unit

Tables: TypeAlias = dict[str, pd.DataFrame]

_LINES = 6
_UNKNOWN = "cannot tell"
_LEAST_PAIRS = 2.0  # of a scale that is drawn
_STANDARD_ERRORS = 3.0  # of the band: about what a verdict needs
_VISIBLE = 0.01  # standard error that a figure can show
_LOWEST = 0.01  # dispersion that is drawn: 0 has no place on a logarithmic axis


def burstiness(tables: Tables) -> Figure | None:
    """Dispersion of reads, of writes and of the reads of classes against the time scale, around that of Poisson."""
    if "burstiness" not in tables:
        return None
    rows = tables["burstiness"]
    series = _series(_telling(rows[rows["pairs"] >= _LEAST_PAIRS]))
    if not series:
        return None
    figure, (axes,) = panels()
    axes.set(xscale="log", yscale="log")
    for place, (name, each) in enumerate(series[:_LINES]):
        _line(axes, each, name, COLOURS[place], place, min(len(series), _LINES))
    name, first = series[0]
    error = _STANDARD_ERRORS * first["standard_error"]
    axes.fill_between(
        first["scale_s"], np.maximum(1 - error, _LOWEST), 1 + error, color="0.85", zorder=0, linewidth=0
    )
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set_ylim(bottom=max(_LOWEST * 0.8, 0.5 * float(min(each["dispersion"].min() for _, each in series))))
    axes.set(
        ylabel="dispersion I of the counts (Poisson: 1)",
        title=f"How bursty arrivals are{few(min(len(series), _LINES), len(series), 'classes')}",
    )
    time_axis(axes.xaxis, "length of the windows compared", time_unit(first["scale_s"]))
    plain_numbers(axes.yaxis)
    handles = list(axes.get_legend_handles_labels()[0])
    handles.append(Line2D([], [], color="0.75", lw=8, label=f"Poisson, {name}: 1 ± 3 standard errors"))
    if any((each["verdict"] == _UNKNOWN).any() for _, each in series[:_LINES]):
        handles.append(
            Line2D([], [], color="black", linestyle="", marker="o", markerfacecolor="white", label=_UNKNOWN)
        )
    legend(figure, handles)
    return figure


def _telling(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the shortest scales: there hardly two arrivals are ever within one window, which is as Poisson."""
    telling = (rows["verdict"] != "as Poisson") | (rows["standard_error"] > _VISIBLE)
    return rows[rows["scale_s"] >= rows["scale_s"][telling].min()]


def _series(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Reads, writes, and classes with most reads first: words and rows of each."""
    parts = [(f"{op}s", rows[(rows["op"] == op) & rows["service_class"].isna()]) for op in ("read", "write")]
    parts += [
        (f"reads of {entry(name)}", each)
        for name, each in rows.dropna(subset="service_class").groupby("service_class", sort=False)
    ]
    return [(name, each.sort_values("scale_s")) for name, each in parts if len(each)]


def _line(axes: Axes, rows: pd.DataFrame, name: str, colour: str, place: int, count: int) -> None:
    height = np.maximum(rows["dispersion"].to_numpy(), _LOWEST)
    look = line_look(place, count)
    axes.plot(rows["scale_s"], height, color=colour, label=name, **look)
    unknown = (rows["verdict"] == _UNKNOWN).to_numpy()
    axes.plot(
        rows["scale_s"][unknown],
        height[unknown],
        **(look | {"linestyle": "", "color": colour, "markerfacecolor": "white"}),
    )


def class_rates(tables: Tables) -> Figure | None:
    """Rate of the reads of each class over time, as a factor of its mean."""
    if "class_rates" not in tables:
        return None
    rows = tables["class_rates"]
    names = rows.groupby("service_class")["reads"].sum().sort_values(ascending=False, kind="stable").index
    end = float((rows["start_s"] + rows["duration_s"]).max())
    unit, length = next(
        ((name, s) for name, s in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)) if end >= 3 * s),
        ("s", 1.0),
    )
    figure, (axes,) = panels()
    for place, name in enumerate(names[:_LINES]):
        each = rows[rows["service_class"] == name].sort_values("start_s")
        edges = np.append(each["start_s"], each["start_s"].iloc[-1] + each["duration_s"].iloc[-1])
        axes.stairs(each["factor"], edges / length, color=COLOURS[place], lw=1.3, label=entry(name))
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set(
        xlabel=f"time since the first request ({unit})",
        ylabel="read rate / its mean",
        title=f"Rates of classes over time{few(min(len(names), _LINES), len(names), 'classes')}",
    )
    axes.set_xlim(0, end / length)
    axes.set_ylim(bottom=0)
    legend(figure, axes.get_legend_handles_labels()[0])
    return figure
