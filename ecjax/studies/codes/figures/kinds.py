"""Figures of ``ecjax codes``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ecjax.plotting.grid import own_rows
from ecjax.plotting.labels import label_points
from ecjax.plotting.looks import COLOURS
from ecjax.plotting.panels import panels
from ecjax.plotting.saving import Drawing, Kind


def nines(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Nines of an object against overhead, a point per code; filled ones are on the Pareto front.

    Returns:
        None where no code has nines.
    """
    rows = own_rows(out, "codes", runs.iloc[:1], ["code", "overhead", "nines", "pareto"])
    rows = rows[rows["nines"].notna()]
    if rows.empty:
        return None
    figure, (axes,) = panels()
    for front, face in ((True, COLOURS[0]), (False, "none")):
        part = rows[rows["pareto"].astype(bool) == front]
        words = "on the Pareto front" if front else "others"
        axes.plot(part["overhead"], part["nines"], "o", color=COLOURS[0], markerfacecolor=face, label=words)
    target = float(runs["durability_nines"].iloc[0])
    axes.axhline(target, color="black", linewidth=0.8, linestyle="--", label=f"{target:g} nines")
    axes.set_xlabel("raw bytes / user bytes")
    axes.set_ylabel("nines of an object and year")
    axes.set_title("Durability against overhead")
    axes.margins(0.1, 0.1)
    axes.legend(frameon=False)
    points = list(zip(rows["overhead"], rows["nines"], strict=True))
    label_points(figure, axes, points, list(rows["code"]))
    return figure


KINDS = {"nines": Kind(nines, "codes with nines", ("codes",))}

draw = Drawing(KINDS, lambda runs: runs[runs["status"] == "ok"])
