"""Read result datasets as pandas data frames, and find the run that a later job builds on."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables import datasets as layout
from ecjax.tables.arrow_schemas import INPUT_DATASETS
from ecjax.tables.committed import (
    all_rows_count,
    batch_of,
    read_committed,
    run_files,
    runs_by_batch,
    say_once,
)
from ecjax.tables.damage import NO_BATCH, is_batch_name
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import each, location
from ecjax.tables.formats import user_errors
from ecjax.tables.ids import ID_NAMES
from ecjax.tables.recommendation import read_recommendation
from ecjax.tables.result_schemas import RUNS
from ecjax.tables.results_below import of_job, results_below

_RUNS_SHOWN = 12


def read_results(out: str | Path, dataset: str) -> pd.DataFrame:
    """Read a result dataset, verifying page checksums.

    Rows of runs that were never committed are left out. An integer id column with empty cells becomes pandas'
    nullable ``Int64``, so that ids stay exact; other types are those of ``pandas.read_parquet``.

    Args:
        out: folder of the results, on this machine or in an object store (``s3://bucket/path``).
        dataset: "runs", "placements", ..., "inputs/nodes" or "inputs/files".

    Raises:
        UserError: the folder or dataset is missing (the message lists what is there), or a file is damaged.
    """
    table = _read(location(out), dataset)
    frame = table.to_pandas()
    for name in table.column_names:
        column = table.column(name)
        if name in ID_NAMES and column.null_count and pa.types.is_integer(column.type):
            frame[name] = column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return frame


def read_arrow(out: str | Path, dataset: str, columns: list[str] | None) -> pa.Table:
    """As ``read_results``, an Arrow table of some columns, or of all; of a large dataset others are not read.

    Raises:
        UserError: as ``read_results``.
    """
    return _read(location(out), dataset, columns)


def _read(out: Path, dataset: str, columns: list[str] | None = None) -> pa.Table:
    with user_errors(f"out={out}"):
        if not out.is_dir():
            raise UserError(f"out={out}: no such folder")
        files = layout.dataset_files(out, dataset)
        if not files or layout.schema_version(layout.file_schema(files[0])) is None:
            names = ", ".join(layout.written_datasets(out))
            raise UserError(f"out={out}: has no dataset {dataset!r}; it has {names or 'none'}")
    if dataset == RUNS:
        tables = [file.rows for file in run_files(out)]
        return pa.concat_tables(tables) if tables else layout.file_schema(files[0]).empty_table()
    if dataset in INPUT_DATASETS:
        named = [path for path in files if _is_input(path)]
        tables = list(each(layout.read_file, named, out))
        return pa.concat_tables(tables) if tables else layout.file_schema(files[0]).empty_table()
    committed = read_committed(out)
    batches = runs_by_batch(committed)

    def rows(path: Path) -> list[pa.Table]:
        valid = batches.get(path.stem)
        if not valid:
            if not is_batch_name(path):
                say_once(NO_BATCH.format(path))
            return []
        if all_rows_count(path, valid, committed):
            return [layout.read_file(path, columns)]
        return [table.select(columns or table.column_names) for table in layout.rows_of(path, valid)]

    tables = [table for part in each(rows, files, out) for table in part]
    if tables:
        return pa.concat_tables(tables)
    empty = layout.file_schema(files[0]).empty_table()
    return empty.select(columns or empty.column_names)


def _is_input(path: Path) -> bool:
    """Whether a file holds the input that its name says; a copy of one is named in a log line."""
    ids = layout.read_file(path, ["input_id"]).column("input_id").unique().to_pylist()
    if ids not in ([], [path.stem]):
        say_once(f"{path}: holds the input {ids[0]}, which its name does not say; it is not read")
    return ids in ([], [path.stem])


def find_run(
    out: str | Path, plan_run: str | None = None, plan_where: str | None = None, job: str = "optimize"
) -> dict[str, Any]:
    """The finished run to build on: the only one, the one named, the one that matches, or the one recommended.

    Args:
        out: folder of the results.
        plan_run: its run id.
        plan_where: values of columns of ``runs``, as in "theta=0.1,method=certified"; numbers are compared as
            numbers.
        job: the job that made it.

    Returns:
        Its row of the ``runs`` dataset.

    Raises:
        UserError: no or more than one finished run fits (the message lists the runs), or ``plan_where`` names
            an unknown column or is no list of column=value.
    """
    fitting, runs = _fitting(out, plan_run, plan_where, job)
    if len(fitting) == 1:
        return fitting[0]
    if plan_run is None and not plan_where:
        recommended = read_recommendation(location(out))
        for row in fitting:
            if recommended is not None and row["run_id"] == recommended.run_id:
                among = (
                    f"{row['method']}, theta {_number(row['theta'])}, {recommended.among} of {len(fitting)}"
                )
                other = next(each for each in fitting if each is not row)
                log.info(
                    "plan=%s: run %s is taken, which was recommended (%s); another: plan_where='method=%s,theta=%s'",
                    out,
                    row["run_id"],
                    among,
                    other["method"],
                    _number(other["theta"]),
                )
                return row
    conditions = [f"plan_run={plan_run}"] if plan_run is not None else []
    conditions += [f"plan_where={plan_where!r}"] if plan_where else []
    several = len(fitting) > 1
    what = f"{len(fitting)} finished {job} runs" if several else f"no finished {job} run"
    verb = "found" if not conditions else "fit" if several else "fits"
    advice = "name one by plan_run=RUN_ID or plan_where" if several else "runs there"
    message = " ".join([what, verb, " and ".join(conditions)]).rstrip()
    raise UserError(f"plan={out}: {message}; {advice}: {_listed(fitting or runs)}")


def find_runs(out: str | Path, plan_where: str | None = None, job: str = "optimize") -> list[dict[str, Any]]:
    """All finished runs, or those that match, as ``find_run`` finds one.

    Raises:
        UserError: none fits, or ``plan_where`` names an unknown column or is no list of column=value.
    """
    fitting, runs = _fitting(out, None, plan_where, job)
    if not fitting:
        raise UserError(f"plan={out}: no finished {job} run fits; runs there: {_listed(runs)}")
    return fitting


def _fitting(
    out: str | Path, plan_run: str | None, plan_where: str | None, job: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The finished runs that fit, and all runs of the job."""
    folder = location(out)
    if folder.is_dir() and not (folder / RUNS).is_dir():
        listed = of_job(results_below(folder), job)
        raise UserError(
            f"plan={out}: has no dataset 'runs', holds no results; allowed: results of ecjax {job}{listed}"
        )
    table = _read(folder, RUNS)
    runs = [row for row in table.to_pylist() if row["job"] == job]
    writer = written_by(folder)
    if not runs and writer not in (None, job):
        listed = of_job(results_below(folder), job)
        raise UserError(
            f"plan={out}: no finished {job} run found; runs there: none, but results of ecjax {writer}; allowed: those "
            f"of ecjax {job}{listed}"
        )
    conditions = _conditions(plan_where, table.schema) if plan_where else {}
    fitting = [
        row
        for row in runs
        if Status(row["status"]).finished
        and (plan_run is None or row["run_id"] == plan_run)
        and all(row[name] == value for name, value in conditions.items())
    ]
    return fitting, runs


def _conditions(text: str, schema: pa.Schema) -> dict[str, Any]:
    conditions: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise UserError(f"plan_where: found {part!r}; allowed: column=value, several divided by commas")
        if name not in schema.names:
            raise UserError(f"plan_where: found column {name!r}; allowed: {', '.join(schema.names)}")
        if pa.types.is_string(schema.field(name).type):
            conditions[name] = value
            continue
        try:
            conditions[name] = float(value)
        except ValueError:
            raise UserError(f"plan_where: found {name}={value}; allowed: a number") from None
    return conditions


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _listed(runs: list[dict[str, Any]]) -> str:
    def described(row: dict[str, Any]) -> str:
        # runs of other jobs than plans and replays have neither
        method = f"method {row['method']}, theta {_number(row['theta'])}, " if "method" in row else ""
        return f"{row['run_id']} ({method}{row['status']})"

    def order(row: dict[str, Any]) -> tuple[str, float, str]:
        return row.get("method") or "", row.get("theta") or 0.0, row["run_id"]

    shown = [described(row) for row in sorted(runs, key=order)]
    more = f" and {len(shown) - _RUNS_SHOWN} more" if len(shown) > _RUNS_SHOWN else ""
    return ", ".join(shown[:_RUNS_SHOWN]) + more if shown else "none"


def read_run(out: str | Path, dataset: str, run_id: str, columns: list[str] | None = None) -> pa.Table:
    """Rows of one committed run; only the file of its batch is read.

    Args:
        out: folder of the results.
        dataset: "placements", "file_plans", ...
        run_id: a run as ``find_run`` gives it.
        columns: to read, run_id among them; None: all.

    Raises:
        UserError: the run did not write that dataset, or a file is damaged.
    """
    folder = location(out)
    path = folder / dataset / f"{batch_of(folder, run_id)}.parquet"
    if not path.exists():
        raise UserError(f"out={out}: has no {dataset} of run {run_id}")
    tables = list(layout.rows_of(path, [run_id], columns))
    if tables:
        return pa.concat_tables(tables)
    empty = layout.file_schema(path).empty_table()  # a file without rows has no group of them
    return empty.select(columns or empty.column_names)
