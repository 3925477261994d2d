"""Fingerprints of inputs: the same content gives the same id, wherever and in whatever pieces it is kept."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.formats import check_regular, user_errors, visible_files
from ecjax.tables.patterns import log_location
from ecjax.tables.schemas import INPUTS
from ecjax.tables.several import base_of


def fingerprint(table: pa.Table, name: str | None = None) -> str:
    """SHA-256 (hex) over the columns of a checked table: names, types, empty cells and values, in row order.

    It depends neither on chunks nor on the order of the columns.

    Args:
        table: a table whose columns have canonical types (see ``checks.check``).
        name: a key of ``schemas.INPUTS``: only the columns of this schema count. Default: all columns.

    Raises:
        TypeError: a column that counts has another type than ``check`` gives.
    """
    names = None if name is None else {column.name for column in INPUTS[name]}
    digest = hashlib.sha256()
    for column in sorted(table.column_names):
        if names is None or column in names:
            digest.update(f"{column}\0".encode())
            _hash_array(digest, pa.concat_arrays(table.column(column).chunks or [pa.nulls(0)]))
    return digest.hexdigest()


def _hash_array(digest: "hashlib._Hash", array: pa.Array) -> None:
    kind = array.type
    digest.update(f"{kind}\0{len(array)}\0".encode())
    digest.update(np.asarray(array.is_valid()).tobytes())
    if pa.types.is_list(kind):
        digest.update(_bytes(pc.list_value_length(array)))
        _hash_array(digest, array.flatten())
    elif pa.types.is_string(kind):
        digest.update(_bytes(pc.binary_length(array)))
        digest.update(_text_bytes(array))
    elif pa.types.is_int64(kind) or pa.types.is_float64(kind) or pa.types.is_boolean(kind):
        digest.update(_bytes(array))
    elif not pa.types.is_null(kind):
        raise TypeError(f"a fingerprint needs canonical column types, found {kind}")


def _bytes(array: pa.Array) -> bytes:
    """Values as little-endian bytes; empty cells and negative zeros as zeros."""
    numbers = array.fill_null(False if pa.types.is_boolean(array.type) else 0).to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        numbers = numbers + 0.0
    return numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()


def _text_bytes(array: pa.Array) -> memoryview:
    """The strings one after another, without separators."""
    filled = array.fill_null("").cast(pa.large_string())
    offsets, data = filled.buffers()[1:]
    ends = np.frombuffer(offsets, np.int64, len(filled) + 1, filled.offset * 8)
    return memoryview(data)[ends[0] : ends[-1]] if data is not None else memoryview(b"")


_digests: dict[tuple[object, ...], str] = {}  # of files that were read, by path, size and time


def trace_fingerprint(paths: str | Path | Iterable[str | Path], fresh: bool = True) -> str:
    """SHA-256 (hex) over the files of a trace: sorted relative names, sizes and content hashes.

    Names are relative to a folder that is given, and bare for a file that is given, so that a trace may move. Those of
    files that match a pattern are relative to the folder that all of them are in, as if that were given.

    Args:
        paths: a file, a folder (names that begin with "." or "_" are ignored), a pattern of them
            (``patterns.log_location``), or several of these.
        fresh: read all of them, also those that this process has read before and that look as they did.

    Raises:
        UserError: a path is missing or cannot be read.
    """
    entries = []
    addresses = [paths] if isinstance(paths, str) or not isinstance(paths, Iterable) else paths
    for path in map(log_location, addresses):
        with user_errors(path):
            if not path.exists():
                raise UserError(f"{path}: no such file or folder")
            check_regular(path)
            files = list(visible_files(path)) if path.is_dir() else [path]
            root = base_of(path)
        for file in files:
            with user_errors(file):
                size, content = _content(file, fresh)
                entries.append((file.relative_to(root).as_posix(), size, content))
    lines = "".join(f"{name}\0{size}\0{content}\n" for name, size, content in sorted(entries))
    return hashlib.sha256(lines.encode()).hexdigest()


def _content(file: Path, fresh: bool) -> tuple[int, str]:
    """Size and SHA-256 of a file."""
    status = file.stat()
    key = (file, status.st_size, getattr(status, "st_mtime_ns", 0))
    if fresh or key not in _digests:
        with file.open("rb") as stream:
            _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return status.st_size, _digests[key]
