"""Which runs of a folder are committed, and the files that each of them says its batch wrote."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

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


def run_files(out: Path) -> list[tuple[Path, pa.Table]]:
    """The files of ``runs`` that are what their names say, and their rows; others are named in a log line.

    Raises:
        UserError: a file is damaged.
    """
    files = layout.dataset_files(out, RUNS)
    tables = []
    for path, table in zip(files, each(_run_file, files, out), strict=True):
        if table is None:
            say_once(
                f"{path}: is no file of these results, whose names are the run ids in them; it is not read"
            )
        else:
            tables.append((path, table))
    return tables


@contextmanager
def says_how_to_mend() -> Iterator[None]:
    """Add to what is said of the damaged file of a run what to do."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; remove it, and the command that made it computes its run anew") from None


def _run_file(path: Path) -> pa.Table | None:
    with says_how_to_mend():
        table = layout.read_file(path)
    named = "run_id" in table.column_names and table.column("run_id").to_pylist() == [path.stem]
    return table if named and layout.schema_version(table.schema) is not None else None


@lru_cache
def say_once(message: str) -> None:
    """Warn of something that is seen again and again."""
    log.warning("%s", message)


def read_committed(out: Path) -> dict[str, Committed]:
    """The committed runs of ``out`` by run id."""
    committed = {}
    for path, table in run_files(out):
        columns = [
            name for name in _COLUMNS[1:] if name in table.column_names
        ]  # older versions lack the last
        committed[path.stem] = Committed(**table.select(columns).to_pylist()[0])
    return committed


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
