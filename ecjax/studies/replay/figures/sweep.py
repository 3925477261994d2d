"""Figures of replays against what a sweep varies."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from ecjax.plotting.class_values import at_rates_of_tables
from ecjax.plotting.looks import COLOURS, MARKS, tapering
from ecjax.plotting.panels import few, legend, number, panels, scale
from ecjax.plotting.runs import names, rows
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.replay.assumptions import source_label
from ecjax.studies.replay.words import (
    EARLIER,
    LATENCY,
    LOAD,
    MOST_CURVES,
    SOURCES,
    STYLES,
    horizontal,
    loads,
)
from ecjax.tables.datasets import batches_written
from ecjax.tables.results import read_results


def sweep(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean and 99 % quantile against rate, size or load: as replayed, estimated and promised, a colour per policy.

    Returns:
        None where neither rate, nor size, nor load varies.
    """
    axis = horizontal(out, runs)
    if axis is None:
        return None
    column, across, label = axis
    labels = pd.Series(names(runs, column), runs["run_id"])
    at = pd.Series(across.to_numpy(), runs["run_id"])
    lines = list(dict.fromkeys(labels))[:MOST_CURVES]
    table = rows(out, "latencies", runs, "all")
    figure, axes = panels(2, 10.5, 4.4 + 0.22 * np.ceil((len(lines) + 3) / 4))
    used: dict[str, Line2D] = {}
    for each, value, title in ((axes[0], "mean_s", "mean"), (axes[1], "p99_s", "99 % quantile")):
        drawn = []
        for place, (name, colour) in enumerate(zip(lines, COLOURS, strict=False)):
            line = table[table["run_id"].map(labels) == name]
            for source, style in STYLES.items():
                part = line[(line["source"] == source) & np.isfinite(line[value])]
                if part.empty:
                    continue
                part = part.assign(at=part["run_id"].map(at)).sort_values("at")
                look: dict[str, Any] = {**tapering(place, len(lines)), "linestyle": style}
                if source not in ("replayed", "observed"):
                    look["marker"] = "_" if len(part) == 1 else ""
                half = part["ci_s"].to_numpy() if value == "mean_s" and part["ci_s"].notna().any() else None
                each.errorbar(part["at"], part[value], half, color=colour, capsize=2, **look)
                plain: dict[str, Any] = {"color": "grey", "linestyle": style, "linewidth": 1.6}
                word = source_label(source, SOURCES[source][0], runs)
                used.setdefault(source, Line2D([], [], label=word, **plain))
                drawn.append(part[value])
        each.set(xlabel=label, title=title)
        if drawn:
            scale(each, pd.concat(drawn))
            time_axis(each.yaxis, LATENCY, time_unit(*drawn))
    colours = [
        Line2D([], [], color=colour, label=name, **tapering(place, len(lines)))
        for place, (name, colour) in enumerate(zip(lines, COLOURS, strict=False))
    ]
    handles = [*(colours if len(lines) > 1 else []), *used.values()]
    legend(figure, handles)
    figure.suptitle(f"Latency of reads{few(len(lines), labels.nunique(), 'lines')}")
    return figure


def bounds(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency against load: replays, estimate and bounds, earlier ones too (Fig. 7 of the JLCM paper).

    Returns:
        None where the load does not vary.
    """
    load = loads(runs)
    if load is None:
        return None
    at = pd.Series(load.to_numpy(), runs["run_id"])
    table = rows(out, "latencies", runs, "all")
    labels = pd.Series(names(runs, "max_load"), runs["run_id"])
    every = list(dict.fromkeys(labels))
    lines, several = every[:MOST_CURVES], len(every) > 1
    figure, (axes,) = panels(1, 7.5, 5.0)
    drawn: list[pd.Series] = []
    earlier: set[str] = set()
    for place, (name, line_colour) in enumerate(zip(lines, COLOURS, strict=False)):
        line = table[table["run_id"].map(labels) == name]
        for source, (word, colour) in SOURCES.items():
            part = line[(line["source"] == source) & np.isfinite(line["mean_s"])]
            if part.empty or source in earlier:
                continue
            earlier |= {source} & EARLIER
            apart = several and source in STYLES
            part = part.assign(at=part["run_id"].map(at)).sort_values("at")
            axes.errorbar(
                part["at"],
                part["mean_s"],
                part["ci_s"].to_numpy() if part["ci_s"].notna().any() else None,
                color=line_colour if apart else colour,
                linestyle=STYLES.get(source, (0, (1, 1))),
                marker=MARKS[place % len(MARKS)] if source in ("replayed", "observed") else "",
                markersize=4,
                linewidth=tapering(place, len(lines))["linewidth"],
                capsize=2,
                label=f"{name}: {word}" if apart else word,
            )
            drawn.append(part["mean_s"])
    cut = few(len(lines), len(every), "lines")
    axes.set(xlabel=LOAD, title=f"Mean latency and its bounds against load{cut}")
    scale(axes, pd.concat(drawn))
    time_axis(axes.yaxis, "mean " + LATENCY, time_unit(*drawn))
    per_read_s = _load_of_a_read(out, runs, load)
    if per_read_s is not None and load.min() > 0:
        _add_time_between_reads(axes, load.to_numpy(float), per_read_s)
    legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def _add_time_between_reads(axes: Axes, load: np.ndarray, per_read_s: float) -> None:
    """The same axis above in 1/lambda; ``per_read_s`` is load over rate."""

    def other(values: ArrayLike) -> np.ndarray:
        # Matplotlib asks for 0, too
        return per_read_s / np.maximum(np.asarray(values, float), 1e-6)

    axes.set_xlim(load.min() / 2, None)
    above = axes.secondary_xaxis("top", functions=(other, other))
    ticks = other(np.unique(load.round(3)))
    above.set_xticks(ticks, [number(float(tick)) for tick in ticks])
    above.set_xlabel("mean time between reads, 1/λ (s)")


def _load_of_a_read(out: Path, runs: pd.DataFrame, load: pd.Series) -> float | None:
    """Load over the rate of all reads, s; None where that is not known, or not the same in all runs."""
    if not (batches_written(out, "inputs/files") and at_rates_of_tables(runs)):
        return None
    rate = read_results(out, "inputs/files").groupby("input_id")["rate_per_s"].sum()
    rates = (runs["input_id"].map(rate) * runs["rate_scale"]).to_numpy(float)
    ratio = load.to_numpy(float) / rates
    return float(ratio.mean()) if np.ptp(ratio) <= 1e-3 * ratio.mean() else None
