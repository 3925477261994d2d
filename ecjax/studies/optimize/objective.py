"""Plans for an estimated latency: ``objective=p99``, another quantile, the mean, or a weighted mix."""

from functools import partial
from threading import Thread
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax import planning
from ecjax.planning import Problem, Solution, estimated, limits
from ecjax.planning.estimated import Mix
from ecjax.planning.problem import EVALUATE
from ecjax.predict import plan_estimates
from ecjax.predict.plan_estimates import plan_estimate, within_bound
from ecjax.predict.workload import ESTIMATE, workload_of
from ecjax.programs import program
from ecjax.queueing.workload import Workload
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case, Lane, laws_of
from ecjax.studies.optimize.class_rules import ORDERS
from ecjax.studies.optimize.objective_rules import TRACE, objective_weights
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.rows import estimate_columns

# A quantile weighs queueing more than the bound on the mean does: placements planned for cheaper storage are tried too.
_THETAS = (1.0, 0.5, 0.25)


def for_objective(
    options: OptimizeOptions, case: Case, item: Item, plan: Solution, settings: planning.BatchSettings
) -> Solution:
    """The plan of least mix + theta cost that was found; the plan itself where ``objective`` is the bound.

    Placements are those of the method at theta and at fractions of it that break no constraint, if one of them breaks
    none; reads of the best are rescheduled.

    Args:
        options: checked.
        case: what the run plans for.
        item: the run.
        plan: the method's plan for the bound, without a lane axis.
        settings: to plan further placements.
    """
    mix, lane = mix_of(options.objective), case.lane(item.lane)
    if mix is None:
        return plan
    problem = case.problem_of(lane)
    laws = laws_of(options, case, lane)

    def load(stored: ArrayLike) -> Workload:
        return workload_of(problem, laws, stored)

    candidates = [plan]
    if lane.theta > 0:
        thetas = lane.theta * jnp.asarray(_THETAS[1:])
        alike = jnp.ones_like(thetas)
        lanes = planning.Lanes(thetas, alike * lane.rate_scale, alike * lane.size_scale)
        more = planning.solve(case.problem, lanes, settings).by_method[item.way.method]
        candidates += [
            jax.tree.map(lambda leaf, at=at: np.asarray(leaf[at]), more) for at in range(len(thetas))
        ]
    candidates = eligible(problem, candidates)
    values = [
        _estimates(problem, load(each.stored), jnp.asarray(each.probabilities), mix)[0] for each in candidates
    ]
    scores = [_total(value, each, problem, lane) for value, each in zip(values, candidates, strict=True)]
    best = candidates[int(np.nanargmin(scores))]
    spread = _DESCENT(
        problem, load(best.stored), jnp.asarray(best.probabilities), jnp.asarray(best.stored), mix=mix
    )
    evaluation = EVALUATE(problem, spread.probabilities, jnp.asarray(best.stored), jnp.asarray(lane.theta))
    return jax.tree.map(np.asarray, best._replace(probabilities=spread.probabilities, evaluation=evaluation))


def mix_columns(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> dict[str, Any]:
    """Columns of a run whose objective is a mix of estimates, of the plan that it ends with; else none.

    Args:
        options: checked.
        case: what the run plans for.
        item: the run.
        plan: its plan, without a lane axis.
    """
    mix, lane = mix_of(options.objective), case.lane(item.lane)
    if mix is None:
        return {}
    problem = case.problem_of(lane)
    reads = workload_of(problem, laws_of(options, case, lane), plan.stored)
    value, columns = _estimates(problem, reads, jnp.asarray(plan.probabilities), mix)
    return {"objective": _total(value, plan, problem, lane), "lower_bound": None, "gap": None, **columns}


def _total(value: float, plan: Solution, problem: Problem, lane: Lane) -> float:
    """The objective, s, of a plan whose mix has a value in s."""
    return value + lane.theta * float(plan.evaluation.cost) / problem.files.count


def eligible(problem: Problem, plans: list[Solution]) -> list[Solution]:
    """The plans that break no constraint, which others may beat by breaking one; all where each breaks some."""
    return [plan for plan in plans if limits.keeps(problem, plan.stored)] or plans


def estimates_bounded(options: OptimizeOptions, case: Case) -> bool:
    """Whether plans for the bound have columns of ``estimates``."""
    return options.objective == "bound" and options.estimate and case.names.per_node == 1


def estimates(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> dict[str, float | None]:
    """Columns of a run with what its plan is estimated to deliver; null where that is not finite."""
    lane = case.lane(item.lane)
    problem = case.problem_of(lane)
    laws = laws_of(options, case, lane)
    estimate = plan_estimate(problem, laws, np.asarray(plan.probabilities), np.asarray(plan.stored))
    mean = within_bound(estimate.mean, float(plan.evaluation.latency))
    return estimate_columns(mean, estimate.p99)


def begin_compiling(options: OptimizeOptions, case: Case, item: Item) -> Thread | None:
    """A thread that compiles what ``estimates`` needs while plans are made; None where the shapes are not known."""
    if case.small is not None or not estimates_bounded(options, case):
        return None
    lane = case.lane(item.lane)
    return plan_estimates.begin_compiling(case.problem_of(lane), laws_of(options, case, lane))


def _estimates(
    problem: Problem, reads: Workload, probabilities: jax.Array, mix: Mix
) -> tuple[float, dict[str, float]]:
    """The mix, s, and the columns of the run that hold estimates.

    By the same program as the columns, not by ``estimated.mixed_latency``: compiling takes longer than running.
    """
    levels = (*(level for level, _ in mix.levels), 0.99)
    estimate = ESTIMATE(planning.of_files(problem, probabilities), reads, levels=levels)
    mean, quantiles = float(estimate.mean), np.asarray(estimate.quantiles)
    value = sum(weight * quantiles[place] for place, (_, weight) in enumerate(mix.levels))
    value += mix.mean * mean if mix.mean else 0.0
    return float(value), {"estimated_mean_s": mean, "estimated_p99_s": float(quantiles[-1])}


_DESCENT = program(
    partial(estimated.reschedule_for, stopping=estimated.STOPPING), static_argnames="mix", quick=True
)


def mix_of(objective: str | dict[str, float]) -> Mix | None:
    """The mix of estimates that ``objective`` asks for; None for the bound, and for the arrivals of a log."""
    if objective in ("bound", TRACE, *ORDERS):
        return None
    mean, levels = objective_weights(objective)
    return Mix(mean, tuple(levels))
