"""Primaries of groups: the OSD at position 0 joins the shards of a read and sends them, which may count as work.

Which of the k OSDs that are read is the primary is the order among them: exchanging position 0 with another read
position moves that work, and copies two shards. Where that is not enough primaries are chosen first, among all members.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ecjax.rados.records import Cluster
from ecjax.rados.roles import RoleProblem, plan_roles

if TYPE_CHECKING:
    from ecjax.rados.plan import Demand

_MOST = 20_000  # exchanges
_LESS = 1e-9  # relatively
_FIRSTS = 60  # exchanges that a second one is looked for


def primary_load(cluster: Cluster, demand: "Demand", osd: np.ndarray) -> np.ndarray:
    """(m,) work of the OSDs as primaries, not relative to speed.

    Args:
        cluster: its groups count.
        demand: work of a read, and how much more a primary has.
        osd: (N,) places of the OSDs by position.
    """
    # the first position that has an OSD
    place = np.where(osd >= 0, np.arange(len(osd)), len(osd))
    first = np.minimum.reduceat(place, cluster.groups.first[:-1])
    there = first < len(osd)
    return np.bincount(osd[first[there]], demand.primary * demand.work[there], len(cluster.osds))


def with_primaries_spread(
    cluster: Cluster,
    demand: "Demand",
    sets: Mapping[str, tuple[int, ...]],
    load: np.ndarray,
    free: np.ndarray,
    level: float,
) -> dict[str, tuple[int, ...]]:
    """Sets with positions exchanged, until no OSD is above a level or no exchange, or two, lower the largest load.

    Args:
        cluster: as it is.
        demand: work of a read, and how much more a primary has.
        sets: of groups that change, ids by position.
        load: (m,) by them, relative to speed.
        free: places of the groups that may change.
        level: relative to speed.
    """
    spread, speed, load = _Spread(cluster, demand, sets, free), demand.speed, load * demand.speed
    for _ in range(_MOST):
        relative = load / speed
        busiest = int(np.argmax(relative))
        if relative[busiest] <= level:
            break
        chosen = _one(spread, load, speed, busiest) or _two(spread, load, speed, busiest)
        if chosen is None:
            break
        for osd, group, position, other, amount in chosen:
            load[osd] -= amount
            load[spread.exchange(group, position, other)] += amount
    return spread.changed()


_Exchange = tuple[int, int, int, int, float]  # OSD that is relieved, group, its position, the other one, load


def _one(spread: "_Spread", load: np.ndarray, speed: np.ndarray, busiest: int) -> list[_Exchange] | None:
    """The exchange that relieves the busiest OSD best; None where each makes another one as busy."""
    relative = load / speed
    best: tuple[float, int, _Exchange] | None = None
    for group, position, other, osd, amount in spread.exchanges(busiest):
        there, here = (load[osd] + amount) / speed[osd], (load[busiest] - amount) / speed[busiest]
        if max(there, here) < relative[busiest] * (1 - _LESS):
            squares = there**2 - relative[osd] ** 2 + here**2 - relative[busiest] ** 2
            copies = spread.copies(group, position, other)
            if best is None or (squares, copies) < best[:2]:
                best = (squares, copies, (busiest, group, position, other, amount))
    return None if best is None else [best[2]]


def _two(spread: "_Spread", load: np.ndarray, speed: np.ndarray, busiest: int) -> list[_Exchange] | None:
    """Two exchanges in different groups, the second of which relieves the OSD that takes the load of the first."""
    relative = load / speed
    firsts = sorted(
        spread.exchanges(busiest), key=lambda each: float((load[each[3]] + each[4]) / speed[each[3]])
    )
    best: tuple[float, list[_Exchange]] | None = None
    for group, position, other, osd, amount in firsts[:_FIRSTS]:
        here, taken = (load[busiest] - amount) / speed[busiest], load[osd] + amount
        for second, at, to, last, more in spread.exchanges(osd):
            if second == group or last == busiest:
                continue
            passing, there = (taken - more) / speed[osd], (load[last] + more) / speed[last]
            highest = max(here, passing, there)
            if highest < relative[busiest] * (1 - _LESS):
                squares = here**2 + passing**2 + there**2 - relative[osd] ** 2 - relative[last] ** 2
                if best is None or squares < best[0]:
                    pair = [(busiest, group, position, other, amount), (osd, second, at, to, more)]
                    best = (squares, pair)
    return None if best is None else best[1]


def led_anew(
    cluster: Cluster,
    demand: "Demand",
    sets: Mapping[str, tuple[int, ...]],
    free: np.ndarray,
    problem: RoleProblem,
    within: float,
    others: bool,
) -> dict[str, tuple[int, ...]]:
    """Sets with primaries chosen for themselves, and then the other positions that are read.

    Args:
        cluster: as it is.
        demand: work of a read, and how much more a primary has.
        sets: of groups that change, ids by position.
        free: places of the groups that may change.
        problem: of their roles; what stays where it is counts.
        within: relative; how far above the least possible each choice may be.
        others: whether primaries may become others; else only what is read besides.
    """
    groups = cluster.groups
    members = [list(sets.get(groups.ids[group], cluster.osd_ids(group).tolist())) for group in free.tolist()]
    ks = [cluster.pools[int(groups.pool[group])].k for group in free.tolist()]
    work = demand.work[free]
    leaders = [osds[0] for osds in members]
    if others:
        leads = [[place == 0 for place in range(len(osds))] for osds in members]
        chosen = _chosen(cluster, members, leads, (1 + demand.primary) * work, problem, within)
        leaders = [picked[0] for picked in chosen]
    base = problem.base + np.bincount(
        np.searchsorted(cluster.osds, leaders), (1 + demand.primary) * work, len(cluster.osds)
    )
    rest, reads = [], []
    for osds, k, leader in zip(members, ks, leaders, strict=True):
        beside = [osd for osd in osds if osd != leader]
        read = [osd for osd in osds[:k] if osd != leader]
        rest.append(beside)
        reads.append([osd in (read if len(read) < k else read[1:]) for osd in beside])
    wider = [place for place, k in enumerate(ks) if k > 1]
    picked = _chosen(
        cluster,
        [rest[place] for place in wider],
        [reads[place] for place in wider],
        work[wider],
        problem._replace(base=base),
        within,
    )
    read_beside = dict(zip(wider, picked, strict=True))
    result = {}
    for place, group in enumerate(free.tolist()):
        before = cluster.osd_ids(group).tolist()
        osds = _ordered(before, members[place], leaders[place], read_beside.get(place, []))
        if osds != before:
            result[groups.ids[group]] = tuple(osds)
    return result


def _chosen(
    cluster: Cluster,
    members: list[list[int]],
    now: list[list[bool]],
    work: np.ndarray,
    problem: RoleProblem,
    within: float,
) -> list[list[int]]:
    """Ids of the members of each group that a plan of roles reads.

    Args:
        cluster: whose OSDs.
        members: of each group, ids.
        now: whether each is read now.
        work: (G,) of one that is read.
        problem: its base and speed count.
        within: relative to the least possible.
    """
    first = np.concatenate([[0], np.cumsum([len(osds) for osds in members])]).astype(np.int64)
    ids = np.array([osd for osds in members for osd in osds], np.int64)
    read = np.array([each for flags in now for each in flags], bool)
    anew = problem._replace(first=first, osd=np.searchsorted(cluster.osds, ids), data=read, work=work)
    data = plan_roles(anew, within).data
    return [ids[a:b][data[a:b]].tolist() for a, b in zip(first[:-1], first[1:], strict=True)]


def _ordered(before: list[int], members: list[int], leader: int, beside: list[int]) -> list[int]:
    """A set by position: the leader, those that are read beside it, the others; each where it was, where it can be."""
    new: list[int | None] = [None] * len(before)
    new[0] = leader
    others = [osd for osd in members if osd != leader and osd not in beside]
    ranges = ((beside, range(1, 1 + len(beside))), (others, range(1 + len(beside), len(before))))
    for osds, places in ranges:
        staying = {before.index(osd): osd for osd in osds if osd in before and before.index(osd) in places}
        left = iter([osd for osd in osds if osd not in staying.values()])
        for place in places:
            new[place] = staying[place] if place in staying else next(left)
    return [osd for osd in new if osd is not None]


class _Spread:
    """Sets of the groups that may change, while their positions are exchanged; OSDs by place."""

    def __init__(
        self, cluster: Cluster, demand: "Demand", sets: Mapping[str, tuple[int, ...]], free: np.ndarray
    ) -> None:
        self._cluster, self._work = cluster, demand.work
        groups = cluster.groups
        self._before = {
            group: groups.osd[groups.first[group] : groups.first[group + 1]].tolist()
            for group in free.tolist()
        }
        self._now = {group: list(osds) for group, osds in self._before.items()}
        for group in free.tolist():
            if (new := sets.get(groups.ids[group])) is not None:
                self._now[group] = np.searchsorted(cluster.osds, new).tolist()
        # reads that each position of a group takes part in, the primary's work with them
        self._shares = {
            pool: [1 + demand.primary] + [1.0] * (each.k - 1) + [0.0] * (each.n - each.k)
            for pool, each in enumerate(cluster.pools)
        }
        self._with: dict[int, list[int]] = {}
        for group, osds in self._now.items():
            if demand.work[group] > 0:
                for osd in osds:
                    self._with.setdefault(osd, []).append(group)

    def exchanges(self, osd: int) -> list[tuple[int, int, int, int, float]]:
        """What relieves an OSD: group, its position, the other one, the OSD there, and the load that goes to it."""
        swaps = []
        for group in self._with.get(osd, ()):
            now = self._now[group]
            shares, work = self._shares[int(self._cluster.groups.pool[group])], self._work[group]
            position = now.index(osd)
            for other, (there, share) in enumerate(zip(now, shares, strict=True)):
                if share < shares[position]:
                    swaps.append((group, position, other, there, float(work * (shares[position] - share))))
        return swaps

    def copies(self, group: int, position: int, other: int) -> int:
        """How many more shards are copied where two positions are exchanged."""
        before, now = self._before[group], self._now[group]
        more = (before[position] != now[other]) + (before[other] != now[position])
        return int(more) - int(before[position] != now[position]) - int(before[other] != now[other])

    def exchange(self, group: int, position: int, other: int) -> int:
        """Exchange two positions; the OSD that was at the other one."""
        now = self._now[group]
        now[position], now[other] = now[other], now[position]
        return now[position]

    def changed(self) -> dict[str, tuple[int, ...]]:
        """Sets of the groups that differ from those in force, ids by position."""
        return {
            self._cluster.groups.ids[group]: tuple(self._cluster.osds[now].tolist())
            for group, now in self._now.items()
            if now != self._before[group]
        }
