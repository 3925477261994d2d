"""Tables on the console, and what went wrong."""

from collections import Counter
from collections.abc import Collection, Sequence

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ecjax.console import say
from ecjax.display import CELL, displayed


def print_table(
    console: Console,
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Collection[str] = (),
    groups: Sequence[object] | None = None,
    padding: tuple[int, int, int, int] = (0, 1, 0, 1),
) -> None:
    """Print a table; text in it is text, not markup.

    Args:
        console: where.
        title: of the table.
        headings: of the columns; a line feed in them begins a new line.
        rows: cells of each row.
        words: headings of columns that are words, which stand to the left; numbers stand to the right.
        groups: of each row; a line parts rows of different ones.
        padding: of cells: lines or spaces above, to the right, below, to the left.
    """
    table = Table(
        title=Text(displayed(title)),
        box=box.SIMPLE_HEAD,
        padding=padding,
        title_justify="left",
        title_style="table.title",
    )
    for heading in headings:
        table.add_column(Text(heading), no_wrap=True, justify="left" if heading in words else "right")
    for place, row in enumerate(rows):
        if groups is not None and place and groups[place] != groups[place - 1]:
            table.add_section()
        table.add_row(*(Text(displayed(cell, CELL)) for cell in row))
    console.print(table)


def number(value: float | None, form: str = ".4g") -> str:
    """A cell with a number; empty where there is none."""
    return "" if value is None or pd.isna(value) else format(value, form)


def print_errors(runs: pd.DataFrame, console: Console) -> None:
    """Print what made runs fail, each message once."""
    for message, count in Counter(runs["error"].dropna()).items():
        several = "runs" if count > 1 else "run"
        say(console, f"{count} {several}: {message}", "red")
