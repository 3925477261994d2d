"""Grids of panels, a sweep point each, and the rows that they show."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecjax.tables.datasets import read_file

MOST_PANELS = 6
_APART = 0.008  # of the length of an axis, between points of two lines


def telling(parts: list[tuple[str, pd.DataFrame]], value: str, way: str) -> list[tuple[str, pd.DataFrame]]:
    """Those of some parts that have room as panels, in their order: of more, those in which ways differ most.

    Args:
        parts: title and rows of each.
        value: column that is compared.
        way: column of what is compared by its mean.
    """
    if len(parts) <= MOST_PANELS:
        return parts

    def apart(place: int) -> float:
        means = parts[place][1].groupby(way)[value].mean()
        return float(means.max() / means.min()) if means.min() > 0 else 0.0

    first = sorted(range(len(parts)), key=apart, reverse=True)[:MOST_PANELS]
    return [parts[place] for place in sorted(first)]


def own_rows(out: Path, dataset: str, runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows of a dataset of these runs, every file read once: ``run_id`` and the columns."""
    value_set = pa.array(runs["run_id"].tolist(), pa.string())
    tables = []
    for batch in dict.fromkeys(runs["batch_id"]):
        table = read_file(out / dataset / f"{batch}.parquet", ["run_id", *columns])
        tables.append(table.filter(pc.is_in(table["run_id"], value_set=value_set)))
    return pa.concat_tables(tables).to_pandas()


def spread(values: pd.Series) -> tuple[float, np.ndarray]:
    """Mean over seeds, and how far down and up from it the least and the largest lie, (2, 1)."""
    mean = float(values.mean())
    return mean, np.array([[mean - values.min()], [values.max() - mean]])


def beside(at: np.ndarray, swept: np.ndarray, steps: float, logarithmic: bool) -> np.ndarray:
    """Where the points of one of several lines stand, so that whiskers hide no others.

    Args:
        at: what was swept, of each point.
        swept: all values of it, ascending.
        steps: of the line beside the middle one.
        logarithmic: whether the axis is.
    """
    if logarithmic:
        return at * (swept[-1] / swept[0]) ** (_APART * steps)
    return at + _APART * steps * (swept[-1] - swept[0])


def grid(count: int, width: float, height: float, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Panels, so many in a row."""
    columns = min(columns, count)
    lines = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * lines + 0.7), layout="constrained")
    return figure, [panel(figure, lines, columns, place) for place in range(count)]


def panel(figure: Figure, lines: int, columns: int, place: int) -> Axes:
    """A panel of a figure, at a place that is counted from 0, line by line."""
    axes = figure.add_subplot(lines, columns, place + 1)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
