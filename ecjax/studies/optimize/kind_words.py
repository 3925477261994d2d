"""What ``ecjax optimize`` says of plans for files with small reads."""

import pandas as pd
from rich.console import Console

from ecjax.console import remark
from ecjax.units import time_text


def say_small_reads(runs: pd.DataFrame, console: Console) -> None:
    """Print what decoding small reads gains, of the run that decodes the largest share of them.

    Args:
        runs: rows of ``runs`` of a study, some of which have small reads.
        console: where.
    """
    some = runs[runs["small_degraded_share"].notna()]
    run = some.loc[some["small_degraded_share"].idxmax()]
    share, direct = float(run["small_degraded_share"]), run["direct_latency_s"]
    which = f" of theta={run['theta']:g}" if len(some) > 1 else ""
    words = f"Small reads{which}: {share:.2g} of them decoded from k chunks"
    words += f", all reads take at most {time_text(float(run['latency_shared_z_s']))} in the mean"
    if share > 0:
        words += ", with all small reads direct " + (
            "a node is overloaded" if pd.isna(direct) else f"at most {time_text(float(direct))}"
        )
    if pd.notna(run["scheduling_gap"]):
        words += (
            f"; other shares and spreads on this placement gain at most {float(run['scheduling_gap']):.1%}"
        )
    remark(console, f"{words} (bounds, Poisson arrivals).")
