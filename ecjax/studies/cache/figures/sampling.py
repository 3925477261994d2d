"""Table and figures of ``ecjax cache partitions=[...]``: latency of all partitions of a cache, and of sampled ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.plotting.grid import MOST_PANELS, grid, own_rows
from ecjax.plotting.panels import COLOURS, few, legend
from ecjax.plotting.saving import Kind, drawing
from ecjax.studies.cache.words import parts, varying

ALL, BEST = "optimal", "exact"
_NAMES = {
    ALL: "all partitions",
    BEST: "exact",
    "samplex": "SampleX",
    "rands": "RandS",
    "clus": "CluS",
    "probs": "ProbS",
    "syss": "SysS",
}
_MOST_POINTS = 20_000  # of a figure
_FAR = 0.995  # an axis of latencies ends at this quantile
_LABEL = "mean latency of a read (s)"


def _panels(runs: pd.DataFrame, width: float) -> tuple[Figure, list[tuple[Any, pd.DataFrame]], str]:
    """A figure with a panel per setting, its runs, and words where not all settings are shown."""
    every = parts(runs, varying(runs))
    shown = every[:MOST_PANELS]
    figure, axes = grid(len(shown), width, 3.8)
    for own, (title, _) in zip(axes, shown, strict=True):
        own.set_title(title)
    return (
        figure,
        [(a, own) for a, (_, own) in zip(axes, shown, strict=True)],
        few(len(shown), len(every), "settings"),
    )


def sequence(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency of every partition in the paper's order, a panel per setting (Fig. 4 of the SampleX paper)."""
    figure, panels, words = _panels(runs, 5.2)
    for axes, own in panels:
        table = _rows(out, own)
        step = -(-len(table) // _MOST_POINTS)
        axes.plot(table["place"][::step], table["mean_s"][::step], ",", color=COLOURS[0])
        axes.axhline(own.loc[own["method"] == ALL, "mean_s"].mean(), color="black", linewidth=0.8)
        axes.set(xlabel="place among all partitions", xlim=(0, 1))
    panels[0][0].set_ylabel(_LABEL)
    figure.suptitle(f"All partitions in their order; the line is the best{words}")
    return figure


def sampling(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean latency by number of sampled partitions, a line per scheme, a panel per setting (Fig. 5)."""
    figure, panels, words = _panels(runs, 5.2)
    schemes = [name for name in dict.fromkeys(runs["method"]) if name not in (ALL, BEST)]
    look: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.3}
    for axes, own in panels:
        for scheme, colour in zip(schemes, COLOURS, strict=False):
            line = own[own["method"] == scheme].groupby("samples")[["mean_s", "ci_s"]].mean()
            half = line["ci_s"] if line["ci_s"].notna().all() else None
            axes.errorbar(line.index, line["mean_s"], half, color=colour, capsize=2, **look)
        axes.axhline(
            own.loc[own["method"] == ALL, "mean_s"].mean(), color="black", linestyle="--", linewidth=1
        )
        counts = sorted(own["samples"].dropna().unique())
        axes.set(xlabel="sampled partitions, S", xscale="log")
        axes.set_xticks(counts, [f"{count:.0f}" for count in counts])
        axes.xaxis.set_minor_locator(NullLocator())
    panels[0][0].set_ylabel(_LABEL)
    handles = [
        Line2D([], [], color=c, label=_NAMES[s], **look) for s, c in zip(schemes, COLOURS, strict=False)
    ]
    legend(figure, [*handles, Line2D([], [], color="black", linestyle="--", label=_NAMES[ALL])])
    figure.suptitle(f"Plans by sampled partitions{words}")
    return figure


def distribution(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution of the latencies of all partitions, and where SampleX is, a panel per setting (Fig. 7)."""
    figure, panels, words = _panels(runs, 4.8)
    counts = sorted(runs["samples"].dropna().unique())
    shades = dict(zip(counts, COLOURS[1:], strict=False))
    for axes, own in panels:
        values = np.sort(_rows(out, own)["mean_s"].to_numpy())
        axes.plot(values, np.arange(1, len(values) + 1) / len(values), color=COLOURS[0])
        sampled = own[own["method"] == "samplex"].groupby("samples")["mean_s"].mean()
        for count, mean in sampled.items():
            axes.axvline(mean, color=shades.get(count, "grey"), linewidth=1, linestyle="--")
        axes.set(xlabel=_LABEL, ylim=(0, 1))
        axes.set_xlim(right=float(np.quantile(values, _FAR)))
    panels[0][0].set_ylabel("share of partitions at or below")
    handles = [Line2D([], [], color=COLOURS[0], label="all partitions")]
    handles += [
        Line2D([], [], color=colour, linestyle="--", label=f"SampleX, S = {count:.0f}")
        for count, colour in shades.items()
    ]
    legend(figure, handles)
    figure.suptitle(f"Latency of all partitions{words}")
    return figure


def _rows(out: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``partitions`` of the first seed."""
    first = runs[runs["method"] == ALL].head(1)
    return own_rows(out, "partitions", first, ["place", "mean_s"])


_NEEDS = ("partitions",)
KINDS = {
    "sequence": Kind(sequence, "a setting", _NEEDS),
    "sampling": Kind(sampling, "a setting"),
    "distribution": Kind(distribution, "a setting", _NEEDS),
}

draw = drawing(KINDS, lambda runs: runs)


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the mean latency of every way to plan, how far it is above the best, and how long it takes (Table III).

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    console.print(f"cache: {len(runs)} runs in {out}", style="italic", highlight=False)
    for title, own in parts(runs, varying(runs)):
        table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left")
        table.add_column("plan", no_wrap=True)
        for name in ("S", "mean s", "above best", "ms"):
            table.add_column(name, no_wrap=True, justify="right")
        keys = ["method", "samples"]
        told = own.groupby(keys, sort=False, dropna=False)[["mean_s", "above_optimum", "solve_s"]].mean()
        for (method, samples), row in told.iterrows():
            table.add_row(
                _NAMES[method],
                "" if pd.isna(samples) else f"{samples:.0f}",
                f"{row['mean_s']:.4g}",
                f"{row['above_optimum']:+.2%}",
                f"{1e3 * row['solve_s']:,.3g}",
            )
        console.print(table)
