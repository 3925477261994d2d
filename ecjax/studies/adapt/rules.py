"""The options of ``ecjax adapt``, checked: every mistake names the option, what was found and what is allowed."""

from numbers import Integral
from typing import Any

from ecjax.errors import UserError
from ecjax.studies.adapt.figures.kinds import KINDS
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.strategies import STATIC, STRATEGIES
from ecjax.studies.spine.checks import numbers, words_of
from ecjax.studies.spine.option import is_number

ALL = "all"
_WHOLE = {
    "k_max": (1, 100),
    "threads": (1, 10**4),
    "requests": (1, 10**9),
    "seeds": (1, 10**6),
    "seed": (0, 2**62),
}
_ABOVE_ZERO = ("bytes", "timeline_s")


def checked(options: AdaptOptions) -> AdaptOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = dict(vars(options))
    for name, allowed in (("strategy", STRATEGIES), ("figures", tuple(KINDS))):
        values[name] = words_of(name, values[name], tuple(allowed))
        if not values[name] and name != "figures":
            raise UserError(f"{name}: found an empty list; allowed: {', '.join(allowed)}")
    values["delays"] = _names(values["delays"])
    for name in ("rate", "load", "rate_scale"):
        if values[name] is not None or name != "rate":
            values[name] = numbers(name, values[name], None)
    for name, (least, most) in _WHOLE.items():
        value = values[name]
        if not (is_number(value) and isinstance(value, Integral) and least <= int(value) <= most):
            raise UserError(f"{name}: found {value}; allowed: a whole number from {least} to {most}")
    for name in _ABOVE_ZERO:
        value = values[name]
        if not (is_number(value) and value > 0) and not (value is None and name == "timeline_s"):
            raise UserError(f"{name}: found {value}; allowed: a number above 0")
    if not (is_number(values["r_max"]) and 1 <= values["r_max"] <= 100):
        raise UserError(f"r_max: found {values['r_max']}; allowed: a number from 1 to 100")
    if not (is_number(values["memory"]) and 0 <= values["memory"] < 1):
        raise UserError(f"memory: found {values['memory']}; allowed: a number from 0 to below 1")
    price = values["storage_dollars_per_byte"]
    if not (is_number(price) and price >= 0):
        raise UserError(f"storage_dollars_per_byte: found {price}; allowed: a number, at least 0")
    if values["writes"] not in ("cancel", "background"):
        raise UserError(f"writes: found {values['writes']!r}; allowed: cancel, background")
    values["codes"] = _codes(values["codes"])
    if values["codes"] != [(1, 1)] and STATIC not in values["strategy"]:
        raise UserError(f"codes: found {options.codes} without strategy=static; allowed: with it")
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    return AdaptOptions(**values)


def _names(value: Any) -> list[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(isinstance(word, str) and word for word in listed):
        raise UserError(f"delays: found {value}; allowed: one or more names or paths")
    return list(dict.fromkeys(listed))


def _codes(value: Any) -> Any:
    """``all``, or a list of (n, k)."""
    if value == ALL:
        return ALL
    listed = value if isinstance(value, list | tuple) else [value]
    if len(listed) == 2 and not any(isinstance(part, list | tuple) for part in listed):
        listed = [listed]
    found = []
    for code in listed:
        n, k = code if isinstance(code, list | tuple) and len(code) == 2 else (0, 0)
        if not all(is_number(v) and isinstance(v, Integral) for v in (n, k)) or not 1 <= k <= n:
            raise UserError(f"codes: found {value}; allowed: [n, k] with n >= k >= 1, a list of them, or all")
        found.append((int(n), int(k)))
    if not found:
        raise UserError(
            "codes: found an empty list; allowed: [n, k] with n >= k >= 1, a list of them, or all"
        )
    return list(dict.fromkeys(found))
