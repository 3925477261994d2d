"""MSR Cambridge block traces (SNIA): CSV without a header."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.importers.blocks import LATEST, Accesses, BlockFormat, block_schema
from ecjax.tables.importers.text import csv_batches
from ecjax.tables.importers.trace import RATES, SOJOURN, Head, Source, Trace

_TYPES = {
    "Timestamp": pa.int64(),
    "Hostname": pa.string(),
    "DiskNumber": pa.string(),
    "Type": pa.string(),
    "Offset": pa.int64(),
    "Size": pa.int64(),
    "ResponseTime": pa.int64(),
}
_TICK_S = 1e-7
_WRITES = {"read": False, "write": True}


class MsrImporter:
    """Reads Timestamp, Hostname, DiskNumber, Type, Offset, Size, ResponseTime.

    Times are Windows file times (steps of 100 ns), offset and size bytes. The response time gives ``finish_s``.

    Loses: a response time is a sojourn time, so that service times and loads are not known; the volume is no storage
    node; there is no code; times are counted from the first access.
    """

    name = "msr"

    def recognises(self, head: Head) -> bool:
        """Whether the first line has seven cells of the right kinds."""
        cells = head.lines[0].strip().split(",") if head.lines else []
        numbers = [cells[place].strip() for place in (0, 4, 5, 6)] if len(cells) == len(_TYPES) else ["-"]
        return all(cell.isdigit() for cell in numbers) and cells[3].strip().lower() in _WRITES

    def open(self, source: Source) -> Trace:
        """Open an MSR Cambridge trace; ``extent_bytes`` is needed.

        Raises:
            UserError: ``extent_bytes`` is missing.
        """
        extent_bytes = source.extents()
        blocks = BlockFormat(source.path, lambda: _parse(source.path), first_line=1, tick_s=_TICK_S)
        return Trace(
            path=source.path,
            format=self.name,
            schema=block_schema(volumes=True, finish=True),
            read=lambda: blocks.requests(extent_bytes, source.sort),
            provides=frozenset({RATES, SOJOURN}),
            loses=(
                "Response times are sojourn times (arrival to finish): service times and load are unknown.",
                f"Files are extents of {extent_bytes} bytes of a volume; an access is charged the bytes that it asked "
                "for.",
                *source.sorting,
            ),
            clock_resolution_s=_TICK_S,
            fingerprint=trace_fingerprint(source.path),
            extent_bytes=extent_bytes,
        )


def _parse(path: Path) -> Iterator[Accesses]:
    line = 1
    for batch in csv_batches(path, _TYPES, names=list(_TYPES)):
        for name in _TYPES:
            if batch.column(name).null_count:
                row = int(np.argmax(np.asarray(batch.column(name).is_null())))
                raise UserError(f"{path}, line {line + row}: column {name} is empty")
        encoded = batch.column("Type").dictionary_encode()
        words, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        for code, word in enumerate(words):
            if word.lower() not in _WRITES:
                row = int(np.argmax(codes == code))
                raise UserError(f"{path}, line {line + row}: found Type {word!r}; allowed: Read or Write")
        time, offset, size, response = (
            batch.column(name).to_numpy() for name in ("Timestamp", "Offset", "Size", "ResponseTime")
        )
        wrong = (response < 0) | (response > LATEST)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise UserError(
                f"{path}, line {line + row}: found ResponseTime {response[row]}; allowed: integers >= 0, up to 2^61"
            )
        volumes = pc.binary_join_element_wise(batch.column("Hostname"), batch.column("DiskNumber"), ".")
        writes = np.array([_WRITES[word.lower()] for word in words])[codes]
        yield Accesses(time, writes, offset, size, time + response, volumes.dictionary_encode())
        line += batch.num_rows


MSR = MsrImporter()
