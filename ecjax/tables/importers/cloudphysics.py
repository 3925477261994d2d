"""CloudPhysics block traces, as libCacheSim distributes them: CSV with header version,time,op,size,lbn."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.importers.blocks import Accesses, BlockFormat, block_schema
from ecjax.tables.importers.text import csv_batches
from ecjax.tables.importers.trace import RATES, Head, Source, Trace
from ecjax.tables.times import clock_unit

_HEADER = ("version", "time", "op", "size", "lbn")
_SECTOR_BYTES = 512
_WRITES = {"28": False, "2a": True, "2A": True}
_TYPES = {"time": pa.int64(), "op": pa.string(), "size": pa.int64(), "lbn": pa.int64()}


class CloudPhysicsImporter:
    """Reads one virtual disk: time in seconds, SCSI operation (28 READ(10), 2a WRITE(10)), bytes, 512-byte sector.

    Loses: there are no response times, so neither sojourn nor service times, no nodes and no code; the clock ticks in
    whole seconds; times are counted from the first access.
    """

    name = "cloudphysics"

    def recognises(self, head: Head) -> bool:
        """Whether the header is CloudPhysics'."""
        return bool(head.lines) and tuple(head.lines[0].strip().split(",")) == _HEADER

    def open(self, source: Source) -> Trace:
        """Open a CloudPhysics trace; ``extent_bytes`` is needed.

        Raises:
            UserError: ``extent_bytes`` is missing or the header another one.
        """
        extent_bytes = source.extents()
        blocks = BlockFormat(source.path, lambda: _parse(source.path), first_line=2, tick_s=1.0)
        return Trace(
            path=source.path,
            format=self.name,
            schema=block_schema(volumes=False, finish=False),
            read=lambda: blocks.requests(extent_bytes, source.sort),
            provides=frozenset({RATES}),
            loses=(
                "Block accesses without response times: sojourn, service and load are unknown.",
                "The clock ticks in whole seconds.",
                f"Files are extents of {extent_bytes} bytes; an access is charged the bytes that it asked for.",
                *source.sorting,
            ),
            clock_resolution_s=1.0,
            fingerprint=trace_fingerprint(source.path),
            extent_bytes=extent_bytes,
        )


def _parse(path: Path) -> Iterator[Accesses]:
    line = 2
    for batch in csv_batches(path, _TYPES, columns=list(_TYPES)):
        for name in _TYPES:
            if batch.column(name).null_count:
                row = int(np.argmax(np.asarray(batch.column(name).is_null())))
                raise UserError(f"{path}, line {line + row}: column {name} is empty")
        encoded = batch.column("op").dictionary_encode()
        words = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        for code, word in enumerate(words):
            if word not in _WRITES:
                row = int(np.argmax(codes == code))
                raise UserError(
                    f"{path}, line {line + row}: found op {word!r}; allowed: 28 (read) or 2a (write)"
                )
        time, size, sector = (batch.column(name).to_numpy() for name in ("time", "size", "lbn"))
        unit = clock_unit(float(time[0])) if len(time) else None
        if unit is not None:
            raise UserError(
                f"{path}, line {line}: found time {time[0]}, which looks like {unit.name} since 1970; allowed: "
                f"seconds, so multiply it by {unit.seconds:g}"
            )
        wrong = (sector < 0) | (sector > (1 << 53))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise UserError(f"{path}, line {line + row}: found lbn {sector[row]}; allowed: 0 to 2^53")
        writes = np.array([_WRITES[word] for word in words])[codes]
        yield Accesses(time, writes, sector * _SECTOR_BYTES, size)
        line += batch.num_rows


CLOUDPHYSICS = CloudPhysicsImporter()
