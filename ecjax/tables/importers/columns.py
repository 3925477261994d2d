"""Any CSV, Parquet or Arrow log by a mapping of its columns."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.csv_files import as_integers, with_integer_ids
from ecjax.tables.formats import IPC, PARQUET
from ecjax.tables.importers.checking import ROW
from ecjax.tables.importers.mapping import OTHER, SCALED, SOJOURN_COLUMN, TIMES, Mapped, parse_mapping
from ecjax.tables.importers.rejects import Tally
from ecjax.tables.importers.row_groups import RowGroups, cut, is_parquet
from ecjax.tables.importers.table import Reading, refuse_extents, trace_of_batches
from ecjax.tables.importers.text import as_text, csv_batches
from ecjax.tables.importers.trace import Head, Source, Trace
from ecjax.tables.read import open_batches
from ecjax.tables.rules import is_operation
from ecjax.tables.schemas import ID, REQUESTS
from ecjax.tables.times import LATEST_S, clock_unit, is_timestamp, mixed_zones

_IDS = tuple(column.name for column in REQUESTS if column.kind == ID)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LATEST = 2**63 - 1  # that a clock can read in whole units


class ColumnImporter:
    """Reads a log whose columns have other names and units than ours.

    The mapping gives the log's column for ours: ``{arrival_s: ts_ms, arrival_s_scale: 0.001, file_id: key, bytes: size,
    op: method, op_read: [GET], op_write: [PUT]}``. ``arrival_s``, ``file_id`` and ``bytes`` are needed; the other
    columns of the ``requests`` table are optional, and so is ``sojourn_s``, a response time that gives ``finish_s``.
    ``NAME_scale`` is the factor from the log's unit to seconds or bytes; ``op_read`` and ``op_write`` are the words
    that the log has for them, and rows with a word of ``op_other`` (``any``: none of these) are counted and left out,
    whatever else they hold. Columns given as numbers, from 0, are those of a CSV file without a header. Timestamps
    need no scale.

    Loses: without ``op`` all accesses count as reads; without ``request_id`` each row is a request of its own. Times
    that are integers or timestamps are counted from the first row's arrival (subtracted before conversion, so that
    nanoseconds since 1970 stay exact).
    """

    name = "columns"

    def recognises(self, head: Head) -> bool:
        """Never: a mapping asks for this format."""
        return False

    def open(self, source: Source) -> Trace:
        """Open a log by ``source.columns``.

        Raises:
            UserError: there is no mapping, it is wrong, or the log lacks one of its columns.
        """
        refuse_extents(source, self.name)
        mapped = parse_mapping(source.columns)
        batches, rows = _opened(source, mapped)
        loses = []
        if "op" not in mapped.columns:
            loses.append("Operations are not recorded: all accesses count as reads.")
        if "node_id" in mapped.columns and "request_id" not in mapped.columns:
            loses.append("Requests have no ids: each row counts as a request of its own.")
        path = str(source.path)
        tally = Tally(0) if mapped.leaves_out else None

        def pieces(count: int) -> list[tuple[RowGroups, Reading]]:
            origin = _origin(next(batches()), mapped, path)
            groups = cut(source.path, list(dict.fromkeys(mapped.columns.values())), count)
            return [(g, partial(_read_renamed, g, mapped, path, origin)) for g in groups]

        return trace_of_batches(
            source,
            self.name,
            lambda: _renamed(batches(), mapped, path, tally=tally),
            tuple(loses),
            rows if tally is None else None,
            # what is left out is counted here
            pieces if is_parquet(source.path) and tally is None else None,
            tally,
        )


def _opened(source: Source, mapped: Mapped) -> tuple[Callable[[], Iterator[pa.RecordBatch]], int | None]:
    """How to read the mapped columns of the log, and its number of rows where known."""
    names = list(dict.fromkeys(mapped.columns.values()))
    if not source.path.is_dir() and not source.path.name.lower().endswith(PARQUET + IPC):
        types, integers = _csv_types(source, mapped, names)
        header = mapped.header

        def read() -> Iterator[pa.RecordBatch]:
            read_as_text = csv_batches(source.path, types, columns=names, header=header)
            return with_integer_ids(read_as_text, integers, str(source.path), 2 if header else 1)

        return read, None
    if not mapped.header:
        raise UserError(
            f"{source.path}: columns has numbers; allowed: names, since only CSV files may lack a header"
        )
    opened = open_batches(source.path, names)
    _require(names, open_batches(source.path).schema.names, source)
    return lambda: open_batches(source.path, names).batches, opened.rows


def _require(names: list[str], present: list[str], source: Source) -> None:
    missing = [name for name in names if name not in present]
    if missing:
        raise UserError(
            f"{source.path}: missing columns: {', '.join(missing)}; found: {', '.join(present) or 'none'}"
        )
    twice = [name for name in names if present.count(name) > 1]
    if twice:
        raise UserError(
            f"{source.path}: columns that occur more than once: {', '.join(twice)}; allowed: each of columns= once"
        )


def _csv_types(source: Source, mapped: Mapped, names: list[str]) -> tuple[dict[str, pa.DataType], list[str]]:
    """Types settled on the first block, numbers as float64 but for whole clock readings, and which ids are integers.

    Ids are read as they are written.
    """
    texts = {mapped.columns[name]: pa.string() for name in (*_IDS, "op") if name in mapped.columns}
    first = next(csv_batches(source.path, texts, header=mapped.header), None)
    if first is None:
        raise UserError(f"{source.path}: found no rows; allowed: at least one")
    _require(names, first.schema.names, source)
    types, integers = dict(texts), []
    for name, column in mapped.columns.items():
        values = first.column(column)
        if name in _IDS and as_integers(values) is not None:
            integers.append(column)
        elif name in SCALED and (name not in TIMES or pa.types.is_null(values.type)):
            types[column] = pa.float64()
    return types, list(dict.fromkeys(integers))


def _read_renamed(groups: RowGroups, mapped: Mapped, source: str, origin: float) -> Iterator[pa.RecordBatch]:
    return _renamed(groups.batches(), mapped, source, origin, groups.first_row)


def _origin(batch: pa.RecordBatch, mapped: Mapped, source: str) -> float:
    """The first reading of the arrivals' clock where it is whole, else 0.

    Raises:
        UserError: it is in another unit, or some clocks have a time zone and others none.
    """
    kinds = {name: batch.column(mapped.columns[name]).type for name in TIMES if name in mapped.columns}
    mixture = mixed_zones({name: kind for name, kind in kinds.items() if is_timestamp(kind)})
    if mixture:
        raise UserError(f"{source}: {mixture}")
    arrivals, scale = _clock(batch, "arrival_s", mapped, source)
    _check_epoch(arrivals, scale, mapped, source)
    return arrivals[0].as_py() if pa.types.is_integer(arrivals.type) and arrivals[0].is_valid else 0.0


def _renamed(
    batches: Iterator[pa.RecordBatch],
    mapped: Mapped,
    source: str,
    origin: float | None = None,
    before: int = 0,
    tally: Tally | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches with our columns; the origin of their clock is that of the first one where it is not given."""
    if tally is not None:
        tally.begin()
    for batch in batches:
        numbers = pa.array(np.arange(before, before + batch.num_rows))
        before += batch.num_rows
        if tally is not None:
            kept = _kept(batch, mapped, tally)
            batch, numbers = batch.filter(kept), numbers.filter(kept)
        if not batch.num_rows:
            continue
        clocks = {name: _clock(batch, name, mapped, source) for name in TIMES if name in mapped.columns}
        if origin is None:
            origin = _origin(batch, mapped, source)
        arrays: dict[str, pa.Array] = {
            name: batch.column(mapped.columns[name])
            for name in ("request_id", "file_id", "node_id", "service_class")
            if name in mapped.columns
        }
        if "node_id" in mapped.columns and "request_id" not in mapped.columns:
            arrays["request_id"] = numbers
        scale = clocks["arrival_s"][1]
        for name, (values, own_scale) in clocks.items():
            try:
                arrays[name] = _since(values, own_scale, origin, scale)
            except pa.ArrowInvalid:
                raise _beyond(
                    source,
                    name,
                    mapped,
                    f"found a time more than {_LATEST} units from the first arrival; allowed: nearer",
                ) from None
        arrays["bytes"] = _scaled(batch, "bytes", mapped, source)
        if SOJOURN_COLUMN in mapped.columns:
            arrays["finish_s"] = pc.add(arrays["arrival_s"], _scaled(batch, SOJOURN_COLUMN, mapped, source))
        arrays["op"] = _operations(batch, mapped)
        if tally is not None:
            arrays[ROW] = numbers
        yield pa.record_batch(arrays)


