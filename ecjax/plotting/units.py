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
    """Numbers instead of powers on a logarithmic axis; between decades those at 2 and 5 only, where they have room."""

    def major(value: float, _: int | None) -> str:
        return f"{value * factor:g}"

    def minor(value: float, _: int | None) -> str:
        low, high = sorted(axis.get_view_interval())
        wanted = "25" if high < _ROOM * low else ""
        return f"{value * factor:g}" if f"{value:e}"[0] in wanted else ""

    axis.set_major_formatter(major)
    axis.set_minor_formatter(minor)


_ROOM = 10**3.2  # an axis from which labels between decades would overlap
