"""Check an input table against its schema: types, missing and impossible values, each named by its place."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables import near_names
from ecjax.tables.ids import canonical_id_lists, canonical_ids, decoded, is_text, with_counted_nulls
from ecjax.tables.place import Place
from ecjax.tables.rules import RULES
from ecjax.tables.schemas import FLOAT, ID, IDS, INPUTS, INTEGER, TIME, Column
from ecjax.tables.times import clock_unit, is_timestamp, timestamps_to_seconds

_UNIQUE = {"nodes": "node_id", "files": "file_id", "catalog": "file_id", "ports": "port_id"}


def check(
    table: pa.Table,
    name: str,
    *,
    sort: bool = False,
    source: str | None = None,
    piece_from: int | None = None,
) -> pa.Table:
    """Check an input table and give its columns their canonical types.

    Ids become int64 or string, numbers float64 or int64 (floats with whole values are accepted for integers),
    ``op`` becomes "read" or "write". Timestamps become float64 seconds since the first arrival, counted in
    integers before the conversion; times given as numbers stay as they are. Optional columns without any
    value, and lists that are all empty, are dropped, as if absent; columns that the schema does not name are kept
    as they are, but for those almost named as an optional one that is absent.

    Args:
        table: the table.
        name: which input table it is, a key of ``schemas.INPUTS``.
        sort: sort requests by arrival (stably) instead of refusing unsorted ones.
        source: where it was read from, for messages.
        piece_from: rows before these, of a table that is read in pieces: its ids may be left out, and what holds for
            whole tables only (ids that occur once, sums) is not looked at.

    Raises:
        UserError: one line naming table, column, row (0-based) and id, what was found and what is allowed.
    """
    place = Place(table, name, source, piece_from or 0)
    check_columns(table.column_names, place, is_piece=piece_from is not None)
    if table.num_rows == 0:
        raise place.error("found no rows; allowed: at least one")
    present = []
    for column in INPUTS[name]:
        if column.name not in table.column_names:
            continue
        values = with_counted_nulls(table.column(column.name))
        if _without_values(values) and not column.required:
            table = table.drop_columns([column.name])
            continue
        present.append(column)
        table = table.set_column(
            table.column_names.index(column.name), column.name, _canonical(values, column, place)
        )
    times = [column.name for column in present if column.kind == TIME]
    if times:
        table = timestamps_to_seconds(table, times, place)
    place = Place(table, name, source, piece_from or 0)
    for column in present:
        _check_values(table.column(column.name), column, place)
    if piece_from is not None:
        return table
    if name in _UNIQUE:
        _check_unique(table.column(_UNIQUE[name]), _UNIQUE[name], place)
    return RULES[name](table, place, sort) if name in RULES else table


def _without_values(values: pa.ChunkedArray) -> bool:
    """Whether every cell is empty, or a list without items."""
    if values.null_count == len(values):
        return True
    kind = values.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return lists and len(pc.list_flatten(values)) == 0


def check_columns(names: Sequence[str], place: Place, *, is_piece: bool = False) -> None:
    """Refuse an input table without a column that it needs, with one twice, or with one that is almost an optional one.

    Args:
        names: of its columns.
        place: the table.
        is_piece: whether it is read in pieces, which may come without ids.

    Raises:
        UserError: naming the columns.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise place.error(f"columns that occur more than once: {', '.join(twice)}")
    missing = [
        c.name
        for c in INPUTS[place.name]
        if c.required and c.name not in names and not (is_piece and c.kind == ID)
    ]
    if missing:
        raise place.error(f"missing columns: {', '.join(missing)}; found: {', '.join(names) or 'none'}")
    near_names.check_names(names, place)


def _canonical(values: pa.ChunkedArray, column: Column, place: Place) -> pa.ChunkedArray:
    if column.kind == ID:
        return canonical_ids(values, column.name, place)
    if column.kind == IDS:
        return canonical_id_lists(values, column.name, place)
    values = decoded(values)
    if pa.types.is_null(values.type):
        values = values.cast(pa.float64())
    if column.kind == TIME and is_timestamp(values.type):
        return values
    if column.kind == INTEGER:
        return _integers(values, column, place)
    if column.kind in (FLOAT, TIME):
        return _numbers(values, column, place)
    if not is_text(values.type):
        raise place.error(f"found type {values.type}; allowed: strings", column=column.name)
    return values.cast(pa.string())


