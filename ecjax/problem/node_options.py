"""Nodes described in a few numbers, ``{count: 12, per_rack: 4, seek_ms: 8, ...}``, without table or log.

Imports nothing heavy.
"""

from typing import Any

from ecjax.options import MOST_VALUES, Number, Rule, Whole, Words, Wrong, shown

FIO, COUNT, PER_RACK, SEEK, RATE, PRICE = "fio", "count", "per_rack", "seek_ms", "MBps", "dollars_per_TB"
CHANNELS = "channels"
HISTOGRAM, METRIC, CHUNK, MOMENTS = "histogram", "metric", "chunk_bytes", "moments"
_PER_NODE: dict[str, Rule] = {
    SEEK: Number(least=0),
    RATE: Number(above=0),
    PRICE: Number(least=0),
    CHANNELS: Whole(1, 10**6),
}
_LAWS = (COUNT, SEEK, RATE)  # what a measurement says instead
_OF_HISTOGRAM = (METRIC, CHUNK, MOMENTS)
KEYS = (COUNT, PER_RACK, SEEK, RATE, PRICE, CHANNELS, FIO, HISTOGRAM, *_OF_HISTOGRAM)

Description = dict[str, Any]
ALLOWED = (
    "a table, JSON output of fio, or {count: 12, per_rack: 4, seek_ms: 8, MBps: 180, dollars_per_TB: 20}, where lists "
    "hold a number per rack or node, channels: 4 is for nodes that serve 4 requests at once, and fio: FILE.json stands "
    "for seek_ms and MBps (and for count, unless count nodes are like its only job), as do histogram: FILE, metric: "
    "NAME, chunk_bytes: 1048576, moments: high or low (for count, too)"
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
    source = next((key for key in (FIO, HISTOGRAM) if key in value), None)
    needed = (*_LAWS, PRICE) if source is None else (FIO,) if source == FIO else (HISTOGRAM, METRIC, CHUNK)
    for key in needed:
        if key not in value:
            raise Wrong(f"no {key} in {shown(value)}", f"{', '.join(needed)}, {PER_RACK} and {CHANNELS}")
    if source == HISTOGRAM:
        measured = _LAWS
    else:
        measured = (HISTOGRAM, *_OF_HISTOGRAM, *((SEEK, RATE) if source else ()))
    beside = [key for key in measured if key in value]
    if beside:
        raise Wrong(
            f"{beside[0]} beside {source or COUNT}",
            f"{', '.join(needed)}{f', {COUNT}' * (source == FIO)}, {PER_RACK}, {PRICE}, {CHANNELS}",
        )
    description: Description = {}
    for key, each in value.items():
        if key in (FIO, HISTOGRAM, METRIC):
            description[key] = _text(key, each)
        elif key == MOMENTS:
            description[key] = _checked(key, each, Words("high", "low"))
        elif key == CHUNK:
            description[key] = _checked(key, each, Number(above=0))
        elif key == COUNT:
            description[key] = _checked(key, each, Whole(1, 10**5))
        elif key == PER_RACK:
            description[key] = _numbers(key, each, Whole(1, 10**5))
        else:
            description[key] = _numbers(key, each, _PER_NODE[key])
    return description


_TEXTS = {
    FIO: "the path of JSON output of fio, or of a folder of it",
    HISTOGRAM: "the path of Prometheus text or JSON or of ceph perf histogram dump, or of a folder of them",
    METRIC: "the name of a histogram of seconds (or of NAME_ms, NAME_us), without _bucket; of Ceph COLLECTION.NAME",
}


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Wrong(f"{key}={shown(value)}", _TEXTS[key])
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
