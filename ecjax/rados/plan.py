"""A plan for a cluster: the new set of every group that changes; OSDs that stay in their role keep their position."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ecjax.rados.crush import breaking
from ecjax.rados.moves import with_moves
from ecjax.rados.primaries import led_anew, primary_load, with_primaries_spread
from ecjax.rados.records import Cluster, is_read, shard_bytes
from ecjax.rados.roles import RolePlan, RoleProblem, plan_roles
from ecjax.rados.spread import allowed_osds, least_spread, pool_work

READS, BYTES = "reads", "bytes"


class Demand(NamedTuple):
    """What loads the OSDs."""

    work: np.ndarray  # (G,) load of one shard read times its rate
    speed: np.ndarray  # (m,) relative to each other
    base: np.ndarray  # (m,) load that no plan changes
    primary: float = 0.0  # extra work of position 0, in shard reads
    unit: str = READS  # READS or BYTES, of work and base


class Plan(NamedTuple):
    """What is to change."""

    sets: Mapping[str, tuple[int, ...]]  # new set of every group that changes, ids by position
    before: np.ndarray  # (m,) load now, relative to speed
    after: np.ndarray  # (m,) load by the plan
    roles: RolePlan
    shards: int  # that are copied
    bytes: float  # that these have


def demand_of(cluster: Cluster, speed: np.ndarray, unit: str = READS, primary: float = 0.0) -> Demand:
    """Loads by client reads.

    Args:
        cluster: its rates count.
        speed: (m,) of the OSDs.
        unit: READS: a shard read is one; BYTES: it is as many as it has (of groups without counted reads the mean of
            their pool).
        primary: extra work of a group's primary per client read, in shard reads.
    """
    groups = cluster.groups
    size = np.ones(len(groups.ids))
    if unit == BYTES:
        size = np.where(np.isfinite(groups.read_bytes), groups.read_bytes, _mean_of_pool(cluster))
    work = groups.rate * size
    base = cluster.background_bytes if unit == BYTES else cluster.background
    return Demand(work, speed, base, primary, unit)


def mean_read_bytes(cluster: Cluster) -> float | None:
    """Bytes that a shard read asks for, mean of the groups that are read; None where it is not known."""
    known = cluster.groups.read_bytes[np.isfinite(cluster.groups.read_bytes)]
    return float(known.mean()) if len(known) else None


def _mean_of_pool(cluster: Cluster) -> np.ndarray:
    """(G,) bytes that a shard read of the group's pool asks for, mean; of all pools where its own has none."""
    groups = cluster.groups
    known = np.isfinite(groups.read_bytes)
    count = np.bincount(groups.pool[known], minlength=len(cluster.pools))
    total = np.bincount(groups.pool[known], groups.read_bytes[known], len(cluster.pools))
    mean = np.where(count > 0, total / np.maximum(count, 1), mean_read_bytes(cluster) or 1.0)
    return mean[groups.pool]


def role_problem(cluster: Cluster, demand: Demand) -> tuple[RoleProblem, np.ndarray]:
    """The groups whose roles may change, and their places; all others are load that stays.

    A group may change that is clean, of a pool without ``fast_read`` and with a rule that is understood, has all of its
    OSDs up, in and of a weight, and keeps its pool's rule (of others the monitor would drop every entry), and none of
    its OSDs is too full for backfill.
    """
    groups = cluster.groups
    read = is_read(cluster)
    fast = np.array([pool.fast_read for pool in cluster.pools])[groups.pool]
    bound = np.array(cluster.positions_bound)[groups.pool]
    able = cluster.usable[groups.osd] & (groups.osd >= 0)
    free = groups.movable & ~fast & ~bound & np.logical_and.reduceat(able, groups.first[:-1])
    free &= ~np.isin(groups.ids, list(breaking(cluster)))
    free &= np.logical_and.reduceat(cluster.room[groups.osd] > 0, groups.first[:-1])
    count = np.diff(groups.first)
    inside = np.repeat(free, count)
    work = np.repeat(demand.work, count)
    held = ~inside & read & (groups.osd >= 0)
    base = demand.base + np.bincount(groups.osd[held], work[held], len(cluster.osds))
    # primaries of the others are spread afterwards
    base += primary_load(cluster, demand._replace(work=np.where(free, 0.0, demand.work)), groups.osd)
    first = np.concatenate([[0], np.cumsum(count[free])]).astype(np.int64)
    problem = RoleProblem(first, groups.osd[inside], read[inside], demand.work[free], base, demand.speed)
    return problem, np.flatnonzero(free)


