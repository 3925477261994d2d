"""The result store: batches of runs are committed whole or not at all, and not computed twice."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout

from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables import datasets as layout
from ecjax.tables.datasets import Committed
from ecjax.tables.result_schemas import RESULTS, SCHEMA_VERSION

# Part of every run id: to be raised when the same inputs and parameters are to give other results.
ALGORITHM_VERSION = 1

Tables: TypeAlias = pa.Table | Iterable[pa.Table]


def run_id(
    job: str,
    parameters: dict[str, Any],
    input_id: str,
    seed: int | None,
    dtype: str,
    algorithm_version: int = ALGORITHM_VERSION,
) -> str:
    """Name of a run by what it computes: the first 16 hex digits of the SHA-256 of canonical JSON.

    Args:
        job: analyze, optimize, ...
        parameters: all resolved parameters that can change the result of this run, and no others (no out,
            resume, engine, device, and no path).
        input_id: fingerprint of the inputs.
        seed: random seed.
        dtype: floating-point type of the computation.
        algorithm_version: version of the algorithms.

    Raises:
        ValueError: a parameter is NaN or infinite, for which JSON has no name.
        TypeError: a parameter is neither a number, string, None, list nor dict.
    """
    content = {
        "job": job,
        "algorithm_version": algorithm_version,
        "parameters": parameters,
        "input_id": input_id,
        "seed": seed,
        "dtype": dtype,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)
    return _name(text)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a parameter of type {type(value).__name__} has no canonical form")


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def batch_id(run_ids: Iterable[str]) -> str:
    """Name of a batch: the first 16 hex digits of the SHA-256 of its sorted run ids."""
    return _name(json.dumps(sorted(run_ids)))


class ResultStore:
    """The result datasets under a folder, open for writing by one process at a time.

    Use it as a context manager. Entering locks the folder and takes away what a killed job left: half-written
    files, and rows of runs that were never committed.

    The rows of a run are those of its last commit: committing it again replaces them in every dataset.

    Args:
        out: folder of the results; made if absent.
        id_types: Arrow type (int64 or string) by id column, as ``ids.id_types`` finds them in the inputs.
        write: datasets to write apart from ``runs`` and the inputs (default: all).

    Raises:
        UserError: ``write`` names an unknown dataset; on entering: ``out`` is a file or cannot be written,
            another job writes to it, or it holds tables of other types or of another schema version.
    """

    def __init__(
        self, out: str | Path, id_types: dict[str, pa.DataType], write: list[str] | None = None
    ) -> None:
        unknown = [name for name in write or () if name not in RESULTS]
        if unknown:
            raise UserError(f"write: found {', '.join(map(repr, unknown))}; allowed: {', '.join(RESULTS)}")
        self.out = Path(out)
        self._id_types = dict(id_types)
        self._write = None if write is None else {layout.RUNS, *write}
        self._lock = FileLock(self.out / ".lock", blocking=False, thread_local=False)
        self._committed: dict[str, Committed] = {}

    def __enter__(self) -> "ResultStore":
        with self._user_errors():
            if self.out.exists() and not self.out.is_dir():
                raise UserError(f"out={self.out}: is a file; allowed: a folder, which is made if absent")
            self.out.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise UserError(
                    f"out={self.out}: another ecjax job writes to it; wait or choose another out"
                ) from None
            try:
                self._check_existing()
                for dataset in layout.existing_datasets(self.out):
                    layout.remove_temporaries(self.out, dataset)
                self._committed = layout.read_committed(self.out)
                self._remove_uncommitted()
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def writes(self, dataset: str) -> bool:
        """Whether rows of this dataset are kept, so that they are worth computing."""
        return self._write is None or dataset in self._write

    def finished(self, run_ids: Iterable[str]) -> set[str]:
        """Those of ``run_ids`` that are committed and need not be computed again (ok or not converged)."""
        return {
            run for run in run_ids if run in self._committed and Status(self._committed[run].status).finished
        }

    def write_input(self, dataset: str, input_id: str, table: pa.Table) -> None:
        """Keep an input table as ``inputs/<dataset>/<input_id>.parquet``, unless it is there already.

        Args:
            dataset: "nodes" or "files".
            input_id: fingerprint of all inputs together, as in the ``runs`` dataset.
            table: a checked table; columns that the schema does not name are left out.

        Raises:
            UserError: the file cannot be written.
            ValueError: an id column has another type than the store was opened with.
        """
        name = f"inputs/{dataset}"
        schema = layout.dataset_schema(name, self._id_types)
        path = self.out / name / f"{input_id}.parquet"
        if path.exists():
            return
        table = table.select([column for column in table.column_names if column in schema.names[1:]])
        table = table.append_column("input_id", pa.array([input_id] * len(table), pa.string()))
        with self._user_errors():
            layout.write_parquet(path, [layout.conform(table, schema)], schema)
            layout.sync_folder(path.parent)

    def commit(self, runs: list[dict[str, Any]], datasets: Mapping[str, Tables]) -> None:
        """Write the rows of a batch of runs: first the datasets, then the runs, whose presence is the commit.

        Args:
            runs: one row of the ``runs`` dataset each; ``batch_id`` and ``batch_runs`` are filled in.
            datasets: rows by dataset name, with a ``run_id`` column; an iterable of tables is written piece
                by piece, and not even started where ``write`` leaves the dataset out.

        Raises:
            UserError: the disk is full or ``out`` cannot be written; nothing half-written is left.
            ValueError: rows that do not fit the schema, or of runs that are not in ``runs``.
        """
        ids = [run["run_id"] for run in runs]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError("a batch is one or more runs, each once")
        batch = batch_id(ids)
        rows = [self._run_row(run, batch, len(ids)) for run in runs]
        written = {name: tables for name, tables in datasets.items() if self.writes(name)}
        replaced = {self._committed[run].batch_id for run in ids if run in self._committed}
        with self._user_errors():
            try:
                self._remove_older(batch, written)
                for name, tables in written.items():
                    self._write_dataset(name, batch, tables, ids)
                for row in rows:
                    self._write_run(row)
                layout.sync_folder(self.out / layout.RUNS)
            except BaseException:
                with suppress(OSError, UserError):
                    self._remove_uncommitted({batch})
                raise
            if replaced - {batch}:
                self._remove_uncommitted(replaced - {batch})

    def _run_row(self, run: dict[str, Any], batch: str, count: int) -> pa.Table:
        schema = layout.dataset_schema(layout.RUNS, self._id_types)
        row = {**run, "batch_id": batch, "batch_runs": count}
        unknown = sorted(set(row) - set(schema.names))
        if unknown:
            raise ValueError(f"columns that the schema lacks: {unknown}")
        Status(row["status"])
        return pa.Table.from_pylist([row], schema=schema)

    def _write_run(self, row: pa.Table) -> None:
        values = row.select(["run_id", "batch_id", "batch_runs", "status"]).to_pylist()[0]
        run = values.pop("run_id")
        layout.write_parquet(self.out / layout.RUNS / f"{run}.parquet", [row], row.schema, [run])
        self._committed[run] = Committed(**values)

    def _write_dataset(self, name: str, batch: str, tables: Tables, ids: list[str]) -> None:
        schema = layout.dataset_schema(name, self._id_types)
        known = pa.array(ids, pa.string())

        def checked() -> Iterator[pa.Table]:
            for table in [tables] if isinstance(tables, pa.Table) else tables:
                rows = layout.conform(table, schema)
                if not pc.all(
                    pc.is_in(pc.unique(rows.column("run_id")), value_set=known), min_count=0
                ).as_py():
                    raise ValueError(f"{name} has rows of runs that are not in the batch")
                yield rows

        path = self.out / name / f"{batch}.parquet"
        layout.write_parquet(path, checked(), schema, ids)
        layout.sync_folder(path.parent)

    def _remove_older(self, batch: str, written: dict[str, Tables]) -> None:
        """Remove what an earlier commit of the same batch wrote to datasets that are not written now."""
        for name in self._batch_datasets():
            path = self.out / name / f"{batch}.parquet"
            if name not in written and path.exists():
                os.unlink(path)

    def _batch_datasets(self) -> list[str]:
        skipped = (layout.RUNS, *layout.INPUT_DATASETS)
        return [name for name in layout.existing_datasets(self.out) if name not in skipped]

    def _remove_uncommitted(self, batches: set[str] | None = None) -> None:
        """Take rows of runs that are not committed with their batch out of the files of ``batches`` (all)."""
        committed = layout.runs_by_batch(self._committed)
        for name in self._batch_datasets():
            for path in layout.dataset_files(self.out, name):
                if batches is not None and path.stem not in batches:
                    continue
                valid = committed.get(path.stem)
                if valid and not layout.all_rows_count(path, valid, self._committed):
                    layout.write_parquet(path, layout.rows_of(path, valid), layout.file_schema(path), valid)
                    layout.sync_folder(path.parent)
                # A file that ecjax did not write is not ours to remove; it is not read either.
                elif not valid and layout.schema_version(layout.file_schema(path)) is not None:
                    os.unlink(path)

    def _check_existing(self) -> None:
        for name in layout.existing_datasets(self.out):
            for path in layout.dataset_files(self.out, name)[:1]:
                reason = self._misfit(layout.file_schema(path), layout.dataset_schema(name, self._id_types))
                if reason:
                    raise UserError(
                        f"out={self.out}: {path.relative_to(self.out)} {reason}; choose a new out"
                    )

    @staticmethod
    def _misfit(found: pa.Schema, wanted: pa.Schema) -> str | None:
        """Why rows of schema ``wanted`` cannot go beside a file of schema ``found``."""
        version = layout.schema_version(found)
        if version is None:
            return "was not written by ecjax"
        if version != str(SCHEMA_VERSION):
            return f"is of schema version {version}, now it is {SCHEMA_VERSION}"
        if found.names != wanted.names:
            return "has other columns than this version of ecjax writes"
        for have, want in zip(found, wanted, strict=True):
            if have.type != want.type:
                return f"has {have.name} of type {have.type}, now it is {want.type}"
        return None

    @contextmanager
    def _user_errors(self) -> Iterator[None]:
        """Turn what the system says of ``out`` (disk full, permission denied) into a ``UserError``."""
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
            raise UserError(f"out={self.out}: cannot be written: {reason}") from error
