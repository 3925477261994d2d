"""What ``ecjax optimize`` says of figures for nodes whose moments of service are only known as intervals."""

import pandas as pd
from rich.console import Console

from ecjax.console import remark
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


def _interval(low: float, high: float) -> str:
    if pd.isna(high):
        return f"at least {time_text(low)}, without a largest (a node is overloaded)"
    return f"from {time_text(low)} to {time_text(high)}"
