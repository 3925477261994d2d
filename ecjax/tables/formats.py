"""File formats of input tables: which files a path means, and how each is read, whole or in pieces."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from ecjax.errors import UserError
from ecjax.tables.ids import ID_NAMES
from ecjax.tables.schemas import FLOAT, INPUTS, INTEGER, TIME

PARQUET = (".parquet",)
IPC = (".arrow", ".feather", ".ipc")
CSV = (".csv", ".csv.gz")

_BATCH_ROWS = 1 << 17
_CSV_BLOCK_BYTES = 1 << 23
_PARQUET_BUFFER_BYTES = 1 << 20

_COLUMNS = [column for columns in INPUTS.values() for column in columns]
_NUMBER_NAMES = {column.name for column in _COLUMNS if column.kind in (FLOAT, INTEGER, TIME)}

# An integer as str() writes it: 7, but not 007, which must come back as it came.
_INTEGER_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True)
class Opened:
    """A file whose record batches are yet to be read."""

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    rows: int | None


@contextmanager
def user_errors(place: object) -> Iterator[None]:
    """Turn what Arrow and the system say of a file into a ``UserError`` of one line that names ``place``."""
    try:
        yield
    except UserError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        line = (reason.strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{place}: {line}") from error


def list_files(path: Path) -> list[Path]:
    """The files that a path means: itself, or the Parquet files of a folder, in the order of their names.

    Raises:
        UserError: nothing is there, the ending is unknown, or the folder holds no Parquet file.
    """
    if path.is_dir():
        files = sorted(file for file in visible_files(path) if file.name.lower().endswith(PARQUET))
        if not files:
            raise UserError(f"{path}: the folder holds no Parquet file (*.parquet)")
        return files
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if not path.name.lower().endswith(PARQUET + IPC + CSV):
        raise UserError(
            f"{path}: unknown ending; allowed: {', '.join(PARQUET + IPC + CSV)}, or a folder of Parquet"
        )
    return [path]


def visible_files(folder: Path) -> Iterator[Path]:
    """All files under a folder, apart from names that begin with "." or "_", files or folders."""
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from visible_files(entry)
        else:
            yield entry


def read_file(path: Path) -> pa.Table:
    """Read one file whole; errors are those of Arrow and the operating system."""
    ending = path.name.lower()
    if ending.endswith(PARQUET):
        with parquet_file(path, pre_buffer=True) as file:
            return file.read()
    if ending.endswith(CSV):
        return _read_csv(path)
    with pa.OSFile(str(path)) as source:
        return _ipc_reader(source).read_all()


def parquet_file(path: Path, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """Open a Parquet file so that page checksums, where it has them, are verified."""
    buffer = 0 if pre_buffer else _PARQUET_BUFFER_BYTES
    return pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=pre_buffer, buffer_size=buffer)


def open_file(path: Path, columns: Sequence[str] | None) -> Opened:
    """Open one file to read it in pieces: only ``columns`` where given, as far as the file has them."""
    ending = path.name.lower()
    if ending.endswith(PARQUET):
        return _open_parquet(path, columns)
    return _open_csv(path, columns) if ending.endswith(CSV) else _open_ipc(path, columns)


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])


def _open_parquet(path: Path, columns: Sequence[str] | None) -> Opened:
    with parquet_file(path) as file:
        schema, rows = _chosen(file.schema_arrow, columns), file.metadata.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        with parquet_file(path) as file:
            yield from file.iter_batches(_BATCH_ROWS, columns=schema.names)

    return Opened(schema, batches, rows)


def _ipc_reader(source: pa.NativeFile) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    start = source.read(6)
    source.seek(0)
    return pa.ipc.open_file(source) if start == b"ARROW1" else pa.ipc.open_stream(source)


def _open_ipc(path: Path, columns: Sequence[str] | None) -> Opened:
    with pa.OSFile(str(path)) as source:
        schema = _chosen(_ipc_reader(source).schema, columns)

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path)) as source:
            reader = _ipc_reader(source)
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                found = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                found = iter(reader)
            for batch in found:
                yield batch.select(schema.names)

    return Opened(schema, batches, None)


def _csv_convert(
    types: dict[str, pa.DataType], columns: Sequence[str] | None = None
) -> pa.csv.ConvertOptions:
    # An empty cell is null, in strings too, unless it is quoted; "NA" and "null" may be ids.
    return pa.csv.ConvertOptions(
        column_types=types,
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _csv_batches(path: Path, convert: pa.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
    block = pa.csv.ReadOptions(block_size=_CSV_BLOCK_BYTES)
    with (
        _csv_errors(path, convert),
        pa.csv.open_csv(path, read_options=block, convert_options=convert) as reader,
    ):
        yield from reader


@contextmanager
def _csv_errors(path: Path, convert: pa.csv.ConvertOptions) -> Iterator[None]:
    """Name the line of what Arrow cannot read: only its single-threaded reader knows it."""
    try:
        yield
    except pa.ArrowInvalid as error:
        message = str(error)
        slow = pa.csv.ReadOptions(block_size=_CSV_BLOCK_BYTES, use_threads=False)
        try:
            with pa.csv.open_csv(path, read_options=slow, convert_options=convert) as reader:
                for _ in reader:
                    pass
        except pa.ArrowInvalid as located:
            message = str(located)
        line = re.search(r"Row #(\d+): ", message)
        text = re.sub(r"In CSV column #\d+: |Row #\d+: |CSV parse error: |CSV conversion error ", "", message)
        raise UserError(f"{path}{f', line {line[1]}' if line else ''}: {text.splitlines()[0]}") from error


def _id_types(path: Path) -> dict[str, pa.DataType]:
    """Types to read a CSV file's id columns with: strings, so that none is changed in reading."""
    convert = _csv_convert({})
    with _csv_errors(path, convert), pa.csv.open_csv(path, convert_options=convert) as reader:
        return {name: pa.string() for name in reader.schema.names if name in ID_NAMES}


def _all_integers(texts: pa.ChunkedArray | pa.Array) -> bool:
    return texts.null_count < len(texts) and pc.all(pc.match_substring_regex(texts, _INTEGER_PATTERN)).as_py()


def _read_csv(path: Path) -> pa.Table:
    types = _id_types(path)
    convert = _csv_convert(types)
    with _csv_errors(path, convert):
        table = pa.csv.read_csv(path, convert_options=convert)
    for name in types:
        if _all_integers(table.column(name)):
            table = table.set_column(
                table.column_names.index(name), name, table.column(name).cast(pa.int64())
            )
    return table


def _open_csv(path: Path, columns: Sequence[str] | None) -> Opened:
    """Open a CSV file; the streaming reader settles each column's type on the file's first block.

    The schemas' numbers become float64, so that fractions may turn up later; an id column is int64 where all
    ids of that block are integers.
    """
    types = _id_types(path)
    first = next(_csv_batches(path, _csv_convert(types)), None)
    if first is None:
        raise UserError(f"{path}: found no rows; allowed: at least one")
    chosen = _chosen(first.schema, columns)
    for field in chosen:
        if field.name in types:
            types[field.name] = pa.int64() if _all_integers(first.column(field.name)) else pa.string()
        elif field.name in _NUMBER_NAMES and (
            pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        ):
            types[field.name] = pa.float64()
        elif pa.types.is_null(field.type):
            types[field.name] = pa.string()
    schema = pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in chosen])
    convert = _csv_convert({name: kind for name, kind in types.items() if name in schema.names}, schema.names)
    return Opened(schema, lambda: _csv_batches(path, convert), None)
