"""Figures of how long the slowest take: of requests by strategy, and of single tasks by the size of their chunk."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.intervals import half_width_of, half_width_over_seeds
from ecjax.plotting.grid import grid
from ecjax.plotting.looks import COLOURS, MARKS
from ecjax.plotting.panels import few, legend
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.adapt.words import by_setting
from ecjax.tables.results import read_results

_BEYOND = {"p50_s": 0.5, "p90_s": 0.1, "p99_s": 0.01, "p999_s": 0.001}  # share that takes longer
_MOST_PANELS, _MOST_LINES = 3, 8


def ccdf(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Share of the requests that take longer, at the least rate (Fig. 5 of the TOFEC paper), by law and setting.

    Drawn through the median and the 90, 99 and 99.9 % quantiles, with their intervals; means over the seeds.

    Returns:
        None where no request was replayed.
    """
    ended = by_setting(runs)
    least = ended.groupby(["delays", "setting"])["rate_per_s"].transform("min")
    columns = ["run_id", "delays", "setting", "arrivals", "name"]
    table = read_results(out, "latencies")
    table = table[table["group"] == "all"].merge(
        ended.loc[ended["rate_per_s"] == least, columns], on="run_id"
    )
    if table.empty:
        return None
    parts, names = list(table.groupby(["delays", "setting"], sort=False)), list(dict.fromkeys(table["name"]))
    several = table["delays"].nunique() > 1
    shown = parts[:_MOST_PANELS]
    figure, panels = grid(len(shown), 4.8, 4.4)
    for axes, ((law, setting), part) in zip(panels, shown, strict=True):
        logged = bool((part["arrivals"] == "trace").any())
        for place, name in enumerate(names[:_MOST_LINES]):
            of_name = part[part["name"] == name]
            if of_name.empty:
                continue
            halves = [of_name[half_width_of(column)].to_numpy(float) for column in _BEYOND]
            half = [half_width_over_seeds(each, logged) for each in halves]
            _line(axes, [of_name[column].mean() for column in _BEYOND], half, place, name)
        axes.set_title(", ".join(filter(None, [Path(law).name if several else "", setting])))
        _tail_axis(axes, "latency of a request", part[list(_BEYOND)], "requests" if axes is panels[0] else "")
    legend(figure, panels[0].get_legend_handles_labels()[0])
    words = few(len(shown), len(parts), "panels") + few(min(len(names), _MOST_LINES), len(names), "lines")
    figure.suptitle(f"Requests that take longer{words}")
    return figure


def task_delays(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Delays of single tasks (Figs. 4 and 6 of the TOFEC paper): a row of panels per law.

    On the left the share of the tasks that take longer, by the size of the chunk: threads are alike, so that there is
    one curve where the paper has one per thread. On the right mean and deviation against the size, and the lines that
    TOFEC fits to them.

    Returns:
        None where no run ended.
    """
    table = read_results(out, "delays").merge(runs[["run_id", "delays"]], on="run_id")
    table = table.drop_duplicates(["delays", "class", "chunk_bytes"])
    if table.empty:
        return None
    laws = list(dict.fromkeys(table["delays"]))
    shown = laws[:_MOST_PANELS]
    figure, panels = grid(2 * len(shown), 4.8, 3.8, columns=2)
    for row, law in enumerate(shown):
        tail, moments = panels[2 * row : 2 * row + 2]
        part = table[table["delays"] == law]
        part = part[part["class"] == part["class"].iloc[0]].sort_values("chunk_bytes")
        for place, size in enumerate(part.to_dict("records")[:_MOST_LINES]):
            label = f"{size['chunk_bytes'] / 1e6:.3g} MB"
            _line(tail, [size[column] for column in _BEYOND], None, place, label)
        tail.set_title(Path(law).name if len(laws) > 1 else "")
        _tail_axis(tail, "delay of a task", part[list(_BEYOND)], "tasks")
        tail.legend(fontsize=8)
        at = part["chunk_bytes"] / 1e6
        for place, (value, word) in enumerate((("mean_s", "mean"), ("std_s", "standard deviation"))):
            moments.plot(at, part[value], MARKS[place], color=COLOURS[place], label=word)
            moments.plot(at, part[f"fit_{value}"], "--", color=COLOURS[place], linewidth=1.2)
        time_axis(moments.yaxis, "delay of a task", time_unit(part["mean_s"]))
        moments.set(xlabel="chunk (MB)", ylim=(0, None), xlim=(0, None))
        handles = moments.get_legend_handles_labels()[0]
        fitted = Line2D([], [], color="grey", linestyle="--", label="TOFEC's model, without the worst 10 %")
        moments.legend(handles=[*handles, fitted], fontsize=8)
    figure.suptitle(f"Delays of tasks{few(len(shown), len(laws), 'laws')}")
    return figure


def _line(axes: Axes, times: list[float], half: list[float] | None, place: int, label: str) -> None:
    look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
    error = None if half is None or not np.isfinite(half).all() else half
    shares = list(_BEYOND.values())
    axes.errorbar(times, shares, xerr=error, markersize=4, linewidth=1.3, capsize=2, label=label, **look)


def _tail_axis(axes: Axes, words: str, times: pd.DataFrame, what: str) -> None:
    axes.set(yscale="log", xlim=(0, None), ylabel=f"share of the {what} that take longer" if what else "")
    time_axis(axes.xaxis, words, time_unit(times))
