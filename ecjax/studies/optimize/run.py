"""Runs of ``ecjax optimize``: a batch of lanes planned by one program, or one plan by class; and their rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import jax
import numpy as np
import pyarrow as pa

from ecjax import planning, programs
from ecjax.engine import Worker
from ecjax.planning import BatchSettings, Plans, Solution
from ecjax.planning.certified.solvers import Device
from ecjax.planning.classes.alternate import Step
from ecjax.problem.overload import overload
from ecjax.progress import detail
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.optimize import rows as plan_rows
from ecjax.studies.optimize.batches import Item, lanes_of
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.class_run import class_runs
from ecjax.studies.optimize.examination import examined, for_failures
from ecjax.studies.optimize.floors import floor_rows
from ecjax.studies.optimize.kinds_run import KindRun, kind_datasets, with_read_kinds
from ecjax.studies.optimize.log_estimates import log_estimates
from ecjax.studies.optimize.moment_margins import misfit_columns, moment_columns
from ecjax.studies.optimize.objective import (
    begin_compiling,
    estimates,
    estimates_bounded,
    for_objective,
    mix_columns,
)
from ecjax.studies.optimize.objective_rules import TRACE
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.rate_margins import rate_error_columns
from ecjax.studies.optimize.trace_run import trace_runs
from ecjax.studies.optimize.what_if_rows import answer_rows
from ecjax.studies.spine.batches import Rows

_BEGIN = "with reads spread as method=published begins; method=certified looks for other spreads"

Datasets = Mapping[str, Iterator[pa.Table]]


def solve(
    options: OptimizeOptions, case: Case, items: dict[str, Item], worker: Worker
) -> tuple[Rows, Datasets]:
    """Rows of ``runs`` and the other datasets of runs of one batch.

    Args:
        options: checked.
        case: what they plan for.
        items: by run id: several with queue=fcfs, or one or several with the same queue by class.
        worker: where they run.
    """
    if case.error is not None:
        infeasible = {"status": str(Status.INFEASIBLE), "error": case.error}
        rows: Rows = [item.run.row() | infeasible for item in items.values()]
        datasets: Datasets = {}
    else:
        programs.use_compilation_cache()
        rows, datasets = _solved(options, case, items)
    if options.what_if:
        datasets = {**datasets, "what_if": iter([answer_rows(case, rows, items)])}
    if case.floors and case.error is None:
        datasets = {**datasets, "floors": (floor_rows(name, case.floors) for name in items)}
    return rows, datasets


def _solved(options: OptimizeOptions, case: Case, items: dict[str, Item]) -> tuple[Rows, Datasets]:
    first = next(iter(items.values()))
    if options.objective == TRACE:
        return trace_runs(options, case, list(items.values()))
    if first.way.queue == "fcfs":
        return _plan_batch(options, case, list(items.values()))
    return class_runs(options, case, list(items.values()), _tell)


def _tell(step: Step) -> None:
    objective = "" if step.objective is None else f": objective {step.objective:.5g} s"
    detail(f"iteration {step.iteration}, {step.name}{objective}")


def _plan_batch(options: OptimizeOptions, case: Case, items: list[Item]) -> tuple[Rows, Datasets]:
    """Runs with queue=fcfs, planned by one program; of a batch that was halved, only the lanes that are left."""
    first, numbers = items[0], lanes_of(items)
    padding = [numbers[-1]] * (first.width - len(numbers)) if len(items) == first.batch_runs else []
    lanes = case.lanes.take(np.array(numbers + padding))
    place = {number: at for at, number in enumerate(numbers)}
    start = None if case.earlier is None else (case.earlier.probabilities, case.earlier.stored)
    compiling = begin_compiling(options, case, first)
    problem = case.placed(case.lane(first.lane).size_scale)
    plans = planning.solve(problem, lanes, _settings(options), start)
    if compiling is not None:
        compiling.join()
    rows, datasets = _outcomes(options, case, items, plans, place)
    if start is not None and options.compare_cold_start:
        cold = planning.solve(case.problem, lanes, _settings(options))
        for row, item in zip(rows, items, strict=True):
            plan = _lane_of(cold.by_method[item.way.method], place[item.lane])
            row["cold_start_objective"] = _cold_objective(options, case, item, plan)
    return rows, datasets


def _lane_of(plans: Solution, at: int) -> Solution:
    """One of the plans of a batch, on the host: JAX would compile every part that is taken of it."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[at], plans)


