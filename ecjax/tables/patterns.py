"""Logs named by patterns, as a shell has them: ``logs/*.gz``, ``logs/**/*.gz``, ``logs/{mon,tue}.gz``."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from ecjax.errors import UserError
from ecjax.tables.folder import is_local, is_visible, location
from ecjax.tables.formats import user_errors, visible_files
from ecjax.tables.remote import RemotePath
from ecjax.tables.several import Several

_WILD, _BELOW = "*?[", "**"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def log_location(address: str | Path | RemotePath) -> Path:
    """The path that an address of a log means; of several files one that stands for a folder of them.

    Args:
        address: as for ``folder.location``, or a pattern: "*", "?" and "[...]" stand for letters of a name, "**" for
            any folders below, and {a,b} for either. A path that is there is no pattern. Names that begin with "." or
            "_" are left out as in folders, unless the pattern of the name begins so; folders are taken whole.

    Returns:
        The only file or folder, or a ``several.Several``, which stands for a ``Path`` as far as logs use it.

    Raises:
        UserError: no file matches one of the alternatives, or as for ``folder.location``.
    """
    if not isinstance(address, str) or not _is_pattern(address):
        return location(address)
    if _is_there(address):
        return location(address)
    alternatives = _alternatives(address)
    entries = [entry for each in alternatives for entry in _entries(each)]
    if len(entries) == 1:
        return entries[0]
    folders = [entry for entry in entries if entry.is_dir()]
    files = [file for entry in entries for file in (visible_files(entry) if entry in folders else (entry,))]
    if any(is_local(file) and (file.is_absolute() or ".." in file.parts) for file in files):
        files = [Path(os.path.abspath(file)) if is_local(file) else file for file in files]
    files = list(dict.fromkeys(files))
    if not files:
        raise _no_match(address)
    if len(files) == 1:
        return files[0]
    return Several(address, _absolute(alternatives), files, folders)  # type: ignore[return-value]


def as_option(name: str, words: Sequence[str]) -> str:
    """The option that names the logs of some words of a command, quoted for Hydra."""
    escaped = one_pattern(words).replace("'", "\\'")
    return f"{name}='{escaped}'"


def one_pattern(words: Sequence[str]) -> str:
    """A pattern that means what any of some addresses does; a single one as it is."""
    return words[0] if len(words) == 1 else _joined(words)


def is_missing(words: Sequence[str]) -> bool:
    """Whether words of a command are a single one, no pattern, that leads nowhere."""
    return len(words) == 1 and not _is_pattern(words[0]) and not location(words[0]).exists()


def _is_pattern(address: str) -> bool:
    # in addresses of object stores settings follow "?"
    text = address.partition("?")[0] if _SCHEME.match(address) else address
    return any(letter in text for letter in _WILD + "{")


def _is_there(address: str) -> bool:
    with suppress(OSError):  # a name too long for a file
        return location(address).exists()
    return False


def _no_match(address: str) -> UserError:
    if not _is_pattern(address):
        return UserError(f"{address}: no such file or folder")
    return UserError(
        f"{address}: no file matches; allowed: a path, or a pattern that files match ('logs/*.gz', 'logs/**/*.gz')"
    )


def _entries(address: str) -> list[Path]:
    """Files and folders that match a pattern without alternatives; at least one."""
    place = location(address)
    if _is_there(address):
        return [place]
    if not _is_pattern(address):
        raise _no_match(address)
    names: list[str] = []
    while place.name and _is_pattern("/".join((place.name, str(place.parent)))):
        names.insert(0, place.name)
        place = place.parent
    with user_errors(place):
        matches = list(_matches(place, names, ()))
    if not matches:
        raise _no_match(address)
    return matches


def _matches(folder: Path, names: list[str], above: tuple[str, ...]) -> Iterator[Path]:
    """What is below a folder by these patterns of names.

    Args:
        folder: to look into.
        names: of folders, and last of what is looked for.
        above: folders that "**" has led through, as they are without links.
    """
    if not names:
        yield folder
        return
    first, rest = names[0], names[1:]
    if first != _BELOW and not any(letter in first for letter in _WILD):
        if (folder / first).exists():
            yield from _matches(folder / first, rest, ())
        return
    if first == _BELOW:
        real = os.path.realpath(folder) if is_local(folder) else str(folder)
        if real in above:
            raise UserError(f"{folder}: links to a folder that it is in; allowed: folders that end")
        above = (*above, real)
        yield from _matches(folder, rest, ())
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if first == _BELOW:
            if is_visible(entry) and entry.is_dir():
                yield from _matches(entry, names, above)
        elif fnmatchcase(entry.name, first) and (is_visible(entry) or first[0] == entry.name[0]):
            yield from _matches(entry, rest, ())


def _alternatives(text: str) -> list[str]:
    """What a pattern means without braces, each once."""
    return list(dict.fromkeys(_expanded(text)))


def _expanded(text: str) -> list[str]:
    place, depth, cuts = 0, 0, list[int]()
    while place < len(text):
        letter = text[place]
        if letter == "[" and "]" in text[place + 2 :]:
            place = text.index("]", place + 2)  # within brackets all letters stand for themselves
        elif letter == "{":
            depth += 1
            if depth == 1:
                cuts = [place]
        elif letter == "," and depth == 1:
            cuts.append(place)
        elif letter == "}" and depth:
            depth -= 1
            if not depth:
                ends = [*cuts[1:], place]
                parts = [text[begin + 1 : end] for begin, end in zip(cuts, ends, strict=True)]
                rests = _expanded(text[place + 1 :])
                return [
                    text[: cuts[0]] + each + rest
                    for part in parts
                    for each in _expanded(part)
                    for rest in rests
                ]
        place += 1
    return [text]


def _joined(words: Sequence[str]) -> str:
    """As ``one_pattern``, with alternatives."""
    alternatives = [
        each
        for word in words
        for each in ([_escaped(word, _WILD)] if _is_there(word) else _alternatives(word))
    ]
    return _as_one(alternatives)


def _as_one(alternatives: Sequence[str]) -> str:
    """A pattern of alternatives that have no braces of their own."""
    alternatives = list(dict.fromkeys(alternatives))
    if len(alternatives) == 1:
        return alternatives[0]
    folder = os.path.commonprefix([each[: each.rfind("/") + 1] for each in alternatives])
    folder = folder[: folder.rfind("/") + 1]
    names = ",".join(_escaped(each.removeprefix(folder), "") for each in alternatives)
    # where it may, no brace comes first: it could be that of a mapping
    here = not folder and not any(each.startswith("/") or _SCHEME.match(each) for each in alternatives)
    return f"{'./' if here else _escaped(folder, '')}{{{names}}}"


def _escaped(text: str, letters: str) -> str:
    """The text with letters that mean something in a pattern, those given or those of braces, in brackets."""
    if letters:
        return re.sub(f"[{re.escape(letters)}]", r"[\g<0>]", text)
    # what is in brackets stays; mappings begin with a brace and have ": "
    return re.sub(
        r"\[.[^\]]*\]|[{},]|:(?= )", lambda each: each[0] if each[0][0] == "[" else f"[{each[0]}]", text
    )


def _absolute(alternatives: Sequence[str]) -> str:
    """The pattern of alternatives that finds the same from anywhere."""
    return _as_one([each if _SCHEME.match(each) else os.path.abspath(each) for each in alternatives])
