"""Files of text beside datasets, with their hashes in a file that ``sha256sum -c`` reads."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

CHECKSUMS = "SHA256SUMS"


def checksums(texts: Mapping[str, str]) -> str:
    """Lines of ``sha256sum`` of files.

    Args:
        texts: content by name.
    """
    return "".join(f"{_sum(text.encode())}  {name}\n" for name, text in texts.items())


def changed_files(folder: Path) -> dict[str, str | None]:
    """What is wrong with each file of a folder that has checksums; None: nothing."""
    changed: dict[str, str | None] = {}
    for line in _bytes(folder / CHECKSUMS).decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / Path(name).name
        if not path.is_file():
            changed[path.name] = "is missing"
        else:
            changed[path.name] = None if _sum(_bytes(path)) == digest else "has other bytes than were written"
    return changed


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read()


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
