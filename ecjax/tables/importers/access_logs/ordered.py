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
            whole = _sorted(held)
            count = int(np.searchsorted(whole["ticks"].to_numpy(), until))
            count = min(count, rows - HELD)
            if count > 0:
                last = _check(whole, last, source)
                yield whole.slice(0, count)
                last = int(whole["ticks"][count - 1].as_py())
            # a copy of the rest, so that what was given away can be forgotten
            held = [whole.take(pa.array(np.arange(max(count, 0), rows)))]
            rows = held[0].num_rows
    if rows:
        whole = _sorted(held)
        _check(whole, last, source)
        yield whole


def _sorted(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    ticks = whole["ticks"].to_numpy()
    if np.all(ticks[1:] >= ticks[:-1]):
        return whole
    return whole.take(pa.array(np.argsort(ticks, kind="stable")))


def _check(batch: pa.RecordBatch, last: int | None, source: str) -> int | None:
    first = batch["ticks"][0].as_py()
    if last is not None and first < last:
        raise UserError(
            f"{source}: found an access {(last - first) * 1e-9:.6g} s earlier than one more than {HELD:,} lines "
            "before; allowed: lines less late (or give sort=true)"
        )
    return last
