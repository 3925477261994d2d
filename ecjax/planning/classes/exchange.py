"""Plans of a sweep tried at each other's points: descents end in local optima, and another one's may be better."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ecjax.planning.classes.alternate import Alternation, ClassPlan, Settings, Step
from ecjax.planning.classes.model import ClassModel
from ecjax.planning.classes.relief import Start

LEAST_GAIN = 1e-6  # relative: a plan of another point that is better by less is not


class Planned(NamedTuple):
    """A point of a sweep and the plan for it; all points have the same rows and nodes."""

    model: ClassModel
    settings: Settings
    plan: ClassPlan


def objectives(point: Planned, plans: Sequence[ClassPlan]) -> np.ndarray:
    """Objectives (P,) s at a point of plans of any points; infinite where a class would not be stable."""
    run = _at(point, point.plan, None)
    values = []
    for plan in plans:
        run.move_to(plan)
        values.append(run.overall())
    return np.nan_to_num(np.array(values), nan=np.inf)


def exchanged(
    points: Sequence[Planned], advance: Callable[[int, Step], None] = lambda point, step: None
) -> list[ClassPlan]:
    """Plans of which none is beaten, at its own point, by that of another.

    Wherever the plan of another point is better, the descent goes on from it, until that is so nowhere.

    Args:
        points: a sweep, planned one by one.
        advance: called with the number of a point and every step there.
    """
    plans = [point.plan for point in points]
    settled = False
    while not settled:
        settled = True
        for number, point in enumerate(points):
            values = objectives(point, plans)
            best = int(np.argmin(values))
            if not values[best] < values[number] * (1 - LEAST_GAIN):
                continue

            def tell(step: Step, number: int = number) -> None:
                advance(number, step)

            plans[number] = _at(point, plans[best], tell).run()
            settled = False
    return plans


def _at(point: Planned, plan: ClassPlan, advance: Callable[[Step], None] | None) -> Alternation:
    run = Alternation(point.model, Start(plan.probabilities, plan.stored), point.settings, advance)
    run.move_to(plan)
    return run
