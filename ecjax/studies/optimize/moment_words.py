"""What ``ecjax optimize`` says of nodes whose moments of service are known as intervals, or missed by their laws."""

import math

import pandas as pd
from rich.console import Console

from ecjax.console import remark
from ecjax.tables.statistics.affine import SECOND_MISFIT
from ecjax.units import time_text

_FIGURES = (
    ("the bound", "latency"),
    ("its expected mean", "estimated_mean"),
    ("p99", "estimated_p99"),
)


def say_moment_margins(runs: pd.DataFrame, console: Console) -> None:
    """Print the intervals of the run that is the least sure.

    Args:
        runs: rows of ``runs`` of a study, some of which have such intervals.
        console: where.
    """
    some = runs[runs["latency_low_s"].notna()]
    ratio = some["latency_high_s"].fillna(float("inf")) / some["latency_low_s"]
    run = some.loc[ratio.idxmax()]
    which = f" of theta={run['theta']:g}, the least sure," if len(some) > 1 else ""
    parts = [
        f"{name} is {_interval(run[f'{column}_low_s'], run[f'{column}_high_s'])}"
        for name, column in _FIGURES
        if pd.notna(run[f"{column}_low_s"])
    ]
    parts[0] = parts[0].replace(" is", f"{which} is", 1)
    remark(
        console,
        f"Moments of service are intervals: {', '.join(parts)} (the least and the largest moments, this plan kept).",
    )


def misses_the_log(run: pd.Series) -> bool:
    """Whether the laws of the nodes are far from what the analysis that made them measured."""
    ratio = run.get("service_second_ratio")
    return bool(ratio is not None and ratio > 0 and abs(math.log(ratio)) > math.log(SECOND_MISFIT))


def say_misfit(runs: pd.DataFrame, console: Console) -> None:
    """Say how far laws are from the services that were measured, where it matters.

    Args:
        runs: rows of ``runs`` of a study.
        console: where.
    """
    some = [run for _, run in runs.iterrows() if misses_the_log(run)]
    if some:
        remark(
            console,
            "The affine laws of the nodes miss the services that were measured: their second moment, which waits "
            f"depend on, is {some[0]['service_second_ratio']:.2g} times that of the law at the node where they are "
            "furthest apart. What is proven is proven for the laws; reference_bytes= of ecjax analyze gives moments "
            "at one chunk size instead.",
            "yellow",
        )


def _interval(low: float, high: float) -> str:
    if pd.isna(high):
        return f"at least {time_text(low)}, without a largest (a node is overloaded)"
    return f"from {time_text(low)} to {time_text(high)}"
