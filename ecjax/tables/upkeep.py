"""Keeps the files of a folder of results as its committed runs say: what is damaged, and what was never committed."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables import datasets as layout
from ecjax.tables import folder
from ecjax.tables.arrow_schemas import INPUT_DATASETS
from ecjax.tables.committed import (
    Committed,
    all_rows_count,
    committed_in,
    is_shared,
    run_files,
    runs_by_batch,
    say_once,
)
from ecjax.tables.damage import NO_BATCH, differences, is_batch_name
from ecjax.tables.result_schemas import RUNS


class Upkeep:
    """The runs that are committed in a folder, and the files of their batches.

    Args:
        out: the folder.
        names: datasets of the job.

    Attributes:
        committed: runs, by run id.
        damaged: what is wrong with files of committed runs, by path under ``out``.
    """

    def __init__(self, out: Path, names: Iterable[str]) -> None:
        self._out, self._names = out, tuple(names)
        self.committed: dict[str, Committed] = {}
        self.damaged: dict[str, str] = {}
        self._shared: dict[
            str, str
        ] = {}  # names of files of ``runs``, by run, of those that share one with others

    def look(self) -> None:
        """Read the runs, and compare files with what they say of them; nothing is changed.

        Raises:
            UserError: the file of a run is damaged.
        """
        files = run_files(self._out)
        self.committed = committed_in(files)
        for file in files:
            if is_shared(file.path, file.rows):
                runs = [*file.rows.column("run_id").to_pylist(), *file.superseded]
                self._shared |= dict.fromkeys(runs, file.path.stem)
        self.damaged = differences(self._out, self.committed)

    def ended(self, run: str) -> bool:
        """Whether a run is committed and need not be computed again for its status."""
        return run in self.committed and Status(self.committed[run].status).finished

    def wrong(self, run: str) -> dict[str, str]:
        """What is wrong with files of a committed run."""
        if not self.damaged:
            return {}
        return {file: self.damaged[file] for file in self.committed[run].files() if file in self.damaged}

    def clean(self) -> None:
        """Take away what was written and is not committed."""
        for name in (*self.existing(), "figures"):
            folder.remove_temporaries(self._out / name)
        folder.remove_temporaries(self._out)
        self.remove_superseded(
            run for run, name in self._shared.items() if self.committed[run].batch_id != name
        )
        self.remove_uncommitted()

    def commit(self, rows: Mapping[str, Committed], shared: str | None = None) -> None:
        """Runs are committed, by run id; in a file of this name that they share, or in one each."""
        self.committed |= rows
        if shared is not None:
            self._shared |= dict.fromkeys(rows, shared)

    def remove_superseded(self, runs: Iterable[str]) -> None:
        """Take the rows of runs that have a file of their own by now out of those that they shared with others."""
        names = {self._shared.pop(run) for run in list(runs) if run in self._shared}
        for name in sorted(names):
            path = self._out / RUNS / f"{name}.parquet"
            rows = layout.read_file(path)
            left = [run for run in rows.column("run_id").to_pylist() if self._shared.get(run) == name]
            if left:
                rows = rows.filter(pc.is_in(rows.column("run_id"), value_set=pa.array(left, pa.string())))
                layout.write_parquet(path, rows, layout.file_schema(path), left)
            else:
                path.unlink(missing_ok=True)
        if names:
            folder.sync_folder(self._out / RUNS)

    def of_batches(self) -> list[str]:
        """Datasets of the job that are there, with a file per batch."""
        skipped = (RUNS, *INPUT_DATASETS)
        return [name for name in self.existing() if name not in skipped]

    def remove_uncommitted(self, batches: set[str] | None = None) -> None:
        """Take rows of runs that are not committed with their batch out of the files of ``batches`` (all)."""
        committed = runs_by_batch(self.committed)
        for name in self.of_batches():
            for path in layout.dataset_files(self._out, name):
                if batches is not None and path.stem not in batches:
                    continue
                valid = committed.get(path.stem)
                if not is_batch_name(path):
                    # not ours to remove; it is not read either
                    say_once(NO_BATCH.format(path))
                elif not valid:
                    if not layout.is_foreign(path):
                        path.unlink(missing_ok=True)
                elif f"{name}/{path.name}" not in self.damaged:
                    self._keep_only(path, valid)

    def _keep_only(self, path: Path, valid: list[str]) -> None:
        """Leave only the rows of some runs in a file, which says then what it stands for."""
        try:
            if all_rows_count(path, valid, self.committed):
                return
            before = layout.footer(path)
            rows = list(layout.rows_of(path, valid))
        except UserError:
            self.damaged[f"{path.parent.name}/{path.name}"] = "is damaged"
            return
        first = before.replaces or before.contents.sha256
        layout.write_parquet(path, rows, layout.file_schema(path), valid, first)
        folder.sync_folder(path.parent)

    def existing(self) -> list[str]:
        """Datasets of the job, and inputs, that are there."""
        return layout.existing_datasets(self._out, self._names)
