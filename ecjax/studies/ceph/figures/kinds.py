"""Figures of ``ecjax ceph``, drawn from its result tables only."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ecjax.plotting.grid import own_rows
from ecjax.plotting.looks import COLOURS
from ecjax.plotting.panels import few, panels
from ecjax.plotting.saving import Drawing, Kind

_ALL = "as it is", "by the plan"


def loads(out: Path, runs: pd.DataFrame) -> Figure:
    """Load of every OSD as it is and by the first plan, the busiest first."""
    rows = own_rows(out, "osds", runs.iloc[:1], ["osd", "load_before", "load"])
    figure, (axes,) = panels()
    place = np.arange(len(rows))
    for name, label, colour in zip(("load_before", "load"), _ALL, COLOURS, strict=False):
        axes.step(place, np.sort(rows[name])[::-1], where="mid", label=label, color=colour)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_ylim(0, None)
    axes.set_xlabel("OSDs, the busiest first")
    axes.set_ylabel("load / mean load")
    axes.set_title(f"Load of OSDs{few(1, len(runs), 'plans')}")
    axes.legend(frameon=False)
    return figure


def batches(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Load of the busiest OSD after each batch, by the bytes copied until then.

    Returns:
        None where nothing changes.
    """
    rows = own_rows(out, "batches", runs, ["batch", "moved_bytes", "max_over_mean"])
    if rows["batch"].max() < 1:
        return None
    figure, (axes,) = panels()
    groups = list(rows.groupby("run_id", sort=False))
    shown = groups[: len(COLOURS)]
    for (name, part), colour in zip(shown, COLOURS, strict=False):
        within = runs.loc[runs["run_id"] == name, "within"].iloc[0]
        part = part.sort_values("batch")
        axes.plot(
            part["moved_bytes"].cumsum() / 1e9,
            part["max_over_mean"],
            marker="o",
            color=colour,
            label=f"within = {within:g}",
        )
    axes.set_xlabel("GB copied")
    axes.set_ylabel("load of the busiest OSD / mean load")
    axes.set_title(f"Load by batch{few(len(shown), len(groups), 'plans')}")
    axes.legend(frameon=False)
    return figure


def _planned(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["max_over_mean"].notna()]


KINDS = {
    "loads": Kind(loads, None, ("osds",)),
    "batches": Kind(batches, "groups that change", ("batches",)),
}

draw = Drawing(KINDS, _planned)
