"""Figures to files: what was drawn is said, and what could not be is too."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.console import say
from ecjax.errors import UserError
from ecjax.plotting.texts import plain_texts
from ecjax.tables.datasets import batches_written
from ecjax.tables.folder import location, publishing, write_errors
from ecjax.units import count_text


class Kind(NamedTuple):
    """A kind of figure of a study."""

    figure: Callable[
        [Path, pd.DataFrame], Figure | None
    ]  # from the folder of the tables and rows of ``runs``
    wants: str | None = None  # what the runs lack where no figure is made; None: nothing is to be said then
    datasets: tuple[str, ...] = ()  # that it reads besides ``runs``
    about: Callable[[pd.DataFrame], pd.DataFrame] = lambda runs: runs  # the runs that it shows, of all


@dataclass(frozen=True)
class Drawing:
    """The figures of a study.

    Attributes:
        kinds: what can be drawn, by name.
        drawable: the rows of ``runs`` that have something to draw.
    """

    kinds: dict[str, Kind]
    drawable: Callable[[pd.DataFrame], pd.DataFrame]

    def __call__(self, out: str | Path, runs: pd.DataFrame, names: list[str], console: Console) -> None:
        """Draw figures of these runs into out/figures; what is not drawn is said, unless there are no runs.

        Args:
            out: folder of the result tables, or its address.
            runs: rows of the ``runs`` dataset.
            names: kinds to draw.
            console: where to say what was drawn.
        """
        drawable = self.drawable(runs)
        if not drawable.empty:
            folder = location(out)
            save(folder, self._drawn(folder, drawable, names, console), console)

    def _drawn(
        self, out: Path, runs: pd.DataFrame, names: list[str], console: Console
    ) -> Iterator[tuple[str, Figure | str | None]]:
        for name in names:
            kind = self.kinds[name]
            shown = _shown(out, runs, kind)
            figure = _figure(out, shown, kind)
            if isinstance(figure, Figure) and shown.without:
                say(
                    console,
                    f"figure {name}: without {count_text(shown.without, 'run')}, {_unwritten('whose', kind)}",
                )
            yield name, figure

    def figure(self, out: str | Path, runs: pd.DataFrame, name: str) -> Figure:
        """One figure of these runs, which is not written.

        Raises:
            UserError: there is no such kind, or the runs lack what it shows.
        """
        if name not in self.kinds:
            raise UserError(f"figure: found {name!r}; allowed: {', '.join(self.kinds)}")
        drawable = self.drawable(runs)
        place, kind = location(out), self.kinds[name]
        figure = None if drawable.empty else _figure(place, _shown(place, drawable, kind), kind)
        if not isinstance(figure, Figure):
            raise UserError(f"figure {name}: needs {figure or 'runs of another kind, which end well'}")
        plain_texts(figure)
        return figure


def replayed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs that ended with a latency."""
    return runs[runs["mean_s"].notna()]


class _Shown(NamedTuple):
    """Runs that a kind of figure is about and whose datasets were written, and how many others it is about."""

    runs: pd.DataFrame
    without: int


def _shown(out: Path, runs: pd.DataFrame, kind: Kind) -> _Shown:
    runs = kind.about(runs)
    if runs.empty:
        return _Shown(runs, 0)
    written = [batches_written(out, dataset) for dataset in kind.datasets]
    wrote = [all(batch in batches for batches in written) for batch in runs["batch_id"]]
    return _Shown(runs[wrote], wrote.count(False))


def _figure(out: Path, shown: _Shown, kind: Kind) -> Figure | str | None:
    """The figure, or what it needs; None where it is about other runs."""
    if len(shown.runs):
        return kind.figure(out, shown.runs) or kind.wants
    return _unwritten("the", kind, ", which") if shown.without else None


def _unwritten(before: str, kind: Kind, after: str = "") -> str:
    noun, verb = ("datasets", "were") if len(kind.datasets) > 1 else ("dataset", "was")
    return f"{before} {noun} {' and '.join(kind.datasets)}{after} {verb} not written"


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure, whose file is there whole or not at all; its folder is made.

    Raises:
        UserError: the folder cannot be written.
    """
    plain_texts(figure)
    with write_errors(path.parent.parent), publishing(path) as file, warnings.catch_warnings():
        # letters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(file, format="png", dpi=150)


def save(out: Path, figures: Iterable[tuple[str, Figure | str | None]], console: Console) -> None:
    """Write figures to out/figures.

    Args:
        out: folder of the result tables.
        figures: kinds, each with its figure, or what it needs to be drawn, or None where nothing is to be said.
        console: where to say what was drawn.
    """
    folder = out / "figures"
    drawn = []
    for kind, figure in figures:
        if isinstance(figure, str):
            say(console, f"figure {kind}: needs {figure}")
        elif figure is not None:
            save_png(figure, folder / f"{kind}.png")
            drawn.append(f"{kind}.png")
    if drawn:
        say(console, f"figures in {folder}: {', '.join(drawn)}")
