"""What of the load a plan can share out: an OSD that has more to do by what stays there than the others have at least.

Such an OSD, as one with the index of a busy pool, would be the busiest one whatever the plan is, and all others could
have as much to do as it has. What stays on it counts only up to the least that the others can have, so that what is
least is the largest load of these, and no reads are brought to it but those for which ``within`` of a plan leaves room.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from ecjax.rados.plan import Demand, role_problem
from ecjax.rados.records import Cluster
from ecjax.rados.relaxed import Relaxed
from ecjax.rados.roles import RoleProblem
from ecjax.rados.spread import allowed_osds, least_spread, pool_work

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


class Part(NamedTuple):
    """Pools that share OSDs with each other and with no other pool, m OSDs in all."""

    pools: tuple[int, ...]  # places of them
    counted: (
        np.ndarray
    )  # (m,) bool: their OSDs, without those that have more by what stays there than these at least
    least: float  # no plan has a smaller max load of these, relative to speed


def shared_demand(cluster: Cluster, demand: Demand, tolerance: int | None) -> Shared:
    """The load that plans can share out.

    Args:
        cluster: as it is.
        demand: what loads its OSDs.
        tolerance: of ``plan_of``; None: roles only.
    """
    free = _Free.of(cluster, demand, tolerance)
    osds = len(cluster.osds)
    if not free.work.any():
        return Shared(demand, np.zeros(osds), np.ones(osds, bool))
    beyond = free.beyond()
    return Shared(demand._replace(base=demand.base - beyond * demand.speed), beyond, free.able)


def parts_of(cluster: Cluster, demand: Demand, tolerance: int | None) -> list[Part]:
    """Pools divided by the OSDs that they may load; none where all of them share OSDs, directly or by others.

    A plan of all pools makes the largest load least, so that parts which have less to do stay as they are.

    Args:
        cluster: as it is.
        demand: what loads its OSDs.
        tolerance: of ``plan_of``; None: roles only.
    """
    free = _Free.of(cluster, demand, tolerance)
    used = free.used.astype(np.int64)
    _, number = connected_components(used @ used.T > 0, directed=False)
    numbers = np.unique(number[free.work > 0])
    parts = []
    for each in numbers if len(numbers) > 1 else ():
        inside = number == each
        alone = free.of_pools(inside)
        counted = alone.able & (alone.beyond() == 0)
        least = alone.least(~counted)
        if least is not None:
            parts.append(Part(tuple(np.flatnonzero(inside).tolist()), counted, least))
    return parts


class _Free(NamedTuple):
    """Groups that may change, G of P pools, and the m OSDs that they may load."""

    problem: RoleProblem
    pool: np.ndarray  # (G,) place of the pool of each
    work: np.ndarray  # (P,) of each pool
    allowed: np.ndarray  # (P, m) bool: OSDs that may take it
    roles_only: bool
    primary: bool  # whether primaries have work of their own

    @classmethod
    def of(cls, cluster: Cluster, demand: Demand, tolerance: int | None) -> "_Free":
        """Those of a cluster, arguments as above."""
        problem, groups = role_problem(cluster, demand)
        return cls(
            problem,
            cluster.groups.pool[groups],
            pool_work(cluster, demand, groups),
            allowed_osds(cluster),
            tolerance is None,
            demand.primary > 0,
        )

    def of_pools(self, inside: np.ndarray) -> "_Free":
        """Those of some pools, (P,) bool."""
        groups, count = inside[self.pool], np.diff(self.problem.first)
        positions = np.repeat(groups, count)
        problem = self.problem._replace(
            first=np.concatenate([[0], np.cumsum(count[groups])]).astype(np.int64),
            osd=self.problem.osd[positions],
            data=self.problem.data[positions],
            work=self.problem.work[groups],
        )
        return self._replace(problem=problem, pool=self.pool[groups], work=np.where(inside, self.work, 0.0))

    @property
    def used(self) -> np.ndarray:
        """(P, m) bool: OSDs whose load the groups of each pool can change."""
        if not self.roles_only:
            return self.allowed & (self.work > 0)[:, None]
        used, group = np.zeros(self.allowed.shape, bool), self.problem.group
        read = self.problem.work[group] > 0
        used[self.pool[group[read]], self.problem.osd[read]] = True
        return used

    @property
    def able(self) -> np.ndarray:
        """(m,) bool: OSDs whose load the groups can change."""
        return np.logical_or.reduce(self.used, axis=0)

    def beyond(self) -> np.ndarray:
        """(m,) what stays on each OSD above the least that the others can have, relative to speed."""
        return np.maximum(self.problem.base / self.problem.speed - self._level() * (1 - _SAME), 0.0)

    def least(self, full: np.ndarray) -> float | None:
        """Max load, relative to speed, beside OSDs that are brought nothing, (m,) bool, or a bound below; None: no way.

        Args:
            full: those, and all whose load does not change.
        """
        problem, level = self.problem, 0.0
        if self.roles_only:
            by_roles = Relaxed(problem).least_beside(full)
            # without primaries' work loads at will are no larger
            if by_roles is None or not self.primary:
                return by_roles
            level = by_roles
        spread = least_spread(self.work, self.allowed[:, ~full], problem.base[~full], problem.speed[~full])
        return None if spread is None else max(level, spread)

    def _level(self) -> float:
        """Least max load of the OSDs that have no more by what stays there, relative to speed; infinite: no way.

        Let least(j) be that beside the j OSDs on which most stays, the last of them with stays(j). Then least(j - 1) <=
        max(least(j), stays(j)), as nothing has to be brought to the last one. So least(j) <= stays(j) means that
        least(j - 1) <= stays(j) <= stays(j - 1): the same for j - 1, and for all before. The largest such j is found
        by halving. From there on least(j) only grows.
        """
        base, speed = self.problem.base, self.problem.speed
        able = self.able
        order = np.flatnonzero(able)
        order = order[np.argsort(-(base / speed)[order], kind="stable")]
        # even(j) <= least(j), as work is at will over all of them; where it is least no further OSD has more that stays
        rest, room = (np.cumsum(each[order][::-1])[::-1] for each in (base, speed))
        even = (rest + self.work.sum()) / room

        def beside(count: int) -> float:
            full = ~able
            full[order[:count]] = True
            least = self.least(full)
            return np.inf if least is None else least

        low, high = 0, int(np.argmin(even))
        if not high:
            return float(even[0])
        level, step = np.inf, 1
        while low < high:
            # nearly always it is the first
            middle = max(high - step + 1, (low + high + 1) // 2)
            least = beside(middle)
            if least * (1 - _SAME) <= base[order[middle - 1]] / speed[order[middle - 1]]:
                low, level = middle, least
            else:
                high, step = middle - 1, 2 * step
        return level if low else beside(0)
