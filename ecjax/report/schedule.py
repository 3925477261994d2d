"""Figures of ``ecjax schedule``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from ecjax.report.saving import Kind, draw_kinds
from ecjax.report.schedule_bars import gap, improvement, sources
from ecjax.report.schedule_lines import cdf, sweep

KINDS = {
    "improvement": Kind(improvement, "a scheduler besides fair", ("coflow_widths",)),
    "sources": Kind(sources, "two rules of source selection"),
    "cdf": Kind(cdf, "replays", ("coflows",)),
    "sweep": Kind(
        sweep,
        "a scheduler besides fair, and runs that differ in n, k, share_at_zero, rate_scale or size_scale",
    ),
    "gap": Kind(gap, "lower_bound=true"),
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what cannot be drawn is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    draw_kinds(out, runs[runs["mean_s"].notna()], {kind: KINDS[kind] for kind in kinds}, console)