def _cold_objective(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> float | None:
    """What the run's objective is of a plan from nothing, s; null where it has none."""
    objective = float(plan.evaluation.objective)
    if np.isfinite(objective):
        plan = _changed(options, case, item, plan)
        columns = mix_columns(options, case, item, plan)
        objective = columns.get("objective", float(plan.evaluation.objective))
    return objective if np.isfinite(objective) else None


def _changed(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> Solution:
    """A method's plan, changed for another objective than the bound and for failures as options say."""
    plan = for_objective(options, case, item, plan, _settings(options))
    return for_failures(options, case, item, plan)


def _settings(options: OptimizeOptions) -> BatchSettings:
    return BatchSettings(
        methods=tuple(name for name in planning.METHODS if name in (options.method or [])),
        start=options.start if options.start in planning.STARTS else "uniform",
        settings=planning.settings(options.beta, options.eps, options.max_iterations, options.loop),
        dtype=options.dtype,
        seed=options.seed,
        certified=planning.Certified(gap=options.gap, seed=options.seed, device=cast(Device, options.device)),
    )


def _outcomes(
    options: OptimizeOptions, case: Case, items: list[Item], plans: Plans, place: dict[int, int]
) -> tuple[Rows, Datasets]:
    """Rows and datasets of a batch; ``place`` says where in it a lane of the case is."""
    lanes_by_method = Counter(item.way.method for item in items)
    by_method = jax.tree.map(np.asarray, plans.by_method)  # from a device once, not for every lane
    rows, stable, scenarios = [], [], []
    kinds: list[tuple[str, KindRun]] = []
    for item in items:
        at, lane = place[item.lane], case.lane(item.lane)
        method = item.way.method
        plan = _lane_of(by_method[method], at)
        row = item.run.row() | {
            "solve_s": plans.solve_s[method] / lanes_by_method[method],
            "compile_s": plans.compile_s / len(items),
            "device": plans.device[method],
        }
        of_kinds = None
        if case.small is not None and np.isfinite(plan.evaluation.objective):
            with Stopwatch() as stopwatch:
                of_kinds = with_read_kinds(options, case, item, plan)
            plan = of_kinds.plan
            row["solve_s"] += stopwatch.own_s
        if np.isfinite(plan.evaluation.objective) and of_kinds is not None:
            row |= plan_rows.plan_columns(plan, case, lane) | of_kinds.columns
            kinds.append((item.run.run_id, of_kinds))
        elif np.isfinite(plan.evaluation.objective):
            planned = float(plan.evaluation.objective)
            plan = _changed(options, case, item, plan)
            columns = mix_columns(options, case, item, plan)
            examination, table = examined(options, case, item, plan)
            if estimates_bounded(options, case):
                columns = estimates(options, case, item, plan)
            if options.estimate:
                columns |= log_estimates(options, case, lane, plan)
            bound = None if plans.lower_bound is None else float(plans.lower_bound[at])
            # of the plan itself: one that was changed after it has others near it
            is_planned = method == "certified" and float(plan.evaluation.objective) == planned
            near = plans.nearby_bound[at] if is_planned and plans.nearby_bound is not None else None
            row |= plan_rows.plan_columns(plan, case, lane, bound, near) | columns | examination
            row |= rate_error_columns(options, case, lane, plan, row)
            row |= moment_columns(options, case, lane, plan) | misfit_columns(case)
            stable.append((item, plan))
            scenarios += [table] if table is not None else []
        else:
            row |= {"iterations": int(plan.iterations), **_unstable(case, item, plan, plans.start_load[at])}
        rows.append(row)
    tables = plan_rows.datasets(case, stable) | {"scenarios": iter(scenarios)}
    return rows, tables if case.small is None else tables | kind_datasets(case, kinds)


def _unstable(case: Case, item: Item, plan: Solution, start_load: jax.Array) -> dict[str, Any]:
    """Columns that say which node is overloaded; ``start_load`` is that at the start of the descent, (m,)."""
    load, spread = np.asarray(start_load), _BEGIN
    if item.way.method != "published" or load.max() < 1:
        load, spread = np.asarray(plan.evaluation.load), f"in the plan of method={item.way.method}"
    if load.max() < 1:
        error = (
            "objective: is not a finite number, although no node is overloaded; allowed: theta and prices whose "
            "product is a number"
        )
        return {"status": str(Status.FAILED), "error": error, "max_load": float(load.max())}
    background = np.asarray(case.problem.nodes.background[0])
    error = overload(load, background, case.lane(item.lane).rate_scale, case.names.nodes, spread)
    return {"status": str(Status.UNSTABLE), "error": error, "max_load": float(load.max())}
