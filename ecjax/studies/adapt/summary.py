"""What ``ecjax adapt`` prints at its end: a line per point and strategy, and how much each strategy can serve."""

import math
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.studies.adapt.words import BEST_STATIC, POINT, STATIC, basic, over_seeds
from ecjax.studies.spine.outcome import show_errors

_HEADINGS = {"mean_s": "mean s", "p50_s": "p50 s", "p90_s": "p90 s", "p99_s": "p99 s", "std_s": "std s"}
_OURS, _PEERS = "calibrated", (BEST_STATIC, "tofec")
_MOST_CODES = 5  # of static codes that are more, only (1, 1) is printed


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    every = over_seeds(runs)
    seeds = f", {int(every['seeds'].max())} seeds" if not every.empty and every["seeds"].max() > 1 else ""
    console.print(f"adapt: {len(runs)} runs{seeds} in {out}", style="italic", highlight=False)
    codes = set(every.loc[every["method"] == STATIC, "name"]) if not every.empty else set()
    hidden = codes - {basic()} if len(codes) > _MOST_CODES else set()
    told = every[~every["name"].isin(hidden)] if hidden else every
    for delays, own in told.groupby("delays", sort=False) if not told.empty else []:
        console.print(_replays(own, Path(str(delays)).name))
        _compared(own, console)
        _capacities(own, console)
    if hidden:
        console.print(f"{len(hidden)} more static codes: dataset runs, figure tradeoff.", highlight=False)
    overloaded = 0 if told.empty else int(told["overloaded"].sum())
    if overloaded:
        console.print(
            f"{overloaded} of {len(told)} lines are not stationary (*): requests come faster than the strategy can "
            "serve them, all the time or at the end, and latencies depend on how long that lasts.",
            style="yellow",
            highlight=False,
        )
    show_errors(runs, console)


def _replays(told: pd.DataFrame, delays: str) -> Table:
    table = Table(title=f"delays: {delays}", box=box.SIMPLE_HEAD, title_justify="left")
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
        cells = [f"{row['rate_per_s']:.4g}", f"{row['load']:.3g}"]
        cells += [row["method"] + ("*" if row["overloaded"] else ""), _code(row)]
        for name in _HEADINGS:
            cell = f"{row[name]:.4g}"
            if name == "mean_s" and math.isfinite(row["ci_s"]) and not row["overloaded"]:
                cell += f" ± {row['ci_s']:.2g}"
            cells.append(cell)
        table.add_row(*cells, f"{row['utilisation']:.2f}")
    return table


def _code(row: dict) -> str:
    """The code; of strategies that adapt, and of several classes, the means over the requests."""
    if row["method"] in (STATIC, BEST_STATIC) and pd.notna(row["n"]):
        return f"{row['n']:.0f}, {row['k']:.0f}"
    return f"{row['mean_n']:.3g}, {row['mean_k']:.3g}"


def _compared(told: pd.DataFrame, console: Console) -> None:
    """Our own strategy beside its peers, over all points where neither is overloaded."""
    served = told[~told["overloaded"]]
    own = served[served["method"] == _OURS]
    for peer in _PEERS:
        both = own.merge(served[served["method"] == peer], on=list(POINT), suffixes=("", "_peer"))
        if both.empty:
            continue
        words = []
        for name, word in (("mean_s", "mean"), ("p99_s", "p99")):
            change = both[name] / both[f"{name}_peer"] - 1
            most = "" if len(change) == 1 else f" to {change.max():+z.1%}"
            words.append(f"{word} {change.min():+z.1%}{most}")
        console.print(f"{_OURS} against {peer}: {', '.join(words)}.", highlight=False)


def _capacities(told: pd.DataFrame, console: Console) -> None:
    known = told[told["capacity_share"].notna()].drop_duplicates("name")
    if known.empty:
        return
    parts = [
        f"{row.name} {row.capacity_share:.2f}"
        for row in known[["name", "capacity_share"]].itertuples(index=False)
    ]
    unit = known["capacity_per_s"].iloc[0] / known["capacity_share"].iloc[0]
    console.print(
        f"Capacity as a share of that of the (1, 1) code, {unit:.4g} requests/s: {', '.join(parts)}.",
        highlight=False,
    )
