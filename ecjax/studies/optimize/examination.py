"""What else is asked of a plan: a placement that stands failures better, the bound's slack, failure scenarios."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.optimize import Problem, Solution, evaluate, scaled, slack
from ecjax.optimize.descent import Stopping
from ecjax.optimize.robust import robust_improve
from ecjax.optimize.scenarios import evaluate_scenarios
from ecjax.problem.arrays import code_k
from ecjax.studies.optimize import scenario_rows as scenario_tables
from ecjax.studies.optimize.run import Item, Study

_MEMORY_BYTES = 1e9
_POLISHING = Stopping(eps=1e-6, max_iterations=500)


def examined(item: Item, plan: Solution, study: Study) -> tuple[Solution, dict[str, Any], pa.Table | None]:
    """The plan, improved for failures if that was asked; columns for its run; its table of scenarios.

    Args:
        item: the run.
        plan: its plan, without a lane axis, with every node load below 1.
        study: what it belongs to.
    """
    options = study.options
    problem = scaled(study.problem, item.rate_scale, item.size_scale)
    known: dict[str, Any] = {}
    which = scenario_tables.failures(study.nodes, options.scenarios) if options.scenarios else None
    if which is not None and options.robust != "none":
        plan = _robust(item, plan, study, problem, which.down)
    if options.polish:
        found = _POLISH(problem, jnp.asarray(plan.probabilities), jnp.asarray(plan.stored))
        known["latency_polished_s"] = float(found.latency_polished)
    if which is None:
        return plan, known, None
    outcomes = evaluate_scenarios(
        problem,
        jnp.asarray(plan.probabilities),
        jnp.asarray(plan.stored),
        which.down,
        options.scheduling,
        rebuild=_rebuild(study),
        memory_bytes=options.memory_bytes or _MEMORY_BYTES,
    )
    known |= scenario_tables.summary(outcomes, which)
    run_id = study.run_ids[item]
    return plan, known, scenario_tables.scenarios(run_id, outcomes, which, study.names.nodes)


def _robust(item: Item, plan: Solution, study: Study, problem: Problem, down: np.ndarray) -> Solution:
    options = study.options
    theta = item.theta * (problem.files.count if options.theta_per == "total" else 1)
    better = robust_improve(
        problem,
        plan.probabilities,
        plan.stored,
        down,
        theta,
        weight=options.robust,
        trials=options.robust_trials,
        memory_bytes=options.memory_bytes or _MEMORY_BYTES,
    )
    probabilities, stored = jnp.asarray(better.probabilities), jnp.asarray(better.stored)
    evaluation = _EVALUATE(problem, probabilities, stored, jnp.asarray(theta))
    changed = plan._replace(probabilities=probabilities, stored=stored, evaluation=evaluation)
    return jax.tree.map(np.asarray, changed)


def _rebuild(study: Study) -> np.ndarray:
    """Chunks that rebuild the files of each placement row, (R,)."""
    k, row = np.ceil(code_k(study.files) / study.names.per_node), study.problem.row
    if row is None:
        return k
    most = np.zeros(study.problem.rows)
    np.maximum.at(most, np.asarray(row), k)
    return most


_EVALUATE = jax.jit(evaluate)
_POLISH = jax.jit(partial(slack.polish, stopping=_POLISHING))
