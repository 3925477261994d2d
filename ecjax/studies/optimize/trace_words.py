"""What ``ecjax optimize objective=trace`` says about the bursts of a log: whether placement can help against them."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.units import time_text

_WAITS = (
    "a plan that balances mean loads waits {blind}, this one {wait}, reads spread over all nodes {spread}"
)
_SENTENCES = {
    "common": (
        f"bursts are common to all files: {_WAITS}, the least possible: placement cannot help, more capacity or a "
        "cache can"
    ),
    "single": f"bursts are of single files or groups of them: {_WAITS}, the least possible: spreading pays",
    "none": f"bursts hardly count in this log: {_WAITS}, about as at constant rates",
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
                ("blind", "blind_wait_s"),
                ("wait", "trace_wait_s"),
                ("spread", "spread_wait_s"),
            )
        }
        several = ""
        if verdicts["bursts"].nunique() > 1:
            several = f"rate_scale={run['rate_scale']:g}, theta={run['theta']:g}: "
        say(console, several + _SENTENCES[str(word)].format(**texts))
