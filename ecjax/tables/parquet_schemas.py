"""Whether what a Parquet file says of its columns fits together: footers have no checksum.

Names and types stand there up to three times: in the schema of Parquet, in that of Arrow where Arrow wrote the file,
and at every chunk of a column. A damaged bit changes one of them.
"""

import base64
import binascii

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from ecjax.errors import UserError

_ARROW_KEY = b"ARROW:schema"


def check_names(file: pq.ParquetFile, place: object) -> None:
    """Refuse a file whose two schemas do not fit together.

    Args:
        file: an open file.
        place: what messages call it.

    Raises:
        UserError: naming the column.
    """
    read, stored = file.schema_arrow, _arrow_schema(file.metadata)
    if stored is None:
        return
    if stored.names != read.names:
        pairs = zip(stored.names, read.names, strict=False)
        names = next(((a, b) for a, b in pairs if a != b), (len(stored.names), len(read.names)))
        raise _error(place, f"its schemas have columns {names[0]!r} and {names[1]!r}")
    for one, other in zip(stored, read, strict=True):
        if _family(one.type) != _family(other.type):
            raise _error(place, f"its schemas have column {one.name} as {one.type} and as {other.type}")


def check_chunks(file: pq.ParquetFile, place: object) -> None:
    """Refuse a file of which chunks of columns are named otherwise than the columns, or of other types or lengths.

    Only of a file that has been read whole: pyarrow ends the process where a chunk's description cannot be understood.

    Args:
        file: an open file.
        place: what messages call it.

    Raises:
        UserError: naming the column.
    """
    metadata = file.metadata
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    expected = [(column.path, column.physical_type) for column in columns]
    rows = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if rows != metadata.num_rows:
        raise _error(place, f"its parts have {rows} rows, it has {metadata.num_rows}")
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for number, (path, kind) in enumerate(expected):
            chunk = chunks.column(number)
            if (chunk.path_in_schema, chunk.physical_type) != (path, kind):
                part = f"a part {chunk.path_in_schema} of type {chunk.physical_type}"
                raise _error(place, f"column {path} of type {kind} has {part}")


def _error(place: object, wrong: str) -> UserError:
    return UserError(f"{place}: damaged or of another format: {wrong}")


def _arrow_schema(metadata: pq.FileMetaData) -> pa.Schema | None:
    text = (metadata.metadata or {}).get(_ARROW_KEY)
    if text is None:
        return None
    try:
        return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text, validate=True)))
    except (binascii.Error, pa.ArrowException, OSError) as error:
        raise pa.ArrowInvalid("the schema of Arrow cannot be read") from error


def _family(kind: pa.DataType) -> str:
    """What types have in common that Parquet keeps in one another's place, which depends on who writes."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _family(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list of {_family(kind.value_type)}"
    families = {
        "integer": pa.types.is_integer,
        "decimal": pa.types.is_decimal,
        "number": pa.types.is_floating,
        "time": pa.types.is_temporal,
        "boolean": pa.types.is_boolean,
    }
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(is_one(kind) for is_one in texts):
        return "text"
    return next((name for name, is_one in families.items() if is_one(kind)), "other")
