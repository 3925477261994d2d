"""Linear programs of roles, and what of them is solved as whole numbers."""

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

if TYPE_CHECKING:
    from ecjax.rados.roles import RoleProblem

EQUAL, GAP = 1e-9, 0.05
_GAP_TO_SPREAD = 0.002
_HALF = 0.5
_MANY = 60_000  # variables from which interior points are faster than simplex
# of a search tree: the fewer variables, the more of them are searched in the same time
_VARIABLE_NODES_TO_SPREAD, _LEAST_NODES = 100_000, 300


class Relaxed:
    """The linear programs of a problem: how much of each position is read, from 0 to 1."""

    def __init__(self, problem: "RoleProblem") -> None:
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
        self.equal = bool(np.ptp(problem.work) <= EQUAL * problem.work.max())

    def limit(self, level: float) -> np.ndarray:
        """(m,) work in units that fits under a level; whole units where all groups are alike."""
        room = (level * self.problem.speed - self.problem.base) / self.unit
        return np.floor(room + 1e-7) if self.equal else room

    def least_load(self) -> float:
        """The least max load of all choices, or a bound below it."""
        least = self.least_beside(np.zeros(len(self.problem.base), bool)) or 0.0
        if not self.equal or not len(self.problem.base):
            return least
        return self._least_whole(least)

    def least_beside(self, full: np.ndarray) -> float | None:
        """The least max load of OSDs beside some that read nothing, (m,) bool, or a bound below; None: no choice."""
        problem = self.problem
        count = len(problem.osd)
        most = np.where(full[problem.osd], 0.0, 1.0)
        solution = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=self.above[~full],
            b_ub=-problem.base[~full] / self.unit,
            A_eq=self.roles_only,
            b_eq=self.k,
            bounds=np.column_stack([np.zeros(count + 1), np.append(most, np.inf)]),
            method=self._method(),
        )
        return float(solution.x[-1]) * (1 - 1e-9) if solution.x is not None else None

    def _least_whole(self, least: float) -> float:
        """The least level, from a bound on, at which whole groups that are alike fit."""
        problem = self.problem
        most = float(problem.load(problem.data).max())
        # an OSD has room for one group more at these levels; it reads no more of them than it has positions
        count = np.bincount(problem.osd, minlength=len(problem.base)) + 1
        osd = np.repeat(np.arange(len(count)), count)
        units = np.arange(len(osd)) - np.repeat(np.cumsum(count) - count, count)
        levels = np.unique((problem.base[osd] + units * self.unit) / problem.speed[osd])
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
        nodes = max(_VARIABLE_NODES_TO_SPREAD // count, _LEAST_NODES)
        solution = milp(
            np.append(np.zeros(count), 1.0),
            constraints=[
                LinearConstraint(self.above, -np.inf, -problem.base / self.unit),
                LinearConstraint(self.roles_only, self.k, self.k),
            ],
            integrality=np.append(np.ones(count), 0.0),
            bounds=Bounds(0, np.append(np.ones(count), np.inf)),
            options={"mip_rel_gap": _GAP_TO_SPREAD, "node_limit": nodes},
        )
        dual = solution.mip_dual_bound
        bound = max(least, float(dual) * (1 - EQUAL)) if dual is not None and np.isfinite(dual) else least
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
            options={"mip_rel_gap": GAP, "node_limit": nodes},
        )
        dual = solution.mip_dual_bound
        bound = float(dual) if dual is not None and np.isfinite(dual) else 0.0
        if solution.x is None or not count:
            return None, bound
        chosen = data.copy()
        chosen[inside] = solution.x > _HALF
        within = self.work @ chosen.astype(float) <= limit + 1e-6
        return (chosen if within.all() else None), bound
