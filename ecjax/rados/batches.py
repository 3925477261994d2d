"""Batches of changes: few enough at a time, the best first, none of which makes the busiest OSD busier."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecjax.rados.commands import Change
from ecjax.rados.plan import Demand
from ecjax.rados.records import Cluster, shard_bytes

_SAME = 1e-12  # relatively; loads that differ by less


class Limits(NamedTuple):
    """How much may move at a time."""

    misplaced: float  # share of the shards of a pool
    bytes: float  # in flight; inf: any


class Batch(NamedTuple):
    """Changes that are made together."""

    changes: tuple[Change, ...]
    shards: int
    bytes: float
    misplaced: float  # largest share of the shards of a pool
    load: np.ndarray  # (m,) of every OSD once it is done, relative to speed


def batches_of(
    cluster: Cluster,
    listed: Sequence[Change],
    demand: Demand,
    start: np.ndarray,
    limits: Limits,
) -> list[Batch]:
    """Divide changes into batches: each time the group that relieves the busiest OSDs most per byte.

    A group that would make the busiest OSD busier waits; where only such ones are left, the one goes first that makes
    it least so. A single group that is above the limits is a batch of its own. Batches at
    the end that leave the busiest OSD no less busy are left out.

    Args:
        cluster: before.
        listed: changes.
        demand: what loads the OSDs.
        start: (m,) load before, relative to speed.
        limits: of a batch.
    """
    load, speed = np.append(start * demand.speed, 0.0), np.append(demand.speed, 1.0)
    moves = _Moves.of(cluster, listed, demand)
    shards_of = np.array([pool.group_count * pool.n for pool in cluster.pools], float)
    left, batches = np.ones(len(listed), bool), list[Batch]()
    while left.any():
        chosen, size, misplaced = list[int](), 0.0, np.zeros(len(cluster.pools))
        while True:
            fits = left & (size + moves.bytes <= limits.bytes)
            fits &= misplaced[moves.pool] + moves.shards <= limits.misplaced * shards_of[moves.pool]
            candidates = np.flatnonzero(fits if chosen else left)
            if not len(candidates):
                break
            best = moves.best(load, speed, candidates)
            if best is None:
                if chosen:
                    break
                best = moves.least_raising(load, speed, candidates)
            np.add.at(load, moves.osd[best], moves.change[best])
            size += moves.bytes[best]
            misplaced[moves.pool[best]] += moves.shards[best]
            chosen.append(best)
            left[best] = False
        batches.append(
            Batch(
                tuple(listed[each] for each in chosen),
                int(moves.shards[chosen].sum()),
                float(size),
                float((misplaced / shards_of).max()),
                (load / speed)[:-1],
            )
        )
    highest = [float(each.load.max()) for each in batches]
    enough = next((place for place, each in enumerate(highest) if each <= min(highest) * (1 + _SAME)), 0)
    return batches[: enough + 1]


class _Moves(NamedTuple):
    """What changes move, n of them; the place after the last OSD stands for none."""

    pool: np.ndarray  # (n,)
    shards: np.ndarray  # (n,)
    bytes: np.ndarray  # (n,)
    osd: np.ndarray  # (n, w) places whose load changes
    change: np.ndarray  # (n, w) of their load

    @classmethod
    def of(cls, cluster: Cluster, listed: Sequence[Change], demand: Demand) -> "_Moves":
        """Changes with what they move."""
        place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
        groups = [place_of[each.group] for each in listed]
        pool = cluster.groups.pool[groups]
        shards = np.array([sum(a != b for a, b in zip(e.before, e.after, strict=True)) for e in listed])
        size = np.array([shard_bytes(cluster, group) for group in groups])
        pairs = []
        for each, place, group in zip(listed, pool, groups, strict=True):
            k = cluster.pools[place].k
            before, after = set(each.before[:k]), set(each.after[:k])
            differences = {osd: 1.0 if osd in after else -1.0 for osd in before ^ after}
            if demand.primary and each.before[0] != each.after[0]:
                for leader, sign in ((each.before[0], -1.0), (each.after[0], 1.0)):
                    differences[leader] = differences.get(leader, 0.0) + sign * demand.primary
            pairs.append([(name, demand.work[group] * times) for name, times in differences.items()])
        width = max(map(len, pairs), default=0)
        osd = np.full((len(listed), width), len(cluster.osds))
        change = np.zeros((len(listed), width))
        for row, each_pair in enumerate(pairs):
            for column, (name, amount) in enumerate(sorted(each_pair)):
                osd[row, column] = np.searchsorted(cluster.osds, name)
                change[row, column] = amount
        return cls(pool, shards, shards * size, osd, change)

    def best(self, load: np.ndarray, speed: np.ndarray, candidates: np.ndarray) -> int | None:
        """The move that lowers the squares of the loads most per byte; None where all raise the largest load."""
        osd, change = self.osd[candidates], self.change[candidates]
        relative = load / speed
        old, new = relative[osd], (load[osd] + change) / speed[osd]
        raises = new.max(axis=1, initial=0.0) > relative.max() * (1 + _SAME)
        score = (old**2 - new**2).sum(axis=1) / np.maximum(self.bytes[candidates], 1.0)
        score[raises] = -np.inf
        place = int(np.argmax(score))
        return None if score[place] == -np.inf else int(candidates[place])

    def least_raising(self, load: np.ndarray, speed: np.ndarray, candidates: np.ndarray) -> int:
        """The move after which the OSDs that it touches are least busy."""
        osd, change = self.osd[candidates], self.change[candidates]
        new = (load[osd] + change) / speed[osd]
        return int(candidates[int(np.argmin(new.max(axis=1, initial=0.0)))])
