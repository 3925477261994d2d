"""Folders for what is made of a source file and kept: machine code of Numba's, programs of JAX's.

The name of a folder has a hash of the file and of all that it imports from ecjax, directly or not:
``caching.exchange-0123456789abcdef``. Installations with the same source share it, and may be read-only.
"""

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
# also those that a function makes when it is called
_IMPORT = re.compile(
    r"^[ \t]*(?:from (ecjax[\w.]*) import (\([^)]*\)|.*)|import (ecjax[\w.]*))", re.MULTILINE
)
_MOST_FOLDERS = 4  # folders of a module: of as many versions or checkouts
_DAY_S = 86400.0
_LONGEST = 100  # letters of a module in the name of its folder


def source_folder(base: Path | None, file: str, maker: str) -> Path | None:
    """Where what is made of a file is kept; None where there is no place.

    Args:
        base: the folder of all of its kind.
        file: the source.
        maker: name and version of what makes it.
    """
    path = os.path.abspath(file)
    if base is None or not os.path.isfile(path):
        return None
    module = path.removeprefix(_PACKAGE).removesuffix(".py").strip(os.sep).replace(os.sep, ".")
    folder = base / f"{module[-_LONGEST:]}-{source_hash(path, maker)}"
    with suppress(OSError):  # noted down once a day
        if time.time() - folder.stat().st_mtime > _DAY_S:
            os.utime(folder)
    return folder


def make_folder(folder: Path) -> None:
    """Make the folder of a module; then those of the module go that have not been used for longest.

    Raises:
        OSError: where it cannot be made.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    module = folder.name.rpartition("-")[0]
    folders = sorted(folder.parent.glob(f"{module}-*"), key=_used, reverse=True)
    for old in folders[_MOST_FOLDERS:]:
        shutil.rmtree(old, ignore_errors=True)


def source_hash(file: str, maker: str = "") -> str:
    """Hash of a file, of all that it imports from ecjax, and of the name of what is made by."""
    digest = hashlib.sha256(maker.encode())
    pending, seen = [os.path.abspath(file)], set[str]()
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += _source(path)[1]
    for path in sorted(seen):
        digest.update(_source(path)[0])
    return digest.hexdigest()[:16]


def _used(folder: Path) -> float:
    """When a folder was last used, up to a day."""
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0


# strings rather than paths: this is done at the start of every command


@cache
def _source(path: str) -> tuple[bytes, list[str]]:
    """Hash of a file with its name, and the files of ecjax that it imports."""
    with open(path, "rb") as file:
        content = file.read()
    imported = []
    for module, names, plain in _IMPORT.findall(content.decode()):
        place = _place(module or plain)
        # that of the package names the jobs for users, which import everything: nothing depends on it
        if place != os.path.join(_PACKAGE, "__init__.py"):
            imported.append(place)
        if place.endswith("__init__.py"):
            words = (name.split("#")[0].split() for name in names.strip("()").replace("\n", ",").split(","))
            imported += [_place(f"{module}.{word[0]}") for word in words if word]
    # by its name within the package, so that the place of that does not matter
    name = path.removeprefix(_PACKAGE)
    return hashlib.sha256(name.encode() + b"\0" + content).digest(), [place for place in imported if place]


@cache
def _place(module: str) -> str:
    """The file of a module; empty where it is none, but the name of something in it."""
    base = os.path.join(_PACKAGE, *module.split(".")[1:])
    places = f"{base}.py", os.path.join(base, "__init__.py")
    return next((place for place in places if os.path.isfile(place)), "")
