"""What ``ecjax cache`` prints at its end: a line per point and policy."""

import math
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.studies.cache.words import POINT, SHORT, over_seeds, varying
from ecjax.studies.spine.outcome import show_errors

_HEADINGS = {"mean_s": "mean s", "p50_s": "p50 s", "p99_s": "p99 s"}
_MOST_FAILED = 3  # of more, what is down in turn is told together
_MOST_LINES = 120
_NONE = 1e-9  # relative half width of an interval that is one by rounding only


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    told = over_seeds(_together(runs))
    seeds = f", {int(told['seeds'].max())} seeds" if not told.empty and told["seeds"].max() > 1 else ""
    console.print(f"cache: {len(runs)} runs{seeds} in {out}", style="italic", highlight=False)
    if not told.empty:
        console.print(_replays(told.head(_MOST_LINES)))
    if len(told) > _MOST_LINES:
        console.print(f"{len(told) - _MOST_LINES} more lines: dataset runs.", highlight=False)
    lost = int((runs["failed_reads"] > 0).sum())
    if lost:
        console.print(
            f"In {lost} of {len(runs)} runs reads failed, as too few chunks were up: column failed_reads; latencies "
            "are those of the others.",
            style="yellow",
            highlight=False,
        )
    show_errors(runs, console)


def _together(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with what is down in turn called the same, where it is much."""
    count = runs["failed"].nunique()
    down = runs["failed"].notna() if count > _MOST_FAILED else pd.Series(False, runs.index)
    # the reads are the same whatever is down: their intervals do not add up
    return runs.assign(failed=runs["failed"].mask(down, f"{count} in turn"), ci_s=runs["ci_s"].mask(down))


def _replays(told: pd.DataFrame) -> Table:
    shown = varying(told)
    same = [name for name in POINT if name not in shown and pd.notna(told[name].iloc[0])]
    words = ", ".join(f"{SHORT[name]} = {_cell(told[name].iloc[0])}" for name in same)
    table = Table(title=words, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    for name in shown:
        table.add_column(SHORT[name], no_wrap=True, justify="right")
    table.add_column("policy", no_wrap=True)
    headings = ("chunk\nhits", "full\nhits", "above\noptimum", "decides\nµs", "p99.99\nµs", "1000\nreads/s")
    for name in (*_HEADINGS.values(), *headings):
        table.add_column(name, no_wrap=True, justify="right")
    before = None
    for row in told.to_dict("records"):
        point = tuple(str(row[name]) for name in shown)
        if before not in (None, point):
            table.add_section()
        before = point
        cells = [_cell(row[name]) for name in shown] + [row["name"]]
        for name in _HEADINGS:
            interval = f" ± {row['ci_s']:.2g}" if name == "mean_s" and row["ci_s"] > _NONE * row[name] else ""
            cells.append(f"{row[name]:.4g}{interval}")
        above = row["above_optimum"]
        table.add_row(
            *cells,
            f"{row['chunk_hit_ratio']:.3f}",
            f"{row['full_hit_ratio']:.3f}",
            f"{above:+.2%}" if math.isfinite(above) else "",
            f"{1e6 * row['decision_mean_s']:.3g}",
            f"{1e6 * row['decision_p9999_s']:.3g}",
            f"{row['requests_per_s'] / 1000:,.4g}",
        )
    return table


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else f"{value:g}"
