"""Figures of ``ecjax schedule``, drawn from its result tables only."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.report.saving import save
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
    if not replayed.empty:
        save(out, ((kind, _made(out, replayed, kind)) for kind in kinds), console)


def _made(out: Path, runs: pd.DataFrame, kind: str) -> Figure | str:
    """The figure, or what it needs."""
    dataset = _NEEDS.get(kind)
    if dataset is not None:
        runs = runs[[(out / dataset / f"{batch}.parquet").exists() for batch in runs["batch_id"]]]
    if runs.empty:
        return f"the dataset {dataset}, which was not written"
    return KINDS[kind](out, runs) or _WANTS[kind]
