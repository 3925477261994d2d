"""What runs where: of each node its workers, those that are at work, and what was done there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_SHOWN = 3  # nodes in a line of the progress
_LISTED = 20  # at the end


class Seen(NamedTuple):
    """A worker at a moment.

    Attributes:
        node: that it is on; "" before it is ready.
        is_busy: whether it has something to do.
    """

    node: str
    is_busy: bool


@dataclass
class NodeWork:
    """What was done on a node.

    Attributes:
        items: that are done.
        busy_s: time of its workers at work, together.
        lost: workers that died there.
    """

    items: int = 0
    busy_s: float = 0.0
    lost: int = 0


class Nodes:
    """Keeps the books of a map, or of several."""

    def __init__(self) -> None:
        self._work: dict[str, NodeWork] = {}

    def of(self, node: str) -> NodeWork:
        """What was done on a node so far; to be added to."""
        return self._work.setdefault(node, NodeWork())

    def lines(self) -> list[str]:
        """A line per node: what was done there."""
        lines = []
        for name, work in sorted(self._work.items()):
            lost = f", {work.lost} of its workers lost" if work.lost else ""
            lines.append(f"node {name}: {work.items:,} done in {work.busy_s:,.1f} s of its workers{lost}")
        more = len(lines) - _LISTED
        return lines if more <= 0 else [*lines[:_LISTED], f"and {more} more nodes"]


def now(workers: Iterable[Seen]) -> str:
    """What runs where, in a line: those with the fewest workers at work first, where others wait for them."""
    busy: dict[str, list[bool]] = {}
    starting = 0
    for worker in workers:
        if worker.node:
            busy.setdefault(worker.node, []).append(worker.is_busy)
        else:
            starting += 1
    order = sorted(busy, key=lambda name: (sum(busy[name]) / len(busy[name]), name))
    parts = [f"{name} {sum(busy[name])} of {len(busy[name])} busy" for name in order[:_SHOWN]]
    if len(order) > _SHOWN:
        others = [each for name in order[_SHOWN:] for each in busy[name]]
        parts.append(f"{len(order) - _SHOWN} more nodes {sum(others)} of {len(others)}")
    if starting:
        parts.append(f"{starting} starting")
    return ", ".join(parts)
