"""Plans by class that keep deadlines: what is held against them, and what is said of those that cannot be kept."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.optimize.classes.alternate import Point, Settings, Step
from ecjax.optimize.classes.deadlines import Deadlines, Kept, plan_deadlines
from ecjax.optimize.classes.model import ClassModel
from ecjax.optimize.classes.start import Start
from ecjax.predict.class_bounds import class_bounds
from ecjax.problem.classes import Classes
from ecjax.problem.service_laws import service_laws
from ecjax.studies.optimize.run import Item, Study


def plan_for_deadlines(
    item: Item,
    study: Study,
    model: ClassModel,
    start: Start,
    settings: Settings,
    most: list[float],
    advance: Callable[[Step], None] | None = None,
) -> Kept:
    """The cheapest plan that keeps the deadlines of the classes, as far as it is found.

    Args:
        item: the run.
        study: what it belongs to; deadline_by says what is held against deadlines.
        model: classes and the problem.
        start: placement and reads to start from.
        settings: of the alternation.
        most: (K,) s, infinite where nothing is promised.
        advance: called with every step.

    Raises:
        UserError: an option contradicts deadlines.
    """
    if item.theta:
        raise UserError(
            f"theta: found {item.theta:g} with deadline_s; allowed with it: 0, as the cost is what is minimised"
        )
    measure = _estimates if study.options.deadline_by == "estimate" else _bounds
    return plan_deadlines(
        model, start, settings, Deadlines(np.array(most), measure(item, study, model)), advance
    )


def deadline_columns(kept: Kept, most: list[float], by: str) -> dict[str, Any]:
    """Columns (K,) of ``class_plans``; infinite or nan where there is nothing to say."""
    columns = {"deadline_s": np.array(most), "late_s": kept.late}
    return columns | ({"estimated_mean_s": kept.latency} if by == "estimate" else {})


def why_late(kept: Kept, most: list[float], by: str, classes: Classes) -> str | None:
    """Which class misses its deadline by how much, and what it could have, in one line; None where none does."""
    told, promised = [], np.flatnonzero(np.isfinite(most))
    for number in np.flatnonzero(kept.late > 0):
        least = kept.latency[number]
        line = (
            f"class {classes.names[number]}: found {most[number]:g} s, missed by {kept.late[number]:.4g} s; "
            f"allowed: from {least:.6g} s, the least {by} found"
        )
        before = [
            f"class {classes.names[other]} {'has' if kept.late[other] > 0 else 'keeps'} "
            f"{max(kept.latency[other], most[other]):.6g} s"
            for other in promised[promised < number]
        ]
        if before:
            line += f" while {' and '.join(before)} ({kept.alone[number]:.6g} s alone)"
        told.append(line)
    return f"deadline_s: {'; '.join(told)}" if told else None


def _bounds(item: Item, study: Study, model: ClassModel) -> Callable[[Point], np.ndarray]:
    """The bound with one z per file, as in latency_s."""
    classes, problem = _classes(study), model.problem
    share = np.asarray(problem.share)
    read = share > 0
    queue = _queue(item)

    def measure(point: Point) -> np.ndarray:
        reads, stored, weights = (np.asarray(part) for part in point[:3])
        by_file = class_bounds(problem, reads, stored, classes.of_file, queue, weights)
        parts = np.where(read, np.where(read, by_file, 0.0) * share, 0.0)
        return np.bincount(classes.of_file, parts, model.classes) / np.asarray(model.share)

    return measure


def _estimates(item: Item, study: Study, model: ClassModel) -> Callable[[Point], np.ndarray]:
    """The estimated mean."""
    # here, because it tells replays too, and replays import what plans
    from ecjax.predict.class_estimates import class_mean_estimates

    options, classes = study.options, _classes(study)
    if options.max_chunks_per_node != 1:
        raise UserError(
            f"deadline_by=estimate: found max_chunks_per_node={options.max_chunks_per_node}; allowed with it: 1, as "
            "chunks served together have no estimate"
        )
    laws = service_laws(
        study.nodes, study.problem.files, options.service, options.size_scaling, item.size_scale
    )
    queue = _queue(item)

    def measure(point: Point) -> np.ndarray:
        reads, stored, weights = (np.asarray(part) for part in point[:3])
        return class_mean_estimates(model.problem, laws, reads, stored, classes.of_file, queue, weights)

    return measure


def _queue(item: Item) -> str:
    return "partitioned" if item.queue == "weighted" else "priority"


def _classes(study: Study) -> Classes:
    assert study.classes is not None
    return study.classes