def _numbers(values: pa.ChunkedArray, column: Column, place: Place) -> pa.ChunkedArray:
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        allowed = allowed_numbers(column) + (" or timestamps" if column.kind == TIME else "")
        row = _first_word(values) if is_text(kind) else None
        value = f"type {kind}" if row is None else repr(values[row].as_py())
        raise place.error(f"found {value}; allowed: {allowed}", column=column.name, row=row)
    return values.cast(pa.float64(), safe=False)


def _first_word(values: pa.ChunkedArray) -> int | None:
    """Row of the first string that is no number."""
    for row, text in enumerate(values.to_pylist()):
        try:
            float(text if text is not None else 0)
        except ValueError:
            return row
    return None


def _integers(values: pa.ChunkedArray, column: Column, place: Place) -> pa.ChunkedArray:
    if pa.types.is_integer(values.type):
        numbers = values
    else:
        numbers = _numbers(values, column, place)
        floats = _floats(numbers)
        wrong = ~(np.isnan(floats) | ((floats == np.round(floats)) & (np.abs(floats) < 2.0**63)))
        wrong |= np.isnan(floats) & np.asarray(numbers.is_valid())
        if wrong.any():
            row = int(np.argmax(wrong))
            raise place.error(
                f"found {floats[row].item()!r}; allowed: {allowed_numbers(column)}",
                column=column.name,
                row=row,
            )
    try:
        return numbers.cast(pa.int64())
    except pa.ArrowInvalid:
        largest = pc.max(numbers).as_py()
        raise place.error(
            f"found {largest}; allowed: {allowed_range(column, largest)}", column=column.name
        ) from None


def _floats(values: pa.ChunkedArray) -> np.ndarray:
    """Values as float64, NaN where null."""
    return values.cast(pa.float64(), safe=False).to_numpy()


def allowed_numbers(column: Column) -> str:
    """What numbers a column allows."""
    kind = "integers" if column.kind == INTEGER else "finite numbers"
    if column.least is None:
        return kind
    return f"{kind} {'>' if column.above else '>='} {column.least:g}"


def allowed_range(column: Column, value: float) -> str:
    """What numbers are allowed, with the limits of all columns where ``value`` breaks these alone."""
    if not math.isfinite(value) or (column.least is not None and value < column.least):
        return allowed_numbers(column)
    if value > column.most or value < -column.most:
        unit = clock_unit(value) if column.kind == TIME else None
        hint = f" (these look like {unit.name} since 1970: multiply them by {unit.seconds:g})" if unit else ""
        return (
            f"{allowed_numbers(column)}, up to {column.most:.10g}{' s' if column.kind == TIME else ''}{hint}"
        )
    if column.smallest is not None and column.least is not None and column.least < value < column.smallest:
        return f"{allowed_numbers(column)}, from {column.smallest:g}"
    return allowed_numbers(column)


def out_of_range(numbers: np.ndarray, column: Column) -> np.ndarray:
    """Which values a column does not allow; NaN is not looked at."""
    bad = np.abs(numbers) > column.most
    if column.smallest is not None:
        bad |= numbers < column.smallest
    return bad


def _check_values(values: pa.ChunkedArray, column: Column, place: Place) -> None:
    if values.null_count and not column.nullable:
        row = int(np.argmax(np.asarray(values.is_null())))
        allowed = allowed_numbers(column) if column.kind in (FLOAT, INTEGER, TIME) else "a value in every row"
        raise place.error(f"found an empty cell (null); allowed: {allowed}", column=column.name, row=row)
    if column.kind not in (FLOAT, INTEGER, TIME):
        return
    numbers = _floats(values)
    bad = ~np.isfinite(numbers) & np.asarray(values.is_valid()) | out_of_range(numbers, column)
    if bad.any():
        row = int(np.argmax(bad))
        value = values[row].as_py()
        raise place.error(
            f"found {value!r}; allowed: {allowed_range(column, value)}", column=column.name, row=row
        )


def _check_unique(ids: pa.ChunkedArray, name: str, place: Place) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    first_row: dict = {}
    for row, value in enumerate(ids.to_pylist()):
        if value in first_row:
            message = f"found {value!r} again, first in row {first_row[value]}; allowed: every id once"
            raise place.error(message, column=name, row=row)
        first_row[value] = row
