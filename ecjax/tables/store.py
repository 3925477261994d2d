"""The result store: batches of runs are committed whole or not at all, and not computed twice."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables import datasets as layout
from ecjax.tables.arrow_schemas import INPUT_DATASETS
from ecjax.tables.datasets import Committed, batch_id
from ecjax.tables.folder import (
    FolderLock,
    absolute,
    each,
    location,
    remove_temporaries,
    sync_folder,
    write_errors,
)
from ecjax.tables.result_schemas import RUNS, SCHEMA_VERSION, JobTables
from ecjax.tables.writer import DatasetWriter, RunRows, Tables

__all__ = ["ResultStore", "batch_id", "check_out"]


def check_out(out: str | Path, tables: JobTables) -> None:
    """Refuse a folder that cannot take the results of a job, before anything is computed.

    Raises:
        UserError: ``out`` is a file, or holds results of another job, another version, or of no ecjax.
    """
    place = location(out)
    with write_errors(place):
        if place.exists() and not place.is_dir():
            raise UserError(f"out={place}: is a file; allowed: a folder, which is made if absent")
    for path in layout.dataset_files(place, RUNS)[:1]:
        schema = layout.file_schema(path)
        reason, job = _other_version(schema), layout.schema_job(schema)
        if reason:
            raise UserError(f"out={place}: {path.relative_to(place)} {reason}; choose a new out")
        if job != tables.job:
            raise UserError(
                f"out={place}: holds results of ecjax {job}; choose a new out for ecjax {tables.job}"
            )


def _other_version(schema: pa.Schema) -> str | None:
    """Why a file of this schema is not one of this version of ecjax."""
    version = layout.schema_version(schema)
    if version is None:
        return "was not written by ecjax"
    if version != str(SCHEMA_VERSION):
        return f"is of schema version {version}, now it is {SCHEMA_VERSION}"
    return None


class ResultStore:
    """The result datasets under a folder, open for committing by one process at a time.

    Use it as a context manager. Entering locks the folder and takes away what a killed job left: half-written
    files, and rows of runs that were never committed. An object store has no locks: a job that opens the folder there
    takes it over, and the next commit of the one before is refused.

    The rows of a run are those of its last commit: committing it again replaces them in every dataset.

    Args:
        out: folder of the results, made if absent, or its address (``folder.location``).
        tables: datasets of the job that writes.
        id_types: Arrow type (int64 or string) by id column, as ``ids.id_types`` finds them in the inputs.
        write: datasets to write apart from ``runs`` and the inputs (default: all).

    Attributes:
        writer: writes datasets of batches, also in other processes while the store is open.

    Raises:
        UserError: ``write`` names an unknown dataset; on entering: ``out`` is a file or cannot be written,
            another job writes to it, or it holds tables of another job, of other types or of another schema
            version.
    """

    def __init__(
        self,
        out: str | Path,
        tables: JobTables,
        id_types: dict[str, pa.DataType],
        write: list[str] | None = None,
    ) -> None:
        unknown = [name for name in write or () if name not in tables.datasets]
        if unknown:
            allowed = ", ".join(tables.datasets)
            raise UserError(f"write: found {', '.join(map(repr, unknown))}; allowed: {allowed}")
        self.out, self._tables = location(out), tables
        datasets = None if write is None else frozenset((RUNS, *write))
        self.writer = DatasetWriter(absolute(self.out), tables, dict(id_types), datasets)
        self._rows = RunRows(self.writer.schema(RUNS))
        self._lock = FolderLock(self.out)
        self._committed: dict[str, Committed] = {}
        self._inputs: set[Path] = set()  # that are there
        self._synced = 0.0

    def __enter__(self) -> "ResultStore":
        check_out(self.out, self._tables)
        with write_errors(self.out):
            self._lock.acquire()
            try:
                self._check_existing()
                # First of all: from here on, writers of a killed job replace nothing.
                self.writer.open()
                self._committed = layout.read_committed(self.out)
                self._clean()
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # What lost writers left; were this not to work, the next store would do it.
            with suppress(OSError, UserError):
                if self.writer.is_open():
                    self.writer.close()
                    self._clean()
                    if (self.out / RUNS).is_dir():
                        sync_folder(self.out / RUNS)
        finally:
            self._lock.release()

    def writes(self, dataset: str) -> bool:
        """Whether rows of this dataset are kept, so that they are worth computing."""
        return self.writer.writes(dataset)

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
        path = self.out / name / f"{input_id}.parquet"
        if path in self._inputs or path.exists():
            return
        self._inputs.add(path)
        schema = self.writer.schema(name)
        table = table.select([column for column in table.column_names if column in schema.names[1:]])
        table = table.append_column("input_id", pa.array([input_id] * len(table), pa.string()))
        with write_errors(self.out):
            layout.write_parquet(path, layout.conform(table, schema), schema)
            sync_folder(path.parent)

    def commit(self, runs: list[dict[str, Any]], datasets: Mapping[str, Tables] | None) -> None:
        """Write the rows of a batch of runs: first the datasets, then the runs, whose presence is the commit.

        Args:
            runs: one row of the ``runs`` dataset each; ``batch_id`` and ``batch_runs`` are filled in.
            datasets: rows by dataset name, with a ``run_id`` column; an iterable of tables is written piece
                by piece, and not even started where ``write`` leaves the dataset out. None: the store's ``writer``
                wrote them for the batch of these runs.

        Raises:
            UserError: the disk is full or ``out`` cannot be written; nothing half-written is left.
            ValueError: rows that do not fit the schema, or of runs that are not in ``runs``.
        """
        ids = [run["run_id"] for run in runs]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError("a batch is one or more runs, each once")
        batch = layout.batch_id(ids)
        rows = [self._rows.table(run, batch, len(ids)) for run in runs]
        replaced = {self._committed[run].batch_id for run in ids if run in self._committed}
        with write_errors(self.out):
            try:
                if datasets is not None:
                    self.writer.write(ids, datasets)
                # of an earlier commit, or of a worker that did not come to an end
                if batch in replaced or datasets is not None:
                    self._remove_older(batch, datasets)
                deque(each(self._write_run, rows, self.out), maxlen=0)
                self._sync_runs()
            except BaseException:
                with suppress(OSError, UserError):
                    # Once another job has taken over an object store, the batch may be its own.
                    if self.writer.is_open():
                        self._remove_uncommitted({batch})
                raise
            if replaced - {batch}:
                self._remove_uncommitted(replaced - {batch})

    def _write_run(self, row: pa.Table) -> None:
        values = row.select(["run_id", "batch_id", "batch_runs", "status"]).to_pylist()[0]
        run = values.pop("run_id")
        path = self.out / RUNS / f"{run}.parquet"
        layout.write_parquet(path, row, row.schema, [run], self.writer.token, self.writer.check_open)
        self._committed[run] = Committed(**values)

    def _sync_runs(self) -> None:
        """Once a second: a power cut may take the runs committed in the last second, which are then done again."""
        if time.monotonic() - self._synced > 1:
            sync_folder(self.out / RUNS)
            self._synced = time.monotonic()

    def _remove_older(self, batch: str, datasets: Mapping[str, Tables] | None) -> None:
        """Remove what was written for the same batch to datasets that were not written now."""
        for name in self._batch_datasets():
            path = self.out / name / f"{batch}.parquet"
            if not path.exists():
                continue
            if datasets is None:
                older = layout.file_token(path) != self.writer.token
            else:
                older = name not in datasets or not self.writes(name)
            if older:
                path.unlink()

    def _clean(self) -> None:
        """Take away what was written and is not committed."""
        for folder in (*self._existing(), "figures"):
            remove_temporaries(self.out / folder)
        self._remove_uncommitted()

    def _batch_datasets(self) -> list[str]:
        skipped = (RUNS, *INPUT_DATASETS)
        return [name for name in self._existing() if name not in skipped]

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
                    sync_folder(path.parent)
                # A file that ecjax did not write is not ours to remove; it is not read either.
                elif not valid and layout.schema_version(layout.file_schema(path)) is not None:
                    path.unlink(missing_ok=True)

    def _existing(self) -> list[str]:
        return layout.existing_datasets(self.out, self._tables.datasets)

    def _check_existing(self) -> None:
        for name in self._existing():
            for path in layout.dataset_files(self.out, name)[:1]:
                reason = self._misfit(layout.file_schema(path), self.writer.schema(name))
                if reason:
                    raise UserError(
                        f"out={self.out}: {path.relative_to(self.out)} {reason}; choose a new out"
                    )

    @staticmethod
    def _misfit(stored: pa.Schema, schema: pa.Schema) -> str | None:
        """Why rows of a schema cannot go beside a file of another one."""
        reason = _other_version(stored)
        if reason:
            return reason
        if layout.schema_job(stored) != layout.schema_job(schema):
            return f"is of ecjax {layout.schema_job(stored)}, this is ecjax {layout.schema_job(schema)}"
        if stored.names != schema.names:
            return "has other columns than this version of ecjax writes"
        for before, now in zip(stored, schema, strict=True):
            if before.type != now.type:
                return f"has {before.name} of type {before.type}, now it is {now.type}"
        return None
