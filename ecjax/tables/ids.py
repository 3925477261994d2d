"""Ids are integers or strings and come back as they came: the Arrow types they may have."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.place import Place
from ecjax.tables.schemas import ID, IDS, INPUTS

ALLOWED = "ids are integers (to 2^63 - 1) or strings"

ID_NAMES = {column.name for columns in INPUTS.values() for column in columns if column.kind == ID}
NODE_LISTS = {column.name for columns in INPUTS.values() for column in columns if column.kind == IDS}


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type are strings."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionary or run-end encoding."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], column.type.value_type)
    return column


def with_counted_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, decoded where it is encoded by words of which one is null: Arrow counts such cells as filled."""
    kind = column.type
    if pa.types.is_dictionary(kind) and any(chunk.dictionary.null_count for chunk in column.chunks):
        return decoded(column)
    return decoded(column) if pa.types.is_run_end_encoded(kind) else column


def id_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that ids of Arrow type ``kind`` are kept in: int64, string, or None where they are no ids."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return id_type(kind.value_type)
    if pa.types.is_integer(kind):
        return pa.int64()
    return pa.string() if is_text(kind) else None


def canonical_ids(column: pa.ChunkedArray, name: str, place: Place) -> pa.ChunkedArray:
    """A column of ids as int64 or string.

    Raises:
        UserError: the column has another type, or an integer is above 2^63 - 1.
    """
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    kind = id_type(column.type)
    if kind is None:
        raise place.error(f"found type {column.type}; {ALLOWED}", column=name)
    try:
        return decoded(column).cast(kind)
    except pa.ArrowInvalid:
        raise place.error(f"found {pc.max(decoded(column)).as_py()}; {ALLOWED}", column=name) from None


def canonical_id_lists(column: pa.ChunkedArray, name: str, place: Place) -> pa.ChunkedArray:
    """A column of lists of ids as list<int64> or list<string>.

    Raises:
        UserError: the column holds no lists, their items are no ids, or an item is null.
    """
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise place.error(f"found type {kind}; allowed: lists of ids", column=name)
    item = pa.string() if pa.types.is_null(kind.value_type) else id_type(kind.value_type)
    if item is None:
        raise place.error(f"found lists of {kind.value_type}; {ALLOWED}", column=name)
    lists = column.cast(pa.list_(item))
    for row, ids in enumerate(lists.to_pylist() if pc.list_flatten(lists).null_count else ()):
        if ids is not None and None in ids:
            raise place.error("found a list with an empty item; allowed: node ids", column=name, row=row)
    return lists


def id_types(*tables: pa.Table) -> dict[str, pa.DataType]:
    """Types of the id columns of checked tables, by column name, as ``store.ResultStore`` takes them.

    The lists of node ids (``nodes``, ``forbidden_nodes``) count as ``node_id``.

    Raises:
        UserError: an id column is of integers in one table and of strings in another.
    """
    types: dict[str, pa.DataType] = {}
    for table in tables:
        for field in table.schema:
            name, kind = field.name, field.type
            if name in NODE_LISTS and pa.types.is_list(kind):
                name, kind = "node_id", kind.value_type
            elif name not in ID_NAMES:
                continue
            if types.setdefault(name, kind) != kind:
                message = f"{name}: found {types[name]} in one table and {kind} in another"
                raise UserError(f"{message}; allowed: the same type in all tables")
    return types
