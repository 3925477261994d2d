"""Names that are almost those of optional columns: a slip of the pen, or a damaged bit, makes a column as if absent."""

from collections.abc import Iterable
from itertools import pairwise

from ecjax.tables.schemas import INPUTS


def near_miss(names: Iterable[str], table: str) -> tuple[str, str] | None:
    """An unknown column and the optional column that it is almost named as, of a table without that one.

    Longer names may differ more: one character from six on, two from ten on, and one bit of a character from four on.

    Args:
        names: of the columns.
        table: key of ``schemas.INPUTS``.
    """
    found = list(names)
    known = [column.name for column in INPUTS[table]]
    absent = [column.name for column in INPUTS[table] if not column.required and column.name not in found]
    for name in found:
        for optional in absent:
            if name not in known and _near(name, optional):
                return name, optional
    return None


def _near(name: str, optional: str) -> bool:
    if name.strip().lower() == optional:
        return True
    length = min(len(name), len(optional))
    if length >= 10:
        return _edits(name, optional) <= 2
    if length >= 6:
        return _edits(name, optional) <= 1
    return length >= 4 and _one_bit(name, optional)


def _one_bit(name: str, other: str) -> bool:
    if len(name) != len(other):
        return False
    apart = [ord(a) ^ ord(b) for a, b in zip(name, other, strict=True) if a != b]
    return len(apart) == 1 and apart[0].bit_count() == 1


def _edits(name: str, other: str) -> int:
    """How many characters are to be put in, taken out or changed (Levenshtein)."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(name, 1):
        before, row = row, [place]
        for column, (corner, above) in enumerate(pairwise(before)):
            row.append(min(above + 1, row[-1] + 1, corner + (letter != other[column])))
    return row[-1]
