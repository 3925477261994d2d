"""Which k of the n OSDs of a group hold the positions that are read: least load of the busiest, then least copies.

The least max load of all choices is bounded from below by a linear program (exactly where all groups are read alike: it
is a flow, whose corners are whole numbers). At a level a little above it, a second linear program has the fewest
shards copied; its corners have hardly more groups in fractions than there are OSDs. These are rounded and repaired, and
in small clusters solved as whole numbers. What the linear programs say is kept as bounds.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.rados.relaxed import EQUAL, GAP, Relaxed
from ecjax.rados.repair import repaired, unneeded_undone

COPIES_OF_SWAP = 2  # a data and a parity position change their OSDs
_FEW = 15_000  # variables that are solved as whole numbers at once
# of a search tree: a limit in seconds would make plans differ by machine; the fewer variables, the more nodes
_VARIABLE_NODES, _NODES, _NODES_OF_PART = 200_000, 600, 60
_PARTS, _MOST_PARTS, _OSDS_OF_PART, _GROUPS_OF_PART = 15, 60, 40, 80
_FEW_TO_SPREAD = 1_000  # variables whose least max load is searched for as whole numbers
# of the level, where whole groups do not fit below it: the first one, relatively, and how much longer each next one is
_STEPS, _STEP, _LONGER = 60, 0.0025, 1.1
_STEPS_BEFORE = 4  # that are tried before the search


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
    relaxed = Relaxed(problem)
    bound = relaxed.least_load()
    level = bound * (1 + within)
    step = _STEP
    for trial in range(_STEPS):
        plan = _at(relaxed, bound, level)
        if plan is not None:
            return plan
        if trial == _STEPS_BEFORE and len(problem.osd) <= _FEW_TO_SPREAD:
            bound, best = relaxed.spread_whole(bound)
            if best is not None:
                return _near(relaxed, bound, within, best)
        level, step = level + bound * step, step * _LONGER
    load = float(problem.load(problem.data).max())
    return RolePlan(problem.data, bound, load, 0, math.nan)


def _near(relaxed: Relaxed, bound: float, within: float, data: np.ndarray) -> RolePlan:
    """Roles within a share of the least possible, or at least as good as some that are there already, (N,) bool."""
    problem = relaxed.problem
    level = max(bound * (1 + within), float(problem.load(data).max()) * (1 + EQUAL))
    plan = _at(relaxed, bound, level)
    return plan or RolePlan(data, bound, level, COPIES_OF_SWAP * _changes(problem, data), math.nan)


def _at(relaxed: Relaxed, bound: float, level: float) -> RolePlan | None:
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


def _whole(
    relaxed: Relaxed, limit: np.ndarray, share: np.ndarray, least: float
) -> tuple[np.ndarray | None, float]:
    """Roles from shares, with the fewest changes that any have: rounded; by search where that is not good enough.

    Args:
        relaxed: the problem.
        limit: (m,) of work.
        share: (N,) with the fewest changes.
        least: those changes.
    """
    problem = relaxed.problem
    few, good = len(problem.osd) <= _FEW, (1 + GAP) * math.ceil(least - 1e-6)
    rounded = _rounded(relaxed, limit, share)
    if rounded is not None and _changes(problem, rounded) <= good:
        return rounded, least
    if few:
        every = np.ones(len(problem.work), bool)
        nodes = max(_VARIABLE_NODES // len(problem.osd), _NODES)
        roles, bound = relaxed.whole(limit, every, problem.data, nodes)
        least = max(least, bound)
        if roles is not None and (rounded is None or _changes(problem, roles) <= _changes(problem, rounded)):
            return roles, least
    return (None if rounded is None else _in_parts(relaxed, limit, share, rounded, good)), least


def _changes(problem: RoleProblem, data: np.ndarray) -> int:
    """Positions that are read and were not before."""
    return int(np.count_nonzero(data & ~problem.data))


def _rounded(relaxed: Relaxed, limit: np.ndarray, share: np.ndarray) -> np.ndarray | None:
    """The largest k shares of each group, repaired; None where they cannot be."""
    problem = relaxed.problem
    rank = np.lexsort((-share, problem.group))
    data = np.zeros(len(problem.osd), bool)
    place = np.arange(len(problem.osd)) - problem.first[:-1][problem.group]
    data[rank] = place < relaxed.k[problem.group]
    fixed = repaired(problem, data, limit * relaxed.unit)
    return None if fixed is None else unneeded_undone(problem, fixed, limit * relaxed.unit)


def _in_parts(
    relaxed: Relaxed, limit: np.ndarray, share: np.ndarray, data: np.ndarray, good: float
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
