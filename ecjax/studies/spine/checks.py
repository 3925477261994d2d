"""Checks that options of several jobs share."""

from numbers import Integral
from typing import Any

from ecjax.errors import UserError
from ecjax.studies.spine.option import is_number


def words_of(name: str, value: Any, allowed: tuple[str, ...]) -> list[str]:
    """A list of allowed words without repeats; none of None."""
    listed = list(value or []) if value is None or isinstance(value, list | tuple) else [value]
    for word in listed:
        if word not in allowed:
            raise UserError(f"{name}: found {word!r}; allowed: {', '.join(allowed)}")
    return list(dict.fromkeys(listed))


def whole_numbers(name: str, value: Any) -> list[int]:
    """A list of positive whole numbers without repeats."""
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(is_number(v) and isinstance(v, Integral) and int(v) >= 1 for v in listed):
        raise UserError(f"{name}: found {value}; allowed: a whole number of at least 1, or a list of them")
    return list(dict.fromkeys(int(v) for v in listed))


def numbers(name: str, value: Any, least: float | None) -> list[float]:
    """A list of finite numbers, each at least ``least`` (above 0 where that is None), without repeats."""
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(is_number(v) and (v > 0 if least is None else v >= least) for v in listed):
        wanted = "positive" if least is None else f"at least {least:g}"
        raise UserError(f"{name}: found {value}; allowed: one number or a list of numbers, each {wanted}")
    return list(dict.fromkeys(float(v) for v in listed))
