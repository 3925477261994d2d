"""Figures of ``ecjax schedule``, drawn from its result tables only."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.report.schedule_bars import gap, improvement, sources
from ecjax.report.schedule_lines import cdf, sweep

KINDS: dict[str, Callable[[Path, pd.DataFrame], Figure | None]] = {
    "improvement": improvement,
    "sources": sources,
    "cdf": cdf,
    "sweep": sweep,
    "gap": gap,
}
_NEEDS = {"improvement": "coflow_widths", "cdf": "coflows"}
_WANTS = {
    "improvement": "a scheduler besides fair",
    "sources": "two rules of source selection",
    "sweep": "a scheduler besides fair, and runs that differ in n, k, share_at_zero, rate_scale or size_scale",
    "gap": "lower_bound=true",
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what cannot be drawn is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    replayed = runs[runs["mean_s"].notna()]
    if replayed.empty:
        return
    folder = out / "figures"
    drawn = []
    for kind in kinds:
        dataset, known = _NEEDS.get(kind), replayed
        if dataset is not None:
            known = replayed[
                [(out / dataset / f"{batch}.parquet").exists() for batch in replayed["batch_id"]]
            ]
        if known.empty:
            console.print(f"figure {kind}: needs the dataset {dataset}, which was not written")
            continue
        figure = KINDS[kind](out, known)
        if figure is None:
            console.print(f"figure {kind}: needs {_WANTS[kind]}")
            continue
        folder.mkdir(exist_ok=True)
        figure.savefig(folder / f"{kind}.png", dpi=150)
        drawn.append(f"{kind}.png")
    if drawn:
        console.print(f"figures in {folder}: {', '.join(drawn)}", highlight=False)
