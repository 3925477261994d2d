"""Figures of ``ecjax adapt``, drawn from its result tables only."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.report.adapt_bars import composition
from ecjax.report.adapt_lines import delay, deviation, tradeoff
from ecjax.report.adapt_tables import replayed
from ecjax.report.adapt_timeline import timeline
from ecjax.report.saving import save

KINDS: dict[str, Callable[[Path, pd.DataFrame], Figure | None]] = {
    "tradeoff": tradeoff,
    "delay": delay,
    "composition": composition,
    "deviation": deviation,
    "timeline": timeline,
}
_NEEDS = {"composition": "codes", "timeline": "timeline"}
_WANTS = {
    "tradeoff": "two static codes and two rates (strategy=static codes=all)",
    "delay": "two rates",
    "composition": "a strategy that changes k: tofec, greedy or calibrated",
    "deviation": "two rates",
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what cannot be drawn is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    done = replayed(runs)
    if not done.empty:
        save(out, ((kind, _made(out, done, kind)) for kind in kinds), console)


def _made(out: Path, runs: pd.DataFrame, kind: str) -> Figure | str:
    """The figure, or what it needs."""
    dataset = _NEEDS.get(kind)
    if dataset is not None:
        runs = runs[[(out / dataset / f"{batch}.parquet").exists() for batch in runs["batch_id"]]]
    if runs.empty:
        return f"the dataset {dataset}, which was not written"
    return KINDS[kind](out, runs) or _WANTS[kind]
