"""Figures of ``ecjax codes``, drawn from its result tables only."""

import json
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ecjax.plotting.grid import own_rows
from ecjax.plotting.labels import label_points
from ecjax.plotting.looks import COLOURS
from ecjax.plotting.panels import few, panels
from ecjax.plotting.saving import Drawing, Kind
from ecjax.units import fitting_unit


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
    axes.set_title(f"Durability against overhead{few(1, len(runs), 'runs')}")
    axes.margins(0.1, 0.1)
    axes.legend(frameon=False, loc="upper left")  # the best place takes seconds to look for
    points = list(zip(rows["overhead"], rows["nines"], strict=True))
    label_points(figure, axes, points, list(rows["code"]))
    return figure


def combinations(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Expected mean latency against dollars, a point per planned combination of codes; filled ones no other beats.

    Returns:
        None where no combination was planned.
    """
    columns = ["codes", "dollars_per_period", "healthy_mean_s", "pareto", "recommended"]
    rows = own_rows(out, "combinations", runs.iloc[:1], columns)
    rows = rows[rows["healthy_mean_s"].notna()]
    if rows.empty:
        return None
    figure, (axes,) = panels()
    unit = fitting_unit(rows["healthy_mean_s"])
    mean = rows["healthy_mean_s"] / unit.seconds
    for front, face in ((True, COLOURS[0]), (False, "none")):
        part = rows["pareto"].astype(bool) == front
        words = "no other beats" if front else "others"
        axes.plot(
            rows["dollars_per_period"][part],
            mean[part],
            "o",
            color=COLOURS[0],
            markerfacecolor=face,
            label=words,
        )
    axes.set_xlabel("dollars for 30 days")
    axes.set_ylabel(f"expected mean of full reads, {unit.name}")
    classes = " / ".join(json.loads(rows["codes"].iloc[0]))
    axes.set_title(f"Codes of {classes}{few(1, len(runs), 'runs')}")
    axes.margins(0.15, 0.15)
    axes.legend(frameon=False, loc="upper right")
    points = list(zip(rows["dollars_per_period"], mean, strict=True))
    label_points(figure, axes, points, [" / ".join(json.loads(text).values()) for text in rows["codes"]])
    return figure


def _with_classes(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["class_count"].notna()]


KINDS = {
    "nines": Kind(nines, "codes with nines", ("codes",)),
    "combinations": Kind(
        combinations, "codes by class of files (classes=)", ("combinations",), _with_classes
    ),
}

draw = Drawing(KINDS, lambda runs: runs[runs["status"] == "ok"])
