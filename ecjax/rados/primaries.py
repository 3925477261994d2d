"""Primaries of groups: the OSD at position 0 joins the shards of a read and sends them, which may count as work.

Which of the k OSDs that are read is the primary is the order among them: exchanging position 0 with another read
position moves that work, and copies two shards.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ecjax.rados.records import Cluster

if TYPE_CHECKING:
    from ecjax.rados.plan import Demand

_MOST = 20_000  # exchanges
_LESS = 1e-9  # relatively


def primary_load(cluster: Cluster, demand: "Demand", osd: np.ndarray) -> np.ndarray:
    """(m,) work of the OSDs as primaries, not relative to speed.

    Args:
        cluster: its groups count.
        demand: work of a read, and how much more a primary has.
        osd: (N,) places of the OSDs by position.
    """
    first = osd[cluster.groups.first[:-1]]
    there = first >= 0
    return np.bincount(first[there], demand.primary * demand.work[there], len(cluster.osds))


def with_primaries_spread(
    cluster: Cluster,
    demand: "Demand",
    sets: Mapping[str, tuple[int, ...]],
    load: np.ndarray,
    free: np.ndarray,
    level: float,
) -> dict[str, tuple[int, ...]]:
    """Sets with other OSDs at position 0, until no OSD is above a level or no exchange lowers the largest load.

    Args:
        cluster: as it is.
        demand: work of a read, and how much more a primary has.
        sets: of groups that change, ids by position.
        load: (m,) by them, relative to speed.
        free: places of the groups that may change.
        level: relative to speed.
    """
    spread, speed, load = _Spread(cluster, sets, free), demand.speed, load * demand.speed
    for _ in range(_MOST):
        relative = load / speed
        busiest = int(np.argmax(relative))
        if relative[busiest] <= level:
            break
        best: tuple[float, int, int, int] | None = None
        for group in spread.led_by(busiest):
            work = demand.primary * demand.work[group]
            for position, osd in spread.read_with(group):
                there, here = (load[osd] + work) / speed[osd], (load[busiest] - work) / speed[busiest]
                if max(there, here) < relative[busiest] * (1 - _LESS):
                    squares = there**2 - relative[osd] ** 2 + here**2 - relative[busiest] ** 2
                    copies = spread.copies(group, position)
                    if best is None or (squares, copies) < best[:2]:
                        best = (squares, copies, group, position)
        if best is None:
            break
        _, _, group, position = best
        work = demand.primary * demand.work[group]
        load[busiest] -= work
        load[spread.exchange(group, position)] += work
    return spread.changed()


class _Spread:
    """Sets of the groups that may change, while their primaries do; OSDs by place."""

    def __init__(self, cluster: Cluster, sets: Mapping[str, tuple[int, ...]], free: np.ndarray) -> None:
        self._cluster = cluster
        groups = cluster.groups
        self._before = {
            group: groups.osd[groups.first[group] : groups.first[group + 1]].tolist()
            for group in free.tolist()
        }
        self._now = {group: list(osds) for group, osds in self._before.items()}
        for group in free.tolist():
            if (new := sets.get(groups.ids[group])) is not None:
                self._now[group] = np.searchsorted(cluster.osds, new).tolist()
        self._led: dict[int, set[int]] = {}
        for group, osds in self._now.items():
            self._led.setdefault(osds[0], set()).add(group)

    def led_by(self, osd: int) -> list[int]:
        """Groups whose primary an OSD is, in their order."""
        return sorted(self._led.get(osd, ()))

    def read_with(self, group: int) -> list[tuple[int, int]]:
        """The other positions of a group that are read, with their OSDs."""
        k = self._cluster.pools[int(self._cluster.groups.pool[group])].k
        return list(enumerate(self._now[group][:k]))[1:]

    def copies(self, group: int, position: int) -> int:
        """How many more shards are copied where position 0 and another one are exchanged."""
        before, now = self._before[group], self._now[group]
        more = (before[0] != now[position]) + (before[position] != now[0])
        return int(more) - int(before[0] != now[0]) - int(before[position] != now[position])

    def exchange(self, group: int, position: int) -> int:
        """Exchange position 0 with another one; the new primary."""
        now = self._now[group]
        self._led[now[0]].discard(group)
        now[0], now[position] = now[position], now[0]
        self._led.setdefault(now[0], set()).add(group)
        return now[0]

    def changed(self) -> dict[str, tuple[int, ...]]:
        """Sets of the groups that differ from those in force, ids by position."""
        return {
            self._cluster.groups.ids[group]: tuple(self._cluster.osds[now].tolist())
            for group, now in self._now.items()
            if now != self._before[group]
        }
