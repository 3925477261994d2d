"""What ``ecjax optimize`` says of figures whose rates are counted."""

import pandas as pd
from rich.console import Console

from ecjax.console import remark
from ecjax.units import time_text

_NORMAL = 1.959963984540054  # 97.5 % quantile


def say_rate_errors(runs: pd.DataFrame, console: Console) -> None:
    """Print the interval of the bound and, where reads are paid for, of the cost, of the run that is the least sure.

    Args:
        runs: rows of ``runs`` of a study, some of which have such errors.
        console: where.
    """
    some = runs[runs["latency_rate_error_s"].notna()]
    run = some.loc[(some["latency_rate_error_s"] / some["latency_s"]).idxmax()]
    interval = _interval(float(run["latency_s"]), float(run["latency_rate_error_s"]))
    which = f" of theta={run['theta']:g}, the least sure," if len(some) > 1 else ""
    words = f"Rates are counts: the bound{which} is {interval}"
    if (cost := _NORMAL * float(run["cost_rate_error_dollars"])) > 0:
        words += f", its cost ± ${cost:.3g} per period"
    if pd.notna(run.get("estimated_mean_rate_error_s")):
        parts = [
            f"{name} {_interval(float(run[f'{column}_s']), float(run[f'{column}_rate_error_s']))}"
            for name, column in (("its expected mean", "estimated_mean"), ("p99", "estimated_p99"))
        ]
        words += f", {', '.join(parts)}"
    remark(console, f"{words} (95 %, reads Poisson and independent from file to file, this plan kept).")


def _interval(value: float, error: float) -> str:
    low, high = (time_text(max(value + sign * _NORMAL * error, 0.0)) for sign in (-1, 1))
    return f"from {low} to {high}"
