"""Few placement rows on some dozen nodes: the best sets of them at some z, and what is proved for every z."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ecjax.planning.certified.data import Rows
from ecjax.planning.certified.node_sets import Between, StatePrices, States, some_of
from ecjax.planning.certified.set_branches import Prices
from ecjax.planning.certified.set_program import SetProgram
from ecjax.planning.certified.waits import best_z

_LEAST_TOL = 1e-3  # relative
_FINE = 0.3  # of what need not be proved, for the minima of all nodes
_MOVED = 2  # prices of the nearest z that a program starts with
_TURNS = 8  # between the best sets at a z and the best z of these
_WORK = 60  # linear programs for an interval of z, of nodes of few kinds
_MOST_WORK = 3_000  # minima of nodes with a set, for an interval
_LESS = 3  # times what is left open then
_CLOSE = 0.1  # of it, for which no shorter interval is tried
_FIRST_WIDTH = 0.1  # of all z
_FIRST_WORK = 12  # linear programs for an interval, before a shorter one gets more
_LEAST_WIDTH = 0.005  # of all z: tangents are close to what they touch then
_NEAR = 1e-4  # relative, of z that are alike
_LONGER, _SHORTER = 1.5, 0.6


class Search:
    """Best sets at several z, and what is proved for every z.

    Args:
        states: of the nodes.
        rows: of the placement.
        steep: (E,) s per 1/s, about the prices at a z.
        unit: s, about what a plan costs.
        tol: of it, that need not be proved.
    """

    def __init__(
        self,
        states: States,
        rows: Rows,
        steep: Callable[[float], np.ndarray],
        unit: float,
        tol: float,
    ) -> None:
        self.best = np.inf  # s, of all plans at the z that were searched
        self._states, self._rows, self._steep = states, rows, steep
        self._unit, self._tol = unit, max(tol, _LEAST_TOL)
        self._slack = self._tol * unit
        self._work = int(np.clip(_MOST_WORK / self._states.minima, _FIRST_WORK, _WORK))
        self._programs: list[SetProgram] = []
        self._plans: list[tuple[float, np.ndarray]] = []  # s, (m,) sets

    def improve(self, first: StatePrices, lowest: Callable[[float], float]) -> None:
        """From prices for a z: the best sets there, the best z for these, and so on.

        Args:
            first: the prices.
            lowest: z below which plans cost more than a target.
        """
        at = first.z
        program = self._program(Between(at, np.array([at])))
        program.learn(program.alike(first.read[None], first.kept[None]))
        least = np.inf
        for _ in range(_TURNS):
            outcome = program.least(np.inf, _FINE * self._slack, self._work)
            self._programs.append(program)
            if not np.isfinite(self.best) or outcome.cost < least:
                self.best = outcome.bound
                if np.isfinite(self.best) and self.best > 0:
                    self._slack = self._tol * self.best
            if outcome.sets is None or outcome.loads is None or outcome.cost >= least - _NEAR * self._slack:
                return
            least = outcome.cost
            self._plans.append((least, outcome.sets))
            again = self._best_z(outcome.sets, outcome.loads)
            if again >= least or again <= lowest(least) or abs(again - at) <= _NEAR * abs(at):
                return
            at = again
            program = self._program(Between(at, np.array([at])), _MOVED)

    def placements(self) -> np.ndarray:
        """(C, R, m) what nodes keep in the plans that were best, the best first."""
        kept = self._states.kept > 0
        different = {
            sets.tobytes(): kept[sets].T for _, sets in sorted(self._plans, key=lambda plan: plan[0])
        }
        shape = len(different), len(self._states.least), len(self._states.dollars)
        return np.array(list(different.values()), bool).reshape(shape)

    def everywhere(self, k: float, known: float, budget: int, budgets: int) -> float:
        """Bound on all plans, s: intervals of z from the highest down, as long as they prove the target.

        Args:
            k: chunks of a read, > 1.
            known: s, a bound; what proves less is not searched.
            budget: minima of nodes with a set, before less is proved.
            budgets: of them in all.
        """
        if not np.isfinite(self.best):
            return known
        mean = self._mean_delays()

        def lowest(target: float) -> float:
            """Plans of a smaller z cost more: a chunk that is z late or more costs its mean delay less z."""
            return (mean - target) / (k - 1)

        slack, spent = self._slack, 0
        high, target = self.best - self._states.storage, self.best - slack
        all_z = high - lowest(target)
        width, work = _FIRST_WIDTH * all_z, _FIRST_WORK
        while high > lowest(target) and budgets:
            low = max(high - width, lowest(target))
            between = Between(0.5 * (low + high), np.array([low, high]))
            program = self._program(between, 1)
            value, straight = program.proven(program.proofs[0]), False
            if value < target:
                for moved in self._moved(between.ends, _MOVED)[1:]:
                    program.learn(moved)
                outcome = program.least(target, _FINE * slack, work)
                value = outcome.bound
                self._programs.append(program)
                spent += len(program.proofs) * self._states.minima
                straight = outcome.sets is not None and not outcome.bent
            if spent > budget:
                # proving less takes fewer intervals, and less for each
                target, slack, spent, budgets = target - (_LESS - 1) * slack, _LESS * slack, 0, budgets - 1
            may_gain = not straight and (work < self._work or width > _LEAST_WIDTH * all_z)
            if value < target - _CLOSE * slack and may_gain:
                width, work = _SHORTER * width, min(2 * work, self._work)
                continue
            # what is proved of it is what can be
            target, high, width = min(target, value), low, _LONGER * width
            if target <= known:
                return known
        if budgets or high <= lowest(target):
            return target
        rest = self._program(Between(0.5 * (lowest(target) + high), np.array([lowest(target), high])), _MOVED)
        return min(target, rest.least(target, _FINE * slack, _FIRST_WORK).bound)

    def _mean_delays(self) -> float:
        """The least sum of the mean delays of the chunks of a read, with storage, s."""
        alone = replace(self._states, service=self._states.service._replace(alone=True))
        tol = _FINE * self._slack
        program = SetProgram(alone, self._rows, Between(0.0, np.zeros(1)), tol, self._unit)
        near = self._programs[-1]
        for proof in near.proofs[:_MOVED]:
            program.learn(Prices(*(each[:1] for each in proof.prices)))
        return program.least(np.inf, tol, self._work).bound

    def _program(self, between: Between, moved: int = 0) -> SetProgram:
        """A program with so many prices of the nearest one."""
        program = SetProgram(self._states, self._rows, between, _FINE * self._slack, self._unit)
        for prices in self._moved(between.ends, moved):
            program.learn(prices)
        return program

    def _moved(self, ends: np.ndarray, most: int) -> list[Prices]:
        """Prices of the nearest program for other z, the best first, moved along with the slopes."""
        if not most:
            return []
        middle = float(ends.mean())
        near = min(reversed(self._programs), key=lambda program: abs(program.between.middle - middle))
        proofs = sorted(near.proofs, key=near.proven, reverse=True)[:most]
        # from the nearest end of that one
        of = np.abs(near.between.ends[None] - ends[:, None]).argmin(axis=1)
        part = np.stack(
            [self._steep(to) / self._steep(near.between.ends[end]) for to, end in zip(ends, of, strict=True)]
        )
        moved = [Prices(*(each[of] for each in proof.prices)) for proof in proofs]
        return [prices._replace(reads=prices.reads * part) for prices in moved]

    def _best_z(self, sets: np.ndarray, loads: np.ndarray) -> float:
        """The best z for the loads of a plan, s."""
        count = self._states.dollars.shape[1]
        service, _ = some_of(self._states, np.arange(len(sets)) * count + sets)
        return best_z(service, loads)
