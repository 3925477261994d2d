"""What plans are estimated to deliver under the arrivals of the log that option ``trace`` names."""

from typing import Any

import numpy as np

from ecjax.planning import Solution
from ecjax.predict.log_remarks import remarks
from ecjax.predict.logged import ServedPlan, logged_estimate
from ecjax.studies.optimize.case import Case, Lane, laws_of
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.trace_columns import trace_columns


def log_estimates(options: OptimizeOptions, case: Case, lane: Lane, plan: Solution) -> dict[str, Any]:
    """Columns of a run for its plan; none where no log is named.

    Args:
        options: checked.
        case: what the run plans for.
        lane: of the run.
        plan: without a lane axis, with every node load below 1.
    """
    if case.arrivals is None:
        return {}
    problem = case.problem_of(lane)
    laws = laws_of(options, case, lane)
    logged = case.arrivals.logged.faster(lane.rate_scale)
    served = ServedPlan(problem, laws, np.asarray(plan.probabilities), np.asarray(plan.stored))
    estimate = logged_estimate(served, logged)
    seen = case.arrivals.seen.faster(lane.rate_scale)
    return trace_columns(estimate, remarks(estimate, seen, case.names.nodes.to_pylist()))
