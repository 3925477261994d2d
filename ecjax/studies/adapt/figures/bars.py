"""Which dimensions a strategy uses, as bars."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ecjax.plotting.grid import MOST_PANELS, grid, own_rows
from ecjax.plotting.looks import COLOURS
from ecjax.plotting.panels import few, legend
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.adapt.words import by_setting

_FIXED = (STATIC, BEST_STATIC, "replication")
_LEVEL = 8  # labels that fit side by side


def composition(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Share of the requests that are served with each k, by load, strategies side by side (Fig. 8 of the TOFEC paper).

    All classes and seeds together; settings are apart.

    Returns:
        None where no strategy changes k.
    """
    runs = runs[~runs["strategy"].isin(_FIXED)]
    if runs.empty:
        return None
    columns = by_setting(runs)[["run_id", "strategy", "name", "delays", "setting", "load"]]
    used = own_rows(out, "codes", runs, ["k", "requests"]).merge(columns, on="run_id")
    changes = used.groupby("strategy")["k"].nunique() > 1
    used = used[used["strategy"].map(changes)]
    if used.empty:
        return None
    several = used["delays"].nunique() > 1
    parts = list(used.groupby(["delays", "setting", "name"], sort=False))
    shown = parts[:MOST_PANELS]
    dimensions = sorted(used["k"].unique())
    shades = dict(zip(dimensions, COLOURS, strict=False))
    figure, panels = grid(len(shown), max(4.2, 0.34 * used["load"].nunique() + 1.6), 3.8)
    for axes, ((delays, setting, name), rows) in zip(panels, shown, strict=True):
        table = rows.pivot_table(index="load", columns="k", values="requests", aggfunc="sum", fill_value=0)
        table = table.div(table.sum(axis=1), axis=0).sort_index()
        below = np.zeros(len(table))
        for k in table.columns:
            axes.bar(range(len(table)), table[k], 0.85, bottom=below, color=shades.get(k, "grey"))
            below += table[k].to_numpy()
        axes.set_xticks(
            range(len(table)), [f"{load:.3g}" for load in table.index], rotation=45 if len(table) > 8 else 0
        )
        title = filter(None, [name, Path(delays).name if several else "", setting])
        axes.set(title=", ".join(title), xlabel="load", ylim=(0, 1))
        axes.grid(visible=False, axis="x")
    panels[0].set_ylabel("share of requests")
    legend(figure, [Patch(color=shades.get(k, "grey"), label=f"k = {k}") for k in dimensions])
    figure.suptitle(f"Dimensions in use{few(len(shown), len(parts), 'panels')}")
    return figure
