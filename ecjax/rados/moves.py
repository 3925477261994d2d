"""Shards that move to OSDs outside of their group: one copy where a swap of roles costs two, and lower loads.

From a plan of roles: a swap is taken back where a foreign OSD can take the read position instead; then the busiest OSDs
give read positions to foreign ones while they are above the level. Failure domains hold, and every OSD keeps as many
shards of a pool as is its share, within a tolerance, or as many as it has where that is further off.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ecjax.rados.read import targets
from ecjax.rados.records import Cluster, Domains, shard_bytes

_MOST = 20_000


class Moves:
    """Sets of the groups of a cluster while shards move."""

    def __init__(
        self, cluster: Cluster, sets: Mapping[str, tuple[int, ...]], work: np.ndarray, tolerance: int
    ) -> None:
        """Begin with sets for some groups.

        Args:
            cluster: as it is.
            sets: of groups that change, ids by position.
            work: (G,) load of a read position.
            tolerance: shards above or below an OSD's share of a pool.
        """
        self.cluster, self.work = cluster, work
        self.sets = {place: cluster.osd_ids(place).tolist() for place in range(len(cluster.groups.ids))}
        place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
        for name, osds in sets.items():
            self.sets[place_of[name]] = list(osds)
        groups = cluster.groups
        self.counts, self.least, self.most = [], [], []
        for pool in range(len(cluster.pools)):
            inside = np.repeat(groups.pool == pool, np.diff(groups.first)) & (groups.osd >= 0)
            count = np.bincount(groups.osd[inside], minlength=len(cluster.osds)).astype(float)
            share = targets(cluster, pool)
            self.counts.append(count)
            self.least.append(np.minimum(count, np.ceil(share - tolerance)))
            self.most.append(np.where(share > 0, np.maximum(count, np.floor(share + tolerance)), count))
        self.room = cluster.room.copy()
        self.bytes = np.array([shard_bytes(cluster, place) for place in range(len(groups.ids))])
        for name in sets:
            place = place_of[name]
            for was, osd in zip(cluster.osd_ids(place).tolist(), self.sets[place], strict=True):
                if was != osd:
                    self.room[np.searchsorted(cluster.osds, osd)] -= self.bytes[place]

    def takers(self, group: int, position: int) -> np.ndarray:
        """(m,) bool: OSDs that may take a position of a group, which its own OSD leaves."""
        cluster, pool = self.cluster, int(self.cluster.groups.pool[group])
        domains = cluster.domains[pool]
        osds = self.sets[group]
        leaver = int(np.searchsorted(cluster.osds, osds[position]))
        if domains is None or self.counts[pool][leaver] - 1 < self.least[pool][leaver]:
            return np.zeros(len(cluster.osds), bool)
        free = cluster.usable & (self.counts[pool] + 1 <= self.most[pool])
        free &= self.room >= max(self.bytes[group], 1.0)
        others = [osd for place, osd in enumerate(osds) if place != position]
        return free & _fitting(domains, cluster.osds, others) & ~np.isin(cluster.osds, osds)

    def put(self, group: int, position: int, taker: int) -> None:
        """Let an OSD, by place, take a position of a group."""
        cluster, pool = self.cluster, int(self.cluster.groups.pool[group])
        self.counts[pool][np.searchsorted(cluster.osds, self.sets[group][position])] -= 1
        self.counts[pool][taker] += 1
        self.room[taker] -= self.bytes[group]
        self.sets[group][position] = int(cluster.osds[taker])

    def changed(self) -> dict[str, tuple[int, ...]]:
        """Sets of the groups that differ from those in force."""
        names = self.cluster.groups.ids
        return {
            names[place]: tuple(osds)
            for place, osds in self.sets.items()
            if osds != self.cluster.osd_ids(place).tolist()
        }


def _fitting(domains: Domains, osds: np.ndarray, others: Sequence[int]) -> np.ndarray:
    """(m,) bool: OSDs that fit beside others under a rule."""
    fits = np.isin(osds, list(domains.allowed))
    for level in domains.levels:
        bucket = np.array([level.domain_of.get(osd, 0) for osd in osds.tolist()])
        taken = [level.domain_of[osd] for osd in others]
        if level.shards:
            fits &= ~np.isin(bucket, [each for each in taken if taken.count(each) >= level.shards])
        if level.most and len(set(taken)) >= level.most:
            fits &= np.isin(bucket, taken)
    return fits


def with_moves(
    cluster: Cluster,
    sets: Mapping[str, tuple[int, ...]],
    work: np.ndarray,
    load: np.ndarray,
    limit: np.ndarray,
    tolerance: int,
    free: np.ndarray,
) -> dict[str, tuple[int, ...]]:
    """Sets with shards on other OSDs, where that copies less or brings the busiest OSDs below a limit.

    Args:
        cluster: as it is.
        sets: of a plan of roles.
        work: (G,) load of a read position.
        load: (m,) by that plan.
        limit: (m,) that loads are to stay below.
        tolerance: shards above or below an OSD's share of a pool.
        free: (G,) bool, groups that may change.
    """
    moves, load = Moves(cluster, sets, work, tolerance), load.copy()
    place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
    for name in sets:
        _unswap(moves, place_of[name], load, limit)
    _relieve(moves, load, limit, free)
    return moves.changed()


def _unswap(moves: Moves, group: int, load: np.ndarray, limit: np.ndarray) -> None:
    """Replace swaps of a group by a foreign OSD at the read position, where one fits."""
    cluster, weight = moves.cluster, moves.work[group]
    before = cluster.osd_ids(group).tolist()
    k = cluster.pools[int(cluster.groups.pool[group])].k
    for position in range(k):
        osds = moves.sets[group]
        entered, left = osds[position], before[position]
        if entered == left or left not in osds or osds[before.index(entered)] != left:
            continue
        back = before.index(entered)
        osds[position], osds[back] = left, entered
        fits = moves.takers(group, position) & (load + weight <= limit)
        if fits.any():
            taker = int(np.argmin(np.where(fits, load - limit, np.inf)))
            moves.put(group, position, taker)
            load[taker] += weight
            load[np.searchsorted(cluster.osds, entered)] -= weight
        else:
            osds[position], osds[back] = entered, left


def _relieve(moves: Moves, load: np.ndarray, limit: np.ndarray, free: np.ndarray) -> None:
    """Let the busiest OSDs give read positions to foreign ones, one copy each, while they are above their limit."""
    stuck = np.zeros(len(load), bool)
    for _ in range(_MOST):
        above = np.where(stuck, -np.inf, load - limit)
        busiest = int(np.argmax(above))
        if above[busiest] <= 0:
            return
        best: tuple[float, int, int, int] | None = None
        for group, position in _read_at(moves, busiest, free):
            weight = moves.work[group]
            fits = moves.takers(group, position) & (load + weight <= limit)
            if fits.any():
                taker = int(np.argmin(np.where(fits, load - limit, np.inf)))
                score = abs(above[busiest] - weight)
                if best is None or score < best[0]:
                    best = (score, group, position, taker)
        if best is None:
            stuck[busiest] = True
            continue
        _, group, position, taker = best
        moves.put(group, position, taker)
        load[busiest] -= moves.work[group]
        load[taker] += moves.work[group]
        stuck[:] = False


def _read_at(moves: Moves, place: int, free: np.ndarray) -> list[tuple[int, int]]:
    """Groups that may change, with the read position that an OSD holds in them."""
    cluster, osd = moves.cluster, int(moves.cluster.osds[place])
    read = []
    for group in np.flatnonzero(free & (moves.work > 0)).tolist():
        k = cluster.pools[int(cluster.groups.pool[group])].k
        osds = moves.sets[group]
        if osd in osds[:k]:
            read.append((group, osds.index(osd)))
    return read
