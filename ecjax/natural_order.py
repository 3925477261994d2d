"""The order of ids as people count: node-2 before node-10."""

import re
from collections.abc import Iterable
from typing import TypeVar

_Id = TypeVar("_Id")


def natural(ids: Iterable[_Id]) -> list[_Id]:
    """Ids sorted by their words and numbers."""
    return sorted(ids, key=natural_key)


def natural_key(name: object) -> list[tuple[int, int, str]]:
    """The words and numbers of an id, to be compared with those of others."""
    parts = re.findall(r"[0-9]+|[^0-9]+", str(name))
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts]
