"""What of a cluster a plan needs, as plain records."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

NO_OSD = 2147483647  # CRUSH found none for the position
Items = tuple[tuple[int, int], ...]  # (from, to) of an entry of pg_upmap_items, in order


class Pool(NamedTuple):
    """An erasure-coded pool."""

    pool_id: int
    name: str
    k: int  # positions 0..k-1 are read
    n: int  # positions of a group
    min_size: int  # a group with fewer shards up serves no client, reads neither
    rule: int  # id of its CRUSH rule
    fast_read: bool  # all n positions are read, the first k answers count
    group_count: int  # groups that it should have


class Domains(NamedTuple):
    """What a CRUSH rule demands of the set of a group."""

    root: str  # bucket that the rule takes
    allowed: frozenset[int]  # OSDs below it
    levels: tuple["Level", ...]  # outermost first


class Level(NamedTuple):
    """One choose step of a rule."""

    kind: str  # bucket type: host, rack, osd
    domain_of: Mapping[int, int]  # OSD -> bucket of that type
    most: int  # domains of a set; 0: as many as it has shards
    one_each: bool  # whether a domain holds at most one shard
    shards: int  # that CRUSH puts into a domain at most, which the monitor does not ask; 0: any number


class Entries(NamedTuple):
    """The upmap entries of a cluster, by group."""

    upmap: Mapping[str, tuple[int, ...]]  # pg_upmap: the whole set
    items: Mapping[str, Items]  # pg_upmap_items


class Groups(NamedTuple):
    """Placement groups of erasure-coded pools, G of them with N positions together."""

    ids: tuple[str, ...]  # (G,) pgid
    pool: np.ndarray  # (G,) int64, place in the pools
    first: np.ndarray  # (G + 1,) int64: positions of group g are first[g] to first[g + 1] - 1
    osd: np.ndarray  # (N,) int64, place in the OSDs; -1 where a position has none
    rate: np.ndarray  # (G,) client reads, 1/s
    bytes: np.ndarray  # (G,) of its objects
    read_bytes: np.ndarray  # (G,) that a client read asks for, mean; nan where there were no reads
    movable: np.ndarray  # (G,) bool: clean, and where it should be


class Cluster(NamedTuple):
    """A cluster as its dumps say it."""

    fsid: str
    epoch: int
    release: str
    min_client: str  # oldest release of clients that may connect; empty: not known
    osds: np.ndarray  # (m,) int64 ids, ascending
    usable: np.ndarray  # (m,) bool: up, in, weight above 0
    weight: np.ndarray  # (m,) CRUSH weight times reweight
    room: np.ndarray  # (m,) bytes that may be backfilled to it; inf: not known
    device_class: tuple[str, ...]  # (m,) empty where there is none
    host: tuple[str, ...]  # (m,) name of the bucket above
    pools: tuple[Pool, ...]
    domains: tuple[Domains | None, ...]  # of each pool; None: its rule is not known, or not understood
    # of each pool: whether its rule is there and not understood, so that it may bind positions to buckets
    positions_bound: tuple[bool, ...]
    groups: Groups
    unclean: tuple[
        str, ...
    ]  # groups of all pools, not only of these, that are not clean or not where they should be
    entries: Entries
    raw: Mapping[str, tuple[int, ...]]  # CRUSH's own set by group, as far as it is known
    background: np.ndarray  # (m,) shard reads/s that are no client reads of these groups
    background_bytes: np.ndarray  # (m,) bytes/s of these
    notes: tuple[str, ...]  # what is missing or doubtful, a line each

    @property
    def sets(self) -> dict[str, tuple[int, ...]]:
        """Set of every group, ids of OSDs by position."""
        return {
            name: tuple(int(each) for each in self.osd_ids(place))
            for place, name in enumerate(self.groups.ids)
        }

    def osd_ids(self, group: int) -> np.ndarray:
        """(n,) ids of the OSDs of a group by position; ``NO_OSD`` where a position has none."""
        places = self.groups.osd[self.groups.first[group] : self.groups.first[group + 1]]
        return np.where(places >= 0, self.osds[places], NO_OSD)


def reads_per_osd(cluster: Cluster, osd: np.ndarray | None = None) -> np.ndarray:
    """(m,) shard reads/s of every OSD: a client read takes positions 0..k-1 (all n with ``fast_read``).

    Args:
        cluster: whose rates count.
        osd: (N,) places of the OSDs by position; default: those that hold them now.
    """
    groups = cluster.groups
    osd = groups.osd if osd is None else osd
    rate = np.repeat(groups.rate, np.diff(groups.first))
    use = is_read(cluster) & (osd >= 0)
    return cluster.background + np.bincount(osd[use], rate[use], len(cluster.osds))


def is_read(cluster: Cluster) -> np.ndarray:
    """(N,) bool: positions that a client read takes: the first k that have an OSD."""
    groups = cluster.groups
    count = np.diff(groups.first)
    there = (groups.osd >= 0).astype(np.int64)
    before = np.cumsum(there) - there
    position = before - np.repeat(before[groups.first[:-1]], count)
    position = np.where(there > 0, position, count.max(initial=0))
    width = np.array([pool.n if pool.fast_read else pool.k for pool in cluster.pools], np.int64)
    return position < np.repeat(width[groups.pool], count)


def shard_bytes(cluster: Cluster, group: int) -> float:
    """Bytes of one shard of a group, without padding."""
    return float(cluster.groups.bytes[group]) / cluster.pools[int(cluster.groups.pool[group])].k
