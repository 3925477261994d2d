"""What ``ecjax optimize`` says of figures whose rates are counted."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
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
    half = _NORMAL * float(run["latency_rate_error_s"])
    low, high = (time_text(max(float(run["latency_s"]) + sign * half, 0.0)) for sign in (-1, 1))
    which = f" of theta={run['theta']:g}, the least sure," if len(some) > 1 else ""
    words = f"Rates are counts: the bound{which} is from {low} to {high}"
    if (cost := _NORMAL * float(run["cost_rate_error_dollars"])) > 0:
        words += f", its cost ± ${cost:.3g} per period"
    say(console, f"{words} (95 %, reads Poisson and independent from file to file, this plan kept).")
