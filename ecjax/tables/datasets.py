"""Where result datasets lie under ``out``, and how one Parquet file of them is written and read.

A dataset is a folder. ``runs`` has one file per run, named by the run, or one for many runs that were committed
together, named by their batch; a run counts once its row is there. A run that is done again gets a file of its own,
whose row counts instead of one in a shared file, and which is replaced in one step from then on. Every other dataset
has one file per batch, named by the batch and carrying the run ids it was written for; a row of it counts if its run is
committed with that batch. ``inputs/nodes``, ``inputs/files`` and ``inputs/network`` have one file per input.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ecjax.errors import UserError
from ecjax.tables import seals
from ecjax.tables.arrow_schemas import INPUT_DATASETS, JOB_KEY, VERSION_KEY
from ecjax.tables.folder import is_visible, location, publishing
from ecjax.tables.formats import checked_parquet_file, parquet_file, user_errors
from ecjax.tables.ids import decoded, is_text
from ecjax.tables.result_schemas import RUNS
from ecjax.tables.seals import Contents

# what to do about a file of results that cannot be read
_DAMAGED = "damaged or of another format (move it away and run the same command again)"

_RUN_IDS_KEY = b"ecjax_run_ids"
_REPLACES_KEY = b"ecjax_replaces"

# Tables of a few rows are written without what makes large ones small: that takes twice as long for them.
_FEW_ROWS = 100
_PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}


def batch_id(run_ids: Iterable[str]) -> str:
    """Name of a batch: the first 16 hex digits of the SHA-256 of its sorted run ids."""
    return hashlib.sha256(json.dumps(sorted(run_ids)).encode()).hexdigest()[:16]


def existing_datasets(out: Path, names: Iterable[str]) -> list[str]:
    """Those of the datasets ``names``, and of the inputs, that ``out`` has folders for."""
    folders = _folders(out) | {f"inputs/{name}" for name in _folders(out / "inputs")}
    return [name for name in (*names, *INPUT_DATASETS) if name in folders]


def written_datasets(out: Path) -> list[str]:
    """Names of the datasets in ``out`` that ecjax wrote, of whichever job.

    Raises:
        UserError: a file is damaged.
    """
    names = sorted(_folders(out), key=lambda name: (name != RUNS, name))
    files = {name: dataset_files(out, name)[:1] for name in existing_datasets(out, names)}
    return [name for name, some in files.items() if some and schema_version(file_schema(some[0])) is not None]


def _folders(place: Path) -> set[str]:
    return {entry.name for entry in place.iterdir() if entry.is_dir()} if place.is_dir() else set()


def dataset_files(out: Path, dataset: str) -> list[Path]:
    """The files of a dataset in the order of their names; those that are being written are left out."""
    folder = out / dataset
    if not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.suffix == ".parquet" and is_visible(f))


def batches_written(out: Path, dataset: str) -> set[str]:
    """The batches that have rows of a dataset, by the names of its files."""
    return {path.stem for path in dataset_files(out, dataset)}


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the columns and types of ``schema``; absent columns become null.

    Raises:
        ValueError: the table has a column that the schema lacks, a text where a number belongs or the
            reverse, or no value where one is needed: mistakes of the program, not of its user.
    """
    if table.schema.equals(schema, check_metadata=True):
        _check_filled(table, schema)
        return table
    unknown = [name for name in table.column_names if name not in schema.names]
    if unknown:
        raise ValueError(f"columns that the schema lacks: {unknown}")
    columns = []
    for field in schema:
        column = pa.nulls(len(table), field.type)
        if field.name in table.column_names:
            values = decoded(table.column(field.name))
            if not pa.types.is_null(values.type) and _is_textual(values.type) != _is_textual(field.type):
                raise ValueError(f"column {field.name} has type {values.type}, the schema says {field.type}")
            column = values.cast(field.type)
        columns.append(column)
    conformed = pa.Table.from_arrays(columns, schema=schema)
    _check_filled(conformed, schema)
    return conformed


def _check_filled(table: pa.Table, schema: pa.Schema) -> None:
    for number, field in enumerate(schema):
        if not field.nullable and table.column(number).null_count:
            raise ValueError(f"column {field.name} has empty cells")


def _is_textual(kind: pa.DataType) -> bool:
    return _is_textual(kind.value_type) if pa.types.is_list(kind) else is_text(kind)


def write_parquet(
    path: Path,
    tables: pa.Table | Iterable[pa.Table],
    schema: pa.Schema,
    run_ids: Iterable[str] = (),
    replaces: str = "",
    check: Callable[[], None] = lambda: None,
) -> Contents:
    """Write a Parquet file that is there whole or not at all (see ``folder.publishing``), with its hash in it.

    Args:
        path: the file; its folder is made.
        tables: each table of an iterable is written as it comes, as row groups of its own.
        schema: of all tables.
        run_ids: runs that it is written for.
        replaces: hash of the file in whose place it keeps some rows.
        check: called when all is written; an error that it raises leaves ``path`` as it was.
    """
    parts = [tables] if isinstance(tables, pa.Table) else tables
    few = isinstance(tables, pa.Table) and len(tables) <= _FEW_ROWS
    rows = 0
    with publishing(path) as temporary:
        with pq.ParquetWriter(temporary, schema, write_page_checksum=True, **_PLAIN if few else {}) as writer:
            for part in parts:
                writer.write_table(part)
                rows += len(part)
            footer = {_RUN_IDS_KEY: json.dumps(sorted(run_ids)), _REPLACES_KEY: replaces}
            writer.add_key_value_metadata(footer | {seals.KEY: seals.BLANK})
        written = Contents(rows, temporary.stat().st_size, seals.seal(temporary))
        check()
    return written