def _check_epoch(arrivals: pa.Array, scale: float, mapped: Mapped, source: str) -> None:
    """Notice a clock that is read in a unit other than its own, by its first reading."""
    first = arrivals[0].as_py() if len(arrivals) else None
    unit = clock_unit(first) if first is not None and first * scale > LATEST_S else None
    if unit is not None:
        column = mapped.columns["arrival_s"]
        raise UserError(
            f"{source}, column {column} (arrival_s): found {first}, read as {scale:g} s each, which looks like "
            f"{unit.name} since 1970; allowed: in columns=, arrival_s_scale: {unit.seconds:g}"
        )


def _clock(batch: pa.RecordBatch, name: str, mapped: Mapped, source: str) -> tuple[pa.Array, float]:
    """Readings of a clock, as integers where they are whole, and the seconds of one unit."""
    values = batch.column(mapped.columns[name])
    kind = values.type
    if pa.types.is_date(kind):
        values = values.cast(pa.timestamp("ms"))
        kind = values.type
    if pa.types.is_timestamp(kind):
        if name in mapped.scales:
            raise UserError(f"columns: found {name}_scale for timestamps; allowed: no scale")
        return values.cast(pa.int64()), 1 / _PER_SECOND[kind.unit]
    if pa.types.is_integer(kind):
        try:
            return values.cast(pa.int64()), mapped.scales.get(name, 1.0)
        except pa.ArrowInvalid:  # of unsigned ones
            message = f"found {pc.max(values).as_py()}; allowed: at most {_LATEST}"
            raise _beyond(source, name, mapped, message) from None
    return _floats(values, name, mapped, source), mapped.scales.get(name, 1.0)


