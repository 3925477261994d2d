"""What ``ecjax adapt`` prints at its end: a line per point and strategy, and how much each strategy can serve."""

from collections import Counter

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.report.adapt_tables import BEST_STATIC, POINT, STATIC, over_seeds

_HEADINGS = {"mean_s": "mean s", "p50_s": "p50 s", "p90_s": "p90 s", "p99_s": "p99 s", "std_s": "std s"}


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    told = over_seeds(runs)
    if not told.empty:
        _replays(told, runs, console, out)
        _capacities(told, console)
        overloaded = int(told["overloaded"].sum())
        if overloaded:
            console.print(
                f"{overloaded} of {len(told)} lines are not stationary (*): requests come faster than the strategy can "
                "serve them, and latencies depend on how long that lasts.",
                style="yellow",
                highlight=False,
            )
    for message, count in Counter(runs["error"].dropna()).items():
        console.print(f"{count} replays: {message}", style="red", highlight=False)


def _replays(told: pd.DataFrame, runs: pd.DataFrame, console: Console, out: str) -> None:
    seeds = int(told["seeds"].max())
    words = f"{len(runs)} runs" + (f", {seeds} seeds" if seeds > 1 else "")
    table = Table(title=f"adapt: {words} in {out}", box=box.SIMPLE_HEAD, title_justify="left")
    swept = [name for name in ("delays", "rate_scale") if told[name].nunique() > 1]
    for name in swept:
        table.add_column(name.replace("_", " "), no_wrap=True)
    for name in ("rate /s", "load"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("strategy", no_wrap=True)
    for name in ("n, k", *_HEADINGS.values(), "threads\nbusy"):
        table.add_column(name, no_wrap=True, justify="right")
    before = None
    for row in told.to_dict("records"):
        point = tuple(row[name] for name in POINT)
        if before not in (None, point):
            table.add_section()
        before = point
        cells = [str(row[name]) for name in swept] + [f"{row['rate_per_s']:.4g}", f"{row['load']:.3g}"]
        strategy = "best static" if row["method"] == BEST_STATIC else row["method"].replace("_", " ")
        cells += [strategy + ("*" if row["overloaded"] else ""), _code(row)]
        for name in _HEADINGS:
            margin = row["ci_s"] if name == "mean_s" else float("nan")
            cells.append(f"{row[name]:.4g}" + (f" ± {margin:.2g}" if margin == margin else ""))
        table.add_row(*cells, f"{row['utilisation']:.2f}")
    console.print(table)


def _code(row: dict) -> str:
    """The code; of strategies that adapt, the means over the requests."""
    if row["method"] in (STATIC, BEST_STATIC) and pd.notna(row["n"]):
        return f"{row['n']:.0f}, {row['k']:.0f}"
    return f"{row['mean_n']:.3g}, {row['mean_k']:.3g}"


def _capacities(told: pd.DataFrame, console: Console) -> None:
    known = told[told["capacity_share"].notna()].drop_duplicates(["delays", "name"])
    for delays, own in known.groupby("delays", sort=False):
        parts = [
            f"{row['name']} {row['capacity_share']:.2f}"
            for row in own.sort_values("capacity_share").to_dict("records")
        ]
        basic = own["capacity_per_s"].iloc[0] / own["capacity_share"].iloc[0]
        where = f" ({delays})" if known["delays"].nunique() > 1 else ""
        console.print(
            f"Capacity{where} as a share of that of (1, 1), {basic:.4g} requests/s: {', '.join(parts)}.",
            highlight=False,
        )
