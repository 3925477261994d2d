"""Figures to files: what was drawn is said, and what could not be is too."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console


class Kind(NamedTuple):
    """A kind of figure of a study."""

    made: Callable[[Path, pd.DataFrame], Figure | None]  # from the folder of the tables and rows of ``runs``
    wants: str  # what the runs lack where no figure is made
    datasets: tuple[str, ...] = ()  # that it reads besides ``runs``


def draw_kinds(out: Path, runs: pd.DataFrame, kinds: dict[str, Kind], console: Console) -> None:
    """Draw figures of these runs into out/figures; what cannot be drawn is said, unless there are no runs.

    Args:
        out: folder of the result tables.
        runs: rows of the ``runs`` dataset to draw.
        kinds: what to draw, by name.
        console: where to say what was drawn.
    """
    if not runs.empty:
        save(out, ((name, _made(out, runs, kind)) for name, kind in kinds.items()), console)


def _made(out: Path, runs: pd.DataFrame, kind: Kind) -> Figure | str:
    """The figure, or what it needs."""
    wrote = [
        all((out / d / f"{batch}.parquet").exists() for d in kind.datasets) for batch in runs["batch_id"]
    ]
    if not any(wrote):
        several = len(kind.datasets) > 1
        return (
            f"the dataset{'s' if several else ''} {' and '.join(kind.datasets)}, which {'were' if several else 'was'} "
            "not written"
        )
    return kind.made(out, runs[wrote]) or kind.wants


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
