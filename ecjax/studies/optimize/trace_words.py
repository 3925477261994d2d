"""What ``ecjax optimize objective=trace`` says about the bursts of a log: whether placement can help against them."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.units import time_text

_SENTENCES = {
    "common": (
        "bursts are common to all files: n = k plans wait {whole} and reads spread over all nodes {spread}, the least "
        "possible, so that placement cannot help; more capacity or a cache can"
    ),
    "single": (
        "bursts are of single files or groups: n = k plans wait {whole}, this plan {wait}, reads spread over all nodes "
        "{spread}, the least possible: spreading pays"
    ),
    "none": (
        "bursts hardly count in this log: reads spread over all nodes wait {spread}, about as long as at constant "
        "rates, n = k plans {whole}; plans for mean rates are as good"
    ),
}


def say_bursts(runs: pd.DataFrame, console: Console) -> None:
    """Print one line for each verdict on the bursts of a log, of the first run that it holds for.

    Args:
        runs: rows of ``runs`` of a study.
        console: where.
    """
    verdicts = runs[runs["bursts"].notna()]
    for word, some in verdicts.groupby("bursts", sort=False):
        run = some.iloc[0]
        texts = {
            name: time_text(float(run[column]))
            for name, column in (
                ("whole", "whole_wait_s"),
                ("wait", "trace_wait_s"),
                ("spread", "spread_wait_s"),
            )
        }
        several = ""
        if verdicts["bursts"].nunique() > 1:
            several = f"rate_scale={run['rate_scale']:g}, theta={run['theta']:g}: "
        say(console, several + _SENTENCES[str(word)].format(**texts))
