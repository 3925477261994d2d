"""The options of ``ecjax cache``, checked: every mistake names the option, what was found and what is allowed."""

from numbers import Integral
from typing import Any

from ecjax.cache.replay import POLICIES
from ecjax.errors import UserError
from ecjax.studies.cache.figures import sampling as cache_sampling
from ecjax.studies.cache.figures.kinds import KINDS
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.spine.checks import numbers, words_of
from ecjax.studies.spine.option import is_number

_FIGURES = ["policies", "sweep", "decisions"]
_WHOLE = {
    "parity": (0, 100),
    "reads": (1, 10**9),
    "buckets": (1, 10**4),
    "replan_reads": (0, 10**12),
    "rounds": (1, 10**5),
    "seeds": (1, 10**6),
    "seed": (0, 2**62),
}
_LISTS = {
    "capacity": (0, 10**9),
    "k": (1, 60),
    "copies": (0, 100),
    "items": (1, 10**8),
    "samples": (1, 10**6),
}
_ABOVE_ZERO = ("rate_per_s", "rate_scale", "drift_s", "period_s")
_FROM_ZERO = ("jitter", "edge_s", "decode_s")
_SHARES = {"memory": "from 0 to below 1", "warm_up": "from 0 to below 1", "drift": "from 0 to 1"}


def checked(options: CacheOptions) -> CacheOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = dict(vars(options))
    kinds = KINDS if values["partitions"] is None else cache_sampling.KINDS
    if values["figures"] is None:
        values["figures"] = _FIGURES if values["partitions"] is None else list(kinds)
    for name, allowed in (("policy", POLICIES), ("figures", kinds)):
        values[name] = words_of(name, values[name], tuple(allowed))
    if not values["policy"]:
        raise UserError(f"policy: found an empty list; allowed: {', '.join(POLICIES)}")
    for name, (least, most) in _WHOLE.items():
        if not _is_whole(values[name], least, most):
            raise UserError(f"{name}: found {values[name]}; allowed: a whole number from {least} to {most}")
    for name, (least, most) in _LISTS.items():
        values[name] = _whole_list(name, values[name], least, most)
    values["half_life_s"] = numbers("half_life_s", values["half_life_s"], None)
    values["zipf"] = numbers("zipf", values["zipf"], 0.0)
    for name in _ABOVE_ZERO:
        if not (is_number(values[name]) and values[name] > 0):
            raise UserError(f"{name}: found {values[name]}; allowed: a number above 0")
    for name in _FROM_ZERO:
        if not (is_number(values[name]) and values[name] >= 0):
            raise UserError(f"{name}: found {values[name]}; allowed: a number, at least 0")
    for name, words in _SHARES.items():
        value = values[name]
        if not (is_number(value) and 0 <= value <= 1 and (value < 1 or name == "drift")):
            raise UserError(f"{name}: found {value}; allowed: a number {words}")
    if values["edges"] is not None and not _is_whole(values["edges"], 1, 10**4):
        raise UserError(f"edges: found {values['edges']}; allowed: a whole number from 1 to 10000")
    if values["partitions"] is not None:
        values["partitions"] = _whole_list("partitions", values["partitions"], 1, 10**6)
    values["neighbours"] = _neighbours(values["neighbours"])
    values["fail"] = _names("fail", values["fail"])
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    return CacheOptions(**values)


def _is_whole(value: Any, least: int, most: int) -> bool:
    return is_number(value) and isinstance(value, Integral) and least <= int(value) <= most


def _whole_list(name: str, value: Any, least: int, most: int) -> list[int]:
    """A list of whole numbers without repeats."""
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(_is_whole(each, least, most) for each in listed):
        raise UserError(
            f"{name}: found {value}; allowed: a whole number from {least} to {most}, or a list of them"
        )
    return list(dict.fromkeys(int(each) for each in listed))


def _neighbours(value: Any) -> list[Any]:
    """Latencies between edges: numbers, or tuples of rows of all pairs; an empty list for none."""
    if value is None:
        return []
    listed = list(value) if isinstance(value, list | tuple) else [value]
    rows = [row if isinstance(row, list | tuple) else [row] for row in listed]
    if not listed or not all(is_number(each) and each >= 0 for row in rows for each in row):
        raise UserError(
            f"neighbours: found {value}; allowed: numbers of at least 0, a list of them or of rows"
        )
    pairs = [isinstance(row, list | tuple) for row in listed]
    if any(pairs):
        if not all(pairs) or any(len(row) != len(rows) for row in rows):
            raise UserError(
                f"neighbours: found {value}; allowed: a row per edge, each with a number per edge"
            )
        return [tuple(tuple(float(each) for each in row) for row in rows)]
    return list(dict.fromkeys(float(each) for each in listed))


def _names(name: str, value: Any) -> list[str | None]:
    """A list of names without repeats; null stands for nothing."""
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(each is None or (isinstance(each, str) and each) for each in listed):
        raise UserError(f"{name}: found {value}; allowed: null, a name, or a list of these")
    return list(dict.fromkeys(listed))
