"""What ``ecjax adapt`` prints at its end: a line per point and strategy, and how much each strategy can serve."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.adapt.words import POINT, basic, over_seeds
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.units import Unit, count_text, fitting_unit, plain

_LATENCIES = {"mean_s": "mean", "p50_s": "p50", "p90_s": "p90", "p99_s": "p99", "std_s": "std"}
_OURS, _PEERS = "calibrated", (BEST_STATIC, "tofec")
_LASTING = 12  # relaxation times that a replay takes where its empty beginning counts for at most a twentieth
_MOST_CODES = 5  # of static codes that are more, only (1, 1) is printed, and all where nothing else is


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    every = over_seeds(runs)
    seeds = f", {int(every['seeds'].max())} seeds" if not every.empty and every["seeds"].max() > 1 else ""
    say(console, f"adapt: {count_text(len(runs), 'run')}{seeds} in {out}", "italic")
    if not every.empty:
        _show_replays(every, console)
        _warn_of_short_replays(runs, console)
    print_errors(runs, console)


def _show_replays(every: pd.DataFrame, console: Console) -> None:
    codes = set(every.loc[every["strategy"] == STATIC, "name"])
    hidden = codes - {basic()} if len(codes) > _MOST_CODES else set()
    if every["name"].isin(hidden).all():
        hidden = set()  # there is nothing else
    shown = every[~every["name"].isin(hidden)]
    for delays, rows in shown.groupby("delays", sort=False):
        unit = fitting_unit(*(rows[name] for name in _LATENCIES))
        settings = ["setting"] if rows["setting"].any() else []
        latencies = {name: f"{word} {unit.name}" for name, word in _LATENCIES.items()}
        print_table(
            console,
            f"delays: {Path(str(delays)).name}",
            [*settings, "rate /s", "load", "strategy", "n, k", *latencies.values(), "threads\nbusy"],
            [[*(row[name] for name in settings), *_cells(row, unit)] for row in rows.to_dict("records")],
            words=(*settings, "strategy"),
            groups=list(rows[[*POINT, "setting"]].itertuples(index=False, name=None)),
            least=(latencies["std_s"], "threads\nbusy", latencies["p90_s"], latencies["p50_s"], "n, k"),
            dataset="runs",
        )
        _show_comparison(rows, console)
        _show_capacities(rows, console)
    if hidden:
        say(console, f"{len(hidden)} more static codes: dataset runs, figure tradeoff.")
    overloaded = int(shown["overloaded"].sum())
    if overloaded:
        say(
            console,
            f"{overloaded} of {count_text(len(shown), 'line')} {'is' if overloaded == 1 else 'are'} not "
            "stationary (*): requests come faster than the strategy can "
            "serve them, all the time or at the end, and latencies depend on how long that lasts.",
            "yellow",
        )


def _warn_of_short_replays(runs: pd.DataFrame, console: Console) -> None:
    """Say which replays are too short to be stationary.

    What is counted, after a warm-up w of the time T, has the deviation at its beginning for a relaxation time tau:
    exp(-w T / tau) tau / (T (1 - w)) of it are in the mean, a twentieth at T = 12 tau and w = 0.05.
    """
    ended = runs[runs["relaxation_s"].notna()]
    needed = _LASTING * ended["relaxation_s"] * ended["rate_per_s"]
    short = needed[ended["requests"] < needed]
    if len(short):
        digit = 10 ** math.floor(math.log10(short.max()))
        say(
            console,
            f"{len(short)} of {count_text(len(runs), 'run')} {'is' if len(short) == 1 else 'are'} "
            "too short to be stationary: the proxy begins empty, and latencies "
            f"are also of that beginning; requests={math.ceil(short.max() / digit) * digit:.0f} would do.",
            "yellow",
        )


def _cells(row: dict[Any, Any], unit: Unit) -> list[str]:
    latencies = [unit.cell(row[name]) for name in _LATENCIES]
    if not row["overloaded"]:
        latencies[0] = unit.interval(row["mean_s"], row["ci_s"])
    strategy = f"{row['strategy']} {row['variant']}".rstrip() + ("*" if row["overloaded"] else "")
    return [
        *(plain(row["rate_per_s"]), number(row["load"], ".3g"), strategy, _code(row)),
        *(*latencies, number(row["utilisation"], ".2f")),
    ]


def _code(row: dict[Any, Any]) -> str:
    """The code; of strategies that adapt, and of several classes, the means over the requests."""
    if row["strategy"] in (STATIC, BEST_STATIC) and pd.notna(row["n"]):
        return f"{row['n']:.0f}, {row['k']:.0f}"
    return f"{row['mean_n']:.3g}, {row['mean_k']:.3g}"


def _show_comparison(rows: pd.DataFrame, console: Console) -> None:
    """Our own strategy beside its peers, over all points where neither is overloaded."""
    served = rows[~rows["overloaded"]]
    ours = served[served["strategy"] == _OURS]
    for peer in _PEERS:
        both = ours.merge(served[served["strategy"] == peer], on=[*POINT, "setting"], suffixes=("", "_peer"))
        if both.empty:
            continue
        words = []
        for name, word in (("mean_s", "mean"), ("p99_s", "p99")):
            change = both[name] / both[f"{name}_peer"] - 1
            most = "" if len(change) == 1 else f" to {change.max():+z.1%}"
            words.append(f"{word} {change.min():+z.1%}{most}")
        say(console, f"{_OURS} against {peer}: {', '.join(words)}.")


def _show_capacities(rows: pd.DataFrame, console: Console) -> None:
    searched = rows[rows["capacity_share"].notna()].drop_duplicates(["setting", "name"])
    for setting, part in searched.groupby("setting", sort=False):
        unit = part["capacity_per_s"].iloc[0] / part["capacity_share"].iloc[0]
        parts = (
            f"{name} {share:.2f}" for name, share in zip(part["name"], part["capacity_share"], strict=True)
        )
        where = f"{setting}: capacity" if setting else "Capacity"
        say(
            console,
            f"{where} as a share of that of the (1, 1) code, {unit:.4g} requests/s: {', '.join(parts)}.",
        )
