"""Figure of a plan under failures, drawn from its result tables only."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ecjax.plotting.looks import COLOURS
from ecjax.plotting.panels import few, panels
from ecjax.plotting.units import time_axis, time_unit
from ecjax.tables.results import read_run

COLORS = {"node": COLOURS[0], "site": COLOURS[1]}
MOST = 40  # scenarios that fit on a page; the slowest are shown
_HEIGHT_PER_BAR = 0.24
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # behind words that cross bars or lines


def scenarios(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency bound in every failure scenario of the first run, slowest first, and without failures.

    Beside a bar: the share of reads that is lost, where some is. A scenario that overloads a node has a hatched bar
    over the whole width and names the node; one that serves no read at all has none.
    """
    examined = runs[runs["worst_scenario"].notna()]
    if examined.empty:
        return None
    run = examined.iloc[0]
    table = read_run(out, "scenarios", run["run_id"]).to_pandas()
    if table.empty:
        return None
    latency = table["latency_s"].to_numpy(float)
    # nothing served is worse than overloaded
    order = np.lexsort((-np.nan_to_num(latency, posinf=0.0), ~np.isinf(latency), ~np.isnan(latency)))[:MOST]
    shown, latency = table.iloc[order], latency[order]
    finite = latency[np.isfinite(latency)]
    longest = max([float(run["latency_s"]), *finite])
    figure, (axes,) = panels(1, 7.5, 1.6 + _HEIGHT_PER_BAR * len(shown))
    axes.grid(visible=False, axis="y")
    for place, (row, value) in enumerate(zip(shown.itertuples(), latency, strict=True)):
        words = [f"{100 * row.unavailable_share:.2g} % of reads lost"] if row.unavailable_share > 0 else []
        end = 0.0
        if np.isnan(value):
            words = ["no read is served"]
        elif np.isinf(value):
            axes.barh(place, longest, color="white", edgecolor=COLORS[row.kind], hatch="///", height=0.7)
            words.insert(0, f"node {row.busiest_node} overloaded (load {row.max_load:.2f})")
        else:
            end = value
            axes.barh(place, value, color=COLORS[row.kind], height=0.7)
        if words:
            axes.text(end + 0.01 * longest, place, ", ".join(words), bbox=_PLATE, va="center", fontsize=8)
    line = axes.axvline(run["latency_s"], color="black", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(shown)), [_label(row) for row in shown.itertuples()], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1.25 * longest)
    slowest = f" (the {len(shown)} slowest of {len(table)})" if len(table) > len(shown) else ""
    axes.set_title(f"With nodes down{slowest}{few(1, len(examined), 'plans')}")
    unit = time_unit(longest)
    time_axis(axes.xaxis, "mean latency of the reads that are served, bound for Poisson arrivals", unit)
    kinds = [kind for kind in COLORS if (shown["kind"] == kind).any()]
    handles = [Patch(color=COLORS[kind]) for kind in kinds]
    figure.legend(
        [*handles, line],
        [*(f"{kind} down" for kind in kinds), "no failure"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return figure


def _label(row) -> str:
    return f"{row.kind} {row.scenario}"
