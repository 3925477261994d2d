"""What the console shows of a case: one table, with the columns that the case fills."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ecjax.console import say
from ecjax.display import displayed
from ecjax.studies.bench.rows import Row


def show(title: str, rows: list[Row], console: Console) -> None:
    """Print the rows of a case, and their notes."""
    columns = {
        "variant": [row.variant for row in rows],
        "size": [row.size for row in rows],
        "median\ns": [_number(row.median_s) for row in rows],
        "least\ns": [_number(row.min_s) for row in rows],
        "target\ns": [_number(row.target_s) for row in rows],
        "compile\ns": [_number(row.compile_s) for row in rows],
        "peak\nMB": [_megabytes(row.peak_rss_bytes) for row in rows],
        "target\nMB": [_megabytes(row.target_bytes) for row in rows],
        "objective\ns": [_number(row.objective, 6) for row in rows],
        "gap": [_number(row.gap, 2) for row in rows],
        "target\ngap": [_number(row.target_gap) for row in rows],
        "iter-\nations": ["" if row.iterations is None else str(row.iterations) for row in rows],
        "met": [{True: "yes", False: "NO", None: ""}[row.met] for row in rows],
    }
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = Table(
        title=Text(displayed(title)), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left"
    )
    for heading in filled:
        words = heading in ("variant", "size")
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading != "size")
    for cells in zip(*filled.values(), strict=True):
        table.add_row(*(Text(displayed(cell)) for cell in cells))
    console.print(table)
    for row in rows:
        if row.note:
            say(console, f"{row.variant}, {row.size}: {row.note}", "dim")


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.0f}"
