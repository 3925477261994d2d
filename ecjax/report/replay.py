"""Figures of ``ecjax replay``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from ecjax.report.replay_bars import classes, latency, utilisation
from ecjax.report.replay_classes import class_sizes, class_sweep
from ecjax.report.replay_distribution import cdf
from ecjax.report.replay_sweep import bounds, sweep
from ecjax.report.saving import Kind, draw_kinds

_ROWS = ("latencies",)
_SWEEP = "runs that differ in rate_scale, size_scale or load"
KINDS = {
    "cdf": Kind(cdf, _SWEEP, (*_ROWS, "latency_bins")),
    "latency": Kind(latency, _SWEEP, _ROWS),
    "utilisation": Kind(utilisation, _SWEEP, _ROWS),
    "sweep": Kind(sweep, _SWEEP, _ROWS),
    "classes": Kind(classes, _SWEEP, _ROWS),
    "bounds": Kind(bounds, _SWEEP, _ROWS),
    "class_sweep": Kind(
        class_sweep,
        "runs that differ in the importance or the rates of one class, rate_scale or size_scale",
        _ROWS,
    ),
    "class_sizes": Kind(class_sizes, "files of several sizes, 50 at most", _ROWS),
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what lacks its dataset is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    draw_kinds(out, runs[runs["mean_s"].notna()], {kind: KINDS[kind] for kind in kinds}, console)
