"""The lower bound for every z where a node's minimum takes a search of its own: few z, each as fine as it deserves.

From the highest z down: the rest of the bound (without z itself) at b holds on all of [a, b], so with a = target - rest
every z in there costs at least the target. Steps are long far from the best z, and minima are searched as finely as
steps are long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from ecjax.planning.certified.relax import Relaxed

_FIRST_STEPS = 8
_STEP_TOL = 0.1  # of a step, that the search for minima may leave open
_LEAST_STEP = 0.25  # of the slack below what prices prove; less than that asks for other prices
_MOST_STEPS = 20_000
_MOST_PRICES = 2  # made for one z
_PATIENCE = 200  # steps before the target is lowered


class MadeForZ(Protocol):
    """Prices that were made for a z."""

    @property
    def z(self) -> float:
        """S."""


Prices = TypeVar("Prices", bound=MadeForZ)


@dataclass(frozen=True)
class Range:
    """Where to search, and for what; s."""

    low: float
    high: float
    target: float  # to prove
    slack: float  # how far below what prices prove a target is set


def march(
    rest: Callable[[Prices, float, float], float],
    renewed: Callable[[float, bool], Sequence[Prices] | Relaxed],
    first: Prices,
    where: Range,
) -> tuple[float, Relaxed | None]:
    """The bound on all of the range; or minus infinity, and a better mixture where ``renewed`` met one.

    Args:
        rest: bound without z by prices, at z, to a tolerance in s; it falls with z.
        renewed: prices made for a z, or a mixture that is better than what the target came from; called only where
            the known prices prove less than the target, and once more, with True, if those that came do not either.
        first: prices for the best z.
        where: the range.
    """
    price_sets = [first]
    b, target, slack = where.high, where.target, where.slack
    step, asked = (where.high - where.low) / _FIRST_STEPS, 0
    value = -np.inf
    for number in range(1, _MOST_STEPS):
        if b <= where.low:
            return target, None
        if number % _PATIENCE == 0:
            # many small steps: proving a little less takes fewer
            target, slack = target - slack, 2 * slack
        tol = max(_STEP_TOL * step, 0.3 * slack)
        # only the two prices made for the nearest z, the latest of one z first
        near = sorted(price_sets[::-1], key=lambda prices: abs(prices.z - b))[:2]
        value = rest(near[0], b, tol)
        if target - value > b - max(0.5 * step, _LEAST_STEP * slack) and len(near) > 1:
            value = max(value, rest(near[1], b, tol))
        reached = b - (target - value)
        if reached >= _LEAST_STEP * slack:
            b, step, asked = b - reached, reached, 0
        elif tol > 0.3 * slack:
            step = 0.0
        elif asked < _MOST_PRICES:
            more = renewed(b, asked > 0)
            if isinstance(more, Relaxed):
                return -np.inf, more  # what is proved at b says nothing of lower z
            price_sets += more
            asked += 1
        else:
            target = b + value - slack
    return min(target, where.low + value), None
