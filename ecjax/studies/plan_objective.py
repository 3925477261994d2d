"""Plans for an estimated latency: ``objective=p99``, another quantile, the mean, or a weighted mix."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax import optimize
from ecjax.optimize import Problem, Solution, estimated, evaluate
from ecjax.queueing.estimate import estimate_latency
from ecjax.studies.checked_options import mix_of
from ecjax.studies.estimate_inputs import workload_of
from ecjax.studies.plan_runs import Item, Study
from ecjax.studies.service_laws import service_laws

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
    scores = [
        total(
            float(_VALUE(problem, load(c.stored), jnp.asarray(c.probabilities), mix=mix)),
            float(c.evaluation.cost),
        )
        for c in candidates
    ]
    best = candidates[int(np.nanargmin(scores))]
    found = _DESCENT(
        problem, load(best.stored), jnp.asarray(best.probabilities), jnp.asarray(best.stored), mix=mix
    )
    evaluation = _EVALUATE(problem, found.probabilities, jnp.asarray(best.stored), jnp.asarray(theta))
    changed = jax.tree.map(
        np.asarray, best._replace(probabilities=found.probabilities, evaluation=evaluation)
    )
    own = optimize.of_files(problem, found.probabilities)
    told = _ESTIMATE(own, load(best.stored), levels=(0.99,))
    known = {
        "objective": total(float(found.value), float(evaluation.cost)),
        "lower_bound": None,
        "gap": None,
        "estimated_mean_s": float(told.mean),
        "estimated_p99_s": float(told.quantiles[0]),
    }
    return changed, known


_VALUE = jax.jit(estimated.mixed_latency, static_argnames="mix")
_DESCENT = jax.jit(partial(estimated.reschedule_for, stopping=estimated.STOPPING), static_argnames="mix")
_EVALUATE = jax.jit(evaluate)
_ESTIMATE = jax.jit(estimate_latency, static_argnames=("levels", "group_count"))
