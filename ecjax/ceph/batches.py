"""Batches of changes: few enough at a time, the best first, none of which makes the busiest OSD busier."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecjax.ceph.commands import Change
from ecjax.ceph.plan import shard_bytes
from ecjax.ceph.records import Cluster


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
    work: np.ndarray,
    start: tuple[np.ndarray, np.ndarray],
    limits: Limits,
) -> list[Batch]:
    """Divide changes into batches: each time the group that relieves the busiest OSDs most per byte.

    A group that would make the busiest OSD busier waits; where only such ones are left they go together with what
    relieves it, whatever the order. A single group that is above the limits is a batch of its own.

    Args:
        cluster: before.
        listed: changes.
        work: (G,) load of a shard read times its rate.
        start: load (m,) before, not relative to speed, and speed (m,).
        limits: of a batch.
    """
    load, speed = start[0].astype(float).copy(), start[1]
    moves = [_Move.of(cluster, change, work) for change in listed]
    shards_of = [pool.group_count * pool.n for pool in cluster.pools]
    left, batches = list(range(len(moves))), list[Batch]()
    while left:
        chosen, size, misplaced = list[int](), 0.0, [0] * len(cluster.pools)
        candidates = list(left)
        while candidates:
            fitting = [
                each
                for each in candidates
                if not chosen
                or (
                    size + moves[each].bytes <= limits.bytes
                    and misplaced[moves[each].pool] + moves[each].shards
                    <= limits.misplaced * shards_of[moves[each].pool]
                )
            ]
            if not fitting:
                break
            best = _best(load, speed, [moves[each] for each in fitting])
            if best is None:
                if chosen:
                    break
                best = 0
            each = fitting[best]
            move = moves[each]
            load[move.osd] += move.change
            size += move.bytes
            misplaced[move.pool] += move.shards
            chosen.append(each)
            candidates = [other for other in fitting if other != each]
        left = [each for each in left if each not in set(chosen)]
        share = max(
            (count / shards for count, shards in zip(misplaced, shards_of, strict=True)), default=0.0
        )
        batches.append(
            Batch(
                tuple(moves[each].of_group for each in chosen),
                sum(moves[each].shards for each in chosen),
                size,
                share,
                load / speed,
            )
        )
    return batches


class _Move(NamedTuple):
    of_group: Change
    pool: int
    shards: int
    bytes: float
    osd: np.ndarray  # places whose load changes
    change: np.ndarray  # of their load

    @classmethod
    def of(cls, cluster: Cluster, change: Change, work: np.ndarray) -> "_Move":
        """A change with what it moves."""
        place = cluster.groups.ids.index(change.group)
        pool = int(cluster.groups.pool[place])
        k = cluster.pools[pool].k
        before, after = set(change.before[:k]), set(change.after[:k])
        osds = sorted(before ^ after)
        signs = np.array([1.0 if osd in after else -1.0 for osd in osds])
        shards = sum(a != b for a, b in zip(change.before, change.after, strict=True))
        return cls(
            change,
            pool,
            shards,
            shards * shard_bytes(cluster, place),
            np.searchsorted(cluster.osds, osds),
            signs * work[place],
        )


def _best(load: np.ndarray, speed: np.ndarray, moves: Sequence[_Move]) -> int | None:
    """The move that lowers the sum of the squares of the loads most per byte; None where all raise the largest."""
    relative = load / speed
    most, scores = relative.max(), []
    for move in moves:
        old = relative[move.osd]
        new = (load[move.osd] + move.change) / speed[move.osd]
        raises = new.max(initial=0.0) > most * (1 + 1e-12)
        gain = float((old**2 - new**2).sum())
        scores.append(-np.inf if raises else gain / max(move.bytes, 1.0))
    best = int(np.argmax(scores))
    return None if scores[best] == -np.inf else best
