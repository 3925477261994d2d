"""Whether the files of committed runs are those that were written, as far as their sizes and footers tell."""

import re
from collections.abc import Mapping
from pathlib import Path

from ecjax.errors import UserError
from ecjax.tables import datasets as layout
from ecjax.tables.committed import Committed
from ecjax.tables.folder import each
from ecjax.tables.seals import Contents

NO_BATCH = "{}: is no file of these results, whose names are those of their batches; it is not read"
_BATCH = re.compile(r"[0-9a-f]{16}")


def is_batch_name(path: Path) -> bool:
    """Whether a file is named as those of batches are."""
    return _BATCH.fullmatch(path.stem) is not None


def difference(path: Path, expected: Contents) -> str | None:
    """How a file differs from what was written; None where neither its size nor its footer tells."""
    if not path.exists():
        return "is missing"
    try:
        contents, replaces = layout.footer(path)
    except UserError:
        return "is damaged"
    if replaces == expected.sha256:
        return None
    if contents.bytes != expected.bytes:
        return f"has {contents.bytes} bytes, not {expected.bytes}"
    if contents.rows != expected.rows:
        return f"has {contents.rows} rows, not {expected.rows}"
    return None if contents.sha256 == expected.sha256 else "is another file than was written"


def differences(out: Path, committed: Mapping[str, Committed]) -> dict[str, str]:
    """What is wrong with files of committed runs, by path under ``out``."""
    expected = {(place, contents) for row in committed.values() for place, contents in row.files().items()}

    def checked(file: tuple[str, Contents]) -> tuple[str, str | None]:
        return file[0], difference(out / file[0], file[1])

    return {place: wrong for place, wrong in each(checked, sorted(expected), out) if wrong is not None}