def plan_of(cluster: Cluster, demand: Demand, within: float, tolerance: int | None = None) -> Plan:
    """Change roles, or sets, so that the busiest OSD has little more to do than it must.

    Args:
        cluster: as it is.
        demand: what loads its OSDs.
        within: max load above the least possible, relatively.
        tolerance: shards that an OSD may keep above or below its share of a pool; None: roles only.
    """
    problem, free = role_problem(cluster, demand)
    roles = plan_roles(problem, within)
    sets: dict[str, tuple[int, ...]] = {}
    primaries = _primaries(cluster)
    changed = np.flatnonzero(np.logical_or.reduceat(roles.data != problem.data, problem.first[:-1]))
    for place in changed.tolist():
        group = int(free[place])
        inside = slice(problem.first[place], problem.first[place + 1])
        osds = cluster.osd_ids(group).tolist()
        sets[cluster.groups.ids[group]] = reordered(
            osds, problem.data[inside].tolist(), roles.data[inside].tolist(), primaries
        )
    before, after = role_load(cluster, demand, {}), problem.load(roles.data)
    if tolerance is not None and len(free):
        sets, roles, after = _moved(cluster, demand, (sets, roles, after), tolerance, free, within)
    if demand.primary and len(free):
        sets, roles, after = _led(cluster, demand, (sets, roles), free, within)
    shards, size = copied(cluster, sets)
    return Plan(sets, before, after, roles, shards, size)


def _moved(
    cluster: Cluster,
    demand: Demand,
    plan: tuple[dict[str, tuple[int, ...]], RolePlan, np.ndarray],
    tolerance: int,
    free: np.ndarray,
    within: float,
) -> tuple[dict[str, tuple[int, ...]], RolePlan, np.ndarray]:
    """A plan of roles with shards moved to other OSDs: sets, bounds that hold for them, loads."""
    sets, roles, after = plan
    bound = _spread_bound(cluster, demand, free)
    level = bound * (1 + within)
    able = np.zeros(len(cluster.groups.ids), bool)
    able[free] = True
    moved = with_moves(
        cluster, sets, demand.work, after * demand.speed, level * demand.speed, tolerance, able
    )
    held = role_load(cluster, demand, moved)
    return moved, roles._replace(bound=bound, level=level, copies_bound=math.nan), held


def _spread_bound(cluster: Cluster, demand: Demand, free: np.ndarray) -> float:
    """Least max load, relative to speed, of all placements of the groups that may change.

    What a pool has to do is spread at will over the OSDs that its rule allows. Some group may be read
    more than an OSD's share of it, and is whole on each of k OSDs.
    """
    groups = cluster.groups
    stays = np.ones(len(groups.ids), bool)
    stays[free] = False
    base = role_load(cluster, demand._replace(work=np.where(stays, demand.work, 0.0)), {}) * demand.speed
    there, usable = allowed_osds(cluster), cluster.usable
    work = pool_work(cluster, demand, free)
    least = least_spread(work, there[:, usable], base[usable], demand.speed[usable]) or 0.0
    whole_groups = [
        _hottest_bound(demand, base, np.flatnonzero(there[place]), groups.pool[free] == place, free, each.k)
        for place, each in enumerate(cluster.pools)
    ]
    return max(least, float((base / demand.speed).max()), *whole_groups)


def _hottest_bound(
    demand: Demand, base: np.ndarray, allowed: np.ndarray, inside: np.ndarray, free: np.ndarray, k: int
) -> float:
    """Least load, relative to speed, of the busiest of k OSDs that the hottest group of a pool is read at.

    Args:
        demand: work of a read, and how much more a primary has.
        base: (m,) load that stays where it is.
        allowed: places of the OSDs that the pool's rule allows.
        inside: of the groups that may change, those of the pool.
        free: places of the groups that may change.
        k: positions that are read.
    """
    work = float(demand.work[free][inside].max(initial=0.0))
    if not work or len(allowed) < k:
        return 0.0
    reading = np.sort((base[allowed] + work) / demand.speed[allowed])[k - 1]
    leading = ((base[allowed] + (1 + demand.primary) * work) / demand.speed[allowed]).min()
    return float(max(reading, leading))


