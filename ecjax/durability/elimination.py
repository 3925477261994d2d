"""Mean time to loss of a Markov chain by elimination of states without a subtraction (Grassmann, Taksar, Heyman).

Repair is up to 1e9 times faster than failure, so the balance equations of a chain of losses are singular to
the precision of a double: plain LU finds 7e-4 of the true time for 10+4 at half an hour of repair. Elimination that
only adds, multiplies and divides positive numbers keeps 15 digits whatever the rates.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np


@dataclass(frozen=True)
class Loss:
    """The end of a chain.

    Attributes:
        kind: by which losses are counted apart
    """

    kind: int = 0


State = TypeVar("State", bound=Hashable)
Rates = np.ndarray  # [scenarios], per year
# the targets of a state and the rate to each of them
Steps = Callable[[State], Iterable[tuple[State | Loss, Rates]]]


def loss_rates(start: State, steps: Steps, level: Callable[[State], int]) -> dict[int, Rates]:
    """Losses per year of a chain that begins, and begins again, in `start`.

    R = q(start, loss) / r(start) after all other states are eliminated, for every kind of loss: for a state a with
    the rates q(a, c) and reward r(a), every b before it gets q(b, c) += q(b, a) q(a, c) / q(a) and
    r(b) += q(b, a) r(a) / q(a), q(a) = sum_c q(a, c) over c other than a. States with most failures go first. The sum
    over the kinds is 1 / MTTDL.

    Args:
        start: the state with nothing missing
        steps: targets and rates of a state, [scenarios] per year; the chains of all scenarios have the same targets
        level: chunks that a state misses; repairs lead to lower levels

    Returns:
        losses per year by kind, [scenarios] each
    """
    rates: dict[State, dict[State | Loss, Rates]] = {}
    reached = [start]
    while reached:
        state = reached.pop()
        if state in rates:
            continue
        targets: dict[State | Loss, Rates] = {}
        for target, rate in steps(state):
            if target == state or not np.any(rate):
                continue
            targets[target] = targets[target] + rate if target in targets else rate
        rates[state] = targets
        reached.extend(target for target in targets if not isinstance(target, Loss) and target not in rates)
    sources: dict[State, set[State]] = {state: set() for state in rates}
    for state, targets in rates.items():
        for target in targets:
            if not isinstance(target, Loss):
                sources[target].add(state)
    rewards: dict[State, Rates] = {state: np.ones(()) for state in rates}
    for state in sorted((other for other in rates if other != start), key=level, reverse=True):
        targets = rates.pop(state)
        total = sum(targets.values(), np.zeros(()))
        total = np.where(total > 0, total, 1.0)  # a state that this scenario cannot reach
        for target in targets:
            if not isinstance(target, Loss):
                sources[target].discard(state)
        for source in sources.pop(state):
            share = rates[source].pop(state) / total
            rewards[source] = rewards[source] + share * rewards[state]
            onward = rates[source]
            for target, rate in targets.items():
                if target == source:
                    continue
                more = share * rate
                if target in onward:
                    onward[target] = onward[target] + more
                else:
                    onward[target] = more
                    if not isinstance(target, Loss):
                        sources[target].add(source)
    return {
        target.kind: rate / rewards[start]
        for target, rate in rates[start].items()
        if isinstance(target, Loss)
    }


def loss_rate(start: State, steps: Steps, level: Callable[[State], int]) -> Rates:
    """Losses per year of all kinds, [scenarios]: see ``loss_rates``."""
    return sum(loss_rates(start, steps, level).values(), np.zeros(()))
