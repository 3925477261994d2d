"""Panels side by side: their frames, axes, colours and legends."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecjax.plotting.units import plain_numbers

_FAR = 4.0  # an axis ends at so many medians: one run that is far from stable would hide the others
_LOGARITHMIC = 12.0  # largest / smallest value from which an axis is logarithmic


def panels(count: int = 1, width: float = 7.0, height: float = 4.6) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = [figure.add_subplot(1, count, number + 1) for number in range(count)]
    for each in axes:
        each.grid(alpha=0.3)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def few(shown: int, of: int, what: str) -> str:
    """Words for a title that not all is shown."""
    return f" ({shown} of {of} {what})" if shown < of else ""


def limit(values: pd.Series | np.ndarray) -> float:
    """Where an axis should end that shows these values; those far above the others are cut."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    return float(min(finite.max(), _FAR * np.median(finite))) if finite.size else 1.0


def number(value: float) -> str:
    """A value beside its bar."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def far_apart(values: pd.Series) -> bool:
    """Whether positive values differ by so much that their axis is logarithmic."""
    return bool(values.max() > _LOGARITHMIC * values.min() > 0)


def scale(axes: Axes, values: pd.Series) -> None:
    """Logarithmic where values differ by much; from zero where they do not."""
    if far_apart(values):
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    else:
        axes.set_ylim(0, 1.05 * values.max())


def legend(figure: Figure, handles: list[Any]) -> None:
    """A legend below the panels, in as many columns as the figure's width holds."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    inches = 0.75 + 0.075 * longest  # of an entry in 8 points
    columns = max(1, min(len(handles), int(figure.get_figwidth() / inches)))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
        handlelength=3.6,
    )
