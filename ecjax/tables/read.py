"""Read input tables: Parquet file or folder, Arrow IPC, CSV, a pyarrow Table or a pandas DataFrame."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables import formats
from ecjax.tables.checks import check
from ecjax.tables.folder import location
from ecjax.tables.remote import RemotePath
from ecjax.tables.results_below import refuse_above_table
from ecjax.tables.schemas import INPUTS

_RUNS_SHOWN = 12


class Batches(NamedTuple):
    """A table to be read in pieces: its schema, its record batches, and its row count where that is known."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None


def read_input(
    source: Any,
    table: str,
    *,
    sort: bool = False,
    name: str | None = None,
    constants: dict[str, Any] | None = None,
) -> pa.Table:
    """Read and check an input table.

    Args:
        source: path of a Parquet file (.parquet), of a folder of such files (nested; names that begin with
            "." or "_" are ignored), of an Arrow IPC file or stream (.arrow, .feather, .ipc) or of a CSV file
            (.csv, .csv.gz; ids are integers where all of them are written so, else strings), on this machine or
            in an object store (``folder.location``); or a pyarrow Table or pandas DataFrame.
        table: which input table it is, a key of ``schemas.INPUTS``.
        sort: sort requests by arrival instead of refusing unsorted ones.
        name: what messages call the source (default: its path).
        constants: columns set to one value in every row before checking, over what the source holds.

    Returns:
        The checked table (see ``checks.check``): canonical types, extra columns kept.

    Raises:
        UserError: one line that names the file, and the column and row where there are such.
    """
    if isinstance(source, pa.Table):
        content = source
    elif isinstance(source, str | Path | RemotePath):
        name, path = name or str(source), location(source)
        with formats.user_errors(path):
            if path.is_dir():
                refuse_above_table(path, table, name)
            elif not path.exists():
                raise UserError(
                    f"{table} table ({name}): no such file or folder; allowed: one that holds a table"
                )
        content = _read_path(path, name)
    else:
        with formats.user_errors(name or f"{table} table", "the data frame has no Arrow form"):
            content = pa.Table.from_pandas(source, preserve_index=False)
        refuse_index(source, (column.name for column in INPUTS[table]), name or f"{table} table")
    _refuse_several_runs(content, name or f"{table} table")
    for column, value in (constants or {}).items():
        if column in content.column_names:
            content = content.drop_columns(column)
        content = content.append_column(column, pa.repeat(pa.scalar(value), len(content)))
    return check(content, table, sort=sort, source=name)


def _read_path(path: Path, name: str) -> pa.Table:
    tables = []
    for file in formats.list_files(path):
        with formats.user_errors(file):
            read = formats.read_file(file)
            # Arrow trusts the offsets in a file; a damaged one would crash whoever uses the table.
            read.validate(full=True)
        _refuse_repeated(read.schema, file)
        tables.append(read)
    with formats.user_errors(name, "its files do not fit together"):
        return pa.concat_tables(tables, promote_options="permissive")


def refuse_index(frame: Any, columns: Iterable[str], name: str) -> None:
    """Refuse a pandas DataFrame that lacks a column and has an index of this name, which is no column.

    Args:
        frame: a table of any library.
        columns: that it may have.
        name: what messages call it.

    Raises:
        UserError: names the columns.
    """
    index = getattr(getattr(frame, "index", None), "names", ())
    present = [str(column) for column in getattr(frame, "columns", ())] if index else []
    lost = [column for column in columns if column in index and column not in present]
    if lost:
        raise UserError(
            f"{name}: missing columns: {', '.join(lost)}; found: {', '.join(present) or 'none'}, and an index of this "
            "name; allowed: columns (reset_index() makes them of an index)"
        )


def _refuse_repeated(schema: pa.Schema, file: Path) -> None:
    twice = sorted({column for column in schema.names if schema.names.count(column) > 1})
    if twice:
        raise UserError(f"{file}: columns that occur more than once: {', '.join(twice)}")


def _refuse_several_runs(table: pa.Table, name: str) -> None:
    if "run_id" not in table.column_names:
        return
    runs = sorted(str(run) for run in table.column("run_id").unique().to_pylist())
    if len(runs) > 1:
        shown = ", ".join(runs[:_RUNS_SHOWN]) + (", ..." if len(runs) > _RUNS_SHOWN else "")
        raise UserError(f"{name}: found rows of {len(runs)} runs ({shown}); name one file that holds one run")


def open_batches(path: str | Path, columns: Sequence[str] | None = None) -> Batches:
    """Open a table of any size to read it piece by piece, in bounded memory; only the format is checked.

    Args:
        path: a file or folder as for ``read_input``.
        columns: read only these, as far as they are there.

    Returns:
        Schema (of the columns read), record batches, and the number of rows (None for CSV and Arrow IPC). The
        files of a folder are read in the order of their names, as one table.

    Raises:
        UserError: the path is missing or its ending unknown, or, also while reading, a file is damaged.
    """
    files = formats.list_files(location(path))
    parts = []
    for file in files:
        with formats.user_errors(file):
            part = formats.open_file(file, columns)
        _refuse_repeated(part.schema, file)
        parts.append(part)
    with formats.user_errors(path, "its files do not fit together"):
        schema = pa.unify_schemas([part.schema for part in parts], promote_options="permissive")
    schema = schema.remove_metadata()
    counts = [part.rows for part in parts]
    rows = None if None in counts else sum(count for count in counts if count is not None)
    return Batches(schema, _chain(files, parts, schema), rows)


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, the next one read in a thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch


def _chain(files: list[Path], parts: list[formats.Opened], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file, part in zip(files, parts, strict=True):
        with formats.user_errors(file):
            for batch in part.batches():
                if batch.num_rows:
                    yield fit(batch, schema)


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns and types that all files together have."""
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            arrays.append(batch.column(field.name).cast(field.type))
        else:
            arrays.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
