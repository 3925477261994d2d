"""What ``ecjax adapt`` takes from access logs: delays of tasks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.adaptation.measured import Delays
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.adapt.options import DELAYS, AdaptOptions
from ecjax.studies.spine.logs import BACKGROUND, Reading, log_reading
from ecjax.tables.background import WRITES
from ecjax.tables.importers import FORMATS, Trace
from ecjax.tables.importers.detect import read_head
from ecjax.tables.importers.trace import SERVICE
from ecjax.tables.patterns import log_location

OPERATIONS = ("read", "write")
_BLOCKS = ("cloudphysics", "msr")  # formats that need extents to have files
WHOLE = 1 << 62  # bytes of an extent that no access crosses: to a proxy it does not matter which file it is
_MOST_DELAYS = 4_000_000  # held in memory


def reading_of(path: str, options: AdaptOptions) -> Reading:
    """How a log of any format that ``ecjax analyze`` reads is read here.

    Accesses of a block trace are whole, unless extents were set, here or in the analysis of the log that is another
    input of the job. Accesses of classes that an analysis took for background work are left out, but writes are not: a
    proxy serves them, whatever nodes are loaded with.

    Raises:
        UserError: the path or the format is wrong.
    """
    others = [name for name in (options.trace, *options.delays) if name not in (path, *DELAYS)]
    reading = _with_writes(log_reading(options, path, others))
    values = reading.options
    if values["extent_bytes"] is None and values["columns"] is None:
        format_ = values["format"]
        if format_ == "auto":
            head = read_head(log_location(reading.path))
            format_ = next((name for name, importer in FORMATS.items() if importer.recognises(head)), "auto")
        if format_ in _BLOCKS:
            return replace(reading, options=values | {"extent_bytes": WHOLE})
    return reading


def _with_writes(reading: Reading) -> Reading:
    values = dict(reading.options)
    classes = [each for each in values.pop(BACKGROUND, []) if each != WRITES]
    return replace(reading, options=values | ({BACKGROUND: classes} if classes else {}))


def task_delays(trace: Trace, seed: int) -> dict[str, Delays]:
    """Delays of the tasks of a log by operation ("read", "write"), of the operations that it has.

    The delay of a task is the time that one access of a chunk holds a connection of the proxy: from start_s to
    finish_s. The time from arrival_s to finish_s is not taken in its place, as it includes the wait for a connection,
    which the replay adds itself, except where each row is a connection from its arrival on (warp). Accesses of 0 bytes
    and those without both times (failed or cancelled ones) are left out, and a log line says so; where a proxy cancels
    the slowest task of each request, those that are left are faster than tasks are. Of a log with more than 4 million
    such accesses, a uniform sample of its requests is taken.

    Args:
        trace: a log of accesses of chunks; without node_id every row is a request of one task.
        seed: of the sample.

    Raises:
        UserError: the log has no start or no finish times, or a row is malformed.
    """
    if SERVICE not in trace.provides and not trace.tasks:
        raise UserError(
            f"delays={trace.name}: found no service times; allowed: a log with start_s and finish_s of each access of "
            "a chunk, from when a connection begins with it to its last byte (arrival_s to finish_s would include the "
            "wait in the proxy)"
        )
    sample = _Sample(seed, "arrival_s" if trace.tasks else "start_s")
    for batch in trace.batches():
        sample.add(batch)
    return sample.delays(trace.name)


class _Sample:
    """Delays of all requests until they are too many, then of those whose random number is small enough."""

    def __init__(self, seed: int, begin: str = "start_s") -> None:
        self._begin = begin
        self._random = np.random.default_rng([seed, 0xADA0])
        self._share = 1.0
        self._sample: list[
            np.ndarray
        ] = []  # (4, rows): request, bytes, seconds, random number of the request
        self._writes: list[np.ndarray] = []
        self._rows = self._accesses = self._without = 0
        self._last: pa.Scalar | None = None
        self._open = (-1, 0.0)  # number and random number of the request of the last row

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        request, number = self._requests(batch)
        operations = batch.column("op")
        words = np.array([word == "write" for word in operations.dictionary.to_pylist()], bool)
        write = words[operations.indices.to_numpy()]
        size, start, finish = (
            batch.column(name).to_numpy(zero_copy_only=False) for name in ("bytes", self._begin, "finish_s")
        )
        rows = np.stack([request, size, finish - start, number])
        timed = np.isfinite(rows[2]) & (size > 0)
        self._accesses += len(timed)
        self._without += int(np.count_nonzero(~timed))
        self._take(rows[:, timed], write[timed])
        while self._rows > _MOST_DELAYS:
            self._share /= 2
            sample, writes, self._rows = self._sample, self._writes, 0
            self._sample, self._writes = [], []
            for old, old_writes in zip(sample, writes, strict=True):
                self._take(old, old_writes)

    def _take(self, rows: np.ndarray, write: np.ndarray) -> None:
        mask = rows[3] < self._share
        self._sample.append(rows[:, mask])
        self._writes.append(write[mask])
        self._rows += int(np.count_nonzero(mask))

    def _requests(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Request of each row and its random number; consecutive rows of one id are one request."""
        count = batch.num_rows
        begins = np.ones(count, bool)
        if "request_id" in batch.schema.names and "node_id" in batch.schema.names:
            ids = batch.column("request_id")
            begins[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
            begins[0] = self._last is None or ids[0] != self._last
            self._last = ids[count - 1]
        place = np.cumsum(begins)
        first, number = self._open
        numbers = np.concatenate([[number], self._random.random(place[-1])])[place]
        self._open = (first + int(place[-1]), float(numbers[-1]))
        return first + place, numbers

    def delays(self, name: str) -> dict[str, Delays]:
        """Of each operation; ``name`` is the log's."""
        request, size, seconds, _ = np.concatenate([*self._sample, np.empty((4, 0))], axis=1)
        write = np.concatenate([*self._writes, np.empty(0, bool)])
        if self._without:
            log.info(
                "delays: %d of %d accesses of %s have 0 bytes or lack start_s or finish_s: they are left out",
                self._without,
                self._accesses,
                Path(name).name,
            )
        if self._share < 1:
            log.info("delays: those of 1 in %d requests of %s are taken", 1 / self._share, Path(name).name)
        return {op: Delays(size[w], seconds[w], request[w].astype(np.int64)) for op, w in _of(write)}


def _of(write: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The operations that are there, each with where."""
    for op, mask in zip(OPERATIONS, (~write, write), strict=True):
        if mask.any():
            yield op, mask
