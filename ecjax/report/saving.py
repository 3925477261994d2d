"""Figures to files: what was drawn is said, and what could not be is too."""

from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console


def save(out: Path, made: Iterable[tuple[str, Figure | str | None]], console: Console) -> None:
    """Write figures to out/figures.

    Args:
        out: folder of the result tables.
        made: kinds, each with its figure, or with what it needs to be drawn, or with None where nothing is to be said.
        console: where to say what was drawn.
    """
    folder = out / "figures"
    drawn = []
    for kind, figure in made:
        if isinstance(figure, str):
            console.print(f"figure {kind}: needs {figure}")
        elif figure is not None:
            folder.mkdir(exist_ok=True)
            figure.savefig(folder / f"{kind}.png", dpi=150)
            drawn.append(f"{kind}.png")
    if drawn:
        console.print(f"figures in {folder}: {', '.join(drawn)}", highlight=False)
