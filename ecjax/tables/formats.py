"""File formats of input tables: which files a path means, and how each is read, whole or in pieces."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from ecjax.errors import UserError
from ecjax.tables import csv_files, seals
from ecjax.tables.folder import is_local, is_visible
from ecjax.tables.parquet_schemas import check_chunks, check_names
from ecjax.tables.several import Several

PARQUET = (".parquet",)
IPC = (".arrow", ".feather", ".ipc")
CSV = (".csv", ".csv.gz")

_BATCH_ROWS = 1 << 17
_PARQUET_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Opened:
    """A file whose record batches are yet to be read."""

    schema: pa.Schema
    batches: csv_files.BatchReader
    rows: int | None


@contextmanager
def user_errors(place: object, what: str = "damaged or of another format") -> Iterator[None]:
    """Turn what Arrow and the system say of a file into a ``UserError`` of one line that names ``place``."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeEncodeError as error:
        raise UserError(f"{place}: holds bytes that are not UTF-8; allowed: names in UTF-8") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno:
            # of a folder, what is in it may be to blame
            name = place if error.filename is None else error.filename
            raise UserError(f"{name}: {os.strerror(error.errno)}") from error
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{place}: {what}: {reason}") from error


def list_files(path: Path) -> list[Path]:
    """The files that a path means: itself, or the Parquet files of a folder, in the order of their names.

    Raises:
        UserError: nothing is there, the ending is unknown, or the folder holds no Parquet file.
    """
    with user_errors(path):
        if path.is_dir():
            files = parquet_files(path)
            if not files:
                what = "none of the files is" if isinstance(path, Several) else "the folder holds no"
                raise UserError(
                    f"{path}: {what} Parquet{'' if isinstance(path, Several) else ' file'} (*.parquet)"
                )
            return files
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
        check_regular(path)
    allowed = PARQUET + IPC + CSV
    if not path.name.lower().endswith(allowed):
        raise UserError(f"{path}: unknown ending; allowed: {', '.join(allowed)}, or a folder of Parquet")
    refuse_empty(path)
    return [path]


def check_regular(path: Path) -> None:
    """Refuse what is there and is no file: a pipe would be waited for.

    Raises:
        UserError: it is a pipe, a socket or a device.
    """
    if is_local(path) and path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path}: a pipe, socket or device; allowed: a file, or a folder of Parquet files")


def refuse_empty(path: Path) -> None:
    """Refuse a file without a byte, which whatever was to write it has left.

    Raises:
        UserError: the file is empty.
    """
    if is_local(path) and path.is_file() and path.stat().st_size == 0:
        raise UserError(f"{path}: the file is empty (0 bytes); allowed: a file with rows, so write it anew")


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files under a folder, in the order of their names.

    Raises:
        UserError: as ``visible_files``, or a folder cannot be looked into.
    """
    with user_errors(folder):
        files = sorted(visible_files(folder))
    parquet = [file for file in files if file.name.lower().endswith(PARQUET)]
    if isinstance(folder, Several) and 0 < len(parquet) < len(files):
        other = next(file for file in files if file not in parquet)
        raise UserError(f"{folder}: found {parquet[0]} and {other}; allowed: Parquet files, or none of these")
    return parquet


def visible_files(folder: Path, above: tuple[str, ...] = ()) -> Iterator[Path]:
    """All files under a folder, apart from names that begin with "." or "_", files or folders.

    Args:
        folder: to look into.
        above: the folders that it is in, as they are without links.

    Raises:
        UserError: one of them is a pipe or device, or a folder that links to one that it is in.
    """
    if isinstance(folder, Several):
        yield from folder.files
        return
    real = os.path.realpath(folder) if is_local(folder) else str(folder)
    if real in above:
        raise UserError(f"{folder}: links to a folder that it is in; allowed: folders that end")
    for entry in folder.iterdir():
        if not is_visible(entry):
            continue
        if entry.is_dir():
            yield from visible_files(entry, (*above, real))
        else:
            check_regular(entry)
            yield entry


def read_file(path: Path) -> pa.Table:
    """Read one file whole; errors are those of Arrow and the operating system."""
    ending = path.name.lower()
    if ending.endswith(PARQUET):
        with checked_parquet_file(path) as file:
            table = file.read()
            check_chunks(file, path)
            return table
    if ending.endswith(CSV):
        return csv_files.read_csv(path)
    with _source(path) as source:
        return _ipc_reader(source).read_all()


def parquet_file(path: Path, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """Open a Parquet file so that page checksums, where it has them, are verified."""
    buffer = 0 if pre_buffer else _PARQUET_BUFFER_BYTES
    source = path if is_local(path) else _source(path)
    return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=pre_buffer, buffer_size=buffer)


def checked_parquet_file(path: Path) -> pq.ParquetFile:
    """Open a Parquet file to read it whole; of one that carries the hash of its bytes, these are checked first.

    Raises:
        UserError: they are not those that were written, or, without a hash, the footer contradicts itself.
    """
    content, wrong = seals.sealed_content(path)
    if content is None:
        file = parquet_file(path, pre_buffer=True)
        check_names(file, path)
        return file
    if wrong:
        raise UserError(f"{path}: damaged or of another format: {wrong}")
    return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)


def _source(path: Path) -> pa.NativeFile:
    return pa.OSFile(str(path)) if is_local(path) else path.source()  # type: ignore[attr-defined]


def open_file(path: Path, columns: Sequence[str] | None) -> Opened:
    """Open one file to read it in pieces: only ``columns`` where given, as far as the file has them."""
    ending = path.name.lower()
    if ending.endswith(PARQUET):
        return _open_parquet(path, columns)
    if ending.endswith(CSV):
        return Opened(*csv_files.open_csv(path, columns), None)
    return _open_ipc(path, columns)


def _selection(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])


def _open_parquet(path: Path, columns: Sequence[str] | None) -> Opened:
    with parquet_file(path) as file:
        check_names(file, path)
        schema, rows = _selection(file.schema_arrow, columns), file.metadata.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        with parquet_file(path) as file:
            yield from file.iter_batches(_BATCH_ROWS, columns=schema.names)

    return Opened(schema, batches, rows)


def _ipc_reader(source: pa.NativeFile) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    start = source.read(6)
    source.seek(0)
    return pa.ipc.open_file(source) if start == b"ARROW1" else pa.ipc.open_stream(source)


def _open_ipc(path: Path, columns: Sequence[str] | None) -> Opened:
    with _source(path) as source:
        schema = _selection(_ipc_reader(source).schema, columns)

    def batches() -> Iterator[pa.RecordBatch]:
        with _source(path) as source:
            reader = _ipc_reader(source)
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                stream = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                stream = iter(reader)
            for batch in stream:
                # Arrow trusts the offsets in a file; a damaged one would crash whoever uses the batch.
                batch.validate(full=True)
                yield batch.select(schema.names)

    return Opened(schema, batches, None)
