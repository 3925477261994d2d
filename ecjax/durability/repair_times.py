"""How long a repair takes: detection, and the work of all groups that miss chunks too, over disks and network."""

import math
from functools import lru_cache
from typing import NamedTuple

from ecjax.durability.clusters import fatal_share


class RepairCluster(NamedTuple):
    """What repairs depend on.

    Attributes:
        domains: H, failure domains
        disks: D, disks of a domain
        groups: P, groups that share the disks
        user_bytes: U
        disk_bytes_per_s: read and written for repairs by one disk
        cluster_bytes_per_s: for the repairs of the cluster
        detect_s: seconds until a loss is detected
        packed: chunks of a group that fill a domain before another is used; None: they are spread as evenly as can be
        room: chunks of a group that each domain can hold, as sites have unequally many nodes; None: as many as come
    """

    domains: int
    disks: int
    groups: int
    user_bytes: float
    disk_bytes_per_s: float
    cluster_bytes_per_s: float
    detect_s: float
    packed: int | None = None
    room: tuple[int, ...] | None = None

    def spread(self, n: int) -> tuple[int, ...]:
        """Chunks of a group of n in each domain that holds any, most first; n that there is room for."""
        if self.room is not None:
            return _spread_in(self.room, n, self.packed)
        if self.packed is not None:
            full, rest = divmod(n, self.packed)
            return (self.packed,) * full + ((rest,) if rest else ())
        used = min(n, self.domains)
        return tuple(n // used + (i < n % used) for i in range(used))

    def room_for(self, most: int) -> int:
        """Chunks of a group that all domains hold with at most so many in each."""
        return self.domains * most if self.room is None else sum(min(each, most) for each in self.room)

    def at_pace(self, pace: float) -> "RepairCluster":
        """The same with this share of the bandwidth for repairs."""
        return self._replace(
            disk_bytes_per_s=pace * self.disk_bytes_per_s, cluster_bytes_per_s=pace * self.cluster_bytes_per_s
        )


@lru_cache(maxsize=1024)
def _spread_in(room: tuple[int, ...], n: int, packed: int | None) -> tuple[int, ...]:
    """Chunks of a group of n in each domain that holds any, most first, where domains hold no more than their room."""
    largest = sorted(room, reverse=True)
    spread: list[int] = []
    if packed is not None:
        for each in largest:
            spread.append(min(each, packed, n - sum(spread)))
    else:
        level = next(most for most in range(1, n + 1) if sum(min(each, most) for each in room) >= n)
        spread = [min(each, level - 1) for each in largest]
        # the last layer is of as many as are left
        for at in range(n - sum(spread)):
            spread[at] += 1
    return tuple(sorted((each for each in spread if each), reverse=True))


class RepairTime(NamedTuple):
    """Times of the repair of groups that share the same losses.

    Attributes:
        groups_concerned: Q, groups that miss what this one misses
        disks_at_work: S
        bytes_per_s: bandwidth of the repair
        work_s: seconds of work until this group is repaired, its place in the queue being random
        mean_s: the same with detection
        all_s: seconds until all groups concerned are repaired, with detection
    """

    groups_concerned: float
    disks_at_work: float
    bytes_per_s: float
    work_s: float
    mean_s: float
    all_s: float


def repair_time(
    cluster: RepairCluster, n: int, k: int, read_chunks: float, lost_domains: int, lost_disks: int
) -> RepairTime:
    """Time of a repair, those with most chunks missing first.

    Q = 1 + (P-1) share, S = N' (1 - (1 - (r+1)/N')^Q) with N' = N - D, bw = min(b_net, b_d S),
    T = T_det + (Q+1)/2 c (r+1) / bw, c = U / (P k).

    Args:
        cluster: domains, disks, groups and bandwidths
        n: chunks of a group
        k: chunks that hold the data of a group
        read_chunks: r, chunks read for one lost chunk
        lost_domains: h, domains lost as a whole
        lost_disks: e, disks lost in other domains
    """
    used = len(cluster.spread(n))
    share = fatal_share(n, cluster.domains, cluster.disks, lost_domains, lost_disks, used)
    concerned = 1 + (cluster.groups - 1) * share
    remaining = cluster.disks * (cluster.domains - 1)
    idle = min(1.0, (read_chunks + 1) / remaining)
    at_work = remaining * -math.expm1(concerned * math.log1p(-idle)) if idle < 1 else remaining
    bandwidth = min(cluster.cluster_bytes_per_s, cluster.disk_bytes_per_s * at_work)
    chunk = cluster.user_bytes / (cluster.groups * k) * (read_chunks + 1) / bandwidth
    work = (concerned + 1) / 2 * chunk
    return RepairTime(
        concerned, at_work, bandwidth, work, cluster.detect_s + work, cluster.detect_s + concerned * chunk
    )


def repair_load(cluster: RepairCluster, n: int, k: int, read_chunks: float, failure_rate: float) -> float:
    """Share of the time in which a disk's loss is under repair, u = N lambda Q_1 c (r+1) / bw.

    Args:
        cluster: domains, disks, groups and bandwidths
        n: chunks of a group
        k: chunks that hold the data of a group
        read_chunks: chunks read for one lost chunk
        failure_rate: lambda, failures of a disk per year
    """
    time = repair_time(cluster, n, k, read_chunks, 0, 1)
    seconds = time.all_s - cluster.detect_s
    return cluster.domains * cluster.disks * failure_rate * seconds / (8766 * 3600)
