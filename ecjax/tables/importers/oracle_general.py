"""libCacheSim's oracleGeneral: 24-byte binary records."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.formats import user_errors
from ecjax.tables.importers.checking import OPERATION, WORDS, checked
from ecjax.tables.importers.table import refuse_extents
from ecjax.tables.importers.text import open_stream
from ecjax.tables.importers.trace import BATCH_ROWS, RATES, Head, Source, Trace

# struct, packed: uint32 time (s), uint64 object, uint32 size (B), int64 next access (-1: none); little-endian.
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
_COMPRESSED = (".gz", ".zst", ".bz2", ".lz4")
_ENDING = ".oraclegeneral"


class OracleGeneralImporter:
    """Reads time, object and size of each record, uncompressed or compressed (.gz, .zst, ...).

    Loses: there is no operation, so that all accesses count as reads; no response times, no nodes and no code; the
    clock ticks in whole seconds; objects of 2^63 or more come back as negative integers (number - 2^64), since ids are
    64-bit signed. The number of the next access is not needed.
    """

    name = "oracle_general"

    def recognises(self, head: Head) -> bool:
        """Whether the ending says so, or the bytes are records with rising times and next accesses ahead."""
        if head.path.is_dir() or head.lines or head.columns:
            return False
        if _ENDING in head.path.name.lower():
            return True
        records = np.frombuffer(head.start[: len(head.start) // RECORD.itemsize * RECORD.itemsize], RECORD)
        if records.size == 0:
            return False
        ahead = (records["next"] == -1) | (records["next"] > np.arange(records.size))
        return bool(np.all(np.diff(records["time"].astype(np.int64)) >= 0) and ahead.all())

    def open(self, source: Source) -> Trace:
        """Open an oracleGeneral trace.

        Raises:
            UserError: ``extent_bytes`` was given, or the path is a folder.
        """
        refuse_extents(source, self.name)
        if source.path.is_dir():
            raise UserError(f"{source.path}: found a folder; allowed: one file of 24-byte records")
        path = str(source.path)
        return Trace(
            path=source.path,
            format=self.name,
            schema=pa.schema(
                {"arrival_s": pa.float64(), "file_id": pa.int64(), "op": OPERATION, "bytes": pa.float64()}
            ),
            read=lambda: checked(_parse(source.path), path, source.sort),
            provides=frozenset({RATES}),
            loses=(
                "Operations are not recorded: all accesses count as reads.",
                "No response times: sojourn, service and load are unknown.",
                "The clock ticks in whole seconds.",
                *source.sorting,
            ),
            clock_resolution_s=1.0,
            fingerprint=trace_fingerprint(source.path),
            rows=None if source.path.suffix in _COMPRESSED else source.path.stat().st_size // RECORD.itemsize,
        )


def _parse(path: Path) -> Iterator[pa.RecordBatch]:
    read, rest = 0, b""
    with user_errors(path), open_stream(path) as stream:
        while True:
            data = stream.read(BATCH_ROWS * RECORD.itemsize)
            if not data:
                break
            read += len(data)
            data = rest + data
            whole = len(data) // RECORD.itemsize
            records, rest = np.frombuffer(data, RECORD, whole), data[whole * RECORD.itemsize :]
            if whole:
                yield pa.record_batch(
                    {
                        "arrival_s": pa.array(records["time"].astype(float)),
                        "file_id": pa.array(records["id"].astype(np.int64)),
                        "op": pa.DictionaryArray.from_arrays(pa.array(np.zeros(whole, np.int8)), WORDS),
                        "bytes": pa.array(records["size"].astype(float)),
                    }
                )
    if rest:
        raise UserError(
            f"{path}: found {read} bytes, which end {len(rest)} bytes into record {read // RECORD.itemsize}; allowed: "
            f"whole records of {RECORD.itemsize} bytes"
        )
    if not read:
        raise UserError(f"{path}: found no records; allowed: at least one")


ORACLE_GENERAL = OracleGeneralImporter()
