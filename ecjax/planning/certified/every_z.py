"""The lower bound for every z where all chunks have one size: intervals of z, and prices of their own where needed.

The sum over rows does not know z, so that one pass over the rows serves all z. The node term falls with z, hence on
[a, b] the bound is at least a + (the rest at b). Intervals that stay below the target are split, or get prices made
for their z. Outside a finite range of z the latency alone is too large.
"""

from dataclasses import dataclass

import numpy as np

from ecjax.planning.certified.relax import Prices
from ecjax.planning.certified.smooth import Bins, Relaxation
from ecjax.planning.certified.waits import waits

_FIRST_INTERVALS = 32
_SPLIT = 4
_MOST_INTERVALS = 40_000


@dataclass(frozen=True)
class Bound:
    """The lower bound, and a better relaxation where the search met one.

    Attributes:
        value: s.
        turns: passes over the bins, of relaxations at other z.
        better: a relaxation below the one that was to be proved.
    """

    value: float
    turns: int
    better: Relaxation | None


class _Intervals:
    """Intervals of z with the best lower bound known on each, and at the right end of each."""

    def __init__(self, edges: np.ndarray) -> None:
        self.left, self.right = edges[:-1], edges[1:]
        self.bound = np.full(len(edges) - 1, -np.inf)
        self.point = np.full(len(edges) - 1, -np.inf)

    def improve(self, which: np.ndarray, rest: np.ndarray) -> None:
        self.bound[which] = np.maximum(self.bound[which], self.left[which] + rest)
        self.point[which] = np.maximum(self.point[which], self.right[which] + rest)

    def split(self, which: np.ndarray) -> None:
        ends = np.linspace(self.left[which], self.right[which], _SPLIT + 1)
        keep = np.ones(len(self.left), bool)
        keep[which] = False
        # the rest of the bound falls with z: at an earlier end it is no less
        rest = self.point[which] - self.right[which]
        bound = np.maximum(self.bound[which], rest + ends[:-1]).ravel()
        point = rest + ends[1:]
        self.left = np.concatenate([self.left[keep], ends[:-1].ravel()])
        self.right = np.concatenate([self.right[keep], ends[1:].ravel()])
        self.bound = np.concatenate([self.bound[keep], bound])
        self.point = np.concatenate([self.point[keep], point.ravel()])


def bound_every_z(bins: Bins, relaxation: Relaxation, tol: float, most_turns: int) -> Bound:
    """Lower bound close to the relaxation's objective.

    Args:
        bins: of the rows.
        relaxation: close to the best.
        tol: relative; how far below what the prices can prove the search may stop.
        most_turns: limit of passes over the bins for relaxations at other z.
    """
    passes = bins.passes
    service, rows = passes.service, passes.rows
    minima = bins.minima
    each = abs(relaxation.objective) / len(service.mean)  # s, of a node
    capacity = np.where(np.isfinite(rows.capacity), rows.capacity, 0.0)

    def rest(prices: Prices, z: np.ndarray, fine: float) -> np.ndarray:
        return minima.sums(prices, z, fine * each) + prices.cheapest - float(prices.chunk @ capacity)

    last = relaxation.prices
    nothing = np.zeros(len(service.mean))
    storage = passes.least(nothing, nothing)
    soonest = float((service.mean + waits(service.background)[0][:, None]).min())
    # no read is over before its soonest chunk
    surely = storage + soonest
    if service.alone:
        return Bound(max(surely, float(rest(last, np.zeros(1), 0.3 * tol)[0])), 0, None)
    at_best = bins.proven(relaxation)
    target = at_best - tol * abs(at_best)
    if target <= surely:
        return Bound(surely, 0, None)
    k = float(np.sum(np.repeat(rows.hot, np.diff(rows.start)) * rows.read)) / service.rate
    high = max(target - storage, relaxation.z)
    low = min((k * soonest + storage - target) / (k - 1), relaxation.z)
    edges = np.unique(np.append(np.linspace(low, high, _FIRST_INTERVALS + 1), relaxation.z))
    intervals = _Intervals(edges)
    turns = 0
    intervals.improve(np.arange(len(edges) - 1), rest(last, intervals.right, tol))
    price_sets = [last]
    while True:
        failing = np.flatnonzero(intervals.bound < target)
        if not len(failing) or len(intervals.left) > _MOST_INTERVALS:
            break
        stuck = failing[intervals.point[failing] < target]
        if len(stuck):
            worst = stuck[np.argmin(intervals.point[stuck])]
            z = float(intervals.right[worst])
            price_sets.append(bins.priced(relaxation, z).prices)
            intervals.improve(failing, rest(price_sets[-1], intervals.right[failing], 0.3 * tol))
            if intervals.point[worst] < target and turns < most_turns:
                # the loads were made for another z: make some for this one
                there = bins.relax(z, relaxation, fixed_z=True)
                turns += there.turns
                price_sets.append(there.prices)
                if bins.proven(there) < target - tol * abs(target):
                    return Bound(-np.inf, turns, there)
                intervals.improve(failing, rest(price_sets[-1], intervals.right[failing], 0.3 * tol))
            if intervals.point[worst] < target:
                target = float(intervals.point[worst]) - tol * abs(target)
            continue
        before = len(intervals.left) - len(failing)
        intervals.split(failing)
        new = np.arange(before, len(intervals.left))
        distance = np.abs(np.array([p.z for p in price_sets])[:, None] - intervals.right[new])
        for index, prices in enumerate(price_sets):
            # only the two prices made for the nearest z
            near = (distance < distance[index]).sum(axis=0) < 2
            if near.any():
                intervals.improve(new[near], rest(prices, intervals.right[new[near]], 0.3 * tol))
    return Bound(max(surely, float(min(intervals.bound.min(), target))), turns, None)
