"""Which k of the n OSDs of a group hold the positions that are read: least load of the busiest, then least copies.

The least max load of all choices is bounded from below by a linear program (exactly where all groups are read alike: it
is a flow, whose corners are whole numbers). At a level a little above it, a second linear program has the fewest
shards copied; its corners have hardly more groups in fractions than there are OSDs. These are rounded and repaired, and
in small clusters solved as whole numbers. What the linear programs say is kept as bounds.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ecjax.ceph.repair import repaired, unneeded_undone

COPIES_OF_SWAP = 2  # a data and a parity position change their OSDs
_EQUAL = 1e-9
_HALF = 0.5
_MANY = 60_000  # variables from which interior points are faster than simplex
_FEW = 15_000  # variables that are solved as whole numbers at once
_NODES, _NODES_OF_PART = 600, 60  # of a search tree: a limit in seconds would make plans differ by machine
_GAP, _GAP_TO_SPREAD = 0.05, 0.002
_PARTS, _MOST_PARTS, _OSDS_OF_PART, _GROUPS_OF_PART = 15, 60, 40, 80
_FEW_TO_SPREAD, _NODES_TO_SPREAD = (
    1_000,
    2_000,
)  # variables whose least max load is searched for as whole numbers
# of the level, where whole groups do not fit below it: the first one, relatively, and how much longer each next one is
_STEPS, _STEP, _LONGER = 60, 0.0025, 1.1


class RoleProblem(NamedTuple):
    """Groups whose roles may change; G of them, N positions, m OSDs."""

    first: np.ndarray  # (G + 1,) int64: positions of group g are first[g] to first[g + 1] - 1
    osd: np.ndarray  # (N,) int64 OSD of each
    data: np.ndarray  # (N,) bool: read now
    work: np.ndarray  # (G,) load of one data role
    base: np.ndarray  # (m,) load that stays where it is
    speed: np.ndarray  # (m,) load / speed is what counts

    @property
    def group(self) -> np.ndarray:
        """(N,) int64 group of each position."""
        return np.repeat(np.arange(len(self.work)), np.diff(self.first))

    def load(self, data: np.ndarray) -> np.ndarray:
        """(m,) load of every OSD, relative to its speed, with these positions read, (N,) bool."""
        work = self.work[self.group]
        return (self.base + np.bincount(self.osd[data], work[data], len(self.base))) / self.speed


class RolePlan(NamedTuple):
    """Roles, and what is known about better ones."""

    data: np.ndarray  # (N,) bool: read by the plan
    bound: float  # no choice of roles has a smaller max load
    level: float  # that the max load was to stay below
    copies: int  # shards that are copied
    copies_bound: float  # no choice of roles with max load <= level copies fewer shards; nan: not known


def plan_roles(problem: RoleProblem, within: float) -> RolePlan:
    """Roles with a max load within a share of the least possible, and few shards copied.

    Args:
        problem: what may change.
        within: the max load may be so much above its bound, relatively.
    """
    if not len(problem.work) or not problem.work.any():
        load = float(problem.load(problem.data).max())
        return RolePlan(problem.data, load, load, 0, 0.0)
    relaxed = _Relaxed(problem)
    bound = relaxed.least_load()
    level = bound * (1 + within)
    plan = _at(relaxed, bound, level)
    if plan is None and len(problem.osd) <= _FEW_TO_SPREAD:
        bound, best = relaxed.spread_whole(bound)
        if best is not None:
            load = float(problem.load(best).max())
            level = max(bound * (1 + within), load * (1 + _EQUAL))
            copies = COPIES_OF_SWAP * _changes(problem, best)
            return _at(relaxed, bound, level) or RolePlan(best, bound, level, copies, math.nan)
    step = _STEP
    for _ in range(_STEPS):
        if plan is not None:
            return plan
        level, step = level + bound * step, step * _LONGER
        plan = _at(relaxed, bound, level)
    load = float(problem.load(problem.data).max())
    return RolePlan(problem.data, bound, load, 0, math.nan)


def _at(relaxed: "_Relaxed", bound: float, level: float) -> RolePlan | None:
    """Roles with max load at most ``level``; None where none were found."""
    problem, limit = relaxed.problem, relaxed.limit(level)
    share = relaxed.fewest_changes(limit)
    if share is None:
        return None
    least = float(share[~problem.data].sum())
    data, least = _whole(relaxed, limit, share, least)
    if data is None:
        return None
    copies = COPIES_OF_SWAP * _changes(problem, data)
    # swaps are whole
    return RolePlan(data, bound, level, copies, float(COPIES_OF_SWAP * math.ceil(least - 1e-6)))


class _Relaxed:
    """The linear programs of a problem: how much of each position is read, from 0 to 1."""

    def __init__(self, problem: RoleProblem) -> None:
        self.problem = problem
        count, groups = len(problem.osd), len(problem.work)
        place, group = np.arange(count), problem.group
        self.roles = sp.csr_matrix((np.ones(count), (group, place)), shape=(groups, count))
        # in units of the mean work, so that tolerances of the solver mean the same in every cluster
        self.unit = float(problem.work[problem.work > 0].mean())
        work = problem.work[group] / self.unit
        self.work = sp.csr_matrix((work, (problem.osd, place)), shape=(len(problem.base), count))
        # with the max load as the last variable
        speed = sp.csr_matrix(-problem.speed[:, None] / self.unit)
        self.above = sp.hstack([self.work, speed]).tocsr()
        self.roles_only = sp.hstack([self.roles, sp.csr_matrix((groups, 1))]).tocsr()
        self.k = np.bincount(group, problem.data, groups)
        self.change = (~problem.data).astype(float)
        self.equal = bool(np.ptp(problem.work) <= _EQUAL * problem.work.max())

    def limit(self, level: float) -> np.ndarray:
        """(m,) work in units that fits under a level; whole units where all groups are alike."""
        room = (level * self.problem.speed - self.problem.base) / self.unit
        return np.floor(room + 1e-7) if self.equal else room

    def least_load(self) -> float:
        """The least max load of all choices, or a bound below it."""
        problem = self.problem
        count, osds = len(problem.osd), len(problem.base)
        solution = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=self.above,
            b_ub=-problem.base / self.unit,
            A_eq=self.roles_only,
            b_eq=self.k,
            bounds=np.append(np.tile([0.0, 1.0], (count, 1)), [[0.0, np.inf]], axis=0),
            method=self._method(),
        )
        least = float(solution.x[-1]) * (1 - 1e-9) if solution.x is not None else 0.0
        if not self.equal or not osds:
            return least
        return self._least_whole(least)

    def _least_whole(self, least: float) -> float:
        """The least level, from a bound on, at which whole groups that are alike fit."""
        problem = self.problem
        most = float(problem.load(problem.data).max())
        units = np.arange(0, int(np.ceil(most * problem.speed.max() / self.unit)) + 2)
        levels = np.unique((problem.base[:, None] + units * self.unit) / problem.speed[:, None])
        levels = levels[(levels >= least * (1 - 1e-7)) & (levels < most * (1 - 1e-9))]
        # the first of them nearly always does; at the last, what is in force now
        low, high, step = 0, len(levels), 1
        while low < high:
            middle = min(low + step - 1, (low + high) // 2)
            if self.fewest_changes(self.limit(float(levels[middle]))) is None:
                low, step = middle + 1, 2 * step
            else:
                high = middle
        return float(levels[low]) if low < len(levels) else most

    def spread_whole(self, least: float) -> tuple[float, np.ndarray | None]:
        """The least max load of whole groups, or a bound below it, and roles near it, (N,) bool; None: not found.

        Args:
            least: bound that is known already.
        """
        problem = self.problem
        count = len(problem.osd)
        solution = milp(
            np.append(np.zeros(count), 1.0),
            constraints=[
                LinearConstraint(self.above, -np.inf, -problem.base / self.unit),
                LinearConstraint(self.roles_only, self.k, self.k),
            ],
            integrality=np.append(np.ones(count), 0.0),
            bounds=Bounds(0, np.append(np.ones(count), np.inf)),
            options={"mip_rel_gap": _GAP_TO_SPREAD, "node_limit": _NODES_TO_SPREAD},
        )
        dual = solution.mip_dual_bound
        bound = max(least, float(dual) * (1 - _EQUAL)) if dual is not None and np.isfinite(dual) else least
        return bound, None if solution.x is None else solution.x[:-1] > _HALF

    def fewest_changes(self, limit: np.ndarray) -> np.ndarray | None:
        """(N,) shares with the fewest changes and loads within a limit; None where there are none."""
        if (limit < 0).any():
            return None
        solution = linprog(
            self.change,
            A_ub=self.work,
            b_ub=limit,
            A_eq=self.roles,
            b_eq=self.k,
            bounds=(0, 1),
            method=self._method(),
        )
        return solution.x

    def _method(self) -> str:
        return "highs-ipm" if len(self.problem.osd) > _MANY else "highs"

    def whole(
        self, limit: np.ndarray, free: np.ndarray, data: np.ndarray, nodes: int
    ) -> tuple[np.ndarray | None, float]:
        """The roles of some groups anew, as whole numbers, (N,) bool; None where the search found none.

        Also the fewest changes that they can have, or a bound below.

        Args:
            limit: (m,) of work.
            free: (G,) bool, groups that may change.
            data: (N,) bool, roles of the others.
            nodes: of the search tree.
        """
        inside = free[self.problem.group]
        held = self.work[:, ~inside] @ data[~inside].astype(float)
        count = int(free.sum())
        solution = milp(
            self.change[inside],
            constraints=[
                LinearConstraint(self.work[:, inside].tocsc(), -np.inf, limit - held),
                LinearConstraint(self.roles[free][:, inside].tocsc(), self.k[free], self.k[free]),
            ],
            integrality=np.ones(int(inside.sum())),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": _GAP, "node_limit": nodes},
        )
        dual = solution.mip_dual_bound
        bound = float(dual) if dual is not None and np.isfinite(dual) else 0.0
        if solution.x is None or not count:
            return None, bound
        chosen = data.copy()
        chosen[inside] = solution.x > _HALF
        within = self.work @ chosen.astype(float) <= limit + 1e-6
        return (chosen if within.all() else None), bound


def _whole(
    relaxed: _Relaxed, limit: np.ndarray, share: np.ndarray, least: float
) -> tuple[np.ndarray | None, float]:
    """Roles from shares, with the fewest changes that any have: rounded; by search where that is not good enough.

    Args:
        relaxed: the problem.
        limit: (m,) of work.
        share: (N,) with the fewest changes.
        least: those changes.
    """
    problem = relaxed.problem
    few, good = len(problem.osd) <= _FEW, (1 + _GAP) * math.ceil(least - 1e-6)
    rounded = _rounded(relaxed, limit, share)
    if rounded is not None and _changes(problem, rounded) <= good:
        return rounded, least
    if few:
        every = np.ones(len(problem.work), bool)
        found, bound = relaxed.whole(limit, every, problem.data, _NODES)
        least = max(least, bound)
        if found is not None and (rounded is None or _changes(problem, found) <= _changes(problem, rounded)):
            return found, least
    return (None if rounded is None else _in_parts(relaxed, limit, share, rounded, good)), least


def _changes(problem: RoleProblem, data: np.ndarray) -> int:
    """Positions that are read and were not before."""
    return int(np.count_nonzero(data & ~problem.data))


def _rounded(relaxed: _Relaxed, limit: np.ndarray, share: np.ndarray) -> np.ndarray | None:
    """The largest k shares of each group, repaired; None where they cannot be."""
    problem = relaxed.problem
    rank = np.lexsort((-share, problem.group))
    data = np.zeros(len(problem.osd), bool)
    place = np.arange(len(problem.osd)) - problem.first[:-1][problem.group]
    data[rank] = place < relaxed.k[problem.group]
    fixed = repaired(problem, data, limit * relaxed.unit)
    return None if fixed is None else unneeded_undone(problem, fixed, limit * relaxed.unit)


def _in_parts(
    relaxed: _Relaxed, limit: np.ndarray, share: np.ndarray, data: np.ndarray, good: float
) -> np.ndarray:
    """Fewer changes: groups that meet on some OSDs anew, one part after another, until they are few enough."""
    problem, draw = relaxed.problem, np.random.default_rng(0)
    osds, begin = len(problem.base), problem.first[:-1]
    halves = np.logical_or.reduceat(np.abs(share - np.round(share)) > 1e-6, begin)
    for _ in range(int(np.clip(osds / _OSDS_OF_PART * _PARTS, _PARTS, _MOST_PARTS))):
        changes = _changes(problem, data)
        if changes <= good:
            break
        chosen = np.zeros(osds, bool)
        chosen[draw.choice(osds, min(_OSDS_OF_PART, osds), replace=False)] = True
        differs = np.logical_or.reduceat(data != problem.data, begin)
        meeting = np.add.reduceat(chosen[problem.osd].astype(float), begin) * np.where(
            differs | halves, 1.0, 0.6
        )
        free = np.zeros(len(begin), bool)
        free[np.argsort(-meeting, kind="stable")[:_GROUPS_OF_PART]] = True
        better, _ = relaxed.whole(limit, free, data, _NODES_OF_PART)
        if better is not None and _changes(problem, better) < changes:
            data = better
    return data
