"""Files of lines in blocks of bytes, decompressed as they come."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.tables.folder import is_local
from ecjax.tables.formats import user_errors
from ecjax.tables.importers.text import compression_of

BLOCK_BYTES = 1 << 22
_OTHER_FILES = 256  # that a process has open besides: libraries, connections, results
_NEWLINE, _RETURN, _COMMENT = 10, 13, 35
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Some whole lines of a file.

    Attributes:
        data: (bytes,) uint8.
        begins, ends: (lines,) int64, of the lines that are neither empty nor comments ("#").
        numbers: (lines,) int64, from 1 in the file.
    """

    data: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    numbers: np.ndarray

    def text(self, line: int) -> str:
        """A line."""
        return bytes(self.data[self.begins[line] : self.ends[line]]).decode("utf-8", "backslashreplace")


def open_lines(path: Path) -> pa.NativeFile:
    """A file from its beginning, decompressed by what its first bytes say (gzip, zstd, bzip2)."""
    if not is_local(path):
        return path.stream()  # type: ignore[attr-defined]
    return pa.input_stream(str(path), compression=compression_of(path))


def blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Blocks of about ``size`` bytes (more where a line is longer).

    A file that is waited with is open only where more of it is to be read than the block that was given.

    Raises:
        UserError: the file cannot be read.
    """
    rest, number = b"", 1
    with user_errors(path), open_lines(path) as stream:
        while True:
            chunk = _read(stream, size)
            ends = len(chunk) < size
            if number == 1 and not rest:
                chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
            if ends:
                break
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest += chunk
                continue
            whole, rest = rest + chunk[:cut], chunk[cut:]
            block, number = _block(whole, number)
            yield block
    if rest or chunk:
        yield _block(rest + chunk, number)[0]


def _read(stream: pa.NativeFile, size: int) -> bytes:
    """So many bytes; fewer at the end only, though a store may give fewer at a time."""
    content: bytes = stream.read(size)
    while len(content) < size and (more := stream.read(size - len(content))):
        content += more
    return content


def allow_open_files(count: int) -> None:
    """Raise the limit of open files of this process where it may, so that ``count`` more than usual can be open."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit
    except ImportError:  # not on Windows
        return
    limit, most = getrlimit(RLIMIT_NOFILE)
    needed = count + _OTHER_FILES
    if limit == RLIM_INFINITY or limit >= needed:
        return
    with suppress(ValueError, OSError):  # some systems allow fewer than they say
        setrlimit(RLIMIT_NOFILE, (needed if most == RLIM_INFINITY else min(needed, most), most))


def _block(content: bytes, number: int) -> tuple[Block, int]:
    """The block, and the number of the line after it."""
    data = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if content[-1] != _NEWLINE:
        ends = np.append(ends, len(data))
    begins = np.empty_like(ends)
    begins[0], begins[1:] = 0, ends[:-1] + 1
    numbers = np.arange(number, number + len(ends))
    ends = ends - ((ends > begins) & (data[np.maximum(ends - 1, 0)] == _RETURN))
    used = (ends > begins) & (data[np.minimum(begins, len(data) - 1)] != _COMMENT)
    return Block(data, begins[used], ends[used], numbers[used]), number + len(used)
