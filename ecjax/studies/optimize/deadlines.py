"""Plans by class that keep deadlines: what is held against them, and what is said where that cannot be."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ecjax.errors import UserError
from ecjax.planning.classes.alternate import Point, Settings, Step
from ecjax.planning.classes.deadlines import Deadlines, Kept, lateness, plan_deadlines
from ecjax.planning.classes.model import ClassModel
from ecjax.planning.classes.start import Start
from ecjax.planning.problem import EVALUATE
from ecjax.predict.class_bounds import class_bounds
from ecjax.predict.class_estimates import class_mean_estimates
from ecjax.problem.classes import Classes
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case, laws_of
from ecjax.studies.optimize.class_rules import deadlines
from ecjax.studies.optimize.options import OptimizeOptions


def plan_for_deadlines(
    options: OptimizeOptions,
    case: Case,
    item: Item,
    model: ClassModel,
    start: Start,
    settings: Settings,
    advance: Callable[[Step], None] | None = None,
) -> Kept:
    """The cheapest plan that keeps the deadlines of the classes, as far as the search goes.

    Args:
        options: checked; deadline_by says what is held against deadlines.
        case: what the run plans for.
        item: the run.
        model: classes and the problem.
        start: placement and reads to start from.
        settings: of the alternation.
        advance: called with every step.

    Raises:
        UserError: an option contradicts deadlines.
    """
    most = promised(options, case)
    assert most is not None
    theta = item.run.columns["theta"]
    if theta:
        raise UserError(
            f"theta: found {theta:g} with deadline_s; allowed with it: 0, as the cost is what is minimised"
        )
    promises = np.array(most)

    def kept(measure: Callable[[Point], np.ndarray]) -> Kept:
        return plan_deadlines(model, start, settings, Deadlines(promises, measure), advance)

    if options.deadline_by == "bound":
        return kept(_bounds(options, case, item, model))
    # before any search, as it may refuse
    measure = _estimates(options, case, item, model)
    by_bound = kept(_bounds(options, case, item, model))
    by_estimate = kept(measure)
    # what is kept by the bound is kept by the estimate, and either search may end at the cheaper plan
    plan = by_bound.plan
    there = Point(plan.probabilities, plan.stored, plan.weights, plan.latency, plan.z)
    other = _remeasured(by_bound, measure(there), promises)
    if other.met and (not by_estimate.met or _cost(model, other) < _cost(model, by_estimate)):
        return other
    return by_estimate


def _remeasured(kept: Kept, latency: np.ndarray, most: np.ndarray) -> Kept:
    """A plan with other latencies, (K,) s, of its classes held against the deadlines."""
    return kept._replace(latency=latency, late=lateness(latency, most), alone=np.full(len(most), np.nan))


def _cost(model: ClassModel, kept: Kept) -> float:
    """Dollars per period."""
    plan = kept.plan
    return float(EVALUATE(model.problem, plan.probabilities, plan.stored, jnp.zeros(())).cost)


def promised(options: OptimizeOptions, case: Case) -> list[float] | None:
    """Deadlines of the classes, (K,) s, infinite where there is none; None where no class has one."""
    return deadlines(options.deadline_s, _classes(case).names)


def deadline_columns(plan: Kept, most: list[float], by: str) -> dict[str, np.ndarray]:
    """Columns (K,) of ``class_plans``; infinite or nan where there is nothing to say."""
    columns = {"deadline_s": np.array(most), "late_s": plan.late}
    return columns | ({"estimated_mean_s": plan.latency} if by == "estimate" else {})


def why_late(plan: Kept, most: list[float], by: str, classes: Classes) -> str | None:
    """Which class misses its deadline by how much, and what it could have, in one line; None where none does."""
    lines, limited = [], np.flatnonzero(np.isfinite(most))
    for number in np.flatnonzero(plan.late > 0):
        least = plan.latency[number]
        line = (
            f"class {classes.names[number]}: found {most[number]:g} s, missed by {plan.late[number]:.4g} s; "
            f"allowed: from {least:.6g} s, the least {by} found"
        )
        before = [
            f"class {classes.names[other]} {'has' if plan.late[other] > 0 else 'keeps'} "
            f"{max(plan.latency[other], most[other]):.6g} s"
            for other in limited[limited < number]
        ]
        if before:
            line += f" while {' and '.join(before)} ({plan.alone[number]:.6g} s alone)"
        lines.append(line)
    return f"deadline_s: {'; '.join(lines)}" if lines else None


def _bounds(
    options: OptimizeOptions, case: Case, item: Item, model: ClassModel
) -> Callable[[Point], np.ndarray]:
    """The bound with one z per file, as in latency_s."""
    classes, problem = _classes(case), model.problem
    share = np.asarray(problem.share)
    read = share > 0
    queue = _queue(item)

    def measure(point: Point) -> np.ndarray:
        reads, stored, weights = (np.asarray(part) for part in point[:3])
        by_file = class_bounds(problem, reads, stored, classes.of_file, queue, weights)
        parts = np.where(read, np.where(read, by_file, 0.0) * share, 0.0)
        return np.bincount(classes.of_file, parts, model.classes) / np.asarray(model.share)

    return measure


def _estimates(
    options: OptimizeOptions, case: Case, item: Item, model: ClassModel
) -> Callable[[Point], np.ndarray]:
    """The estimated mean."""
    if options.max_chunks_per_node != 1:
        raise UserError(
            f"deadline_by=estimate: found max_chunks_per_node={options.max_chunks_per_node}; allowed with it: 1, as "
            "chunks served together have no estimate"
        )
    laws = laws_of(options, case, case.lane(item.lane))
    queue, of_file = _queue(item), _classes(case).of_file

    def measure(point: Point) -> np.ndarray:
        reads, stored, weights = (np.asarray(part) for part in point[:3])
        return class_mean_estimates(model.problem, laws, reads, stored, of_file, queue, weights)

    return measure


def _queue(item: Item) -> str:
    return "partitioned" if item.way.queue == "weighted" else "priority"


def _classes(case: Case) -> Classes:
    assert case.classes is not None
    return case.classes
