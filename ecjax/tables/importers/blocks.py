"""Block traces: accesses of byte ranges of volumes, turned into accesses of files by cutting volumes into extents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.machine_code import njit
from ecjax.tables.importers.checking import OPERATION, WORDS
from ecjax.tables.importers.trace import BATCH_ROWS

LARGEST = 1 << 62  # byte that an access may end at
# ticks that a clock may be from 0, and that an access may take: their differences fit in 64 bits
LATEST = 1 << 61
_MOST_PIECES = 1 << 20  # extents that one access touches


class Accesses(NamedTuple):
    """Accesses of a block trace, each field (n,).

    Attributes:
        ticks: times of the trace's clock.
        write: whether a write, else a read.
        offset: first byte.
        size: bytes asked for.
        finish: ticks at which the access ended, or None.
        volume: dictionary array of volume names, or None where there is one volume.
    """

    ticks: np.ndarray
    write: np.ndarray
    offset: np.ndarray
    size: np.ndarray
    finish: np.ndarray | None = None
    volume: pa.DictionaryArray | None = None


@dataclass(frozen=True)
class BlockFormat:
    """How to read one kind of block trace.

    Attributes:
        path: the file.
        parse: starts reading accesses.
        first_line: line of the first access in the file (from 1).
        tick_s: the clock's step (s).
    """

    path: Path
    parse: Callable[[], Iterator[Accesses]]
    first_line: int
    tick_s: float

    def requests(self, extent_bytes: int, sort: bool) -> Iterator[pa.RecordBatch]:
        """Batches of the ``requests`` table: one row per access and extent touched, in order of arrival.

        Rows of one access share a ``request_id``, the number of the access, and together have exactly its bytes. A file
        is an extent of ``extent_bytes``: its id is its number, or "volume/number". Times are seconds since the first
        access in the file.

        Raises:
            UserError: there is no access, or one is out of order or outside what 63 bits hold; names the line.
        """
        accesses = self._sorted(extent_bytes) if sort else self._in_order(extent_bytes)
        origin, number = None, 0
        for batch in accesses:
            origin = batch.ticks[0] if origin is None else origin
            yield from extent_batches(batch, extent_bytes, origin, number, self.tick_s)
            number += batch.ticks.shape[0]
        if origin is None:
            raise UserError(f"{self.path}: found no accesses; allowed: at least one")

    def _in_order(self, extent_bytes: int) -> Iterator[Accesses]:
        line, last = self.first_line, None
        for batch in self.parse():
            self._check(batch, line, extent_bytes)
            falls = np.flatnonzero(batch.ticks[1:] < batch.ticks[:-1]) + 1
            row = 0 if last is not None and batch.ticks[0] < last else int(falls[0]) if falls.size else None
            if row is not None:
                previous = batch.ticks[row - 1] if row else last
                raise UserError(
                    f"{self.path}, line {line + row}: found time {batch.ticks[row]} after {previous}; allowed: "
                    "non-decreasing (or give sort=true)"
                )
            last, line = batch.ticks[-1], line + batch.ticks.shape[0]
            yield batch

    def _sorted(self, extent_bytes: int) -> Iterator[Accesses]:
        line, batches = self.first_line, []
        for batch in self.parse():
            self._check(batch, line, extent_bytes)
            line += batch.ticks.shape[0]
            batches.append(batch)
        if not batches:
            return
        order = np.argsort(np.concatenate([b.ticks for b in batches]), kind="stable")
        fields: list[Any] = []
        for values in zip(*batches, strict=True):
            if values[0] is None:
                fields.append(None)
            elif isinstance(values[0], np.ndarray):
                fields.append(np.concatenate(values)[order])
            else:
                whole = pa.chunked_array(values).unify_dictionaries().combine_chunks()
                fields.append(whole.take(pa.array(order)))
        yield Accesses(*fields)

    def _check(self, batch: Accesses, line: int, extent_bytes: int) -> None:
        wrong = (batch.ticks < -LATEST) | (batch.ticks > LATEST)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise UserError(
                f"{self.path}, line {line + row}: found time {batch.ticks[row]}; allowed: integers from -2^61 to 2^61"
            )
        for name, values in (("size", batch.size), ("offset", batch.offset)):
            wrong = (values < 0) | (values > LARGEST - (batch.size if name == "offset" else 0))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise UserError(
                    f"{self.path}, line {line + row}: found {name} {values[row]} bytes; allowed: 0 to 2^62"
                )
        check_pieces(batch, extent_bytes, lambda row: f"{self.path}, line {line + row}")


def check_pieces(batch: Accesses, extent_bytes: int, place: Callable[[int], str]) -> None:
    """Refuse an access that touches more extents than memory should hold.

    Args:
        batch: accesses.
        extent_bytes: size of an extent (B).
        place: names a row of the batch.

    Raises:
        UserError: there is one.
    """
    pieces = _pieces(batch, extent_bytes)
    if pieces.max() > _MOST_PIECES:
        row = int(np.argmax(pieces > _MOST_PIECES))
        raise UserError(
            f"{place(row)}: found size {batch.size[row]} bytes, {pieces[row]} extents of extent_bytes={extent_bytes}; "
            f"allowed: at most {_MOST_PIECES} extents"
        )


def extent_batches(
    batch: Accesses, extent_bytes: int, origin: int, before: int, tick_s: float
) -> Iterator[pa.RecordBatch]:
    """Batches of the ``requests`` table, see ``BlockFormat.requests``.

    Args:
        batch: accesses in order of arrival.
        extent_bytes: size of an extent (B).
        origin: ticks of the log's first access.
        before: accesses before these.
        tick_s: the clock's step (s).
    """
    for part in _slices(batch, _pieces(batch, extent_bytes)):
        yield _by_extent(part, extent_bytes, origin, before, tick_s)
        before += part.ticks.shape[0]


def _pieces(batch: Accesses, extent_bytes: int) -> np.ndarray:
    """Extents that each access touches."""
    last = batch.offset + np.maximum(batch.size, 1) - 1
    return last // extent_bytes - batch.offset // extent_bytes + 1


def _slices(batch: Accesses, pieces: np.ndarray) -> Iterator[Accesses]:
    """The batch in parts of some accesses, and of about as many extents as an access may touch."""
    ends = np.cumsum(pieces)
    begin = 0
    while begin < len(pieces):
        done = ends[begin - 1] if begin else 0
        fitting = int(np.searchsorted(ends, done + _MOST_PIECES, side="right"))
        end = min(max(fitting, begin + 1), begin + BATCH_ROWS)
        fields: list[Any] = [None if values is None else values[begin:end] for values in batch]
        yield Accesses(*fields)
        begin = end


@njit()
def split_extents(offsets, sizes, extent):
    """Access, extent and bytes of every piece of the byte ranges [offset, offset + size), cut at extent borders.

    An access of no bytes is one piece of no bytes.
    """
    pieces = 0
    for i in range(offsets.shape[0]):
        pieces += (offsets[i] + max(sizes[i], 1) - 1) // extent - offsets[i] // extent + 1
    access, number, part = np.empty(pieces, np.int64), np.empty(pieces, np.int64), np.empty(pieces, np.int64)
    piece = 0
    for i in range(offsets.shape[0]):
        place, end = offsets[i], offsets[i] + sizes[i]
        while True:
            border = (place // extent + 1) * extent
            access[piece], number[piece] = i, place // extent
            part[piece] = min(end, border) - place
            piece += 1
            place = border
            if place >= end:
                break
    return access, number, part


def _by_extent(batch: Accesses, extent_bytes: int, origin: int, before: int, tick_s: float) -> pa.RecordBatch:
    access, extent, part = split_extents(batch.offset, batch.size, extent_bytes)
    file: pa.Array = pa.array(extent)
    if batch.volume is not None:
        volumes = batch.volume.dictionary.take(batch.volume.indices.take(pa.array(access)))
        file = pc.binary_join_element_wise(volumes, file.cast(pa.string()), "/")
    seconds = (batch.ticks - origin) * tick_s
    write = pa.array(batch.write[access].astype(np.int8))
    columns = {
        "request_id": pa.array(access + before),
        "arrival_s": pa.array(seconds[access]),
        "file_id": file,
        "op": pa.DictionaryArray.from_arrays(write, WORDS),
        "bytes": pa.array(part.astype(float)),
    }
    if batch.finish is not None:
        columns["finish_s"] = pa.array(((batch.finish - origin) * tick_s)[access])
    return pa.record_batch(columns)


def block_schema(volumes: bool, finish: bool) -> pa.Schema:
    """Schema of the batches of a block trace."""
    fields = {
        "request_id": pa.int64(),
        "arrival_s": pa.float64(),
        "file_id": pa.string() if volumes else pa.int64(),
        "op": OPERATION,
        "bytes": pa.float64(),
    }
    return pa.schema({**fields, "finish_s": pa.float64()} if finish else fields)
