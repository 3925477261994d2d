"""Plans for an estimated latency: ``objective=p99``, another quantile, the mean, or a weighted mix."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax import optimize
from ecjax.optimize import Problem, Solution, estimated, evaluate
from ecjax.optimize.estimated import Mix
from ecjax.predict.workload import ESTIMATE, workload_of
from ecjax.problem.service_laws import service_laws
from ecjax.queueing.workload import Workload
from ecjax.studies.optimize.class_rules import ORDERS
from ecjax.studies.optimize.options import objective_weights
from ecjax.studies.optimize.run import Item, Study

# A quantile weighs queueing more than the bound on the mean does: placements planned for cheaper storage are tried too.
_THETAS = (1.0, 0.5, 0.25)


def for_objective(
    item: Item, plan: Solution, study: Study, problem: Problem, how: optimize.BatchSettings
) -> tuple[Solution, dict[str, Any]]:
    """The plan of least mix + theta cost that was found, and columns for its run.

    Placements are those of the method at theta and at fractions of it; reads of the best are rescheduled.

    Args:
        item: the run.
        plan: the method's plan for the bound, without a lane axis.
        study: what it belongs to.
        problem: scaled.
        how: to plan further placements.
    """
    options, mix = study.options, mix_of(study.options.objective)
    assert mix is not None
    laws = service_laws(study.nodes, problem.files, options.service, options.size_scaling, item.size_scale)
    theta = item.theta * (problem.files.count if options.theta_per == "total" else 1)
    files = problem.files.count

    def load(stored: ArrayLike):
        return workload_of(problem, laws, stored)

    def total(value: float, cost: float) -> float:
        return value + theta * cost / files

    candidates = [plan]
    if theta > 0:
        thetas = theta * jnp.asarray(_THETAS[1:])
        alike = jnp.ones_like(thetas)
        lanes = optimize.Lanes(thetas, alike * item.rate_scale, alike * item.size_scale)
        more = optimize.solve(study.problem, lanes, how).by_method[item.method]
        candidates += [
            jax.tree.map(lambda leaf, lane=lane: np.asarray(leaf[lane]), more) for lane in range(len(thetas))
        ]
    told = [_told(problem, load(one.stored), jnp.asarray(one.probabilities), mix) for one in candidates]
    scores = [
        total(value, float(one.evaluation.cost)) for (value, _), one in zip(told, candidates, strict=True)
    ]
    best = candidates[int(np.nanargmin(scores))]
    found = _DESCENT(
        problem, load(best.stored), jnp.asarray(best.probabilities), jnp.asarray(best.stored), mix=mix
    )
    evaluation = _EVALUATE(problem, found.probabilities, jnp.asarray(best.stored), jnp.asarray(theta))
    changed = jax.tree.map(
        np.asarray, best._replace(probabilities=found.probabilities, evaluation=evaluation)
    )
    _, estimates = _told(problem, load(best.stored), found.probabilities, mix)
    known = {
        "objective": total(float(found.value), float(evaluation.cost)),
        "lower_bound": None,
        "gap": None,
        **estimates,
    }
    return changed, known


def _told(
    problem: Problem, reads: Workload, probabilities: jax.Array, mix: Mix
) -> tuple[float, dict[str, float]]:
    """The mix, s, and the columns of the run that tell estimates.

    By the same program as the columns, not by ``estimated.mixed_latency``: compiling takes longer than running.
    """
    levels = (*(level for level, _ in mix.levels), 0.99)
    found = ESTIMATE(optimize.of_files(problem, probabilities), reads, levels=levels)
    mean, quantiles = float(found.mean), np.asarray(found.quantiles)
    value = sum(weight * quantiles[place] for place, (_, weight) in enumerate(mix.levels))
    value += mix.mean * mean if mix.mean else 0.0
    return float(value), {"estimated_mean_s": mean, "estimated_p99_s": float(quantiles[-1])}


_DESCENT = jax.jit(partial(estimated.reschedule_for, stopping=estimated.STOPPING), static_argnames="mix")
_EVALUATE = jax.jit(evaluate)


def mix_of(objective: str | dict[str, float]) -> Mix | None:
    """The mix of estimates that ``objective`` asks for; None for the bound."""
    if objective in ("bound", *ORDERS):
        return None
    mean, levels = objective_weights(objective)
    return Mix(mean, tuple(levels))