def _beyond(source: str, name: str, mapped: Mapped, message: str) -> UserError:
    """The error for a reading of a clock that cannot be counted from the first arrival in 64 bits."""
    column = mapped.columns[name]
    return UserError(f"{source}, column {column} ({name}): {message}, and empty cells where there is no time")


def _floats(values: pa.Array, name: str, mapped: Mapped, source: str) -> pa.Array:
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        column = mapped.columns[name]
        raise UserError(
            f"{source}, column {column} ({name}): found type {kind}; allowed: numbers or, for times, timestamps"
        )
    return values.cast(pa.float64(), safe=False)


def _since(values: pa.Array, scale: float, origin: float, origin_scale: float) -> pa.Array:
    """Seconds since the origin; subtracted as integers where both are."""
    if scale == origin_scale and isinstance(origin, int) == pa.types.is_integer(values.type):
        difference = pc.subtract_checked(values, pa.scalar(origin, values.type))
        return pc.multiply(difference.cast(pa.float64(), safe=False), scale)
    seconds = pc.multiply(values.cast(pa.float64(), safe=False), scale)
    return pc.subtract(seconds, float(origin) * origin_scale)


def _scaled(batch: pa.RecordBatch, name: str, mapped: Mapped, source: str) -> pa.Array:
    return pc.multiply(
        _floats(batch.column(mapped.columns[name]), name, mapped, source), mapped.scales.get(name, 1.0)
    )


def _operations(batch: pa.RecordBatch, mapped: Mapped) -> pa.Array:
    if "op" not in mapped.columns:
        return pa.array(["read"]).take(pa.array(np.zeros(batch.num_rows, np.int64)))
    values = batch.column(mapped.columns["op"])
    encoded = _encoded(values) if mapped.words else None
    if encoded is None:
        return values
    words = [mapped.words.get(word, word) for word in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string())).cast(pa.string())


def _encoded(values: pa.Array) -> pa.DictionaryArray | None:
    """Words of any type of text, or numbers, as a dictionary of text; None of what is neither."""
    if pa.types.is_nested(values.type):
        return None
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_binary(values.type):
        values = as_text(values)
    return values.cast(pa.string()).dictionary_encode()


def _kept(batch: pa.RecordBatch, mapped: Mapped, tally: Tally) -> pa.Array:
    """Whether each row counts as an access; the others are counted. An empty cell is for the checks."""
    tally.lines += batch.num_rows
    encoded = _encoded(batch.column(mapped.columns["op"]))
    if encoded is None:
        return pa.array(np.ones(batch.num_rows, bool))
    words = encoded.dictionary.to_pylist()
    others = [_is_other(word, mapped) for word in words]
    left_out = pc.fill_null(pa.array(others, pa.bool_()).take(encoded.indices), False)
    counts = pc.value_counts(encoded.indices.filter(left_out))
    tally.others.update({words[each["values"]]: each["counts"] for each in counts.to_pylist()})
    return pc.invert(left_out)


def _is_other(word: str, mapped: Mapped) -> bool:
    kind = mapped.words.get(word)
    return kind == OTHER or (kind is None and mapped.any_other and not is_operation(word))


COLUMN_MAPPING = ColumnImporter()
