"""Names that are almost those of optional columns: a slip of the pen, or a damaged bit, makes a column as if absent."""

from collections.abc import Iterable
from itertools import pairwise

from ecjax.tables.place import Place
from ecjax.tables.schemas import INPUTS


def check_names(names: Iterable[str], place: Place) -> None:
    """Refuse an unknown column that is named almost as an optional column of a table without that one.

    Longer names may differ more: one character from six on, two from ten on, and one bit of a character from four on.

    Args:
        names: of the columns.
        place: the table.

    Raises:
        UserError: naming both.
    """
    present = list(names)
    schema = [column.name for column in INPUTS[place.name]]
    absent = [
        column.name for column in INPUTS[place.name] if not column.required and column.name not in present
    ]
    for name in present:
        for optional in absent:
            if name not in schema and _near(name, optional):
                raise place.error(
                    f"unknown, and almost {optional}; allowed: {optional}, or another name", column=name
                )


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
