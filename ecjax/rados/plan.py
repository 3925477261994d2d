"""A plan for a cluster: the new set of every group that changes; OSDs that stay in their role keep their position."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ecjax.rados.crush import broken
from ecjax.rados.moves import with_moves
from ecjax.rados.primaries import primary_load, with_primaries_spread
from ecjax.rados.records import Cluster, is_read
from ecjax.rados.roles import RolePlan, RoleProblem, plan_roles

READS, BYTES = "reads", "bytes"


class Demand(NamedTuple):
    """What loads the OSDs."""

    work: np.ndarray  # (G,) load of one shard read times its rate
    speed: np.ndarray  # (m,) relative to each other
    base: np.ndarray  # (m,) load that no plan changes
    primary: float = 0.0  # extra work of position 0, in shard reads


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
        unit: READS: a shard read is one; BYTES: it is as many as it has (of groups without reads the mean).
        primary: extra work of a group's primary per client read, in shard reads.
    """
    groups = cluster.groups
    size = np.ones(len(groups.ids))
    if unit == BYTES:
        known = np.isfinite(groups.read_bytes)
        mean = groups.read_bytes[known].mean() if known.any() else 1.0
        size = np.where(known, groups.read_bytes, mean)
    work = groups.rate * size
    base = cluster.background_bytes if unit == BYTES else cluster.background
    return Demand(work, speed, base, primary)


def role_problem(cluster: Cluster, demand: Demand) -> tuple[RoleProblem, np.ndarray]:
    """The groups whose roles may change, and their places; all others are load that stays.

    A group may change that is clean, of a pool without ``fast_read``, has all of its OSDs up and in, and keeps its
    pool's rule: of others the monitor would drop every entry.
    """
    groups = cluster.groups
    read = is_read(cluster)
    fast = np.array([pool.fast_read for pool in cluster.pools])[groups.pool]
    able = cluster.usable[groups.osd] & (groups.osd >= 0)
    free = groups.movable & ~fast & np.logical_and.reduceat(able, groups.first[:-1])
    free &= ~np.isin(groups.ids, breaking(cluster))
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


def breaking(cluster: Cluster) -> list[str]:
    """Groups whose set breaks the rule of their pool, as far as it is known."""
    wrong = []
    for place, name in enumerate(cluster.groups.ids):
        domains = cluster.domains[int(cluster.groups.pool[place])]
        if domains is not None and broken(domains, cluster.osd_ids(place).tolist()) is not None:
            wrong.append(name)
    return wrong


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
    speed = np.where(cluster.usable, demand.speed, 0.0)
    load = after * demand.speed
    # no placement spreads the work more evenly than by speed
    bound = float(load.sum() / speed.sum())
    level = bound * (1 + within)
    able = np.zeros(len(cluster.groups.ids), bool)
    able[free] = True
    moved = with_moves(cluster, sets, demand.work, load, level * demand.speed, tolerance, able)
    held = role_load(cluster, demand, moved)
    return moved, roles._replace(bound=bound, level=level, copies_bound=math.nan), held


def _led(
    cluster: Cluster,
    demand: Demand,
    plan: tuple[dict[str, tuple[int, ...]], RolePlan],
    free: np.ndarray,
    within: float,
) -> tuple[dict[str, tuple[int, ...]], RolePlan, np.ndarray]:
    """A plan with primaries spread: sets, bounds that hold for them, loads."""
    sets, roles = plan
    load = role_load(cluster, demand, sets)
    # no choice of roles and primaries spreads the work more evenly than by speed
    bound = float((load * demand.speed).sum() / demand.speed[cluster.usable].sum())
    level = bound * (1 + within)
    spread = with_primaries_spread(cluster, demand, sets, load, free, level)
    held = role_load(cluster, demand, spread)
    return spread, roles._replace(bound=bound, level=level, copies_bound=math.nan), held


def role_load(cluster: Cluster, demand: Demand, sets: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """(m,) load of every OSD, relative to its speed, with other sets for some groups."""
    osd = with_sets(cluster, sets)
    work = np.repeat(demand.work, np.diff(cluster.groups.first))
    use = is_read(cluster) & (osd >= 0)
    led = primary_load(cluster, demand, osd)
    return (demand.base + led + np.bincount(osd[use], work[use], len(cluster.osds))) / demand.speed


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


def shard_bytes(cluster: Cluster, group: int) -> float:
    """Bytes of one shard of a group, without padding."""
    return float(cluster.groups.bytes[group]) / cluster.pools[int(cluster.groups.pool[group])].k


def with_sets(cluster: Cluster, sets: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """(N,) places of the OSDs by position, with other sets for some groups."""
    osd = cluster.groups.osd.copy()
    place_of = {name: place for place, name in enumerate(cluster.groups.ids)}
    for name, ids in sets.items():
        first = cluster.groups.first[place_of[name]]
        osd[first : first + len(ids)] = np.searchsorted(cluster.osds, ids)
    return osd
