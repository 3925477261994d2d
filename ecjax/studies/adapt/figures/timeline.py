"""How strategies follow a rate that changes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ecjax.plotting.grid import own_rows
from ecjax.plotting.looks import tapering
from ecjax.plotting.panels import few, legend
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.adapt.tables import STATIC
from ecjax.studies.adapt.words import POINT, by_setting, colours

_COLUMNS = ["start_s", "requests", "mean_s", "mean_k"]
_MOST_COLUMNS = 3
_STYLES = ("--", ":", "-.")  # of static codes


def timeline(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency, mean k and arrivals by time, a line per strategy, all seeds together (Fig. 10 of the TOFEC paper).

    A column of panels per law of delays and arrivals, and per setting.
    """
    columns = by_setting(runs)[["run_id", "name", "strategy", "seed", "params", "setting", *POINT]]
    rows = own_rows(out, "timeline", runs, _COLUMNS).merge(columns, on="run_id")
    names = rows[["name", "strategy"]].drop_duplicates()
    shades = colours(names["strategy"].tolist())
    static = names.loc[names["strategy"] == STATIC, "name"].tolist()
    looks: dict[str, dict[str, Any]] = {
        name: {"color": "black", "linestyle": _STYLES[static.index(name) % len(_STYLES)]}
        if strategy == STATIC
        else {"color": shades[strategy]}
        for name, strategy in names.itertuples(index=False)
    }
    for place, look in enumerate(looks.values()):
        look["linewidth"] = tapering(place, len(looks))["linewidth"]
    parts = list(rows.groupby(["delays", "arrivals", "rate_scale", "rate_per_s", "setting"], sort=False))
    shown = parts[:_MOST_COLUMNS]
    figure = Figure(figsize=(6.4 * len(shown) + 1.2, 7.0), layout="constrained")
    axes = figure.subplots(3, len(shown), squeeze=False, sharex="col", height_ratios=[3, 1.2, 1])
    for column, (values, part) in enumerate(shown):
        latency, dimension, rate = axes[:, column]
        starts = np.unique(part["start_s"])
        for name, look in looks.items():
            line = _by_time(part[part["name"] == name], starts)
            look = look | _mark(line)
            latency.plot(line.index, line["mean_s"], **look)
            dimension.plot(line.index, line["mean_k"], **look)
        first = part[part["name"] == part["name"].iloc[0]]
        length = (
            np.diff(starts).min() if len(starts) > 1 else json.loads(first["params"].iloc[0])["timeline_s"]
        )
        arrivals = _by_time(first, starts)["requests"] / first["seed"].nunique() / length
        rate.step([*starts, starts[-1] + length], [*arrivals, arrivals.iloc[-1]], where="post", color="grey")
        latency.set(yscale="log", title=_title(values, [keys for keys, _ in parts]))
        time_axis(latency.yaxis, "mean latency" if column == 0 else "", time_unit(part["mean_s"]))
        rate.set(xlabel="time (s)", ylim=(0, None))
        for each in axes[:, column]:
            each.grid(alpha=0.3)
            each.spines[["top", "right"]].set_visible(False)
    for each, label in zip(axes[1:, 0], ("mean k", "requests/s"), strict=True):
        each.set_ylabel(label)
    legend(figure, [Line2D([], [], label=name, **look) for name, look in looks.items()])
    seeds = rows["seed"].nunique()
    words = f", {seeds} seeds" if seeds > 1 else ""
    figure.suptitle(f"Latency by time of arrival{words}{few(len(shown), len(parts), 'columns')}")
    return figure


def _title(values: tuple, every: list[tuple]) -> str:
    """What tells the delays, arrivals, scale of the rates, rate and setting of a column from those of the others."""
    delays, arrivals, scale, rate, setting = values
    words = (Path(delays).name, str(arrivals), f"rates x {scale:g}", f"{rate:.3g} requests/s", setting)
    varying = [len({str(keys[place]) for keys in every}) > 1 for place in range(len(words))]
    return ", ".join(word for word, varies in zip(words, varying, strict=True) if varies and word)


def _by_time(rows: pd.DataFrame, starts: np.ndarray) -> pd.DataFrame:
    """Requests and means over those of all seeds, by time; no means where there are no requests."""
    sums = pd.DataFrame(
        {
            "start_s": rows["start_s"],
            "requests": rows["requests"],
            "mean_s": rows["mean_s"] * rows["requests"],
            "mean_k": rows["mean_k"] * rows["requests"],
        }
    )
    total = sums.groupby("start_s").sum().reindex(starts, fill_value=0)
    counts = total["requests"].where(total["requests"] > 0)
    return total.assign(mean_s=total["mean_s"] / counts, mean_k=total["mean_k"] / counts)


def _mark(line: pd.DataFrame) -> dict[str, Any]:
    """Dots where an interval has no neighbour that a line could go to."""
    known = line["mean_s"].notna()
    alone = known & ~known.shift(1, fill_value=False) & ~known.shift(-1, fill_value=False)
    return {"marker": ".", "markevery": alone.to_numpy()} if alone.any() else {}
