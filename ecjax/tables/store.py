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
from ecjax.tables import folder
from ecjax.tables.committed import Committed, place_of
from ecjax.tables.datasets import batch_id
from ecjax.tables.finite import ok_runs
from ecjax.tables.fitting import check_datasets, check_out
from ecjax.tables.folder import FolderLock, absolute, each, location, sync_folder, write_errors
from ecjax.tables.result_schemas import RUNS, JobTables
from ecjax.tables.seals import Contents, as_text
from ecjax.tables.upkeep import Upkeep
from ecjax.tables.writer import DatasetWriter, RunRows, Tables

__all__ = ["ResultStore", "batch_id", "check_out"]

SHARED_RUNS = 8  # of a batch, from which on they share a file of ``runs``


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
        sources: what the runs were computed from, as ``sources.sources_text`` says it.

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
        sources: str = "{}",
    ) -> None:
        unknown = [name for name in write or () if name not in tables.datasets]
        if unknown:
            allowed = ", ".join(tables.datasets)
            raise UserError(f"write: found {', '.join(map(repr, unknown))}; allowed: {allowed}")
        self.out, self._tables = location(out), tables
        datasets = None if write is None else frozenset((RUNS, *write))
        self.writer = DatasetWriter(absolute(self.out), tables, dict(id_types), datasets)
        self._rows = RunRows(self.writer.schema(RUNS), tables)
        self._lock = FolderLock(self.out)
        self._files = Upkeep(self.out, tables.datasets)
        self._inputs: dict[str, dict[str, Contents]] = {}  # that are there: files by input id
        self._sources = sources
        self._synced = 0.0

    def __enter__(self) -> "ResultStore":
        check_out(self.out, self._tables)
        with write_errors(self.out):
            self._lock.acquire()
            try:
                self._files.look()
                check_datasets(self.out, self._files.existing(), self.writer.schema, self._files.damaged)
                # From here on, writers of a killed job replace nothing.
                self.writer.open()
                self._files.clean()
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
                    self._files.clean()
                    if (self.out / RUNS).is_dir():
                        sync_folder(self.out / RUNS)
        finally:
            self._lock.release()

    def writes(self, dataset: str) -> bool:
        """Whether rows of this dataset are kept, so that they are worth computing."""
        return self.writer.writes(dataset)

    def finished(self, run_ids: Iterable[str]) -> set[str]:
        """Those of ``run_ids`` that are committed and need not be computed again (ok or not converged).

        Runs are not among them whose files are not those that were written; only sizes and footers are looked at.
        """
        return {run for run in run_ids if self._files.ended(run) and not self._files.wrong(run)}

    def damaged(self, run_ids: Iterable[str]) -> dict[str, str]:
        """What is wrong with files of those of ``run_ids`` that would else be finished, by path under ``out``."""
        return {
            file: why
            for run in run_ids
            if self._files.ended(run)
            for file, why in self._files.wrong(run).items()
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
        place = f"{name}/{input_id}"
        files = self._inputs.setdefault(input_id, {})
        if place in files:
            return
        path = self.out / f"{place}.parquet"
        if path.exists() and layout.is_whole(path):
            files[place] = layout.footer(path).contents
            return
        schema = self.writer.schema(name)
        table = table.select([column for column in table.column_names if column in schema.names[1:]])
        table = table.append_column("input_id", pa.array([input_id] * len(table), pa.string()))
        with write_errors(self.out):
            files[place] = layout.write_parquet(path, layout.conform(table, schema), schema)
            sync_folder(path.parent)
        self._files.damaged.pop(f"{place}.parquet", None)

    def commit(self, runs: list[dict[str, Any]], datasets: Mapping[str, Tables | Contents]) -> None:
        """Write the rows of a batch of runs: first the datasets, then the runs, whose presence is the commit.

        Args:
            runs: one row of the ``runs`` dataset each; what concerns the batch is filled in.
            datasets: rows by dataset name, with a ``run_id`` column; an iterable of tables is written piece
                by piece, and not even started where ``write`` leaves the dataset out. Or what the store's ``writer``
                returned that wrote them for the batch of these runs.

        Raises:
            UserError: the disk is full or ``out`` cannot be written; nothing half-written is left.
            ValueError: rows that do not fit the schema, or of runs that are not in ``runs``.
        """
        ids = [run["run_id"] for run in runs]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError("a batch is one or more runs, each once")
        batch = layout.batch_id(ids)
        self._rows.table(runs)  # mistakes in rows are found before anything is written
        again = [run for run in ids if run in self._files.committed]
        replaced = {self._files.committed[run].batch_id for run in again}
        with write_errors(self.out):
            try:
                files = self._written(runs, batch, datasets, batch in replaced)
                self._write_runs([self._completed(run, batch, len(ids), files) for run in runs])
            except BaseException:
                with suppress(OSError, UserError):
                    # Once another job has taken over an object store, the batch may be its own.
                    if self.writer.is_open():
                        for name in datasets:
                            folder.withdraw(self.writer.path(name, batch), self.writer.token)
                        self._files.remove_uncommitted({batch})
                raise
            self._files.remove_superseded(again)
            if replaced - {batch}:
                self._files.remove_uncommitted(replaced - {batch})

    def _written(
        self, runs: list[dict[str, Any]], batch: str, datasets: Mapping[str, Tables | Contents], again: bool
    ) -> dict[str, Contents]:
        """Write what is not written yet, and have the datasets of a batch where they are read."""
        files = {name: value for name, value in datasets.items() if isinstance(value, Contents)}
        tables = {name: value for name, value in datasets.items() if not isinstance(value, Contents)}
        by_worker = bool(files)
        files |= self.writer.write([run["run_id"] for run in runs], tables, ok_runs(runs))
        for name in files:
            folder.publish(self.writer.path(name, batch), self.writer.token)
        # of an earlier commit, or of a worker that did not come to an end
        if again or not by_worker:
            for name in self._files.of_batches():
                if name not in files:
                    self.writer.path(name, batch).unlink(missing_ok=True)
        for name in files:
            self._files.damaged.pop(place_of(name, batch), None)
        return files

    def _completed(
        self, run: Mapping[str, Any], batch: str, count: int, files: Mapping[str, Contents]
    ) -> dict[str, Any]:
        """The row of a run of a batch of ``count`` runs, with what it says of the batch."""
        written = {**files, **self._inputs.get(run.get("input_id", ""), {})}
        of_batch = {"batch_id": batch, "batch_runs": count, "batch_files": as_text(written)}
        return {"input_files": self._sources, **run, **of_batch}

    def _write_runs(self, rows: list[dict[str, Any]]) -> None:
        """The rows of a batch: where there are many, those that need not be done again in one file.

        The others have a file each, which is replaced in one step when they are done again.
        """
        new = [row for row in rows if row["run_id"] not in self._files.committed]
        shared = [row for row in new if Status(row["status"]).finished]
        if len(shared) < SHARED_RUNS:
            shared = []
        names = {row["run_id"] for row in shared}
        parts = [(shared[0]["batch_id"], shared)] if shared else []
        parts += [(row["run_id"], [row]) for row in rows if row["run_id"] not in names]
        deque(each(self._write_run_file, parts, self.out), maxlen=0)
        # Once a second: a power cut may take the runs committed in the last second, which are then done again.
        if time.monotonic() - self._synced > 1:
            sync_folder(self.out / RUNS)
            self._synced = time.monotonic()

    def _write_run_file(self, part: tuple[str, list[dict[str, Any]]]) -> None:
        """Write some rows to the file of this name; from then on they are committed."""
        name, rows = part
        table = self._rows.table(rows)
        path = self.out / RUNS / f"{name}.parquet"
        ids = [row["run_id"] for row in rows]
        layout.write_parquet(path, table, table.schema, ids, check=self.writer.check_open)
        committed = {row["run_id"]: Committed(*(row[key] for key in Committed._fields)) for row in rows}
        self._files.commit(committed, None if ids == [name] else name)
