"""How files come into a folder of results: whole or not at all, whoever is killed while writing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ecjax.errors import UserError

_TEMPORARY = ".parquet.tmp"


@contextmanager
def publishing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which is at ``path`` once the block ends well: fsync, then rename.

    Its name begins with a dot and is used once, so that two processes may write the same file at a time. The folder
    is made. After a power cut the file is absent or whole; that it is there is sure after ``sync_folder``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{uuid4().hex}{_TEMPORARY}")
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def sync_folder(folder: Path) -> None:
    """Make the renames in a folder last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove what killed writers left half-written."""
    if folder.is_dir():
        for file in folder.iterdir():
            if file.name.startswith(".") and file.name.endswith(_TEMPORARY):
                file.unlink(missing_ok=True)


@contextmanager
def write_errors(out: object) -> Iterator[None]:
    """Turn what the system says of a folder of results (disk full, permission denied) into a ``UserError``."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
        raise UserError(f"out={out}: cannot be written: {reason}") from error
