"""What is stored, beside a log of what was read: objects that no request named, and sizes of the others."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.nulls import empty_to_null
from ecjax.units import count_text

_ROUNDED = 1e-6  # relative; chunks are rounded up to whole bytes besides


def with_catalog(files: pa.Table, catalog: pa.Table | None, k: int | None, notices: list[str]) -> pa.Table:
    """The ``files`` table of a log with all objects of a catalog: those never read have rate 0.

    ``stored_bytes`` are those of the catalog. ``k`` of objects never read is the option, else that of the catalog, else
    the one of all files that were read; else it is missing.

    Args:
        files: of the log.
        catalog: checked table, or None.
        k: what k of every file is set to.
        notices: what does not fit together is added.

    Raises:
        UserError: no object of the log is in the catalog.
    """
    if catalog is None:
        return files
    ids = files["file_id"].combine_chunks()
    listed = catalog["file_id"].combine_chunks()
    place = pc.index_in(ids, value_set=listed) if listed.type == ids.type else pa.nulls(len(ids), pa.int32())
    if place.null_count == len(ids):
        raise UserError(
            f"catalog: names no object of the log (file_id {listed[0].as_py()!r} in the one, {ids[0].as_py()!r} in the "
            "other); allowed: the names of the log, which keep_ids=true leaves as they are"
        )
    sizes = catalog["bytes"].to_numpy()
    known = np.asarray(pc.is_valid(place))
    size = sizes[place.fill_null(0).to_numpy()]
    stored = files["stored_bytes"].to_numpy().copy()
    _say_conflicts(ids, size, stored, known & (stored > size * (1 + _ROUNDED) + 64), notices)
    if place.null_count:
        notices.append(
            f"{count_text(place.null_count, 'object')} of the log not in the catalog: of the size that the log has."
        )
    stored[known] = np.where(size > 0, size, stored)[known]
    files = files.set_column(files.column_names.index("stored_bytes"), "stored_bytes", empty_to_null(stored))
    unread = np.ones(len(listed), bool)
    unread[place.drop_null().to_numpy()] = False
    empty = int(np.count_nonzero(sizes[unread] <= 0))
    if empty:
        notices.append(
            f"{count_text(empty, 'object')} of the catalog without a byte {'is' if empty == 1 else 'are'} left out of "
            "the files table."
        )
    unread &= sizes > 0
    return pa.concat_tables([files, _unread(files, catalog.filter(pa.array(unread)), k)])


def _say_conflicts(
    ids: pa.Array, size: np.ndarray, stored: np.ndarray, larger: np.ndarray, notices: list[str]
) -> None:
    rows = np.flatnonzero(larger)
    if rows.size:
        row = int(rows[np.argmax(stored[rows] / np.maximum(size[rows], 1.0))])
        notices.append(
            f"{rows.size} objects moved more bytes at once than the catalog has of them ({ids[row].as_py()!r}: "
            f"{stored[row]:.10g} B in the log, {size[row]:.10g} B in the catalog): sizes are the catalog's."
        )


def _unread(files: pa.Table, catalog: pa.Table, k: int | None) -> pa.Table:
    """Rows like those of ``files``, of objects that were never accessed."""
    count = len(catalog)
    one = files["k"].drop_null().unique()
    chunks = pa.repeat(
        pa.scalar(k if k is not None else one[0].as_py() if len(one) == 1 else None, pa.int64()), count
    )
    if k is None and "k" in catalog.column_names:
        chunks = pc.coalesce(catalog["k"], chunks)
    zero = pa.repeat(pa.scalar(0.0), count)
    values = {
        "file_id": catalog["file_id"],
        "bytes": catalog["bytes"],
        "stored_bytes": catalog["bytes"],
        "k": chunks,
        "rate_per_s": zero,
        "rate_standard_error_per_s": zero,
        "write_rate_per_s": zero,
        "reads": zero,
        "writes": zero,
    }
    return pa.table(
        {
            field.name: values[field.name].cast(field.type)
            if field.name in values
            else pa.nulls(count, field.type)
            for field in files.schema
        }
    )
