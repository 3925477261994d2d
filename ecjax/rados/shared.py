"""What of the load a plan can share out: an OSD that has more to do by what stays there than the others have at least.

Such an OSD, as one with the index of a busy pool, would be the busiest one whatever the plan is, and all others could
have as much to do as it has. What stays on it counts only up to the least that the others can have, so that what is
least is the largest load of these, and no reads are brought to it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecjax.rados.plan import Demand, role_problem
from ecjax.rados.records import Cluster
from ecjax.rados.relaxed import Relaxed
from ecjax.rados.spread import allowed_osds, least_spread, pool_work

_ROUNDS = 20
_SAME = 1e-6  # relatively: what counts stays below the bound that a solver finds


class Shared(NamedTuple):
    """A demand that plans are made for, m OSDs."""

    demand: Demand  # with a base that counts only up to what the others have at least
    beyond: np.ndarray  # (m,) load, relative to speed, that does not count
    able: np.ndarray  # (m,) bool: OSDs whose load plans change; all of them where there are none

    @property
    def counted(self) -> np.ndarray:
        """(m,) bool: OSDs that a mean load is of."""
        counted = self.able & (self.beyond == 0)
        return counted if counted.any() else np.ones(len(self.able), bool)


def shared_demand(cluster: Cluster, demand: Demand, tolerance: int | None) -> Shared:
    """The load that plans can share out.

    Args:
        cluster: as it is.
        demand: what loads its OSDs.
        tolerance: of ``plan_of``; None: roles only.
    """
    problem, free = role_problem(cluster, demand)
    osds = len(cluster.osds)
    if not problem.work.any():
        return Shared(demand, np.zeros(osds), np.ones(osds, bool))
    base, speed = problem.base, demand.speed
    work, there = pool_work(cluster, demand, free), allowed_osds(cluster)
    open_osds = np.logical_or.reduce(there[work > 0], axis=0)

    def anywhere(full: np.ndarray) -> float | None:
        inside = open_osds & ~full
        return least_spread(work, there[:, inside], base[inside], speed[inside])

    def by_roles(full: np.ndarray) -> float | None:
        level = Relaxed(problem).least_beside(full)
        # without primaries' work loads are no larger
        spread = anywhere(full) if demand.primary else 0.0
        return None if level is None or spread is None else max(level, spread)

    able = open_osds
    if tolerance is None:
        able = np.zeros(osds, bool)
        able[problem.osd[problem.work[problem.group] > 0]] = True
    even = float((base[able].sum() + work.sum()) / speed[able].sum())
    level = _level(base / speed, able, even, by_roles if tolerance is None else anywhere)
    beyond = np.maximum(base / speed - level * (1 - _SAME), 0.0)
    return Shared(demand._replace(base=demand.base - beyond * speed), beyond, able)


def _level(
    stays: np.ndarray, able: np.ndarray, even: float, least: Callable[[np.ndarray], float | None]
) -> float:
    """Least max load of the OSDs that have no more by what stays there, relative to speed.

    Args:
        stays: (m,) load that stays where it is.
        able: (m,) bool: OSDs whose load plans change.
        even: load of these if all were alike.
        least: max load of all but some of them, (m,) bool, which are brought nothing; None where there is none.
    """
    if (stays[able] < even).all():
        return even
    full = ~able
    level = np.inf
    for _ in range(_ROUNDS):
        level_beside = least(full)
        if level_beside is None:
            break
        level = level_beside
        more = ~full & (stays >= level * (1 - _SAME))
        if not more.any():
            break
        full |= more
    return level
