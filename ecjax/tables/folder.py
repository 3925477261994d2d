"""Where results and inputs lie: a folder of this machine or of an object store; how files come into it."""

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from filelock import FileLock, Timeout

from ecjax.display import without_secrets
from ecjax.errors import UserError
from ecjax.tables.remote import RemotePath
from ecjax.tables.several import Several

_TEMPORARY, _LOCK = ".tmp", ".lock"
_LOGS = "logs"  # where Hydra keeps what it was told of a sweep
_KEPT: set[Path] = set()  # folders that this process has between its commands, too
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_FEW, _WRITES, _REQUESTS = 8, 4, 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def location(address: str | Path | RemotePath) -> Path:
    """The path that an address means.

    Args:
        address: a path, ``file:///path``, or an address of an object store: ``s3://bucket/path``, ``gs://``, ``abfs://``
            (``pyarrow.fs``), or of any other kind that fsspec knows.

    Returns:
        For an object store a ``remote.RemotePath``, which stands for a ``Path`` as far as ecjax uses it.

    Raises:
        UserError: there is no such kind of store, the package for it is missing, or the address is malformed.
    """
    if not isinstance(address, str) or not _SCHEME.match(address):
        return address if not isinstance(address, str) else Path(address)  # type: ignore[return-value]
    if address.lower().startswith("file://"):
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise UserError(f"{address}: malformed; allowed: file:///path")
        return Path(unquote(parts.path))
    return RemotePath(address)  # type: ignore[return-value]


def is_local(path: Path) -> bool:
    """Whether a path is one of this machine's file system."""
    return not isinstance(path, RemotePath)


def absolute(path: Path) -> str:
    """The address that opens a path from anywhere on this machine; of an object store, secrets are part of it."""
    return path.address if isinstance(path, RemotePath | Several) else os.path.abspath(path)


def public(path: Path) -> str:
    """The address of a path from anywhere, as results keep it: without user information and query."""
    return without_secrets(absolute(path))


@contextmanager
def publishing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which is at ``path`` once the block ends well; the folder is made.

    In a folder of this machine: fsync, then rename. The temporary name begins with a dot and is used once, so that two
    processes may write the same file at a time. After a power cut the file is absent or whole; that it is there is
    sure after ``sync_folder``.

    In an object store: one upload from a temporary file of this machine; the object is there whole or not at all.
    """
    if not is_local(path):
        with tempfile.TemporaryDirectory(prefix="ecjax-") as folder:
            file = Path(folder) / "object"
            yield file
            path.upload(file)  # type: ignore[attr-defined]
        return
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name.removeprefix('.')}-{uuid4().hex}{_TEMPORARY}")
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


def staged(path: Path, token: str) -> Path:
    """Where a file waits, written, until ``publish`` puts it at ``path``: under a name that readers of folders skip.

    An object store renames nothing: there it is at ``path`` at once.
    """
    return path.with_name(f".{path.name}-{token}{_TEMPORARY}") if is_local(path) else path


def publish(path: Path, token: str) -> None:
    """Put a staged file where it belongs, for good."""
    if is_local(path):
        os.replace(staged(path, token), path)
        sync_folder(path.parent)


def withdraw(path: Path, token: str) -> None:
    """Remove what is staged for ``path``; in an object store nothing is."""
    if is_local(path):
        staged(path, token).unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder of this machine and those above it, if absent, for good."""
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in absent:
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Make the renames in a folder last through a power cut; what an object store has taken lasts."""
    if not is_local(folder):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_visible(path: Path) -> bool:
    """Whether readers of its folder take a file or folder for a part of a table: its name begins with no "." or "_"."""
    return not path.name.startswith((".", "_"))


def remove_temporaries(folder: Path) -> None:
    """Remove what killed writers left half-written."""
    if is_local(folder) and folder.is_dir():
        for file in folder.iterdir():
            if file.name.startswith(".") and file.name.endswith(_TEMPORARY):
                file.unlink(missing_ok=True)


def each(function: Callable[[_Item], _Result], items: Collection[_Item], folder: Path) -> Iterator[_Result]:
    """The function's results in the order of the items, each a file of the folder to read or write.

    Several are under way at a time: a disk waits for writes (fsync), an object store for answers.
    """
    if is_local(folder) and len(items) < _FEW:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(_WRITES if is_local(folder) else _REQUESTS) as pool:
        yield from pool.map(function, items)


@contextmanager
def kept(folders: Iterable[Path]) -> Iterator[None]:
    """Within the block this process has the folders, also between the commands that write to them.

    Raises:
        UserError: another process has one of them.
    """
    with ExitStack() as stack:
        for folder in dict.fromkeys(folders):
            lock = FolderLock(folder)
            lock.acquire()
            stack.callback(lock.release)
            if is_local(folder):
                _KEPT.add(folder.absolute())
                stack.callback(_KEPT.discard, folder.absolute())
        yield


class FolderLock:
    """Lets one process at a time have a folder of this machine; in an object store it does nothing.

    Args:
        folder: what is locked. One that is ``kept`` by this process is locked already.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._made, self._new = folder, False, False
        here = is_local(folder) and folder.absolute() not in _KEPT
        self._lock = FileLock(folder / _LOCK, blocking=False, thread_local=False) if here else None

    def acquire(self) -> None:
        """Make the folder, if absent, and lock it.

        Raises:
            UserError: another process has it.
        """
        if self._lock is None:
            return
        self._made, self._new = not self._folder.exists(), not (self._folder / _LOCK).exists()
        make_folder(self._folder)
        try:
            self._lock.acquire()
        except Timeout:
            message = "another ecjax job writes to it; wait or choose another out"
            raise UserError(f"out={self._folder}: {message}") from None

    def release(self) -> None:
        """Give it back; a folder that was made for it and holds nothing else goes."""
        if self._lock is None:
            return
        names = {each.name for each in self._folder.iterdir()}
        if self._new and names <= {_LOCK, _LOGS}:
            # nothing was written: as if it had never been
            with suppress(OSError):
                (self._folder / _LOCK).unlink()
                if self._made and names == {_LOCK}:
                    self._folder.rmdir()
        self._lock.release()


@contextmanager
def write_errors(out: object, option: str = "out") -> Iterator[None]:
    """Turn what the system says of a folder of results (disk full, permission denied) into a ``UserError``.

    Args:
        out: the folder, or a file.
        option: that named it.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
        raise UserError(f"{option}={out}: cannot be written: {reason}") from error
