"""Which runs of a folder are committed, and the files that each of them says its batch wrote."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.tables import datasets as layout
from ecjax.tables.folder import each
from ecjax.tables.result_schemas import RUNS
from ecjax.tables.seals import Contents, from_text

_COLUMNS = ["run_id", "batch_id", "batch_runs", "status", "batch_files"]
_INPUTS = "inputs/"


class Committed(NamedTuple):
    """What the ``runs`` dataset says of a run that is committed."""

    batch_id: str
    batch_runs: int
    status: str
    batch_files: str | None = None

    def files(self) -> dict[str, Contents]:
        """What its batch wrote, by path under ``out``."""
        files = from_text(self.batch_files)
        return {place_of(name, self.batch_id): contents for name, contents in files.items()}


def place_of(name: str, batch: str) -> str:
    """Path under ``out`` of a file that ``batch_files`` names: a dataset, or an input table with its id."""
    return f"{name}.parquet" if name.startswith(_INPUTS) else f"{name}/{batch}.parquet"


class RunFile(NamedTuple):
    """A file of ``runs``: of one run, whose id is its name, or of several of a batch, whose id is its name.

    Attributes:
        path: of the file.
        rows: that count.
        superseded: runs in it that were committed anew since, each in a file of its own; their rows do not count.
    """

    path: Path
    rows: pa.Table
    superseded: list[str]


def run_files(out: Path) -> list[RunFile]:
    """The files of ``runs`` that are what their names say; others are named in a log line.

    Raises:
        UserError: a file is damaged.
    """
    files = layout.dataset_files(out, RUNS)
    tables = []
    for path, table in zip(files, each(_run_file, files, out), strict=True):
        if table is None:
            say_once(
                f"{path}: is no file of these results, whose names are the ids of their runs or batch; "
                "it is not read"
            )
        else:
            tables.append((path, table))
    return counting(tables)


def counting(files: Sequence[tuple[Path, pa.Table]]) -> list[RunFile]:
    """Files of ``runs`` with those of their rows that count."""
    alone = {path.stem for path, rows in files if not is_shared(path, rows)}
    return [_counting(path, rows, alone) for path, rows in files]


def is_shared(path: Path, rows: pa.Table) -> bool:
    """Whether a file of ``runs`` is named by the batch of its runs, rather than by its only run."""
    return rows.column("run_id").to_pylist() != [path.stem]


def is_named_by_its_rows(path: Path, rows: pa.Table) -> bool:
    """Whether a file of ``runs`` is what its name says."""
    if "run_id" not in rows.column_names or "batch_id" not in rows.column_names:
        return False
    return not is_shared(path, rows) or set(rows.column("batch_id").to_pylist()) == {path.stem}


def _counting(path: Path, rows: pa.Table, alone: set[str]) -> RunFile:
    if not is_shared(path, rows):
        return RunFile(path, rows, [])
    superseded = [run for run in rows.column("run_id").to_pylist() if run in alone]
    if superseded:
        anew = pc.is_in(rows.column("run_id"), value_set=pa.array(superseded, pa.string()))
        rows = rows.filter(pc.invert(anew))
    return RunFile(path, rows, superseded)


@contextmanager
def says_how_to_mend() -> Iterator[None]:
    """Add to what is said of the damaged file of a run what to do."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; remove it, and the command that made it computes its runs anew") from None


def _run_file(path: Path) -> pa.Table | None:
    with says_how_to_mend():
        table = layout.read_file(path)
    is_ours = layout.schema_version(table.schema) is not None
    return table if is_ours and is_named_by_its_rows(path, table) else None


@lru_cache
def say_once(message: str) -> None:
    """Warn of something that is seen again and again."""
    log.warning("%s", message)


def read_committed(out: Path) -> dict[str, Committed]:
    """The committed runs of ``out`` by run id."""
    return committed_in(run_files(out))


def committed_in(files: Iterable[RunFile]) -> dict[str, Committed]:
    """The committed runs of these files by run id."""
    committed = {}
    for file in files:
        # older versions lack the last column
        columns = [name for name in _COLUMNS if name in file.rows.column_names]
        for row in file.rows.select(columns).to_pylist():
            run = row.pop("run_id")
            committed[run] = Committed(**row)
    return committed


def batch_of(out: Path, run_id: str) -> str | None:
    """The batch that a run is committed with; None where it is not committed.

    Raises:
        UserError: a file is damaged.
    """
    path = out / RUNS / f"{run_id}.parquet"
    if path.exists():
        return layout.read_file(path, ["batch_id"]).column("batch_id")[0].as_py()
    committed = read_committed(out).get(run_id)
    return None if committed is None else committed.batch_id


def runs_by_batch(committed: dict[str, Committed]) -> dict[str, list[str]]:
    """The committed runs of each batch."""
    batches: dict[str, list[str]] = {}
    for run, row in committed.items():
        batches.setdefault(row.batch_id, []).append(run)
    return batches


def all_rows_count(path: Path, valid: list[str], committed: dict[str, Committed]) -> bool:
    """Whether all rows of a dataset file count, given its batch's committed runs ``valid``.

    Where all runs of the batch are committed that is so without a look at the file.
    """
    return len(valid) == committed[valid[0]].batch_runs or set(layout.file_run_ids(path)) <= set(valid)
