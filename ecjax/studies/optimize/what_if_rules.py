"""What option ``what_if`` of ``ecjax optimize`` may be. Imports nothing heavy."""

import re
from typing import Any, NamedTuple

from ecjax.options import Wrong

WHAT_IF = (
    "nodes:2 (so many more), nodes:2:NODE (like that one), traffic:2, node:NODE or site:SITE (lost), slow:NODE:5 "
    "(so many times slower), site:every, node:every, slow:every:5 (each in turn), or several at once as in "
    "traffic:2+nodes:2"
)
EVERY = "every"
_KINDS = ("nodes", "traffic", "node", "site", "slow")
_BETWEEN = re.compile(rf"\+(?=(?:{'|'.join(_KINDS)}):)")
_MOST_NODES, _MOST_TIMES = 10_000, 1e6


class Change(NamedTuple):
    """One thing that would be otherwise.

    Attributes:
        kind: nodes, traffic, node, site or slow.
        name: of a node or site; empty where none is named.
        times: nodes more, or what traffic or service times are multiplied by; 0 of a loss.
    """

    kind: str
    name: str
    times: float


def what_if(value: Any) -> str:
    """A scenario as it is, if it is one.

    Raises:
        Wrong: it is none.
    """
    if not isinstance(value, str):
        raise Wrong(str(value))
    parsed = changes(value)
    if sum(change.name == EVERY for change in parsed if change.kind in ("slow", "node", "site")) > 1:
        raise Wrong(value, f"{EVERY} once in a scenario")
    return value


def changes(text: str) -> list[Change]:
    """What a scenario changes, in its order.

    Raises:
        Wrong: it is no scenario.
    """
    return [_change(part, text) for part in _BETWEEN.split(text)]


def _change(part: str, text: str) -> Change:
    kind, _, rest = part.partition(":")
    if kind == "nodes":
        count, _, name = rest.partition(":")
        if re.fullmatch(r"\d{1,5}", count) and 1 <= int(count) <= _MOST_NODES:
            return Change(kind, name, int(count))
    elif kind == "traffic":
        if (times := _times(rest)) is not None:
            return Change(kind, "", times)
    elif kind in ("node", "site"):
        if rest:
            return Change(kind, rest, 0.0)
    elif kind == "slow":
        name, _, factor = rest.rpartition(":")
        if name and (times := _times(factor)) is not None:
            return Change(kind, name, times)
    raise Wrong(text)


def _times(text: str) -> float | None:
    """A positive number; None: it is none."""
    try:
        times = float(text)
    except ValueError:
        return None
    return times if 0 < times <= _MOST_TIMES else None
