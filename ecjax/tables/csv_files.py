"""Read CSV files so that ids come back as they came, and say which line cannot be read."""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ecjax.errors import UserError
from ecjax.tables.folder import is_local
from ecjax.tables.ids import ID_NAMES
from ecjax.tables.schemas import FLOAT, INPUTS, INTEGER, TIME

BatchReader: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]

_NUMBER_NAMES = {
    column.name for columns in INPUTS.values() for column in columns if column.kind in (FLOAT, INTEGER, TIME)
}

# An integer as str() writes it: 7, but not 007, which must come back as it came.
_INTEGER_PATTERN = r"^(0|-?[1-9][0-9]*)$"


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


def _source(path: Path) -> Any:
    return path if is_local(path) else path.stream()  # type: ignore[attr-defined]


def _csv_batches(path: Path, convert: pa.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
    def read(options: pa.csv.ReadOptions) -> Iterator[pa.RecordBatch]:
        with pa.csv.open_csv(_source(path), read_options=options, convert_options=convert) as reader:
            yield from reader

    try:
        yield from read(pa.csv.ReadOptions())
    except pa.ArrowInvalid as error:
        raise _located(path, error, lambda slow: deque(read(slow), maxlen=0)) from error


def _located(path: Path, error: pa.ArrowInvalid, again: Callable[[pa.csv.ReadOptions], object]) -> UserError:
    """The error with its line, which only Arrow's single-threaded reader knows: so the file is read ``again``."""
    message = str(error)
    try:
        again(pa.csv.ReadOptions(use_threads=False))
    except pa.ArrowInvalid as slow:
        message = str(slow)
    line = re.search(r"Row #(\d+): ", message)
    place = f"{path}, line {line[1]}" if line else str(path)
    wrong = re.search(r"CSV conversion error to (\S+): invalid value '(.*)'", message)
    if wrong:
        return UserError(f"{place}: found {wrong[2]!r}; allowed: {wrong[1]}, as in the rows before")
    text = re.sub(r"Row #\d+: |CSV parse error: ", "", message).splitlines()[0]
    return UserError(f"{place}: damaged or of another format: {text}")


def _id_types(path: Path) -> dict[str, pa.DataType]:
    """Types to read a CSV file's id columns with: strings, so that none is changed in reading."""

    def names(options: pa.csv.ReadOptions) -> list[str]:
        source = _source(path)
        with pa.csv.open_csv(source, read_options=options, convert_options=_csv_convert({})) as reader:
            return reader.schema.names

    try:
        return {name: pa.string() for name in names(pa.csv.ReadOptions()) if name in ID_NAMES}
    except pa.ArrowInvalid as error:
        raise _located(path, error, names) from error


def as_integers(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array | None:
    """Ids as int64, or None where one of them would not come back as it came, or none is there."""
    return None if texts.null_count == len(texts) else _integers(texts)


def _integers(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array | None:
    if not pc.all(pc.match_substring_regex(texts, _INTEGER_PATTERN), min_count=0).as_py():
        return None
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def with_integer_ids(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], path: str, line: int
) -> Iterator[pa.RecordBatch]:
    """Batches whose ids in some columns are int64 instead of the strings that they were read as.

    Arrow itself would read 007, 0x7 and a 7 with spaces around it as 7.

    Args:
        batches: of the file, in order.
        names: of those columns.
        path: of the file.
        line: of the first row, from 1.

    Raises:
        UserError: an id would not come back as it came; the message names its line.
    """
    for batch in batches:
        for name in names:
            texts = batch.column(name)
            integers = _integers(texts)
            if integers is None:
                row = _first_other(texts)
                raise UserError(
                    f"{path}, line {line + row}: found {texts[row].as_py()!r}; allowed: int64, as in the rows before "
                    "(7, and neither 007 nor 0x7)"
                )
            batch = batch.set_column(batch.schema.get_field_index(name), name, integers)
        line += batch.num_rows
        yield batch


def _first_other(texts: pa.Array) -> int:
    """The first row with an id that is no integer as str() writes it, or one that 64 bits do not hold."""
    return bisect_left(range(1, len(texts)), True, key=lambda count: _integers(texts.slice(0, count)) is None)


def read_csv(path: Path) -> pa.Table:
    """Read a CSV file whole; ids become integers where all of a column are written as such, else strings.

    Raises:
        UserError: naming the line that cannot be read.
    """
    convert = _csv_convert(_id_types(path))

    def read(options: pa.csv.ReadOptions) -> pa.Table:
        return pa.csv.read_csv(_source(path), read_options=options, convert_options=convert)

    try:
        table = read(pa.csv.ReadOptions())
    except pa.ArrowInvalid as error:
        raise _located(path, error, read) from error
    for position, name in enumerate(table.column_names):
        if name in convert.column_types:
            integers = as_integers(table.column(position))
            table = table if integers is None else table.set_column(position, name, integers)
    return table


def open_csv(path: Path, columns: Sequence[str] | None) -> tuple[pa.Schema, BatchReader]:
    """Open a CSV file to read it in pieces; each column's type is settled on the first megabyte.

    The schemas' numbers become float64 and timestamps count nanoseconds, so that fractions may turn up later;
    an id column is int64 where all ids of that megabyte are integers.

    Args:
        path: the file.
        columns: read only these, as far as they are there.

    Raises:
        UserError: there are no rows; also while reading, naming the line that cannot be read.
    """
    ids = _id_types(path)
    first = next(_csv_batches(path, _csv_convert(ids)), None)
    if first is None:
        raise UserError(f"{path}: found no rows; allowed: at least one")
    fields = []
    for field, values in zip(first.schema, first.columns, strict=True):
        kind = field.type
        if field.name in ids:
            kind = pa.string() if as_integers(values) is None else pa.int64()
        elif field.name in _NUMBER_NAMES and (pa.types.is_null(kind) or pa.types.is_integer(kind)):
            kind = pa.float64()
        elif pa.types.is_timestamp(kind):
            kind = pa.timestamp("ns", kind.tz)
        elif pa.types.is_null(kind):
            kind = pa.string()
        if columns is None or field.name in columns:
            fields.append(pa.field(field.name, kind))
    schema = pa.schema(fields)
    # Arrow would make integers of more than what is written as such
    types = {field.name: pa.string() if field.name in ids else field.type for field in schema}
    convert = _csv_convert(types, schema.names)
    integers = [field.name for field in schema if types[field.name] != field.type]
    return schema, lambda: with_integer_ids(_csv_batches(path, convert), integers, str(path), 2)
