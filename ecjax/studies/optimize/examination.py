"""A placement that stands failures better; and what a plan is examined for: the bound's slack, failure scenarios."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.planning import Solution, slack
from ecjax.planning.descent import Stopping
from ecjax.planning.problem import EVALUATE
from ecjax.planning.robust import robust_improve
from ecjax.planning.scenarios import evaluate_scenarios
from ecjax.problem.arrays import code_k
from ecjax.programs import program
from ecjax.studies.optimize import scenario_rows
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.options import OptimizeOptions

_MEMORY_BYTES = 1e9
_POLISHING = Stopping(eps=1e-6, max_iterations=500)


def examined(
    options: OptimizeOptions, case: Case, item: Item, plan: Solution
) -> tuple[dict[str, Any], pa.Table | None]:
    """Columns for the run of a plan, and its table of scenarios.

    Args:
        options: checked.
        case: what the run plans for.
        item: the run.
        plan: its plan, without a lane axis, with every node load below 1.
    """
    problem = case.problem_of(case.lane(item.lane))
    columns: dict[str, Any] = {}
    if options.polish:
        polished = _POLISH(problem, jnp.asarray(plan.probabilities), jnp.asarray(plan.stored))
        columns["latency_polished_s"] = float(polished.latency_polished)
    if not options.scenarios:
        return columns, None
    failures = scenario_rows.failures(case.nodes, options.scenarios)
    outcomes = evaluate_scenarios(
        problem,
        jnp.asarray(plan.probabilities),
        jnp.asarray(plan.stored),
        failures.down,
        options.scheduling,
        rebuild=_rebuild(case),
        memory_bytes=options.memory_bytes or _MEMORY_BYTES,
    )
    columns |= scenario_rows.summary(outcomes, failures)
    return columns, scenario_rows.scenarios(item.run.run_id, outcomes, failures, case.names.nodes)


def for_failures(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> Solution:
    """The plan with its placement changed for failures, and its reads spread for the bound, if ``robust`` says so.

    Args:
        options: checked.
        case: what the run plans for.
        item: the run.
        plan: its plan, without a lane axis, with every node load below 1.
    """
    if options.robust == "none":
        return plan
    lane = case.lane(item.lane)
    problem = case.problem_of(lane)
    better = robust_improve(
        problem,
        plan.probabilities,
        plan.stored,
        scenario_rows.failures(case.nodes, options.scenarios).down,
        lane.theta,
        weight=options.robust,
        trials=options.robust_trials,
        rebuild=_rebuild(case),
        memory_bytes=options.memory_bytes or _MEMORY_BYTES,
    )
    probabilities, stored = jnp.asarray(better.probabilities), jnp.asarray(better.stored)
    evaluation = EVALUATE(problem, probabilities, stored, jnp.asarray(lane.theta))
    changed = plan._replace(probabilities=probabilities, stored=stored, evaluation=evaluation)
    return jax.tree.map(np.asarray, changed)


def _rebuild(case: Case) -> np.ndarray:
    """Chunks that rebuild the files of each placement row, (R,)."""
    k, row = np.ceil(code_k(case.files) / case.names.per_node), case.problem.row
    if row is None:
        return k
    most = np.zeros(case.problem.rows)
    np.maximum.at(most, np.asarray(row), k)
    return most


_POLISH = program(partial(slack.polish, stopping=_POLISHING), quick=True)
