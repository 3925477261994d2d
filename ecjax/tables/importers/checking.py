"""Check and convert the record batches of a requests table as they stream by."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.checks import allowed_numbers, allowed_range, out_of_range
from ecjax.tables.committed import say_once
from ecjax.tables.ids import canonical_ids, decoded, is_text, with_counted_nulls
from ecjax.tables.importers.trace import BATCH_ROWS
from ecjax.tables.place import Place
from ecjax.tables.rules import operations
from ecjax.tables.schemas import ID, REQUESTS, TIME, Column
from ecjax.tables.times import is_timestamp, mixed_zones

OPERATION = pa.dictionary(pa.int8(), pa.string())
WORDS = pa.array(["read", "write"])
COLUMNS = {column.name: column for column in REQUESTS}
_OPTIONAL = ("node_id", "start_s", "finish_s")
_ROUNDINGS = 4  # units in the last place
ROW = (
    "row"  # a column beside those of ``requests``: the number of each row in the log, where some are left out
)
_OTHER_WORDS = "; of other words, columns= takes op_read, op_write and, to leave them out, op_other"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class RowError(UserError):
    """A mistake in a row.

    Attributes:
        row: its place in the batch, 0-based.
    """

    row: int = 0


@dataclass(frozen=True)
class BatchPlace(Place):
    """A place in a table that is read in batches: rows are counted from the table's first.

    Attributes:
        numbers: of the rows in the log (n,), where some are left out.
    """

    numbers: np.ndarray | None = None

    def number(self, row: int) -> int:
        """As ``Place.number``."""
        return super().number(row) if self.numbers is None else int(self.numbers[row])

    def error(self, message: str, *, column: str | None = None, row: int | None = None) -> UserError:
        """As ``Place.error``; a ``RowError`` where there is a row."""
        error = super().error(message, column=column, row=row)
        if row is None:
            return error
        row_error = RowError(str(error))
        row_error.row = row
        return row_error


class Checker:
    """Gives batches the types of ``Trace.schema`` and refuses rows that cannot be.

    Timestamps become seconds since the first row's arrival, subtracted as integers; numbers stay as they are. The
    optional columns count as absent where the first batch has no value in them; none may come later then.

    Args:
        source: path, for messages.
        first: the first batch.
        step_s: to which arrivals may be rounded (s), so that accesses seem to begin before them; 0: they are exact.
    """

    def __init__(self, source: str, first: pa.RecordBatch, step_s: float = 0.0) -> None:
        self._source, self.step_s = source, step_s
        place = self._place(first, 0)
        self.columns = [
            column
            for column in REQUESTS
            if column.name in first.schema.names and not (column.name in _OPTIONAL and _empty(first, column))
        ]
        names = [column.name for column in self.columns]
        self._absent = [name for name in _OPTIONAL if name in first.schema.names and name not in names]
        if "node_id" not in names:
            # Each row is an access of its own: its id tells nothing more.
            self.columns = [column for column in self.columns if column.name != "request_id"]
        times = [column.name for column in self.columns if column.kind == TIME]
        stamped = [name for name in times if is_timestamp(first.schema.field(name).type)]
        if stamped and len(stamped) < len(times):
            plain = next(name for name in times if name not in stamped)
            mixture = f"{stamped[0]} is {_type(first, stamped[0])} and {plain} is {_type(first, plain)}"
            raise place.error(f"{mixture}; allowed: all timestamps, or all seconds as numbers")
        mixture = mixed_zones({name: _type(first, name) for name in stamped})
        if mixture:
            raise place.error(mixture)
        self._unit = max(
            (_unit(_type(first, name)) for name in stamped), key=list(_PER_SECOND).index, default=None
        )
        self._origin = 0
        if self._unit is not None:
            arrivals = self._ticks(first, "arrival_s", place)
            self._origin = arrivals[0].as_py() or 0

    def arrivals(self, batch: pa.RecordBatch) -> np.ndarray:
        """Arrivals of a batch (s), (n,), those before the first that is malformed.

        Raises:
            UserError: none of them can be read.
        """
        column, place = COLUMNS["arrival_s"], self._place(batch, 0)
        try:
            values = self._canonical(batch, column, place)
        except RowError as error:
            values = self._canonical(batch.slice(0, error.row), column, place)
        times: np.ndarray = values.to_numpy(zero_copy_only=False)
        return times

    def _place(self, batch: pa.RecordBatch, before: int) -> BatchPlace:
        return place_of(batch, self._source, before, _numbers_of(batch))

    def rows(self, batches: Iterable[pa.RecordBatch], before: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches with canonical types; ``before`` rows come before them.

        Raises:
            UserError: naming column and row, after the rows before it; of several mistakes the one in the first row.
        """
        for checked, _ in self._rows(batches, before):
            yield checked

    def _rows(
        self, batches: Iterable[pa.RecordBatch], before: int
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
        """As ``rows``, with the numbers of the rows where some are left out."""
        for batch in batches:
            try:
                checked, mistake = self._check(batch, before), None
            except RowError as error:
                checked, mistake = self._sound(batch, before, error)
            if checked is not None:
                yield checked, _numbers_of(batch)
            if mistake is not None:
                raise mistake
            before += batch.num_rows

    def in_order(self, batches: Iterable[pa.RecordBatch], before: int = 0) -> Iterator[pa.RecordBatch]:
        """As ``rows``, in order of arrival.

        Raises:
            UserError: also where a row is out of order.
        """
        last = -np.inf
        for batch, numbers in self._rows(batches, before):
            arrivals = batch.column("arrival_s").to_numpy()
            falls = np.flatnonzero(np.diff(arrivals, prepend=last) < 0)
            if falls.size:
                row = int(falls[0])
                if row:
                    yield batch.slice(0, row)
                previous = arrivals[row - 1] if row else last
                place = place_of(batch, self._source, before, numbers)
                raise out_of_order(arrivals[row], previous, place, row)
            last, before = arrivals[-1], before + batch.num_rows
            yield batch

    def _sound(
        self, batch: pa.RecordBatch, before: int, mistake: RowError
    ) -> tuple[pa.RecordBatch | None, RowError]:
        """The rows before the first mistake, if any, and that one; ``mistake`` is one of them."""
        while mistake.row:
            try:
                return self._check(batch.slice(0, mistake.row), before), mistake
            except RowError as earlier:
                mistake = earlier
            except UserError:
                break  # a column of words: its type is wrong in all rows
        return None, mistake

    def _check(self, batch: pa.RecordBatch, before: int) -> pa.RecordBatch:
        place = self._place(batch, before)
        for name in self._absent:
            filled = np.asarray(batch.column(name).is_valid())
            if filled.any():
                message = "found a value after none in the rows before; allowed: values from the first rows on, or none"
                raise place.error(message, column=name, row=int(np.argmax(filled)))
        arrays = {column.name: self._canonical(batch, column, place) for column in self.columns}
        later = next((name for name in ("start_s", "finish_s") if name in arrays), None)
        if "arrival_s" in arrays and later is not None:
            self._no_earlier(arrays, later)
        _check_times(arrays, place)
        return pa.record_batch(arrays)

    def _no_earlier(self, arrays: dict[str, pa.Array], later: str) -> None:
        """Accesses that began before an arrival that was rounded up, by less than its step, begin when it arrived.

        They end as much later, so that services are as long as they were; arrivals keep their clock and their order.
        Where only their end is known (``later``), they end when they arrived.
        """
        arrival, time = (arrays[name].to_numpy(zero_copy_only=False) for name in ("arrival_s", later))
        early = (time < arrival) & (time > arrival - self.step_s * (1 - 1e-6))
        if not early.any():
            return
        begin = later == "start_s"
        say_once(
            f"{self._source}: accesses {'began' if begin else 'ended'} before their arrivals, by less than the "
            f"{self.step_s:g} s to which these are rounded: they count as {'begun' if begin else 'ended'} when they "
            f"arrived{', and are served as long as they were' if begin else ''}"
        )
        delay = pa.array(np.where(early, arrival - time, 0.0))
        arrays[later] = pc.if_else(pa.array(early), arrays["arrival_s"], arrays[later])
        if begin and "finish_s" in arrays:
            arrays["finish_s"] = pc.add(arrays["finish_s"], delay)

    def _canonical(self, batch: pa.RecordBatch, column: Column, place: BatchPlace) -> pa.Array:
        values = with_counted_nulls(pa.chunked_array([batch.column(column.name)]))
        if values.null_count and not column.nullable:
            row = int(np.argmax(np.asarray(values.is_null())))
            raise place.error(
                "found an empty cell (null); allowed: a value in every row", column=column.name, row=row
            )
        if column.kind == ID:
            return canonical_ids(values, column.name, place).chunk(0)
        if column.name == "op":
            return _operations(values, place)
        if column.kind == TIME and self._unit is not None:
            ticks = self._ticks(batch, column.name, place)
            seconds = pc.cast(pc.subtract(ticks, self._origin), pa.float64(), safe=False)
            return pc.divide(seconds, float(_PER_SECOND[self._unit]))
        return _numbers(values, column, place)

    def _ticks(self, batch: pa.RecordBatch, name: str, place: BatchPlace) -> pa.Array:
        values = batch.column(name)
        zone = getattr(values.type, "tz", None)
        try:
            return values.cast(pa.timestamp(self._unit, zone)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise place.error(
                f"a time is outside what {self._unit} can count: {error}", column=name
            ) from None


def _empty(batch: pa.RecordBatch, column: Column) -> bool:
    return with_counted_nulls(pa.chunked_array([batch.column(column.name)])).null_count == batch.num_rows


def _type(batch: pa.RecordBatch, name: str) -> pa.DataType:
    return batch.schema.field(name).type


def _unit(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return kind.unit
    return "ms" if pa.types.is_date64(kind) else "s"


def _operations(values: pa.ChunkedArray, place: BatchPlace) -> pa.Array:
    values = decoded(values)
    if not is_text(values.type):
        raise place.error(f"found type {values.type}; allowed: strings", column="op")
    encoded = values.chunk(0).cast(pa.string()).dictionary_encode()
    try:
        words = operations(pa.chunked_array([encoded.dictionary]), place)
    except UserError:
        operations(values, place, _OTHER_WORDS)  # raises, with the row
        raise
    codes = np.array([word == "write" for word in words.to_pylist()], np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(codes[encoded.indices.to_numpy()]), WORDS)


def _numbers(values: pa.ChunkedArray, column: Column, place: BatchPlace) -> pa.Array:
    kind = values.type
    allowed = allowed_numbers(column)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_null(kind):
            raise _no_numbers(values, column, allowed, place)
    array = values.chunk(0).cast(pa.float64(), safe=False)
    numbers = array.to_numpy(zero_copy_only=False)
    bad = ~np.isfinite(numbers)
    if bad.any():
        bad &= np.asarray(array.is_valid())
    bad |= out_of_range(numbers, column)
    if bad.any():
        row = int(np.argmax(bad))
        allowed = allowed_range(column, numbers[row])
        raise place.error(f"found {numbers[row]!s}; allowed: {allowed}", column=column.name, row=row)
    return array


def _no_numbers(values: pa.ChunkedArray, column: Column, allowed: str, place: BatchPlace) -> UserError:
    """The error for a column of another type: the first word in it, where it is text."""
    for row, text in enumerate(values.to_pylist() if is_text(values.type) else ()):
        try:
            float(text or 0)
        except ValueError:
            return place.error(f"found {text!r}; allowed: {allowed}", column=column.name, row=row)
    return place.error(f"found type {values.type}; allowed: {allowed}", column=column.name)


def _check_times(arrays: dict[str, pa.Array], place: BatchPlace) -> None:
    order = [name for name in ("arrival_s", "start_s", "finish_s") if name in arrays]
    times = {name: arrays[name].to_numpy(zero_copy_only=False) for name in order}
    for i, later in enumerate(order):
        for earlier in order[:i]:
            wrong = times[later] < times[earlier]
            if not wrong.any():
                continue
            # a time that was computed may be below by rounding
            rounded = wrong & (
                times[later] >= times[earlier] - _ROUNDINGS * np.spacing(np.abs(times[earlier]))
            )
            arrays[later] = pc.if_else(pa.array(rounded), arrays[earlier], arrays[later])
            times[later] = np.where(rounded, times[earlier], times[later])
            wrong &= ~rounded
            if wrong.any():
                row = int(np.argmax(wrong))
                message = (
                    f"found {times[later][row]!s}; allowed: at least {earlier} = {times[earlier][row]!s}"
                )
                raise place.error(message, column=later, row=row)


def place_of(
    batch: pa.RecordBatch, source: str, before: int, numbers: np.ndarray | None = None
) -> BatchPlace:
    """Place of a batch that ``before`` rows come before, or whose rows have these numbers."""
    return BatchPlace(pa.table(batch), "requests", source, before, numbers)


def _numbers_of(batch: pa.RecordBatch) -> np.ndarray | None:
    return batch.column(ROW).to_numpy() if ROW in batch.schema.names else None


def out_of_order(arrival: float, previous: float, place: BatchPlace, row: int) -> UserError:
    """The error for a row that arrives before the row before it."""
    message = f"found {arrival!s} after {previous!s}; allowed: non-decreasing (or give sort=true)"
    return place.error(message, column="arrival_s", row=row)


def checked(
    batches: Iterable[pa.RecordBatch], source: str, sort: bool, step_s: float = 0.0
) -> Iterator[pa.RecordBatch]:
    """Checked batches in order of arrival, which may be rounded to ``step_s`` (0: they are exact).

    With ``sort`` the projected columns are held in memory and sorted by arrival, equal arrivals by request.

    Raises:
        UserError: a row is impossible, or, without ``sort``, out of order.
    """
    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        return
    checker, batches = Checker(source, first, step_s), chain([first], rest)
    yield from _sorted(checker.rows(batches)) if sort else checker.in_order(batches)


def _sorted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(list(batches))
    keys = [name for name in ("arrival_s", "request_id") if name in table.column_names]
    yield from table.sort_by([(name, "ascending") for name in keys]).to_batches(BATCH_ROWS)
