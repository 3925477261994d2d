"""Columns of ``runs`` that say how sure the bound and the cost of a plan are by the rates of its files."""

import numpy as np

from ecjax.planning import Solution
from ecjax.predict.rate_errors import rate_errors
from ecjax.problem.arrays import column
from ecjax.studies.optimize.inputs import Case, Lane

_ERROR = "rate_standard_error_per_s"


def rate_error_columns(case: Case, lane: Lane, plan: Solution) -> dict[str, float]:
    """Standard errors of ``latency_s`` and the cost; none where the files have none.

    Args:
        case: what is planned for.
        lane: of the run.
        plan: stable, without a lane axis.
    """
    if _ERROR not in case.files.column_names:
        return {}
    error = lane.rate_scale * np.nan_to_num(column(case.files, _ERROR))
    errors = rate_errors(
        case.problem_of(lane), np.asarray(plan.probabilities), np.asarray(plan.stored), error
    )
    if not np.isfinite(errors.latency_s):
        return {}
    return {"latency_rate_error_s": errors.latency_s, "cost_rate_error_dollars": errors.cost}
