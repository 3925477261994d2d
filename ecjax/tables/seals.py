"""Parquet files that carry the SHA-256 of their own bytes, so that damage anywhere in them shows, also in the footer.

The hash is a value in the footer's metadata, and counts as zeros while it is computed. Page checksums, which Parquet
has, cover neither names and types of columns nor what else is in the footer.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

KEY = "ecjax_sha256"
BLANK = "0" * 64
NO_HASH = "it does not carry the hash of its bytes"

_END = struct.Struct("<I4s")  # length of the footer, and the last bytes of every Parquet file
_MAGIC = b"PAR1"


class Contents(NamedTuple):
    """What is written down of a file apart from it.

    Attributes:
        rows: in it.
        bytes: of it.
        sha256: the hash that it carries.
    """

    rows: int
    bytes: int
    sha256: str


def seal(path: Path) -> str:
    """Put the hash of a file of this machine into it, in place of ``BLANK`` in its metadata; returns the hash."""
    with path.open("r+b") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        start = _place(file)
        if start is None:
            raise ValueError(f"{path}: was written without a place for its hash")
        file.seek(start)
        file.write(digest.encode())
    return digest


def sealed_content(path: Path) -> tuple[bytes | None, str | None]:
    """The bytes of a file that carries its hash, and what is wrong with them, if anything is.

    Returns:
        No bytes where the file carries no hash: another program wrote it, or ecjax before version 9 of its schemas.
    """
    with path.open("rb") as file:
        start = _place(file)
        if start is None:
            return None, NO_HASH
        file.seek(0)
        content = file.read()
    end = start + len(BLANK)
    digest = hashlib.sha256(memoryview(content)[:start])
    digest.update(BLANK.encode())
    digest.update(memoryview(content)[end:])
    same = content[start:end] == digest.hexdigest().encode()
    return content, None if same else "its bytes are not those that were written (SHA-256)"


def carries_hash(path: Path) -> bool:
    """Whether a file carries its hash, right or wrong; only its end is read."""
    with path.open("rb") as file:
        return _place(file) is not None


def _place(file: IO[bytes]) -> int | None:
    """Where the hash begins in a Parquet file; None where it has none."""
    size = file.seek(0, 2)
    if size < _END.size:
        return None
    file.seek(size - _END.size)
    length, magic = _END.unpack(file.read(_END.size))
    begin = size - _END.size - length
    if magic != _MAGIC or begin < 0:
        return None
    file.seek(begin)
    footer = file.read(length)
    key = footer.rfind(KEY.encode())
    # as Thrift writes strings: the key, what comes next, the length of the value, the value
    start = key + len(KEY) + 2
    whole = key >= 0 and start + len(BLANK) <= length and footer[start - 1] == len(BLANK)
    return begin + start if whole else None


def as_text(files: Mapping[str, Contents]) -> str:
    """The contents of files by name, as JSON."""
    return json.dumps(
        {name: list(contents) for name, contents in sorted(files.items())}, separators=(",", ":")
    )


def from_text(text: str | None) -> dict[str, Contents]:
    """What ``as_text`` wrote."""
    return {name: Contents(*values) for name, values in json.loads(text or "{}").items()}
