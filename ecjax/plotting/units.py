"""Times in a unit that fits them: one per axis, named in its label and used by what is written beside it."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axis import Axis


class TimeUnit(NamedTuple):
    """A unit of time: its name, and how many of it are a second."""

    name: str
    per_s: float

    def text(self, seconds: float) -> str:
        """A time in this unit, without its name."""
        value = seconds * self.per_s
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


SECONDS = TimeUnit("s", 1.0)
# an axis to so many times its least value has room for labels at these digits between decades
_BETWEEN = ((8.0, "123456789"), (20.0, "12357"), (10**3.2, "25"))
_UNITS = (SECONDS, TimeUnit("ms", 1e3), TimeUnit("µs", 1e6))


def time_unit(*seconds: Any) -> TimeUnit:
    """The unit of an axis that shows these times: the first of s, ms and µs in which the largest is at least 1.

    Args:
        seconds: numbers, arrays or series; what is not finite is not shown.
    """
    values = (
        np.concatenate([np.ravel(np.asarray(each, float)) for each in seconds]) if seconds else np.empty(0)
    )
    finite = values[np.isfinite(values)]
    largest = float(finite.max()) if finite.size else 0.0
    if largest <= 0:
        return SECONDS
    return next((unit for unit in _UNITS if largest * unit.per_s >= 1), _UNITS[-1])


def time_axis(axis: Axis, words: str, unit: TimeUnit) -> None:
    """Label an axis and write its ticks in a unit; what is drawn stays in seconds."""
    axis.set_label_text(f"{words} ({unit.name})" if words else "")
    if axis.get_scale() == "log":
        plain_numbers(axis, unit.per_s)
    else:
        axis.set_major_formatter(lambda value, _: f"{round(value * unit.per_s, 9) + 0.0:g}")


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