def file_schema(path: Path) -> pa.Schema:
    """Schema of a Parquet file, with the metadata that its dataset's schema has.

    Raises:
        UserError: the file is damaged.
    """
    with user_errors(path, _DAMAGED), parquet_file(path) as file:
        return _of_dataset(file.schema_arrow)


def _of_dataset(schema: pa.Schema) -> pa.Schema:
    of_file = (_RUN_IDS_KEY, _REPLACES_KEY, seals.KEY.encode())
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key not in of_file}
    return schema.with_metadata(metadata)


def checked_schema(path: Path) -> pa.Schema:
    """As ``file_schema``, of a file whose hash is verified.

    Raises:
        UserError: the file is damaged.
    """
    with user_errors(path, _DAMAGED), checked_parquet_file(path) as file:
        return _of_dataset(file.schema_arrow)


def is_whole(path: Path) -> bool:
    """Whether a file holds the bytes that ecjax wrote; it is read as a whole."""
    content, wrong = seals.sealed_content(path)
    return content is not None and wrong is None


def is_foreign(path: Path) -> bool:
    """Whether ecjax did not write a file; of a damaged one that is not known."""
    try:
        return schema_version(file_schema(path)) is None
    except UserError:
        return False


def schema_version(schema: pa.Schema) -> str | None:
    """The version of the schemas that a file was written with, or None where ecjax did not write it."""
    version = (schema.metadata or {}).get(VERSION_KEY)
    return None if version is None else version.decode()


def schema_job(schema: pa.Schema) -> str | None:
    """The job that wrote a file; None where the file does not say it."""
    name = (schema.metadata or {}).get(JOB_KEY)
    return None if name is None else name.decode()


def written_by(out: Path) -> str | None:
    """The job whose results a folder holds; None where it holds none, or of an older version."""
    for path in dataset_files(out, RUNS)[:1]:
        return schema_job(file_schema(path))
    return None


def results_job(command: str, out: str) -> str:
    """The job whose results a folder holds.

    Args:
        command: that needs them, for the message.
        out: the folder.

    Raises:
        UserError: it holds none; where a folder above it does, the message names that.
    """
    place = location(out)
    job = written_by(place) if place.is_dir() else None
    if job is not None:
        return job
    if place.is_dir() and written_by(place.parent):
        raise UserError(f"{command}: {out} is one dataset of results; allowed: all of them, {place.parent}")
    raise UserError(f"{command}: {out} holds no results of ecjax; allowed: the out= folder of a job")


def file_run_ids(path: Path) -> list[str]:
    """The run ids that a dataset file was written for, from its footer."""
    with user_errors(path, _DAMAGED), parquet_file(path) as file:
        return json.loads((file.metadata.metadata or {}).get(_RUN_IDS_KEY, b"[]"))


class Footer(NamedTuple):
    """What a file of a dataset says of itself.

    Attributes:
        contents: of it.
        replaces: hash of the file in whose place it keeps some rows; else empty.
    """

    contents: Contents
    replaces: str


def footer(path: Path) -> Footer:
    """What a file of a dataset says of itself; its rows are not read.

    Raises:
        UserError: there is no such file, or its footer is damaged.
    """
    with user_errors(path, _DAMAGED):
        size = path.stat().st_size
        with parquet_file(path) as file:
            values = file.metadata.metadata or {}
            rows = file.metadata.num_rows
    sha256, replaces = (values.get(key, b"").decode() for key in (seals.KEY.encode(), _REPLACES_KEY))
    return Footer(Contents(rows, size, sha256), replaces)


def read_file(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read one dataset file, verifying its hash and page checksums.

    Raises:
        UserError: the file is damaged.
    """
    with user_errors(path, _DAMAGED), checked_parquet_file(path) as file:
        # Decoding a file of one row on several threads takes three times as long as on one.
        table = file.read(columns=columns, use_threads=file.metadata.num_rows > 10_000)
    return table.replace_schema_metadata(_of_dataset(table.schema).metadata)


def rows_of(path: Path, run_ids: list[str], columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of some runs in a dataset file, one table per row group; of some columns, run_id among them, or of all.

    Raises:
        UserError: the file is damaged.
    """
    value_set = pa.array(run_ids, pa.string())
    with user_errors(path, _DAMAGED), checked_parquet_file(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns)
            yield table.filter(pc.is_in(table.column("run_id"), value_set=value_set))
