"""Static pictures of studies for papers and pages, PNG and SVG, drawn from result tables."""

import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from ecjax.errors import UserError
from ecjax.plotting.texts import plain_texts
from ecjax.summaries import in_order, tables_of
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import location, publishing, write_errors
from ecjax.tables.recommendation import read_recommendation
from ecjax.tables.results import read_results

_WITHOUT = ("bench", "reproduce")


def write_pictures(outs: Sequence[str], folder: str, names: Sequence[str]) -> list[str]:
    """Write figures of studies as ``folder/NAME.png`` and ``folder/NAME.svg``; returns the names.

    Args:
        outs: folders of results.
        folder: where to; it is made.
        names: of figures, as their jobs call them; none: all that can be drawn.

    Raises:
        UserError: a figure is named that none of the studies has, two studies have one, none has any, or the folder
            cannot be written. Nothing was written but in the last case.
    """
    figures: dict[str, Figure] = {}
    for out in outs:
        for name, figure in _figures(out, names):
            if name in figures:
                raise UserError(
                    f"report: pictures={folder}: two studies have a figure {name}; allowed: one of them"
                )
            figures[name] = figure
    missing = [name for name in names if name not in figures]
    if missing or not figures:
        possible = (
            list(dict.fromkeys(name for out in outs for name, _ in _figures(out, ()))) if missing else []
        )
        lacking = f"figures={missing[0]}: no such figure" if missing else f"pictures={folder}: no figure"
        raise UserError(
            f"report: {lacking} can be drawn of {', '.join(outs)}; allowed: "
            f"{', '.join(possible) or 'results of a job with figures, see its figures='}"
        )
    place = location(folder)
    with write_errors(place):
        for name, figure in figures.items():
            _write(figure, place / name)
    return list(figures)


def _write(figure: Figure, path: Path) -> None:
    plain_texts(figure)
    # the same tables are the same file: no date, and names of parts that do not change
    with rc_context({"svg.hashsalt": "ecjax"}), warnings.catch_warnings():
        # letters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        with publishing(path.with_suffix(".png")) as file:
            figure.savefig(file, format="png", dpi=150)
        with publishing(path.with_suffix(".svg")) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})


def _figures(out: str, names: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Those of the figures that the study supports."""
    place = location(out)
    job = written_by(place)
    if job is None or job in _WITHOUT:
        return
    runs = in_order(job, read_results(out, "runs"))
    recommendation = read_recommendation(place)
    chosen = recommendation.run_id if recommendation else None
    if job == "analyze":
        run = chosen if chosen in set(runs["run_id"]) else next(iter(runs["run_id"]), None)
        tables = {name: table.to_pandas() for name, table in tables_of(out, job, run).items()} if run else {}
        for name, figure_of in import_module("ecjax.studies.analyze.figures").FIGURES.items():
            figure = figure_of(tables) if not names or name in names else None
            if figure is not None:
                yield name, figure
        return
    marked = runs.assign(recommended=runs["run_id"] == chosen)
    plans = marked["scheme"].notna() if job == "cache" else pd.Series(False, marked.index)
    for kinds, part in (("kinds", marked[~plans]), ("sampling", marked[plans])):
        if len(part):
            yield from _drawn(f"ecjax.studies.{job}.figures.{kinds}", out, part, names)


def _drawn(module: str, out: str, runs: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Those of the figures of a module that the runs support.

    Raises:
        UserError: they do not support one that is named.
    """
    figures = import_module(module)
    for name in figures.KINDS:
        if not names or name in names:
            try:
                yield name, figures.draw.figure(out, runs, name)
            except UserError:
                if names:
                    raise
