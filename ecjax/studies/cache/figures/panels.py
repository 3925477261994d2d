"""Panels of the figures of ``ecjax cache``: one per point of a sweep, policies below bars."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecjax.plotting.grid import MOST_PANELS, grid
from ecjax.plotting.panels import few
from ecjax.studies.cache.words import parts, varying


def by_point(
    rows: pd.DataFrame, width: float, height: float = 3.8, but: str | None = None, noun: str = "points"
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]], str]:
    """A figure with a titled panel per point, the rows of each, and words where not all points are shown.

    Args:
        rows: with the columns of a point.
        width: of a panel, inches.
        height: likewise.
        but: a column of the point that does not part rows.
        noun: what the words call the points.
    """
    every = parts(rows, varying(rows, but))
    shown = every[:MOST_PANELS]
    figure, panels = grid(len(shown), width, height)
    for axes, (title, _) in zip(panels, shown, strict=True):
        axes.set_title(title, fontsize=10)
    pairs = [(axes, part) for axes, (_, part) in zip(panels, shown, strict=True)]
    return figure, pairs, few(len(shown), len(every), noun)


def wide_enough(rows: pd.DataFrame, inches: float = 0.42, beside: float = 1.8) -> float:
    """Width of a panel with a bar of so many inches per policy, and room beside them."""
    return max(4.6, inches * rows["name"].nunique() + beside)


def name_bars(axes: Axes, names: list[str]) -> None:
    """Names of policies below the bars."""
    look: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor", "fontsize": 8}
    axes.set_xticks(range(len(names)), names, **look)
    axes.grid(visible=False, axis="x")
