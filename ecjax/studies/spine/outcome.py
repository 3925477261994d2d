"""How a study ends: its runs, what went wrong in them, its exit code."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd
from rich.console import Console

from ecjax.status import Status
from ecjax.tables.results import read_results


def runs_of(out: str, run_ids: Iterable[str]) -> pd.DataFrame:
    """Rows of the dataset ``runs`` of these runs, in their order."""
    return read_results(out, "runs").set_index("run_id").loc[list(run_ids)].reset_index()


def exit_code(runs: pd.DataFrame) -> int:
    """0, or 1 where some of the runs did not finish."""
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def show_errors(runs: pd.DataFrame, console: Console) -> None:
    """Print what made replays fail, each message once."""
    for message, count in Counter(runs["error"].dropna()).items():
        console.print(f"{count} replays: {message}", style="red", highlight=False)
