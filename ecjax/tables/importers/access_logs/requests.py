"""Accesses in order of arrival as batches of the ``requests`` table."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ecjax.tables.importers.access_logs.profile import Profile
from ecjax.tables.importers.checking import OPERATION, WORDS
from ecjax.tables.importers.clock import clock_resolution
from ecjax.tables.importers.trace import BATCH_ROWS, OBJECT_BYTES

_NS = 1e-9


class Emitter:
    """Gives accesses the columns of ``requests``: times in seconds since the first one.

    Args:
        profile: of the log.
        extent_bytes: size of the extents of a block trace (B), or None.
    """

    def __init__(self, profile: Profile, extent_bytes: int | None) -> None:
        self._profile, self._extent_bytes = profile, extent_bytes

    def schema(self, sample: pa.RecordBatch) -> pa.Schema:
        """Schema of the batches of a log that has accesses like these."""
        return self._batch(sample.slice(0, 1), sample, 0).schema

    def resolution(self, sample: pa.RecordBatch) -> float:
        """The step of the clock (s)."""
        ticks = sample["ticks"].to_numpy()
        for digits in range(10):
            if not np.any(ticks % 10 ** (9 - digits)):
                return 10.0**-digits
        return 0.0

    def requests(self, batches: Iterator[pa.RecordBatch], sample: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Batches of requests."""
        origin = None
        for batch in batches:
            for begin in range(0, batch.num_rows, BATCH_ROWS):
                part = batch.slice(begin, BATCH_ROWS)
                origin = part["ticks"][0].as_py() if origin is None else origin
                yield self._batch(part, sample, origin)

    def _batch(self, batch: pa.RecordBatch, sample: pa.RecordBatch, origin: int) -> pa.RecordBatch:
        arrivals = (batch["ticks"].to_numpy() - origin) * _NS
        write = batch["write"].to_numpy(zero_copy_only=False).astype(np.int8)
        columns = {
            "arrival_s": pa.array(arrivals),
            "file_id": batch["name"],
            "op": pa.DictionaryArray.from_arrays(pa.array(write), WORDS),
            "bytes": batch["bytes"],
        }
        if _known(sample, "duration_s"):
            finish = arrivals + batch["duration_s"].to_numpy()
            columns["finish_s"] = pa.array(finish, mask=np.isnan(finish))
        if _known(sample, "object_bytes"):
            columns[OBJECT_BYTES] = batch["object_bytes"]
        return pa.record_batch(columns)


def _known(sample: pa.RecordBatch, name: str) -> bool:
    return not np.isnan(sample[name].to_numpy()).all()
