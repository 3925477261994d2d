"""What the console shows of a case: one table, with the columns that the case fills."""

from rich.console import Console

from ecjax.console import say
from ecjax.studies.bench.rows import Row
from ecjax.studies.spine.printed import number, print_table
from ecjax.units import fitting_unit


def show(title: str, rows: list[Row], console: Console) -> None:
    """Print the rows of a case, and their notes."""
    # what is compared has the same unit
    unit = fitting_unit(row.median_s for row in rows)
    compiling = fitting_unit(row.compile_s for row in rows)
    least, target, compiled = f"least\n{unit.name}", f"target\n{unit.name}", f"compile\n{compiling.name}"
    columns = {
        "variant": [row.variant for row in rows],
        "size": [row.size for row in rows],
        f"median\n{unit.name}": [unit.cell(row.median_s, 3) for row in rows],
        least: [unit.cell(row.min_s, 3) for row in rows],
        target: [unit.cell(row.target_s, 3) for row in rows],
        compiled: [compiling.cell(row.compile_s, 3) for row in rows],
        "peak\nMB": [_megabytes(row.peak_rss_bytes) for row in rows],
        "target\nMB": [_megabytes(row.target_bytes) for row in rows],
        "objective\ns": [number(row.objective, ".6g") for row in rows],
        "gap": [number(row.gap, ".2g") for row in rows],
        "target\ngap": [number(row.target_gap, ".3g") for row in rows],
        "iter-\nations": ["" if row.iterations is None else str(row.iterations) for row in rows],
        "of\nlimit": ["" if row.limit_share is None else f"{100 * row.limit_share:.2g}%" for row in rows],
        "met": [{True: "yes", False: "NO", None: ""}[row.met] for row in rows],
    }
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    print_table(
        console,
        title,
        list(filled),
        list(zip(*filled.values(), strict=True)),
        words=("variant",),
        padding=(0, 1, 0, 0),
        least=(
            *("objective\ns", "iter-\nations", compiled, "target\nMB", "peak\nMB"),
            *("target\ngap", "gap", least),
        ),
        dataset="bench",
    )
    for row in rows:
        if row.note:
            say(console, f"{row.variant}, {row.size}: {row.note}", "dim")


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.0f}"
