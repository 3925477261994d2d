"""What the console shows of claims: a table per paper, and why those that do not hold do not."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.display import displayed
from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.rows import COUNTS
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.studies.spine.sentences import listed
from ecjax.tables.results import read_results

_PAPER = 16  # characters of a printed value
_TOLD = (Verdict.FAILS, Verdict.IN_SHAPE, Verdict.NOT_JUDGED)


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the claims of all runs.

    Args:
        runs: rows of ``runs``, one per paper.
        console: where.
        out: folder of the results.
    """
    claims = read_results(out, "claims")
    for run in runs.to_dict("records"):
        rows = claims[claims["run_id"] == run["run_id"]]
        _show_paper(f"{run['paper']}, size={run['size']}", rows, console)
    print_errors(runs, console)


def _show_paper(title: str, rows: pd.DataFrame, console: Console) -> None:
    print_table(
        console,
        title,
        ["claim", "where", "paper", "ours", "verdict"],
        [
            [
                row["id"].partition("-")[2],
                row["where"],
                "" if pd.isna(row["paper_value"]) else displayed(row["paper_value"], _PAPER),
                ours(row),
                row["verdict"],
            ]
            for row in rows.to_dict("records")
        ],
        words=("claim", "where", "paper", "verdict"),
        padding=(0, 1, 0, 0),
        least=("where", "paper"),
        dataset="claims",
    )
    for verdict in _TOLD:
        for row in rows[rows["verdict"] == verdict].to_dict("records"):
            say(console, f"{row['id']}: {verdict}: {row['why']}")


def ours(row: Mapping[str, Any]) -> str:
    """Our number, with its interval where it has one."""
    if pd.isna(row["ours_low"]):
        return number(row["ours"], ".3g")
    return (
        f"{number(row['ours'], '.3g')} ({number(row['ours_low'], '.3g')}-{number(row['ours_high'], '.3g')})"
    )


def sentence(runs: pd.DataFrame) -> str:
    """How many claims there are, and what became of them."""
    counts = {verdict: int(runs[column].sum()) for verdict, column in COUNTS.items()}
    words = {
        Verdict.HOLDS: "hold",
        Verdict.IN_SHAPE: "hold in shape",
        Verdict.FAILS: "do not hold, for reasons that are stated",
        Verdict.TESTBED: "are seconds of the authors' testbed",
        Verdict.NOT_JUDGED: "could not be judged",
    }
    parts = [f"{counts[verdict]} {text}" for verdict, text in words.items() if counts[verdict]]
    several = "papers" if len(runs) > 1 else "paper"
    return f"Of {runs['claim_count'].sum()} claims of {len(runs)} {several} {listed(parts)}."
