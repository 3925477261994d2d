"""Figures of ``ecjax adapt``, drawn from its result tables only."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from ecjax.report.adapt_bars import composition
from ecjax.report.adapt_lines import delay, deviation, tradeoff
from ecjax.report.adapt_tables import replayed
from ecjax.report.adapt_timeline import timeline
from ecjax.report.saving import Kind, draw_kinds

KINDS = {
    "tradeoff": Kind(tradeoff, "two static codes and two rates (strategy=static codes=all)"),
    "delay": Kind(delay, "two rates"),
    "composition": Kind(composition, "a strategy that changes k: tofec, greedy or calibrated", ("codes",)),
    "deviation": Kind(deviation, "two rates"),
    "timeline": Kind(timeline, "steps, or timeline_s", ("timeline",)),
}


def draw(out: Path, runs: pd.DataFrame, kinds: list[str], console: Console) -> None:
    """Draw figures of these runs (those that were replayed) into out/figures; what cannot be drawn is said.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset.
        kinds: of ``KINDS``.
        console: where to say what was drawn.
    """
    draw_kinds(out, replayed(runs), {kind: KINDS[kind] for kind in kinds}, console)
