"""Plans of a sweep tried at each other's points: descents end in local optima, and another one's may be better."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ecjax.planning.classes.alternate import Alternation, ClassPlan, Settings, Step
from ecjax.planning.classes.model import ClassModel
from ecjax.planning.classes.relief import Start
from ecjax.planning.classes.together import Call, alone, run_together

LEAST_GAIN = 1e-6  # relative: a plan of another point that is better by less is not

Advance = Callable[[int, Step], None]


class Planned(NamedTuple):
    """A point of a sweep and the plan for it; all points have the same rows and nodes."""

    model: ClassModel
    settings: Settings
    plan: ClassPlan


def objectives(runs: Sequence[Alternation], plans: Sequence[ClassPlan], width: int = 1) -> np.ndarray:
    """Objectives (points, plans) s of plans of any points; infinite where a class would not be stable.

    Args:
        runs: a run of each point, wherever it is.
        plans: which.
        width: how many are found by one program.
    """

    def worth(run: Alternation, plan: ClassPlan, call: Call) -> float:
        return run.worth(run.reached(plan, call))

    values = run_together([partial(worth, run, plan) for run in runs for plan in plans], width)
    return np.nan_to_num(np.array(values).reshape(len(runs), len(plans)), nan=np.inf)


def exchanged(
    points: Sequence[Planned], advance: Advance = lambda point, step: None, width: int = 1
) -> list[ClassPlan]:
    """Plans of which none is beaten, at its own point, by that of another.

    Wherever the plan of another point is better, the descent goes on from it, until that is so nowhere.

    Args:
        points: a sweep, planned one by one.
        advance: called with the number of a point and every step there.
        width: how many descents are run side by side.
    """
    plans = [point.plan for point in points]
    runs = run_together([partial(_at, point, point.plan, None) for point in points], width)
    values = objectives(runs, plans, width)
    descents = _Descents(points, advance, width)
    settled = False
    while not settled:
        settled = True
        for number in range(len(points)):
            better = _better(values)
            if better[number] is None:
                continue
            plans[number] = descents.end(number, [None if at is None else plans[at] for at in better])
            values[:, number] = objectives(runs, [plans[number]], width)[:, 0]
            settled = False
    return plans


def _better(values: np.ndarray) -> list[int | None]:
    """For each point the plan that is best there, None where that is its own or as good."""
    best = np.argmin(values, axis=1)
    gains = np.min(values, axis=1) < np.diagonal(values) * (1 - LEAST_GAIN)
    return [int(at) if gain else None for at, gain in zip(best, gains, strict=True)]


class _Descents:
    """Descents that go on from the plans of other points.

    A program does for several lanes what it does for one: where points that have not had their turn gain from a plan
    there is, their descents go along. What comes of them counts if that plan is still the best when it is their turn,
    so that the plans are those of points that take turns.
    """

    def __init__(self, points: Sequence[Planned], advance: Advance, width: int) -> None:
        self._points, self._advance, self._width = points, advance, width
        # by point: where its descent began, and where that ended
        self._ends: dict[int, tuple[ClassPlan, ClassPlan]] = {}

    def end(self, number: int, starts: Sequence[ClassPlan | None]) -> ClassPlan:
        """Where the descent of a point ends.

        Args:
            number: the point whose turn it is.
            starts: by point, the plan to go on from; None where there is no better one.
        """
        if not self._knows(number, starts[number]):
            turn = (number + place for place in range(len(starts)))
            others = [place % len(starts) for place in turn]
            missing = [at for at in others if starts[at] is not None and not self._knows(at, starts[at])]
            chosen = [(at, start) for at in missing[: self._width] if (start := starts[at]) is not None]
            ends = run_together([partial(self._from, at, start) for at, start in chosen], self._width)
            for (at, start), end in zip(chosen, ends, strict=True):
                self._ends[at] = start, end
        return self._ends.pop(number)[1]

    def _knows(self, number: int, start: ClassPlan | None) -> bool:
        return number in self._ends and self._ends[number][0] is start

    def _from(self, number: int, start: ClassPlan, call: Call) -> ClassPlan:
        return _at(self._points[number], start, partial(self._advance, number), call).run()


def _at(
    point: Planned, plan: ClassPlan, advance: Callable[[Step], None] | None, call: Call = alone
) -> Alternation:
    run = Alternation(point.model, Start(plan.probabilities, plan.stored), point.settings, advance, call)
    run.move_to(plan)
    return run
