"""CSV files read in pieces, with the line named where one cannot be read."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ecjax.errors import UserError
from ecjax.tables.folder import is_local
from ecjax.tables.formats import user_errors

_BLOCK_BYTES = 1 << 22
_MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
# zstd's frames without data are 0x184D2A50 to 0x184D2A5F: pzstd begins its files with one
_MAGIC |= {bytes([first]) + b"\x2a\x4d\x18": "zstd" for first in range(0x50, 0x60)}


def compression_of(path: Path) -> str | None:
    """How a file on this machine is compressed, by what its first bytes say (gzip, zstd, bzip2)."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def open_stream(path: Path) -> pa.NativeFile:
    """A file from its beginning to its end, decompressed (.gz and the like)."""
    if is_local(path):
        return pa.input_stream(str(path), compression="detect")
    return path.stream()  # type: ignore[attr-defined]


def _open_text(path: Path) -> pa.NativeFile:
    """As ``open_stream``, also where a compressed file's ending does not say so."""
    compression = compression_of(path) if is_local(path) else None
    return open_stream(path) if compression is None else pa.input_stream(str(path), compression=compression)


def csv_batches(
    path: Path,
    types: dict[str, pa.DataType],
    *,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    header: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Record batches of a CSV file (.gz and the like are decompressed).

    Args:
        path: the file.
        types: Arrow type by column; others are told from the first block. Strings are as ``as_text`` has them.
        names: column names of a file without a header.
        columns: read only these.
        header: whether the file has one; without it and ``names``, columns are f0, f1, ...

    Raises:
        UserError: naming the line (from 1, the header counts), of a row that cannot be read.
    """
    # Only the single-threaded reader knows the line of what it cannot read.
    read = pa.csv.ReadOptions(
        column_names=names,
        autogenerate_column_names=not header and names is None,
        use_threads=False,
        block_size=_BLOCK_BYTES,
    )
    texts = [name for name, kind in types.items() if kind == pa.string()]
    convert = pa.csv.ConvertOptions(
        column_types=types | dict.fromkeys(texts, pa.binary()),
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with (
        user_errors(path),
        _lines_named(path),
        _open_text(path) as stream,
        pa.csv.open_csv(stream, read_options=read, convert_options=convert) as reader,
    ):
        for batch in reader:
            if batch.num_rows:
                yield _with_texts(batch, texts)


def _with_texts(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    present = batch.schema.names
    columns = [
        as_text(values) if name in names else values
        for name, values in zip(present, batch.columns, strict=True)
    ]
    return pa.record_batch(columns, present)


def as_text(values: pa.Array) -> pa.Array:
    """Bytes as strings; those that are not UTF-8 as backslash and number."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        encoded = values.dictionary_encode()
        words = [word.decode("utf-8", "backslashreplace") for word in encoded.dictionary.to_pylist()]
        return pa.array(words, pa.string()).take(encoded.indices)


@contextmanager
def _lines_named(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line 1: names of columns hold bytes that are not UTF-8; allowed: UTF-8 (iconv -f LATIN1 -t UTF-8)"
        ) from error
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        message = str(error).splitlines()[0]
        lacking = re.search(r"Column '(.*)' in include_columns does not exist", message)
        if lacking:
            raise UserError(
                f"{path}, line 1: names no column {lacking[1]}; allowed: one of that name"
            ) from error
        line = re.search(r"Row #(\d+): ", message)
        place = f"{path}, line {line[1]}" if line else str(path)
        wrong = re.search(r"CSV conversion error to (\S+): invalid value '(.*)'", message)
        if wrong:
            raise UserError(f"{place}: found {wrong[2]!r}; allowed: {wrong[1]}") from error
        text = re.sub(r"In CSV column #\d+: |Row #\d+: |CSV parse error: |CSV conversion error ", "", message)
        raise UserError(f"{place}: {text}") from error
