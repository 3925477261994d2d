"""Times and other numbers as cells of printed tables: in units that fit, and without powers of ten."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

_BELOW_ONE = 0.5  # a unit is chosen from half of it on: 0.62 s reads as well as 620 ms
_MOST_PLAIN = 1e12


class Unit(NamedTuple):
    """A unit of time.

    Attributes:
        name: as headings name it.
        seconds: that it is.
    """

    name: str
    seconds: float

    def cell(self, value_s: float | None, digits: int = 4) -> str:
        """A time as a cell; empty where there is none.

        Args:
            value_s: the time, in seconds.
            digits: that count.
        """
        return "" if value_s is None or pd.isna(value_s) else plain(value_s / self.seconds, digits)

    def interval(self, value_s: float, half_width_s: float | None) -> str:
        """A time and the half width of its interval, where it has one; empty where there is no time."""
        margin = self.cell(half_width_s, 2)
        return self.cell(value_s) + (f" ± {margin}" if margin and pd.notna(value_s) else "")


SECONDS = Unit("s", 1.0)
UNITS = (SECONDS, Unit("ms", 1e-3), Unit("us", 1e-6))


def fitting_unit(*columns_s: Iterable[float | None]) -> Unit:
    """The unit in which times are best read: that of their median. Seconds where there are none above 0."""
    values = np.array([np.nan if pd.isna(value) else value for each in columns_s for value in each], float)
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return SECONDS
    middle = float(np.median(values))
    return next((unit for unit in UNITS if middle >= _BELOW_ONE * unit.seconds), UNITS[-1])


def plain(value: float, digits: int = 4) -> str:
    """A number with so many digits that count; a large one with thousands apart, and without a power of ten."""
    return formatted(value, f".{digits}g")


def formatted(value: float, form: str) -> str:
    """A number in some format, but a large one with thousands apart where that would give it a power of ten."""
    text = format(value, form)
    return f"{value:,.0f}" if "e+" in text and abs(value) < _MOST_PLAIN else text
