"""Importers: every trace format read to the one ``requests`` schema, each saying what it loses and provides.

``open_trace`` is the entry. A format is one module with one object (see ``trace.Importer``) in the registry below.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecjax.errors import UserError
from ecjax.tables.formats import refuse_empty, user_errors
from ecjax.tables.importers.access_logs import ACCESS_LOGS
from ecjax.tables.importers.cloudphysics import CLOUDPHYSICS
from ecjax.tables.importers.columns import COLUMN_MAPPING
from ecjax.tables.importers.detect import describe, read_head
from ecjax.tables.importers.msr import MSR
from ecjax.tables.importers.oracle_general import ORACLE_GENERAL
from ecjax.tables.importers.table import TABLE
from ecjax.tables.importers.trace import MOST_REJECTS, Importer, Source, Trace
from ecjax.tables.patterns import log_location

__all__ = ["FORMATS", "Trace", "open_trace"]

# In the order in which they are asked whether a trace is theirs.
_IMPORTERS: tuple[Importer, ...] = (TABLE, COLUMN_MAPPING, CLOUDPHYSICS, MSR, *ACCESS_LOGS, ORACLE_GENERAL)
_OF_ONE_FILE = (CLOUDPHYSICS, MSR, ORACLE_GENERAL)
FORMATS = {importer.name: importer for importer in _IMPORTERS}


def open_trace(
    path: str | Path,
    format: str = "auto",
    columns: Mapping[str, Any] | None = None,
    extent_bytes: int | None = None,
    sort: bool = False,
    keep_ids: bool = False,
    max_rejects: float = MOST_REJECTS,
) -> Trace:
    """Open a trace of any known format.

    Args:
        path: file, folder of files, or pattern of their names, on this machine or in an object store
            (``patterns.log_location``).
        format: key of ``FORMATS``, or "auto" to tell it from the content.
        columns: column mapping of the format ``columns``.
        extent_bytes: size of the extents that stand for files in a block trace (B).
        sort: sort rows by arrival, in memory, instead of refusing unsorted ones.
        keep_ids: leave names of objects in access logs as they are, instead of hashing them.
        max_rejects: malformed lines of an access log that are allowed: a share if below 1, else a number.

    Raises:
        UserError: the path, the format or an option is wrong, or an option is missing.
    """
    source = Source(log_location(path), columns, extent_bytes, sort, keep_ids, max_rejects)
    if format not in ("auto", *FORMATS):
        raise UserError(f"format: found {format!r}; allowed: auto, {', '.join(FORMATS)}")
    with user_errors(path):
        refuse_empty(source.path)
    head = read_head(source.path)
    if columns is not None:
        if format not in ("auto", COLUMN_MAPPING.name):
            raise UserError(
                f"columns: found a mapping with format={format}; allowed: format={COLUMN_MAPPING.name}"
            )
        return COLUMN_MAPPING.open(source)
    if format != "auto":
        if source.path.is_dir() and FORMATS[format] in _OF_ONE_FILE:
            raise UserError(
                f"{path}: found a folder, or several files; allowed with format={format}: one file"
            )
        tables = (TABLE, COLUMN_MAPPING)
        if head.columns and not head.lines and not source.path.is_dir() and FORMATS[format] not in tables:
            raise UserError(
                f"{path}: found a table with columns {', '.join(head.columns)}; allowed with format={format}: the log "
                "as it was published or written (or columns=, for tables of any names)"
            )
        return FORMATS[format].open(source)
    for importer in FORMATS.values():
        if importer.recognises(head):
            return importer.open(source)
    lacking = TABLE.lacking(head)
    almost = f"; a table of requests has {', '.join(lacking)}, too" if lacking else ""
    raise UserError(
        f"{path}: cannot tell its format; {describe(head)}{almost}; give format= ({', '.join(FORMATS)}) or columns="
    )
