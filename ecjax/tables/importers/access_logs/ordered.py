"""Accesses of several files in order of arrival, in memory that does not grow with the log."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError

HELD = 1 << 19  # accesses held back, so that a line may be as many lines late


class Stream(NamedTuple):
    """A file of a log: where it begins in time (ns), and what starts reading its accesses."""

    file: Path
    first: int
    read: Callable[[], Iterator[pa.RecordBatch]]


def in_order(streams: list[Stream], source: str, sort: bool) -> Iterator[pa.RecordBatch]:
    """Batches in order of the column ``ticks``, equal ones in the order of files and lines.

    The file that lags behind is read on, so that logs of several machines for the same hours are merged.

    Args:
        streams: the files.
        source: the log, for messages.
        sort: hold all accesses in memory, however late their lines are.

    Raises:
        UserError: a line is too late.
    """
    waiting = sorted(streams, key=lambda stream: (stream.first, str(stream.file)))[::-1]
    active: dict[Path, tuple[int, Iterator[pa.RecordBatch]]] = {}
    held: list[pa.RecordBatch] = []
    rows, last = 0, None
    while waiting or active:
        laggard = min(active, key=lambda file: active[file][0]) if active else None
        if waiting and (laggard is None or waiting[-1].first <= active[laggard][0]):
            stream = waiting.pop()
            laggard = stream.file
            active[laggard] = (stream.first, stream.read())
        assert laggard is not None
        reached, batches = active[laggard]
        batch = next(batches, None)
        if batch is None:
            del active[laggard]
            continue
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
            active[laggard] = (max(reached, int(batch["ticks"].to_numpy().max())), batches)
        if rows > 2 * HELD and not sort:
            until = min([reached for reached, _ in active.values()] + [each.first for each in waiting[-1:]])
            whole = pa.Table.from_batches(_sorted(held))
            ticks = whole["ticks"].to_numpy()
            count = max(min(int(np.searchsorted(ticks, until)), rows - HELD), 0)
            if count:
                _check(int(ticks[0]), last, source)
                yield from whole.slice(0, count).to_batches()
                last = int(ticks[count - 1])
            # a copy of the rest, so that what was given away can be forgotten
            held = [each.take(pa.array(np.arange(each.num_rows))) for each in whole.slice(count).to_batches()]
            rows -= count
    if rows:
        ordered = _sorted(held)
        _check(ordered[0]["ticks"][0].as_py(), last, source)
        yield from ordered


def _sorted(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows in order of ``ticks``: one batch, unless their names fill more than one can hold."""
    pieces = joined(batches)
    ticks = np.concatenate([piece["ticks"].to_numpy() for piece in pieces])
    if np.all(ticks[1:] >= ticks[:-1]):
        return pieces
    order = np.argsort(ticks, kind="stable")
    if len(pieces) == 1:
        return [pieces[0].take(pa.array(order))]
    return [
        batch for begin in range(0, len(order), HELD) for batch in _taken(pieces, order[begin : begin + HELD])
    ]


def joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """All rows, in as few batches as Arrow allows: a column of strings holds 2 GiB."""
    return pa.Table.from_batches(batches).combine_chunks().to_batches()


def _taken(pieces: list[pa.RecordBatch], rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """These rows of all pieces, one after another, in as many batches as they need."""
    begins = np.cumsum([0, *(piece.num_rows for piece in pieces)])
    owner = np.searchsorted(begins, rows, side="right") - 1
    parts, places = [], []
    for number in np.unique(owner):
        place = np.flatnonzero(owner == number)
        parts.append(pieces[number].take(pa.array(rows[place] - begins[number])))
        places.append(place)
    whole = joined(parts)
    if len(whole) == 1:
        yield whole[0].take(pa.array(np.argsort(np.concatenate(places))))
        return
    half = len(rows) // 2
    yield from _taken(pieces, rows[:half])
    yield from _taken(pieces, rows[half:])


def _check(first: int, last: int | None, source: str) -> None:
    if last is not None and first < last:
        raise UserError(
            f"{source}: found an access {(last - first) * 1e-9:.6g} s earlier than one more than {HELD:,} lines "
            "before; allowed: lines less late (or give sort=true)"
        )
