"""Tables on the console that fit into its width, and what went wrong."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ecjax.console import say
from ecjax.display import CELL, displayed
from ecjax.units import formatted

_CUT = 24  # characters of an id or name, where columns do not fit otherwise
_Padding = tuple[int, int, int, int]
_MUCH = 100.0  # dollars
_TIGHT: _Padding = (0, 1, 0, 0)


class _Grid(NamedTuple):
    """What of a table is shown.

    Attributes:
        headings: of the columns, with line feeds.
        rows: cells; equal rows of a group are one.
        groups: of each row.
    """

    headings: list[str]
    rows: list[list[str]]
    groups: list[object]

    def widths(self) -> list[int]:
        """Characters of every column."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.headings)
        return [
            max(map(cell_len, (*heading.split("\n"), *cells)))
            for heading, cells in zip(self.headings, columns, strict=True)
        ]


def print_table(
    console: Console,
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Collection[str] = (),
    groups: Sequence[object] | None = None,
    padding: _Padding = (0, 1, 0, 1),
    least: Sequence[str] = (),
    dataset: str = "",
) -> None:
    """Print a table; text in it is text, not markup. No number is cut, however narrow the console is.

    Where it is too narrow, spaces and words are cut first; then columns go, which a line below the table names; and a
    table whose other columns do not fit either is printed as a paragraph per row. Rows that are equal in all that is
    shown are printed once, with their count in a column ``runs``.

    Args:
        console: where.
        title: of the table.
        headings: of the columns, each another; a line feed in them begins a new line.
        rows: cells of each row.
        words: headings of columns that are words, which stand to the left; numbers stand to the right.
        groups: of each row; a line parts rows of different ones.
        padding: of cells: lines or spaces above, to the right, below, to the left.
        least: headings of the columns that go where it is narrow, the least important first.
        dataset: which holds them all.
    """
    console.print(Text(displayed(title), style="table.title"))
    listed = [[displayed(cell, CELL) for cell in row] for row in rows]
    keys = list(groups) if groups is not None else [None] * len(rows)
    going = [heading for heading in least if heading in headings]
    for count in range(len(going) + 1):
        for most, spaces in ((CELL, padding), (CELL, _TIGHT), (_CUT, _TIGHT)):
            grid = _grid(headings, listed, keys, set(going[:count]), words, most)
            if _table_width(grid, spaces) <= console.width:
                console.print(_table(grid, words, spaces))
                if count:
                    every = _grid(headings, listed, keys, (), words, _CUT)
                    _name_hidden(console, going[:count], headings, _table_width(every, _TIGHT), dataset)
                return
    _print_folded(console, _grid(headings, listed, keys, set(), words, CELL))


def _grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    groups: Sequence[object],
    hidden: Collection[str],
    words: Collection[str],
    most: int,
) -> _Grid:
    """The columns that are not hidden, words in at most so many characters, and rows that are equal as one."""
    places = [place for place, heading in enumerate(headings) if heading not in hidden]
    counts = Counter(
        (group, tuple(row[place] for place in places)) for group, row in zip(groups, rows, strict=True)
    )
    shown = [headings[place] for place in places]
    cells = [
        [
            displayed(cell, most) if heading in words else cell
            for heading, cell in zip(shown, row, strict=True)
        ]
        for _, row in counts
    ]
    if len(counts) < len(rows):
        shown = [*shown, "runs"]
        cells = [[*row, str(count)] for row, count in zip(cells, counts.values(), strict=True)]
    return _Grid(shown, cells, [group for group, _ in counts])


def _table_width(grid: _Grid, padding: _Padding) -> int:
    """Characters of a line of the table: cells with their padding, a rule between columns, two at the edges."""
    columns = len(grid.headings)
    return sum(grid.widths()) + columns * (padding[1] + padding[3]) + columns + 1


def _table(grid: _Grid, words: Collection[str], padding: _Padding) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=padding)
    for heading in grid.headings:
        table.add_column(Text(heading), no_wrap=True, justify="left" if heading in words else "right")
    for place, row in enumerate(grid.rows):
        if place and grid.groups[place] != grid.groups[place - 1]:
            table.add_section()
        table.add_row(*map(Text, row))
    return table


def _name_hidden(
    console: Console, hidden: Collection[str], headings: Sequence[str], needed: int, dataset: str
) -> None:
    """A line with the columns that are not shown, and how to see them: in so many columns, or in the dataset."""
    names = ", ".join(one_line(heading) for heading in headings if heading in hidden)
    also = f", or dataset {dataset}" if dataset else ""
    say(console, f"not shown in {console.width} columns: {names} (COLUMNS={needed}{also})", "dim")


def _print_folded(console: Console, grid: _Grid) -> None:
    """A paragraph per row, a line per column."""
    for place, row in enumerate(grid.rows):
        if place:
            console.print()
        lines = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        for heading, cell in zip(grid.headings, row, strict=True):
            lines.add_row(Text(one_line(heading)), Text(cell, overflow="fold"))
        console.print(Padding(lines, (0, 0, 0, 1)))


def one_line(heading: str) -> str:
    """A heading of several lines as a line."""
    return heading.replace("-\n", "").replace("\n", " ")


def number(value: float | None, form: str = ".4g") -> str:
    """A cell with a number; empty where there is none."""
    return "" if value is None or pd.isna(value) else formatted(value, form)


def dollars(value: float | None) -> str:
    """A cell with dollars: whole ones, of little money three digits; empty where there is none."""
    return number(value, ",.0f" if value is not None and abs(value) >= _MUCH else ".3g")


def print_errors(runs: pd.DataFrame, console: Console) -> None:
    """Print what made runs fail, each message once."""
    for message, count in Counter(runs["error"].dropna()).items():
        several = "runs" if count > 1 else "run"
        say(console, f"{count} {several}: {message}", "red")
