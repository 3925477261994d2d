"""What a trace looks like at its beginning, for the importers to recognise theirs."""

from pathlib import Path

from ecjax.errors import UserError
from ecjax.tables.formats import (
    CSV,
    IPC,
    PARQUET,
    check_regular,
    open_file,
    parquet_files,
    user_errors,
    visible_files,
)
from ecjax.tables.importers.access_logs.lines import open_lines
from ecjax.tables.importers.trace import Head
from ecjax.tables.several import Several

_BYTES = 1 << 16
_MEMBERS = 16  # files of a folder that are looked into
_FOREIGN_SHARE = 0.3  # of the letters of a text that may be in another encoding than UTF-8


def read_head(path: Path) -> Head:
    """The beginning of a file or folder.

    Raises:
        UserError: it does not exist or cannot be read.
    """
    with user_errors(path):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
        check_regular(path)
    if path.is_dir():
        files = parquet_files(path)
        return Head(path, b"", (), _columns(files[0])) if files else Head(path, b"", (), (), _members(path))
    with user_errors(path), open_lines(path) as stream:
        start = stream.read(_BYTES)
    if path.name.lower().endswith(PARQUET + IPC):
        return Head(path, start, (), _columns(path))
    lines = _lines(start)
    header = tuple(cell.strip().strip('"') for cell in lines[0].split(",")) if lines else ()
    return Head(path, start, lines, header if path.name.lower().endswith(CSV) else ())


def _members(folder: Path) -> tuple[tuple[str, ...], ...]:
    """The first lines of the first files in a folder that are text."""
    members: list[tuple[str, ...]] = []
    for file in sorted(visible_files(folder)):
        with user_errors(file), open_lines(file) as stream:
            lines = _lines(stream.read(_BYTES))
        members += [lines] if lines else []
        if len(members) == _MEMBERS:
            break
    return tuple(members)


def _columns(path: Path) -> tuple[str, ...]:
    with user_errors(path):
        return tuple(open_file(path, None).schema.names)


def _lines(start: bytes) -> tuple[str, ...]:
    """Whole lines of text; none where the bytes are no text."""
    text = start.decode("utf-8", errors="replace").removeprefix("\ufeff")
    if "\0" in text or text.count("\ufffd") > _FOREIGN_SHARE * len(text):
        return ()
    lines = text.splitlines()
    return tuple(lines[:-1] if len(start) == _BYTES else lines)


def describe(head: Head) -> str:
    """What the beginning of a trace shows, for the message that its format is unknown."""
    if head.columns:
        return f"found columns {', '.join(head.columns)}"
    if head.lines:
        return f"found as first line {head.lines[0][:80]!r}"
    if isinstance(head.path, Several):
        return "found several files, none of them Parquet"
    if head.path.is_dir():
        return "found a folder without Parquet files"
    if not head.start:
        return "found an empty file (0 bytes, once it is decompressed)"
    return "found binary data"
