"""The least value of an objective over plans whose classes keep limits on their latency: by prices of the limits.

With prices mu >= 0 of the limits D, what a plan p of value v_p and latencies L_p is worth is v_p + mu . (L_p - D), and

    q(mu) = min_p v_p + mu . (L_p - D)

is at most the least value of any plan that keeps the limits. q is concave, and every plan met on the way is a cut of
it. Prices are those that make the least of the cuts largest (Kelley's method, a linear program in K variables), drawn
back towards the best ones known; the alternation then looks for a better plan at these prices, from the plan that is
best at them so far.

Which class uses which nodes makes plans of different kinds, between which no price leads: what is best at some prices
keeps the limits by far or misses them. The way to the limits is by a penalty b (L_k / D_k)^p, whose slopes are prices
too: it rises from next to nothing where a plan misses limits, and falls, with hard limits, where one keeps them.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from ecjax.planning.classes.alternate import Alternation, Point
from ecjax.planning.classes.scheduling import Goal

_ROUNDS = 14  # of prices
_ITERATIONS = 3  # of the alternation at given prices
_CHANGE = 1e-3  # relative: what changes the objective less is the last of them
_SETTLED = 1e-4  # relative: prices that promise no more are the last
# of a price: so much times the objective for a limit's worth of latency; above 0, lest nodes be overfull for nothing
_LEAST, _MOST = 1e-6, 1e4
_FIRST = 1.0
_ASIDE = 1e-5
_INWARDS = 0.5  # how far new prices are drawn back
# a penalty is in units of the value; it rises and falls by these factors, so often at most
POWERS = (4, 1)
_RISE, _RISES, _RISE_FROM = 1.6, 16, 0.01
_FALL, _FALLS, _FALL_FROM = 0.5, 10, 0.25
_SETTLINGS = 3
_MOST_FALLS = 3  # times all of these


class Candidate(NamedTuple):
    """A plan and its value."""

    value: float
    point: Point


class Search:
    """Plans that were met, and the best of them that keeps the limits."""

    def __init__(self, run: Alternation, goal: Goal, limits: np.ndarray, enough: float = -np.inf) -> None:
        """Start without a plan.

        Args:
            run: the alternation; its point is left somewhere.
            goal: the objective; its own limits are left aside.
            limits: (K,) s, infinite where there is none.
            enough: a value that need not be improved any more.
        """
        self.run, self.goal, self.limits, self.enough = run, goal, limits, enough
        self.bound = np.flatnonzero(np.isfinite(limits))
        self.last = run.steps[-1].iteration + run.settings.max_iterations
        self.met: list[Candidate] = []
        self.best: Candidate | None = None
        self.price = np.zeros(len(limits))
        free = ~np.isfinite(limits) & (np.asarray(goal.coefficient) == 0)
        # classes that nothing is said of: see ``_aside``
        self.free, self.usual = free, run.steps[0].latency

    def settle(self, point: Point) -> Point:
        """A plan of the same placement whose shares and reads are good for the limits."""
        run, nothing = self.run, jnp.zeros_like(self.goal.storing)
        run.point = point
        for turn in range(2 * _SETTLINGS):
            # first all at once, then those that are late while the others keep their limits
            late = np.asarray(run.state.latency) > self.limits
            if turn >= _SETTLINGS and not late.any():
                break
            rest = np.where(late, np.inf, self.limits) if turn >= _SETTLINGS else np.full(len(late), np.inf)
            prices = self._slopes(1.0) * (late if turn >= _SETTLINGS else 1.0) + self._aside()
            goal = Goal(jnp.asarray(prices), jnp.asarray(rest), nothing, nothing, self.goal.movable)
            iteration = run.steps[-1].iteration
            run.weigh(iteration, None, goal)
            run.spread(iteration, None, goal)
        return run.point

    def meet(self, point: Point) -> None:
        """Keep a stable plan in mind."""
        self.met.append(self.judge(point))

    def take(self, candidate: Candidate) -> None:
        """A plan that keeps the limits, from elsewhere."""
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate

    def limit(self, limits: np.ndarray, latest: Point) -> None:
        """Other limits, of the same classes; the best is the latest plan or one that was met before ``fall``."""
        self.limits, self.best = limits, None
        for point in (latest, *(candidate.point for candidate in self.met)):
            self.judge(point)

    def _keeps(self, point: Point) -> bool:
        return bool(np.all(np.asarray(point.latency) <= self.limits))

    def judge(self, point: Point) -> Candidate:
        """What a plan is worth; it is the best if it is."""
        candidate = Candidate(float(self.goal.value(point.latency, point.probabilities, point.stored)), point)
        if self._keeps(point) and (self.best is None or candidate.value < self.best.value):
            self.best = candidate
        return candidate

    @property
    def exhausted(self) -> bool:
        """Whether the limit of iterations came first."""
        return self.run.steps[-1].iteration >= self.last

    @property
    def finished(self) -> bool:
        """Whether the best plan is good enough."""
        return self.best is not None and self.best.value <= self.enough

    def find(self) -> None:
        """Raise the prices of limits that are missed and lower those of the others until nothing new is found."""
        prices = np.zeros(len(self.limits))
        prices[self.bound] = _FIRST * self._unit / self.limits[self.bound]
        for turn in range(_ROUNDS if self.bound.size else 1):
            if self.finished:
                return
            if turn:
                best_prices, promise = self._best_cut()
                if promise - self._least(self.price) <= _SETTLED * abs(promise):
                    return
                prices = self.price + (1 - _INWARDS) * (best_prices - self.price)
            at = min(self.met, key=lambda candidate: self._worth(candidate, prices))
            self._descend(at.point, prices, np.full(len(prices), np.inf))
            self.meet(self.run.point)
            if not turn or self._least(prices) > self._least(self.price):
                self.price = prices

    def descend(self, start: Point) -> None:
        """Descend from one more stable plan at the best prices known."""
        self._descend(start, self.price, np.full(len(self.limits), np.inf))
        self.meet(self.run.point)

    def rise(self, start: Point) -> Point:
        """A penalty on late classes rises from next to nothing until none is late, from a stable plan."""
        free = np.full(len(self.limits), np.inf)
        self.run.point = start
        for turn in range(_RISES):
            if self.finished or self._keeps(self.run.point):
                break
            self._descend(self.run.point, self._slopes(_RISE_FROM * _RISE**turn), free)
            self.judge(self.run.point)
        return self.run.point

    def fall(self, start: Point, power: int = POWERS[0]) -> None:
        """The penalty falls with hard limits, from a plan that keeps them, then from what came of it while that helps.

        Args:
            start: a plan.
            power: of the penalty; the smaller, the more is done about latency that is far below its limit.
        """
        if not self._keeps(start):
            return
        lowest, value = start, np.inf
        for _ in range(_MOST_FALLS):
            before, self.run.point = value, lowest
            for turn in range(_FALLS if self.bound.size else 1):
                if self.finished:
                    return
                self._descend(self.run.point, self._slopes(_FALL_FROM * _FALL**turn, power), self.limits)
                candidate = self.judge(self.run.point)
                if candidate.value < value and self._keeps(candidate.point):
                    lowest, value = candidate.point, candidate.value
            if before - value <= _SETTLED * abs(value):
                return

    @property
    def _unit(self) -> float:
        """What prices are in units of: the least value above 0 that was met, as plans on free nodes cost nothing."""
        return min((candidate.value for candidate in self.met if candidate.value > 0), default=1.0)

    def _slopes(self, penalty: float, power: int = POWERS[0]) -> np.ndarray:
        """Prices that a penalty amounts to at a plan."""
        slopes = np.zeros(len(self.limits))
        late = np.asarray(self.run.point.latency)[self.bound] / self.limits[self.bound]
        slopes[self.bound] = (
            penalty * self._unit / self.limits[self.bound] * np.minimum(late, 2.0) ** (power - 1)
        )
        return slopes

    def _least(self, prices: np.ndarray) -> float:
        """The least that a plan known so far is worth at these prices."""
        return min(self._worth(candidate, prices) for candidate in self.met)

    def _worth(self, candidate: Candidate, prices: np.ndarray) -> float:
        late = np.asarray(candidate.point.latency)[self.bound] - self.limits[self.bound]
        return candidate.value + float(prices[self.bound] @ late)

    def _best_cut(self) -> tuple[np.ndarray, float]:
        """Prices at which the least of the cuts is largest, and that."""
        limits, unit = self.limits[self.bound], self._unit
        late = np.array(
            [np.asarray(candidate.point.latency)[self.bound] / limits - 1 for candidate in self.met]
        )
        values = np.array([candidate.value for candidate in self.met]) / unit
        program = linprog(
            np.concatenate([[-1.0], np.zeros(len(limits))]),
            A_ub=np.column_stack([np.ones(len(values)), -late]),
            b_ub=values,
            bounds=[(None, None)] + [(_LEAST, _MOST)] * len(limits),
        )
        prices = np.zeros(len(self.limits))
        prices[self.bound] = program.x[1:] * unit / limits
        return prices, float(program.x[0]) * unit

    def _aside(self) -> np.ndarray:
        """What the latency of classes that nothing is said of counts: too little to be worth much, but not nothing."""
        return np.where(self.free, _ASIDE * self._unit / self.usual, 0.0)

    def _descend(self, point: Point, prices: np.ndarray, limits: np.ndarray) -> None:
        """The alternation from a plan at given prices."""
        run, goal = self.run, self.goal
        coefficient = goal.coefficient + jnp.asarray(prices + self._aside())
        priced = Goal(coefficient, jnp.asarray(limits), goal.storing, goal.reading, goal.movable)
        run.point = point
        value = run.value(priced)
        for _ in range(_ITERATIONS):
            if self.exhausted:
                return
            run.improve(run.steps[-1].iteration + 1, None, priced)
            before, value = value, run.value(priced)
            if before - value <= _CHANGE * abs(value):
                return
