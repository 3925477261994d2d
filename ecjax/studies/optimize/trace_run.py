"""Runs of ``ecjax optimize objective=trace``: plans for the arrivals of a log, and their rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.planning import Problem, Solution
from ecjax.planning.problem import EVALUATE
from ecjax.planning.trace.data import Form, Traced, traced
from ecjax.planning.trace.order import at_z, best_z, deep_share, relaxation_with_z
from ecjax.planning.trace.plan import TracePlan, plan_trace, relaxation
from ecjax.planning.trace.relax import evaluate, stored_with
from ecjax.planning.trace.steady import Steady
from ecjax.problem.overload import EVENLY, overload
from ecjax.progress import detail
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.optimize import rows as plan_rows
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case, Lane
from ecjax.studies.optimize.examination import examined
from ecjax.studies.optimize.inputs import sweep
from ecjax.studies.optimize.log_estimates import log_estimates
from ecjax.studies.optimize.objective import estimates
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.batches import Rows
from ecjax.traffic.penalties import EXCESS, ORDER, WAIT

_FORMS = {"wait": WAIT, "order_statistics": ORDER, "excess": EXCESS}
_DEEP_SHARE = 0.5  # of the bound, from which a warning says so
_STEADY = 1.1  # times the wait at constant rates: below it, the log has no bursts that count
_COMMON = 1.08  # times the least possible wait: below it, placing and spreading reads gains little


def trace_runs(
    options: OptimizeOptions, case: Case, items: Sequence[Item]
) -> tuple[Rows, dict[str, Iterator[pa.Table]]]:
    """Rows of ``runs`` and the other datasets of runs of one batch.

    Lanes that differ in theta only start from the relaxation at the first theta of the sweep, which their run ids
    depend on, so that a run does not depend on which others are planned with it.

    Args:
        options: checked.
        case: what they plan for.
        items: the runs.
    """
    rows, plans = [], []
    tables: list[pa.Table] = []
    seen: dict[tuple[float, float], tuple[Steady, np.ndarray]] = {}
    for item in items:
        lane = case.lane(item.lane)
        problem = case.problem_of(lane)
        scales = (lane.rate_scale, lane.size_scale)
        with Stopwatch(of_process=True) as stopwatch:
            if scales not in seen:
                detail(f"rate_scale={lane.rate_scale:g}: reads in any proportion")
                seen[scales] = _first(options, case, problem, lane)
            detail(f"theta={lane.theta:g}, rate_scale={lane.rate_scale:g}: placing files")
            blocks, start = seen[scales]
            data = _data(problem, blocks, lane.theta)
            form = _form_of(options)
            if form is None:
                plan, columns = plan_trace(data, options.gap, start), {}
            else:
                bounded = _data(problem, blocks, lane.theta, form)
                bounded = at_z(bounded, best_z(bounded, start, stored_with(bounded, start)))
                plan = plan_trace(bounded, options.gap, start, data)
                columns = _bounded_columns(bounded, plan)
            solution = _solution(problem, plan, lane.theta)
        times = {"solve_s": stopwatch.own_s, "compile_s": stopwatch.compile_s}
        row = item.run.row() | times  # of the processors
        if not np.isfinite(solution.evaluation.objective):
            rows.append(row | _unstable(case, solution, lane.rate_scale))
            continue
        examination, table = examined(options, case, item, solution)
        tables += [table] if table is not None else []
        row |= (
            plan_rows.plan_columns(solution, case, lane, plan.bound)
            | examination
            | trace_columns(plan, int(np.count_nonzero(np.diff(data.reads.start))))
            | columns
        )
        if row["error"] is not None:
            # a plan that breaks a constraint may be below what all others are above
            row["gap"] = None
        if options.estimate:
            row |= estimates(options, case, item, solution) | log_estimates(options, case, lane, solution)
        rows.append(row)
        plans.append((item, solution))
    return rows, plan_rows.datasets(case, plans) | {"scenarios": iter(tables)}


def trace_columns(plan: TracePlan, rows_read: int) -> dict[str, Any]:
    """Columns of ``runs`` that only plans for a log have, and those that mean something else for them.

    Args:
        plan: for the log.
        rows_read: placement rows that the log reads.
    """
    return {
        "objective": plan.objective,
        "lower_bound": plan.bound,
        "gap": (plan.objective - plan.bound) / abs(plan.bound) if plan.bound > 0 else None,
        "trace_wait_s": plan.wait,
        "blind_wait_s": plan.blind_wait,
        "spread_wait_s": plan.spread_wait,
        "steady_wait_s": plan.steady_wait if np.isfinite(plan.steady_wait) else None,
        # a single row comes and goes as all reads do: whose bursts they are cannot be told
        "bursts": bursts_of(plan) if rows_read > 1 else None,
    }


def bursts_of(plan: TracePlan) -> str:
    """Whose bursts a log has: ``none``, ``common`` to all files, or of ``single`` files or groups of them.

    By J of a plan for mean rates against J with all reads spread over all nodes, the least possible; beyond what that
    plan would be above it if all files came and went together, where nodes cannot be loaded alike.
    """
    if plan.blind_wait > _COMMON * max(plan.uneven, 1.0) * plan.least_wait:
        return "single"
    return "none" if plan.least_wait <= _STEADY * plan.steady_wait else "common"


def _first(options: OptimizeOptions, case: Case, problem: Problem, lane: Lane) -> tuple[Steady, np.ndarray]:
    """The log as plans see it at the scales of a lane, and the relaxation at the first theta there, (R, m)."""
    assert case.arrivals is not None
    blocks = case.arrivals.steady(_service_mean(problem), lane.rate_scale)
    first = next(at for at, point in enumerate(sweep(options)) if point[1:] == lane[1:])
    form = _form_of(options)
    data = _data(problem, blocks, case.lane(first).theta, form)
    relaxed = relaxation(data, options.gap) if form is None else relaxation_with_z(data, options.gap)[1]
    return blocks, relaxed.probabilities


def _form_of(options: OptimizeOptions) -> Form | None:
    """The order-statistic form that is set, with a z to begin with."""
    kind = _FORMS[options.trace_form]
    return None if kind == WAIT else Form(kind)


def _bounded_columns(data: Traced, plan: TracePlan) -> dict[str, Any]:
    """What the order-statistic form of the objective is of the plan, without dollars; says where it is loose."""
    point = evaluate(data, plan.probabilities, plan.stored.astype(float))
    if data.penalty.kind == ORDER and (share := deep_share(data, point)) > _DEEP_SHARE:
        log.warning(
            "trace_form=order_statistics: %.0f %% of the bound is of bursts beyond what the nodes can serve, where "
            "variances are taken too large; trace_form=excess does without them",
            100 * share,
        )
    return {"trace_bound_s": point.wait, "trace_z_s": data.offset}


def _data(problem: Problem, blocks: Steady, theta: float, form: Form | None = None) -> Traced:
    writes = blocks.writes if len(blocks.writes.reads) else None
    return traced(problem, blocks.reads, writes, theta, blocks.bins, form)


def _service_mean(problem: Problem) -> float:
    """Of a chunk read, over nodes and files, s."""
    share, size = np.asarray(problem.share), np.asarray(problem.files.chunk_bytes)
    service = np.asarray(problem.nodes.service)[0]
    return float(np.mean(service[0] + service[1] * (share @ size)))


def _solution(problem: Problem, plan: TracePlan, theta: float) -> Solution:
    probabilities, stored = jnp.asarray(plan.probabilities), jnp.asarray(plan.stored)
    solution = Solution(
        probabilities=probabilities,
        stored=stored,
        evaluation=EVALUATE(problem, probabilities, stored, jnp.asarray(theta)),
        iterations=jnp.asarray(plan.iterations),
        converged=jnp.asarray(True),
        history=jnp.full(1, jnp.nan),
    )
    return jax.tree.map(np.asarray, solution)


def _unstable(case: Case, solution: Solution, rate_scale: float) -> dict[str, Any]:
    """Columns that say which node is overloaded at the mean rates of the log."""
    load = np.asarray(solution.evaluation.load)
    background = np.asarray(case.problem.nodes.background[0])
    error = overload(load, background, rate_scale, case.names.nodes, EVENLY)
    return {"status": str(Status.UNSTABLE), "error": error, "max_load": float(load.max())}
