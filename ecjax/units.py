"""Times and other numbers as people read them: in units that fit, and without powers of ten. Imports nothing heavy."""

import math
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple, SupportsInt

_BELOW_ONE = 0.5  # a unit is chosen from half of it on: 0.62 s reads as well as 620 ms
_MOST = 1e5  # so many of a unit are said in the next larger one
_STEP = 1000  # from one to the next
_MOST_PLAIN = 1e12
_TEXT_DIGITS = 3  # that count in labels and sentences
_DECIMALS = 4  # up to which zeros at the end of a cell are kept
_LONG = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"))


class Unit(NamedTuple):
    """A unit of time.

    Attributes:
        name: as headings and axes name it.
        seconds: that it is.
    """

    name: str
    seconds: float

    def cell(self, value_s: float | None, digits: int = 4) -> str:
        """A time as a cell of a column, without its unit, with zeros at its end; empty where there is none.

        Args:
            value_s: the time, in seconds.
            digits: that count.
        """
        if value_s is None or math.isnan(value_s):
            return ""
        text = format(value_s / self.seconds, f"#.{digits}g")
        if "e" in text or value_s == 0:
            return plain(value_s / self.seconds, digits)
        whole, _, decimals = text.partition(".")
        # zeros that say nothing on how exact a small number is
        decimals = decimals[:_DECIMALS] + decimals[_DECIMALS:].rstrip("0")
        return f"{whole}.{decimals}" if decimals else whole

    def text(self, value_s: float) -> str:
        """A time as a label: in this unit, without its name."""
        return plain(value_s / self.seconds, _TEXT_DIGITS)

    def interval(self, value_s: float, half_width_s: float | None) -> str:
        """A time and the half width of its interval, where it has one; empty where there is no time."""
        margin = self.cell(half_width_s, 2)
        return self.cell(value_s) + (f" ± {margin}" if margin and not math.isnan(value_s) else "")


SECONDS = Unit("s", 1.0)
UNITS = (SECONDS, Unit("ms", 1e-3), Unit("µs", 1e-6))


def fitting_unit(*columns_s: Iterable[float | None]) -> Unit:
    """The unit of a column, or of an axis: that of the median, unless the largest would have too many digits in it.

    Args:
        columns_s: times, s; only what is finite and above 0 counts. Without such times the unit is a second.
    """
    numbers = (float(value) for each in columns_s for value in each if value is not None)
    values = [value for value in numbers if math.isfinite(value) and value > 0]
    if not values:
        return SECONDS
    middle, largest = median(values), max(values)
    for unit in UNITS:
        if middle >= _BELOW_ONE * unit.seconds or largest >= _MOST * unit.seconds / _STEP:
            return unit
    return UNITS[-1]


def count_text(count: SupportsInt, one: str, many: str | None = None) -> str:
    """A number of things: ``1 file``, ``2 files``; with a verb, ``1 file is`` and ``2 files are``.

    Args:
        count: of them, a whole number.
        one: what follows a one.
        many: what follows other numbers; None: ``one`` with an s.
    """
    number = int(count)
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def time_text(seconds: float) -> str:
    """A length of time in the unit that fits: ``31.2 ms``."""
    if not math.isfinite(seconds) or seconds == 0:
        return f"{seconds:g} s"
    # the unit is that of what will be read: 0.9996 s is 1 s, not 1,000 ms
    rounded = abs(float(format(seconds, f".{_TEXT_DIGITS}g")))
    for length, unit in _LONG:
        if rounded >= 2 * length:
            return f"{plain(seconds / length, _TEXT_DIGITS)} {unit}"
    fitting = next((each for each in UNITS if rounded >= each.seconds), UNITS[-1])
    return f"{fitting.text(seconds)} {fitting.name}"


def unit_seconds(name: str) -> float:
    """Length of a unit of ``time_text``, s."""
    return dict(
        [(unit, float(length)) for length, unit in _LONG] + [(each.name, each.seconds) for each in UNITS]
    )[name]


def plain(value: float, digits: int = 4) -> str:
    """A number with so many digits that count; a large one with thousands apart, and without a power of ten."""
    return formatted(value, f".{digits}g")


def formatted(value: float, form: str) -> str:
    """A number in some format, but a large one with thousands apart where that would give it a power of ten."""
    text = format(value, form)
    return f"{value:,.0f}" if "e+" in text and abs(value) < _MOST_PLAIN else text


def bytes_text(count: float) -> str:
    """A number of bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{count:.4g}") < _STEP:
            return f"{count:.4g} {unit}"
        count /= _STEP
    return f"{count:.4g} PB"
