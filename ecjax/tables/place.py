"""Where in an input table something was found: the one-line messages of ``UserError``."""

from dataclasses import dataclass

import pyarrow as pa

from ecjax.display import CELL, displayed
from ecjax.errors import UserError
from ecjax.tables.schemas import ID, INPUTS


@dataclass(frozen=True)
class Place:
    """An input table as the user knows it: its name and, where known, the file it came from.

    Of a table that is read in pieces, ``table`` is one piece, and ``before`` rows came before it.
    """

    table: pa.Table
    name: str
    source: str | None = None
    before: int = 0

    @property
    def text(self) -> str:
        """The table's name, with its file."""
        return f"{self.name} table" + (f" ({self.source})" if self.source else "")

    @property
    def id_column(self) -> str | None:
        """The column that names a row of this table, if it is there."""
        ids = [c.name for c in INPUTS[self.name] if c.kind == ID and c.required]
        return ids[0] if ids and ids[0] in self.table.column_names else None

    def number(self, row: int) -> int:
        """The number of a row in the whole table, 0-based."""
        return self.before + row

    def error(self, message: str, *, column: str | None = None, row: int | None = None) -> UserError:
        """The error to raise: table, file, column, 0-based row and the row's id, then ``message``."""
        parts = [self.text]
        if column is not None:
            parts.append(f"column {column}")
        if row is not None:
            label = f"row {self.number(row)}"
            if self.id_column not in (None, column):
                name = self.table.column(self.id_column)[row].as_py()
                label += f" ({self.id_column} {displayed(repr(name), CELL)})"
            parts.append(label)
        return UserError(f"{', '.join(parts)}: {message}")
