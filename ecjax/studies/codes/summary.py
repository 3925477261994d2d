"""What ``ecjax codes`` prints at its end: a line per code."""

from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.durability.assessment import NEGLIGIBLE_LOAD
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.codes.summary_of_classes import show_combinations
from ecjax.studies.codes.words import domain_of_all, hours
from ecjax.studies.spine.printed import dollars, number, print_errors, print_table
from ecjax.tables.results import read_results
from ecjax.units import count_text

_TB = 1e12
_STATES = {"": ("healthy", "down", "slow", "repairing"), "small_": ("healthy", "down")}  # that are printed


def rows_of(dataset: str, out: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of a dataset of these runs; none where it was not written."""
    try:
        table = read_results(out, dataset)
    except UserError:
        return pd.DataFrame()
    return table[table["run_id"].isin(runs["run_id"])].reset_index(drop=True)


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the codes of comparisons, those of classes of files after those of all.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    every, classes, together = (
        rows_of(dataset, out, runs) for dataset in ("codes", "class_codes", "combinations")
    )
    for run in runs.to_dict("records"):
        if not every.empty:
            _show_codes(run, _of_run(every, run), console, out)
        combinations = _of_run(together, run)
        if not combinations.empty:
            show_combinations(_of_run(classes, run), combinations, console)
    print_errors(runs, console)


def _of_run(rows: pd.DataFrame, run: dict[str, Any]) -> pd.DataFrame:
    """Those of a run; none where none were written."""
    return rows if rows.empty else rows[rows["run_id"] == run["run_id"]]


def _show_codes(run: dict[str, Any], codes: pd.DataFrame, console: Console, out: str) -> None:
    outages = codes["unavailable_per_year"].notna().any()
    rows = [
        [
            row["code"],
            number(row["overhead"], ".3f"),
            dollars(row["dollars_per_period"]),
            number(row["object_loss_probability"], ".1e"),
            number(row["nines"], ".1f"),
            number(row["any_loss_probability"], ".1e"),
            *([number(row["unavailable_per_year"], ".1e")] if outages else []),
            hours(row["disk_repair_s"]),
            number(row["repair_bytes_per_day"] / _TB, ".2g"),
            "yes" if row["durable"] else "NO",
            "*" if row["pareto"] else "",
        ]
        for row in codes.to_dict("records")
    ]
    print_table(
        console,
        f"codes: {count_text(run['group_count'], 'group')} on {count_text(run['disk_count'], 'disk')} in "
        f"{count_text(run['domain_count'], 'domain')}; results in "
        f"{out}",
        [
            *("code", "n/k", "$ in\n30 days", "loss per\nobject, year", "nines", "any loss\nin a year"),
            *(["not read,\nper year"] if outages else []),
            *("repair\nh", "TB\na day", "durable", "front"),
        ],
        rows,
        words=("code",),
        least=("TB\na day", "$ in\n30 days", "front", "n/k"),
        dataset="codes",
    )
    failed = codes[codes["status"] != Status.OK]
    if codes["healthy_mean_s"].notna().any():
        _show_latencies(codes, console)
    for row in failed.to_dict("records"):
        say(console, f"{row['status']}: {row['error']}", "dim")
    if outages and codes["unavailable_per_year"].isna().any():
        say(
            console,
            "note: how often planned outages keep objects from being read is known of k+m and copies with a domain for "
            "each chunk",
            "dim",
        )
    if codes["nines"].isna().any():
        say(
            console,
            f"note: no nines where the load of repairs is above {NEGLIGIBLE_LOAD:g}: the formulas do not hold there",
            "dim",
        )


def _show_latencies(codes: pd.DataFrame, console: Console) -> None:
    domain = domain_of_all(codes)
    scale, unit = (1e3, "ms") if codes["healthy_mean_s"].min() < 1 else (1.0, "s")

    def cell(row: dict[str, Any], column: str) -> str:
        mean, tail = (row[f"{column}_{what}_s"] for what in ("mean", "p99"))
        return "-" if pd.isna(mean) else f"{number(mean * scale, '.3g')}/{number(tail * scale, '.3g')}"

    rows = [
        [
            row["code"],
            *(cell(row, f"{kind}{state}") for kind in ("", "small_") for state in _STATES[kind]),
            number(row["max_load"], ".2f"),
            number(row["gap"] * 100, ".2g"),
        ]
        for row in codes.to_dict("records")
    ]
    print_table(
        console,
        f"expected latency of full and of small reads, mean/99 % quantile, {unit}",
        [
            *(
                "code",
                "healthy",
                f"{domain}\ndown",
                f"{domain}\nslow",
                "under\nrepair",
                "small",
                "small,\ndown",
            ),
            *("max\nload", "gap\n%"),
        ],
        rows,
        words=("code",),
        least=("gap\n%", "max\nload"),
        dataset="codes",
    )
    if any(codes[f"{state}_mean_s"].isna().any() for state in _STATES[""]):
        say(
            console,
            "-: a node would be overloaded, too few chunks are left, or nothing is for repairs; loads are in the "
            "dataset",
            "dim",
        )
