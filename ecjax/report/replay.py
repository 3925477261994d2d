"""Figures of ``ecjax replay``, drawn from its result tables only."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.report.replay_bars import classes, latency, utilisation
from ecjax.report.replay_classes import class_sizes, class_sweep
from ecjax.report.replay_distribution import cdf
from ecjax.report.replay_sweep import bounds, sweep
from ecjax.report.saving import save

KINDS: dict[str, Callable[[Path, pd.DataFrame], Figure | None]] = {
    "cdf": cdf,
    "latency": latency,
    "utilisation": utilisation,
    "sweep": sweep,
    "classes": classes,
    "bounds": bounds,
    "class_sweep": class_sweep,
    "class_sizes": class_sizes,
}
_NEEDS = {"cdf": ("latencies", "latency_bins")}
_SWEEP = "runs that differ in rate_scale, size_scale or load"
_WANTS = {
    "class_sweep": "runs that differ in the importance or the rates of one class, rate_scale or size_scale",
    "class_sizes": "files of several sizes, 50 at most",
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what lacks its dataset is said.

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
    needed = _NEEDS.get(kind, ("latencies",))
    wrote = [all(_wrote(out, dataset, batch) for dataset in needed) for batch in runs["batch_id"]]
    if not any(wrote):
        return f"the datasets {' and '.join(needed)}, which were not written"
    return KINDS[kind](out, runs[wrote]) or _WANTS.get(kind, _SWEEP)


def _wrote(out: Path, dataset: str, batch: str) -> bool:
    return (out / dataset / f"{batch}.parquet").exists()
