"""Nodes described in a few numbers, ``{count: 12, per_rack: 4, seek_ms: 8, ...}``, without table or log.

Imports nothing heavy.
"""

from typing import Any

from ecjax.options import MOST_VALUES, Number, Rule, Whole, Wrong, shown

FIO, COUNT, PER_RACK, SEEK, RATE, PRICE = "fio", "count", "per_rack", "seek_ms", "MBps", "dollars_per_TB"
CHANNELS = "channels"
_PER_NODE: dict[str, Rule] = {
    SEEK: Number(least=0),
    RATE: Number(above=0),
    PRICE: Number(least=0),
    CHANNELS: Whole(1, 10**6),
}
_LAWS = (COUNT, SEEK, RATE)  # what a measurement by fio says instead
KEYS = (COUNT, PER_RACK, SEEK, RATE, PRICE, CHANNELS, FIO)

Description = dict[str, Any]
ALLOWED = (
    "a table, JSON output of fio, or {count: 12, per_rack: 4, seek_ms: 8, MBps: 180, dollars_per_TB: 20}, where lists "
    "hold a number per rack or node, channels: 4 is for nodes that serve 4 requests at once, and fio: FILE.json stands "
    "for count, seek_ms and MBps"
)


def nodes(value: Any) -> str | Description:
    """What the option ``nodes`` may be: the path of a table or of output of fio, or a description.

    Raises:
        Wrong: it is something else, a key is unknown or missing, or a number is not allowed.
    """
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, dict) or not value:
        raise Wrong(shown(value))
    for key in value:
        if key not in KEYS:
            raise Wrong(f"key {key!r}", ", ".join(KEYS))
    needed = (FIO,) if FIO in value else (*_LAWS, PRICE)
    for key in needed:
        if key not in value:
            raise Wrong(f"no {key} in {shown(value)}", f"{', '.join(needed)}, {PER_RACK} and {CHANNELS}")
    beside = [key for key in _LAWS if FIO in value and key in value]
    if beside:
        raise Wrong(f"{beside[0]} beside {FIO}", f"{FIO}, {PER_RACK}, {PRICE}, {CHANNELS}")
    description: Description = {}
    for key, each in value.items():
        if key == FIO:
            description[key] = _path(each)
        elif key == COUNT:
            description[key] = _checked(key, each, Whole(1, 10**5))
        elif key == PER_RACK:
            description[key] = _numbers(key, each, Whole(1, 10**5))
        else:
            description[key] = _numbers(key, each, _PER_NODE[key])
    return description


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Wrong(f"{FIO}={shown(value)}", "the path of JSON output of fio, or of a folder of it")
    return value


def _numbers(key: str, value: Any, rule: Rule) -> Any:
    """A number, or a list of them."""
    if not isinstance(value, list | tuple):
        return _checked(key, value, rule)
    if not 0 < len(value) <= MOST_VALUES:
        raise Wrong(f"{key}={shown(value)}", f"1 to {MOST_VALUES} numbers")
    return [_checked(key, each, rule) for each in value]


def _checked(key: str, value: Any, rule: Rule) -> Any:
    try:
        return rule(value)
    except Wrong as wrong:
        raise Wrong(f"{key}={wrong.found}", wrong.allowed or rule.allowed) from None
