"""What a folder of results holds, printed as the job that made it prints it; nothing is computed again."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.errors import UserError
from ecjax.jobs_index import JOBS
from ecjax.studies.replay.tables import AS_LOGGED
from ecjax.tables.results import read_run
from ecjax.tables.sources import sources_of

MOST_RUNS = 24  # in a table with a row per run


class _Order(NamedTuple):
    """Of the rows of a table: columns of the sweep, and of what is best where it is least."""

    sweep: tuple[str, ...]
    best: str


_SWEEP = ("rate_scale", "size_scale", "theta")
_ROW_PER_RUN = {
    "optimize": _Order(("method", "k", "d", *_SWEEP), "objective"),
    "replay": _Order(("method", *_SWEEP, "policy", "queue", "service"), "mean_s"),
}


def print_summary(out: str, job: str, runs: pd.DataFrame, console: Console) -> None:
    """Print runs as their job does at its end: all of them, or the best where a table has a row for each of many.

    Args:
        out: folder of the results.
        job: that made them.
        runs: rows of ``runs``, at least one.
        console: where.

    Raises:
        UserError: a file is damaged.
    """
    summary = import_module(f"ecjax.studies.{job}.summary")
    if job in _ROW_PER_RUN:
        _print_rows(out, job, runs, console)
    elif job == "analyze":
        for _, run in runs.groupby("run_id", sort=False):
            summary.show(run, tables_of(out, job, run["run_id"].iloc[0]), console, out)
    elif job == "bench":
        _print_cases(out, runs, console)
    elif job == "cache":
        plans = runs["scheme"].notna()
        for part, show in ((runs[~plans], summary.show), (runs[plans], summary.show_plans)):
            if len(part):
                show(part, console, out)
    else:
        summary.show(runs, console, out)


def _print_rows(out: str, job: str, runs: pd.DataFrame, console: Console) -> None:
    logged = runs["policy"] == AS_LOGGED if job == "replay" else pd.Series(False, runs.index)
    if not logged.all():
        show = import_module(f"ecjax.studies.{job}.summary").show
        _print_best(out, job, runs[~logged], console, show)
    for _, of_log in runs[logged].groupby("input_id", sort=False, dropna=False):
        _print_best(out, job, of_log, console, import_module("ecjax.studies.replay.log").show_log)


def _print_best(
    out: str,
    job: str,
    runs: pd.DataFrame,
    console: Console,
    show: Callable[[pd.DataFrame, Console, Any], None],
) -> None:
    """Print all runs, or the best of many, by ``show``."""
    order = _ROW_PER_RUN[job]
    shown = runs.sort_values(order.best).head(MOST_RUNS) if len(runs) > MOST_RUNS else runs
    show(shown, console, _options_of(out, job, runs))
    if len(shown) < len(runs):
        say(console, f"These are the {len(shown)} of {len(runs)} runs with the least {order.best}.")


def in_order(job: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``runs`` in the order of a sweep, where files of a folder have none."""
    if job in _ROW_PER_RUN:
        return runs.sort_values(list(_ROW_PER_RUN[job].sweep), kind="stable", ignore_index=True)
    columns = [item for item in runs.columns if item not in ("run_id", "params", "batch_id", "solve_s")]
    swept = [name for name in columns if name != "seed" and not name.endswith("_s")]
    # points first, so that what is compared at one stays together
    by = dict.fromkeys([*(name for name in _point_of(job) if name in runs), *swept, "seed"])
    return runs.sort_values(list(by), kind="stable", ignore_index=True)


def _point_of(job: str) -> tuple[str, ...]:
    """Columns of a point of a job's sweeps, where it says which these are."""
    name = f"ecjax.studies.{job}.words"
    return getattr(import_module(name), "POINT", ()) if find_spec(name) else ()


def _options_of(out: str, job: str, runs: pd.DataFrame) -> Any:
    """Options of the job as far as its runs say what they were; those of a sweep as of its first run."""
    options = JOBS[job].options_class()
    parameters = json.loads(runs["params"].iloc[0])
    names = {item.name for item in fields(options)}
    values = {name: value for name, value in parameters.items() if name in names}
    for column in names & {"arrivals"} & set(runs.columns):
        values[column] = runs[column].iloc[0]
    for source in sources_of(runs["input_files"].iloc[0]):
        if source.option in names:
            values[source.option] = source.path
    return replace(options, **{**values, "out": out})


def tables_of(out: str, job: str, run_id: str) -> dict[str, Any]:
    """The datasets of a run that were written and have rows, by name."""
    tables = {}
    for name in import_module(f"ecjax.studies.{job}.tables").TABLES.names:
        try:
            table = read_run(out, name, run_id)
        except UserError:
            continue  # not among those written
        if table.num_rows:
            tables[name] = table
    return tables


def _print_cases(out: str, runs: pd.DataFrame, console: Console) -> None:
    """The tables of a benchmark, one per case."""
    row_class = import_module("ecjax.studies.bench.rows").Row
    show = import_module("ecjax.studies.bench.summary").show
    names = {item.name for item in fields(row_class)}
    for run in runs.to_dict("records"):
        rows = tables_of(out, "bench", run["run_id"])
        if rows:
            values = rows["bench"].to_pylist()
            show(
                run["case"],
                [row_class(**{key: row[key] for key in row if key in names}) for row in values],
                console,
            )
