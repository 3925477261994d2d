"""Figures of ``ecjax cache partitions=[...]``: latency of all partitions of a cache, and of sampled ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ecjax.plotting.grid import beside, own_rows
from ecjax.plotting.looks import COLOURS, line_look
from ecjax.plotting.panels import legend
from ecjax.plotting.saving import Drawing, Kind
from ecjax.plotting.units import time_axis, time_unit
from ecjax.studies.cache.figures.panels import by_point
from ecjax.studies.cache.tables import ALL, BEST
from ecjax.studies.cache.words import POINT, SCHEMES, planned

_MOST_POINTS = 20_000  # of a figure
_FAR = 0.995  # an axis of latencies ends at this quantile
_DOTS: dict[str, Any] = {
    "marker": ".",
    "linestyle": "",
    "markersize": 2,
    "markeredgewidth": 0,
    "color": COLOURS[0],
}
_LABEL = "mean latency of a read"


def sequence(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Mean latency of every partition in the paper's order, a panel per setting (Fig. 4 of the SampleX paper).

    Returns:
        None where the partitions of no setting were written.
    """
    runs, of = _of_one_seed(runs)
    if runs.empty:
        return None
    figure, panels, cut = by_point(runs, 5.2, noun="settings")
    for axes, part in panels:
        table = _rows(out, part)
        step = -(-len(table) // _MOST_POINTS)
        axes.plot(table["place"][::step], table["mean_s"][::step], **_DOTS)
        axes.axhline(part.loc[part["scheme"] == ALL, "mean_s"].mean(), color="black", linewidth=0.8)
        axes.set(xlabel="place among all partitions", xlim=(0, 1))
        time_axis(axes.yaxis, _LABEL if axes is panels[0][0] else "", time_unit(runs["mean_s"]))
    figure.suptitle(f"All partitions in their order; the line is the best{of}{cut}")
    return figure


def sampling(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency by number of sampled partitions, a line per scheme, a panel per setting (Fig. 5)."""
    figure, panels, cut = by_point(runs, 5.2, noun="settings")
    schemes = [name for name in dict.fromkeys(runs["scheme"]) if name not in (ALL, BEST)]
    looks: dict[str, dict[str, Any]] = {
        scheme: {"color": colour, **line_look(place, len(schemes))}
        for place, (scheme, colour) in enumerate(zip(schemes, COLOURS, strict=False))
    }
    for axes, part in panels:
        counts = np.sort(part["samples"].dropna().unique()).astype(float)
        for place, (scheme, look) in enumerate(looks.items()):
            line = part[part["scheme"] == scheme].groupby("samples")[["mean_s", "ci_s"]].mean()
            half = line["ci_s"] if line["ci_s"].notna().all() else None
            at = beside(line.index.to_numpy(float), counts, place - (len(looks) - 1) / 2, logarithmic=True)
            axes.errorbar(at, line["mean_s"], half, capsize=2, **look)
        axes.axhline(
            part.loc[part["scheme"] == ALL, "mean_s"].mean(), color="black", linestyle="--", linewidth=1
        )
        axes.set(xlabel="sampled partitions, S", xscale="log")
        axes.set_xticks(counts, [f"{count:.0f}" for count in counts])
        axes.xaxis.set_minor_locator(NullLocator())
        time_axis(axes.yaxis, _LABEL if axes is panels[0][0] else "", time_unit(runs["mean_s"]))
    handles = [Line2D([], [], label=SCHEMES[scheme], **look) for scheme, look in looks.items()]
    legend(figure, [*handles, Line2D([], [], color="black", linestyle="--", label=SCHEMES[ALL])])
    figure.suptitle(f"Plans by sampled partitions{cut}")
    return figure


def distribution(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Distribution of the latencies of all partitions, and where SampleX is, a panel per setting (Fig. 7).

    Returns:
        None where the partitions of no setting were written.
    """
    runs, of = _of_one_seed(runs)
    if runs.empty:
        return None
    figure, panels, cut = by_point(runs, 4.8, noun="settings")
    counts = sorted(runs["samples"].dropna().unique())
    shades = dict(zip(counts, COLOURS[1:], strict=False))
    for axes, part in panels:
        values = np.sort(_rows(out, part)["mean_s"].to_numpy())
        axes.plot(values, np.arange(1, len(values) + 1) / len(values), color=COLOURS[0])
        sampled = part[part["scheme"] == "samplex"].groupby("samples")["mean_s"].mean()
        for count, mean in sampled.items():
            axes.axvline(mean, color=shades.get(count, "grey"), linewidth=1, linestyle="--")
        axes.set_ylim(0, 1)
        axes.set_xlim(right=float(np.quantile(values, _FAR)))
        time_axis(axes.xaxis, _LABEL, time_unit(runs["mean_s"]))
    panels[0][0].set_ylabel("share of partitions at or below")
    handles = [Line2D([], [], color=COLOURS[0], label="all partitions")]
    handles += [
        Line2D([], [], color=colour, linestyle="--", label=f"SampleX, S = {count:.0f}")
        for count, colour in shades.items()
    ]
    legend(figure, handles)
    figure.suptitle(f"Latency of all partitions{of}{cut}")
    return figure


def _of_one_seed(runs: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Runs of settings whose partitions were written, each of one seed, and words where there are several seeds.

    Plans by all partitions may be of an earlier command that did not write them.
    """
    written = runs[(runs["scheme"] == ALL) & runs["mean_s"].notna()]
    keys = [*POINT, "setting"]
    first = written.drop_duplicates(keys)[[*keys, "seed"]]
    seeds = runs["seed"].nunique()
    return runs.merge(first, on=[*keys, "seed"]), f" (one of {seeds} seeds)" if seeds > 1 else ""


def _rows(out: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``partitions`` of one setting and seed."""
    return own_rows(out, "partitions", runs[runs["scheme"] == ALL], ["place", "mean_s"])


_DATASETS = ("partitions",)
_WANTS = "the dataset partitions, which was not written"
KINDS = {
    "sequence": Kind(sequence, _WANTS, _DATASETS),
    "sampling": Kind(sampling, "a setting"),
    "distribution": Kind(distribution, _WANTS, _DATASETS),
}

draw = Drawing(KINDS, planned)