def _led(
    cluster: Cluster,
    demand: Demand,
    plan: tuple[dict[str, tuple[int, ...]], RolePlan],
    free: np.ndarray,
    within: float,
) -> tuple[dict[str, tuple[int, ...]], RolePlan, np.ndarray]:
    """A plan with primaries spread: sets, bounds that hold for them, loads.

    Positions are exchanged; where that does not bring the load below the level, what is read besides primaries is
    chosen anew before, and then primaries are, too.
    """
    sets, roles = plan
    # without their primaries' work loads are no larger
    bound = max(_spread_bound(cluster, demand, free), roles.bound)
    level = bound * (1 + within)
    problem = role_problem(cluster, demand)[0]
    best: tuple[float, int, int, dict[str, tuple[int, ...]], np.ndarray] | None = None
    for number, anew in enumerate((None, False, True)):
        begun = sets if anew is None else led_anew(cluster, demand, sets, free, problem, within, anew)
        spread = with_primaries_spread(cluster, demand, begun, role_load(cluster, demand, begun), free, level)
        held = role_load(cluster, demand, spread)
        candidate = (max(float(held.max()), level), copied(cluster, spread)[0], number, spread, held)
        best = candidate if best is None else min(best, candidate, key=lambda each: each[:3])
        if candidate[0] <= level:
            break
    assert best is not None
    spread, held = best[3:]
    return spread, roles._replace(bound=bound, level=level, copies_bound=math.nan), held


def role_load(cluster: Cluster, demand: Demand, sets: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """(m,) load of every OSD, relative to its speed, with other sets for some groups."""
    osd = with_sets(cluster, sets)
    work = np.repeat(demand.work, np.diff(cluster.groups.first))
    use = is_read(cluster) & (osd >= 0)
    led = primary_load(cluster, demand, osd)
    return (demand.base + led + np.bincount(osd[use], work[use], len(cluster.osds))) / demand.speed


def shortened(cluster: Cluster, demand: Demand, plan: Plan, groups: Collection[str]) -> Plan:
    """A plan that changes some of its groups only."""
    if len(groups) == len(plan.sets):
        return plan
    sets = {name: osds for name, osds in plan.sets.items() if name in groups}
    shards, size = copied(cluster, sets)
    roles = plan.roles._replace(copies_bound=math.nan)
    return plan._replace(
        sets=sets, after=role_load(cluster, demand, sets), roles=roles, shards=shards, bytes=size
    )


def _primaries(cluster: Cluster) -> dict[int, int]:
    """How many groups each OSD is the primary of, by id."""
    first = cluster.groups.osd[cluster.groups.first[:-1]]
    count = np.bincount(first[first >= 0], minlength=len(cluster.osds))
    return dict(zip(cluster.osds.tolist(), count.tolist(), strict=True))


def reordered(
    osds: Sequence[int], data: Sequence[bool], chosen: Sequence[bool], primaries: dict[int, int]
) -> tuple[int, ...]:
    """The set of a group with other roles: who stays in its role stays at its position.

    Where position 0 falls free, the new member that is the primary of the fewest groups takes it.

    Args:
        osds: ids by position.
        data: whether each is read now.
        chosen: whether it is to be read.
        primaries: groups that each OSD is the primary of; kept up to date.
    """
    new = list(osds)
    leaving = [place for place, (was, will) in enumerate(zip(data, chosen, strict=True)) if was and not will]
    entering = [place for place, (was, will) in enumerate(zip(data, chosen, strict=True)) if will and not was]
    if leaving and leaving[0] == 0:
        entering.sort(key=lambda place: (primaries.get(osds[place], 0), place))
        primaries[osds[0]] = primaries.get(osds[0], 0) - 1
        primaries[osds[entering[0]]] = primaries.get(osds[entering[0]], 0) + 1
    for out, into in zip(leaving, entering, strict=True):
        new[out], new[into] = osds[into], osds[out]
    return tuple(new)


def copied(cluster: Cluster, sets: Mapping[str, tuple[int, ...]]) -> tuple[int, float]:
    """Shards that change their OSD, and their bytes: num_bytes / k each."""
    place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
    shards, size = 0, 0.0
    for name, osds in sets.items():
        place = place_of[name]
        moved = int(np.count_nonzero(cluster.osd_ids(place) != np.asarray(osds)))
        shards += moved
        size += moved * shard_bytes(cluster, place)
    return shards, size


def with_sets(cluster: Cluster, sets: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """(N,) places of the OSDs by position, with other sets for some groups."""
    osd = cluster.groups.osd.copy()
    place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
    for name, ids in sets.items():
        first = cluster.groups.first[place_of[name]]
        osd[first : first + len(ids)] = np.searchsorted(cluster.osds, ids)
    return osd
