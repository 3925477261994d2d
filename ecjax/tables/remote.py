"""Folders of object stores (``s3://bucket/path``), used as paths of pathlib are."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from ecjax.display import without_secrets
from ecjax.errors import UserError

_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<authority>[^/?]*)(?P<path>[^?]*)(\?(?P<query>.*))?"
)

# What is not Arrow's default: one request for a small object instead of three, an end of retrying before 15 minutes.
_SETTINGS = {
    "s3": "allow_delayed_open=true",
    "gs": "retry_limit_seconds=30",
    "gcs": "retry_limit_seconds=30",
}
_STORES = ("s3", "gs", "gcs", "abfs", "abfss")  # of these, folders need not be made
_WHOLE_BYTES = 8 << 20


class Size(NamedTuple):
    """The part of ``os.stat_result`` that is known of an object."""

    st_size: int


class RemotePath:
    """An object or a folder of objects, with the part of ``pathlib.Path`` that ecjax uses.

    An object appears whole, once its upload has ended; there are no empty folders, no renames and no locks. What asks
    or reads raises a ``UserError`` where the store is not reached or refuses.

    Args:
        address: ``scheme://bucket/path``, with settings of the store after "?", as ``pyarrow.fs`` and fsspec take them.

    Raises:
        UserError: there is no such kind of store, the package for it is missing, or the address is malformed.
    """

    def __init__(self, address: str) -> None:
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise UserError(f"{address}: malformed; allowed: scheme://bucket/path")
        self._root = (parts["scheme"].lower(), parts["authority"], parts["query"] or "")
        self._names = tuple(name for name in parts["path"].split("/") if name)
        self._info: fs.FileInfo | None = None
        self._filesystem, base = _filesystem(*self._root)
        separator = "" if not base or base.endswith("/") else "/"
        self._path = f"{base}{separator if self._names else ''}{'/'.join(self._names)}"

    @property
    def address(self) -> str:
        """What opens it again, with user information and settings: neither to be shown nor to be kept."""
        scheme, authority, query = self._root
        path = "".join(f"/{name}" for name in self._names)
        return f"{scheme}://{authority}{path}{'?' if query else ''}{query}"

    def __str__(self) -> str:
        return without_secrets(self.address)

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __reduce__(self) -> tuple[type["RemotePath"], tuple[str]]:
        return RemotePath, (self.address,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __lt__(self, other: "RemotePath") -> bool:
        return self._names < other._names

    def __truediv__(self, name: str) -> "RemotePath":
        return self._at((*self._names, *(part for part in name.split("/") if part)))

    def _at(self, names: tuple[str, ...]) -> "RemotePath":
        scheme, authority, query = self._root
        return RemotePath(
            f"{scheme}://{authority}{''.join(f'/{name}' for name in names)}{'?' if query else ''}{query}"
        )

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self._names[-1] if self._names else ""

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "RemotePath":
        """The folder that it is in."""
        return self._at(self._names[:-1])

    def relative_to(self, folder: "RemotePath") -> PurePosixPath:
        """The path from a folder above."""
        return PurePosixPath(*self._names).relative_to(PurePosixPath(*folder._names))

    @contextmanager
    def _answers(self) -> Iterator[None]:
        """Turn what a store says to a question, other than that there is no such object, into a ``UserError``."""
        try:
            with _system_errors():
                yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise UserError(f"{self}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error

    def _kind(self) -> fs.FileType:
        if self._info is not None:
            return self._info.type
        with self._answers():
            return self._filesystem.get_file_info(self._path).type

    def exists(self) -> bool:
        """Whether there is such an object or folder."""
        return self._kind() != fs.FileType.NotFound

    def is_file(self) -> bool:
        """Whether it is an object."""
        return self._kind() == fs.FileType.File

    def is_dir(self) -> bool:
        """Whether there are objects under this name."""
        return self._kind() == fs.FileType.Directory

    def iterdir(self) -> Iterator["RemotePath"]:
        """What is in the folder; nothing where there is no such folder."""
        with self._answers():
            infos = self._filesystem.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        for info in infos:
            entry = self / info.base_name
            entry._info = info
            if entry.name:
                yield entry

    def stat(self) -> Size:
        """Its size."""
        with self._answers():
            return Size(self._filesystem.get_file_info(self._path).size)

    def open(self, mode: str = "rb") -> Any:
        """The object as a binary file to read."""
        if mode != "rb":
            raise ValueError("objects are only read; publish them with folder.publishing")
        return self.source()

    def source(self) -> pa.NativeFile:
        """The object for random access; a small one is fetched at once."""
        with self._answers():
            file = self._filesystem.open_input_file(self._path)
            return pa.BufferReader(file.read()) if file.size() <= _WHOLE_BYTES else file

    def stream(self) -> pa.NativeFile:
        """The object from its begin to its end, decompressed as its ending says."""
        with self._answers():
            return self._filesystem.open_input_stream(self._path)

    def upload(self, source: Path) -> None:
        """Put a local file here, in place of what is here.

        Raises:
            OSError: it could not be done; no part of the file is here then.
        """
        with _system_errors():
            if self._root[0] not in _STORES:
                self._filesystem.create_dir(self.parent._path, recursive=True)
            # Not fs.copy_files, which keeps quiet about errors that come when the upload is completed.
            target = self._filesystem.open_output_stream(self._path, compression=None)
            try:
                with source.open("rb") as local:
                    while part := local.read(_WHOLE_BYTES):
                        target.write(part)
                target.close()
            except BaseException:
                # A stream completes the upload of what it was given, whatever ended it.
                with suppress(Exception):
                    target.close()
                with suppress(Exception):
                    if self.stat().st_size != source.stat().st_size:
                        self.unlink()
                raise

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object."""
        try:
            with _system_errors():
                self._filesystem.delete_file(self._path)
        except FileNotFoundError:
            if not missing_ok:
                raise


@contextmanager
def _system_errors() -> Iterator[None]:
    """Turn whatever a store's library raises into an ``OSError`` of one line."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError((str(error).strip().splitlines() or [type(error).__name__])[0]) from error


@lru_cache
def _filesystem(scheme: str, authority: str, query: str) -> tuple[fs.FileSystem, str]:
    """The store and the path of its root in it."""
    root = f"{scheme}://{authority}"
    setting = _SETTINGS.get(scheme, "")
    overridden = setting and setting.partition("=")[0] in query
    settings = "&".join(part for part in (query, "" if overridden else setting) if part)
    try:
        return fs.FileSystem.from_uri(f"{quote(root, safe=':/@%[]')}/{'?' if settings else ''}{settings}")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if scheme in _STORES and isinstance(error, pa.ArrowInvalid):
            raise UserError(f"{root}: {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise UserError(f"{root}: {str(error).splitlines()[0]}") from error
    return _by_fsspec(scheme, root, query)


def _by_fsspec(scheme: str, root: str, query: str) -> tuple[fs.FileSystem, str]:
    try:
        import fsspec
    except ImportError:
        raise UserError(
            f"{root}: {scheme}:// needs the package fsspec (pip install fsspec); without it: s3, gs, abfs, hdfs"
        ) from None
    try:
        store, base = fsspec.url_to_fs(f"{root}{'/?' if query else ''}{query}")
    except (
        Exception
    ) as error:  # a package that is missing, an unknown scheme, credentials: each store has its own
        raise UserError(f"{root}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(store)), base
