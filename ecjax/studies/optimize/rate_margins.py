"""Columns of ``runs`` that say how sure bound, estimates and cost of a plan are by the rates of its files."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ecjax.planning import Solution
from ecjax.predict.plan_estimates import PlanEstimate
from ecjax.predict.rate_errors import estimate_errors, rate_errors
from ecjax.problem.arrays import column
from ecjax.studies.optimize.case import Case, Lane, laws_of
from ecjax.studies.optimize.options import OptimizeOptions

_ERROR = "rate_standard_error_per_s"


def rate_error_columns(
    options: OptimizeOptions, case: Case, lane: Lane, plan: Solution, row: Mapping[str, Any]
) -> dict[str, float]:
    """Standard errors of ``latency_s``, the cost and the estimates; none where the files have none.

    Args:
        options: of the study.
        case: what is planned for.
        lane: of the run.
        plan: stable, without a lane axis.
        row: of the run, with its estimates if it has any.
    """
    if _ERROR not in case.files.column_names:
        return {}
    error = lane.rate_scale * np.nan_to_num(column(case.files, _ERROR))
    problem, placed = case.problem_of(lane), (np.asarray(plan.probabilities), np.asarray(plan.stored))
    errors = rate_errors(problem, *placed, error)
    if not np.isfinite(errors.latency_s):
        return {}
    columns = {"latency_rate_error_s": errors.latency_s, "cost_rate_error_dollars": errors.cost}
    means = [row.get(name) for name in ("estimated_mean_s", "estimated_p99_s")]
    if options.objective == "bound" and None not in means:
        laws = laws_of(options, case, lane)
        estimate = PlanEstimate(*map(float, means))  # type: ignore[arg-type]
        spread = estimate_errors(problem, laws, *placed, error, estimate)
        if np.isfinite(spread.mean):
            columns |= {
                "estimated_mean_rate_error_s": spread.mean,
                "estimated_p99_rate_error_s": spread.p99,
            }
    return columns
