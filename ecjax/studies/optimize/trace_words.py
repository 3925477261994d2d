"""What ``ecjax optimize trace=LOG`` says about a log: how sure its latencies are, whether placement can help."""

import pandas as pd
from rich.console import Console

from ecjax.console import remark, say
from ecjax.units import time_text

_MUCH = 2.0  # times the wait at constant rates
_WAITS = (
    "a plan that balances mean loads waits {blind}, this one {wait}, reads spread over all nodes {spread}"
)
_UNTOLD = "untold"
_SENTENCES = {
    "common": (
        f"bursts are common to all files: {_WAITS}, the least possible: once nodes are loaded alike placement cannot "
        "help, more capacity or a cache can"
    ),
    "single": f"bursts are of single files or groups of them: {_WAITS}, the least possible: spreading pays",
    "none": f"bursts hardly count in this log: {_WAITS}, about as at constant rates",
    _UNTOLD: (
        "all reads are of one file, or of files placed together: whether bursts are common or of single files cannot "
        f"be told; {_WAITS}, the least possible"
    ),
}


def say_bursts(runs: pd.DataFrame, console: Console) -> None:
    """Print one line for each verdict on the bursts of a log, of the first run that it holds for.

    Args:
        runs: rows of ``runs`` of a study.
        console: where.
    """
    planned = runs[runs["trace_wait_s"].notna()]
    verdicts = planned.assign(
        bursts=planned["bursts"].astype(object).where(planned["bursts"].notna(), _UNTOLD)
    )
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
        say(console, several + _SENTENCES[str(word)].format(**texts) + _rest(run))


def _rest(run: pd.Series) -> str:
    """What spreading leaves of bursts of single files, if that is much: they are bursts of all reads together."""
    steady = run["steady_wait_s"]
    if run["bursts"] != "single" or pd.isna(steady) or run["spread_wait_s"] <= _MUCH * steady:
        return ""
    return (
        f"; {time_text(float(steady))} at constant rates: the rest is bursts of all reads together, against which more "
        "capacity or a cache helps"
    )


def say_margins(runs: pd.DataFrame, console: Console) -> None:
    """Print under which arrivals expected latencies are, with the interval of the first run, and remarks on them.

    Args:
        runs: rows of ``runs`` of a study.
        console: where.
    """
    estimated = runs[runs["trace_estimated_mean_s"].notna()]
    run = estimated.iloc[0]
    words = "Expected is under the log's own arrivals"
    if pd.notna(run["trace_estimated_mean_low_s"]):
        several = f" (theta={run['theta']:g})" if len(estimated) > 1 else ""
        within = ", ".join(
            f"its {name} within "
            + " to ".join(time_text(float(run[f"trace_estimated_{name}_{end}_s"])) for end in ("low", "high"))
            for name in ("mean", "p99")
            if pd.notna(run[f"trace_estimated_{name}_low_s"])
        )
        words += f"; another log of this kind would have {within} (95 %){several}"
    remark(console, f"{words}.")
    for text in estimated["trace_remarks"].dropna().unique():
        say(console, text, "yellow")
