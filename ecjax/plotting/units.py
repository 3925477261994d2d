"""Times in a unit that fits them: one per axis, named in its label and used by what is written beside it."""

from typing import Any

import numpy as np
from matplotlib.axis import Axis

from ecjax.units import Unit, fitting_unit

# an axis to so many times its least value has room for labels at these digits between decades
_BETWEEN = ((8.0, "123456789"), (20.0, "12357"), (10**3.2, "25"))


def time_unit(*seconds: Any) -> Unit:
    """The unit of an axis that shows these times, as that of a printed column of them.

    Args:
        seconds: numbers, arrays or series; what is not finite is not shown.
    """
    return fitting_unit(*(np.ravel(np.asarray(each, float)) for each in seconds))


def time_axis(axis: Axis, words: str, unit: Unit) -> None:
    """Label an axis and write its ticks in a unit; what is drawn stays in seconds."""
    axis.set_label_text(f"{words} ({unit.name})" if words else "")
    if axis.get_scale() == "log":
        plain_numbers(axis, 1 / unit.seconds)
    else:
        axis.set_major_formatter(lambda value, _: f"{round(value / unit.seconds, 9) + 0.0:g}")


def plain_numbers(axis: Axis, factor: float = 1.0) -> None:
    """Numbers instead of powers on a logarithmic axis; between decades as many as have room."""

    def major(value: float, _: Any) -> str:
        return f"{value * factor:g}"

    def minor(value: float, _: Any) -> str:
        low, high = sorted(axis.get_view_interval())
        digits = next((digits for below, digits in _BETWEEN if high < below * low), "")
        return f"{value * factor:g}" if f"{value:e}"[0] in digits else ""

    axis.set_major_formatter(major)
    axis.set_minor_formatter(minor)
