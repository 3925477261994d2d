"""Numbers in sentences: times, dollars and comparisons as people say them."""

import math
import shlex
from collections.abc import Iterable

from ecjax.units import plain, time_text, unit_seconds

ROUNDING = 1e-9  # relative difference, or half width of an interval, that is there by rounding only


def dollars_text(dollars: float) -> str:
    """An amount of money: ``$812``, ``$0.0312``, ``$1,234,000``."""
    short = f"{dollars:.3g}"
    return f"${dollars:,.0f}" if float(short) >= 1000 else f"${short}"


def percent_text(ratio: float) -> str:
    """A share without its sign, as a whole percentage from 10 % on: ``23 %``, ``3.1 %``."""
    size = abs(ratio)
    return f"{100 * size:.0f} %" if size >= 0.095 else f"{100 * size:.2g} %"


def compared(value: float, other: float, less: str, more: str) -> str:
    """How a value compares with another: ``23 % less``, ``equal``, ``more by a factor of 2.5``; with 0 only ``more``.

    Args:
        value: is compared, at least 0.
        other: with this, at least 0.
        less: word for a smaller value.
        more: word for a larger one.
    """
    if other == 0:
        return more if value > 0 else "equal"
    change = value / other - 1
    if abs(change) < 5e-4:
        return "equal"
    if change >= 1:
        return f"{more} by a factor of {value / other:.2g}"
    return f"{percent_text(change)} {less if change < 0 else more}"


def listed(words: Iterable[str]) -> str:
    """Words as a list in a sentence: ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def word(value: object) -> str:
    """A value of an option, as a shell takes it."""
    return shlex.quote(str(value))


def with_interval(mean: float, half_width: float | None) -> str:
    """A mean time with the half width of its interval, in one unit: ``31.2 ± 0.4 ms``."""
    text = time_text(mean)
    if half_width is None or not math.isfinite(half_width) or mean <= 0 or half_width <= ROUNDING * mean:
        return text
    number, unit = text.split(" ", 1)
    return f"{number} ± {plain(half_width / unit_seconds(unit), 2)} {unit}"
