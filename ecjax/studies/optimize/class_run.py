"""Runs of ``ecjax optimize`` with queues by class: plans, one by one or side by side, exchanged or not, and rows."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from traceback import format_exc
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.engine import Failed
from ecjax.errors import UserError
from ecjax.model import Evaluation
from ecjax.planning import Problem, Solution, scaled
from ecjax.planning.classes.alternate import ClassPlan, Settings, Step, plan_classes
from ecjax.planning.classes.deadlines import Kept
from ecjax.planning.classes.exchange import Planned, exchanged
from ecjax.planning.classes.model import ClassModel, class_model, class_work, kind_reads, other_work
from ecjax.planning.classes.search import search_start
from ecjax.planning.classes.start import Start, start_plan
from ecjax.planning.classes.together import Call, run_together, width_of
from ecjax.planning.problem import EVALUATE
from ecjax.precision import device_name
from ecjax.predict.class_bounds import class_bounds
from ecjax.predict.class_estimates import class_estimates
from ecjax.predict.latencies import QUANTILES
from ecjax.predict.plan_estimates import MOST_KINDS
from ecjax.problem.arrays import code_k
from ecjax.problem.overload import EVENLY, overload
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.optimize import class_rows
from ecjax.studies.optimize import rows as plan_rows
from ecjax.studies.optimize.batches import Item, exchanging, items_of
from ecjax.studies.optimize.case import Case, Lane, laws_of
from ecjax.studies.optimize.class_rules import order_of, shares
from ecjax.studies.optimize.deadlines import deadline_columns, plan_for_deadlines, promised, why_late
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.batches import Rows, failed_rows


class _Made(NamedTuple):
    """A plan, and what it took."""

    item: Item
    problem: Problem  # scaled
    planned: Planned
    outcome: Kept | None  # of deadlines
    solve_s: float
    compile_s: float


def class_runs(
    options: OptimizeOptions,
    case: Case,
    items: Sequence[Item],
    advance: Callable[[Step], None] | None = None,
) -> tuple[Rows, dict[str, Iterator[pa.Table]]]:
    """Rows of ``runs`` and the other datasets of one plan, or of those of a batch.

    Args:
        options: checked.
        case: what the runs plan for.
        items: the runs, of one queue.
        advance: called with every step.
    """
    width, asked = _width(items), {item.run.run_id for item in items}
    exchanges = options.exchange and items[0].way.queue == "weighted"
    # of a batch that was divided, too: the plan of each point comes of those of all
    points = exchanging(items_of(case, options)) if exchanges else items
    lanes = [partial(_planned, options, case, item, advance) for item in points]
    outcomes = _all_exchanged(lanes, width, advance) if exchanges else _all_planned(lanes, width)
    rows: Rows = []
    datasets: dict[str, list[Iterator[pa.Table]]] = {}
    for item, outcome in zip(points, outcomes, strict=True):
        if item.run.run_id not in asked:
            continue
        if isinstance(outcome, Failed):
            rows += failed_rows({item.run.run_id: item}, outcome)
            continue
        row, tables = _rows_of(options, case, outcome)
        rows.append(row)
        for name, parts in tables.items():
            datasets.setdefault(name, []).append(parts)
    return rows, {name: chain.from_iterable(parts) for name, parts in datasets.items()}


def _width(items: Sequence[Item]) -> int:
    """Lanes of the programs; of a batch that was halved, only as many as are left."""
    first = items[0]
    return first.width if len(items) == first.batch_runs else width_of(len(items), first.width)


def _all_planned(lanes: Sequence[Callable[[Call], _Made | Failed]], width: int) -> list[_Made | Failed]:
    """The plans of runs by themselves: one after the other, or side by side, where each takes its share of the time."""
    outcomes: list[_Made | Failed] = []
    for group in [lanes] if width > 1 else [[lane] for lane in lanes]:
        with Stopwatch(of_process=True) as stopwatch:
            plans = run_together(group, width)
        outcomes += [
            plan if isinstance(plan, Failed) else _later(plan, stopwatch, len(group)) for plan in plans
        ]
    return outcomes


def _later(made: _Made, stopwatch: Stopwatch, among: int) -> _Made:
    """The same with its share of the time since then."""
    solve_s, compile_s = stopwatch.own_s / among, stopwatch.compile_s / among
    return made._replace(solve_s=made.solve_s + solve_s, compile_s=made.compile_s + compile_s)


def _all_exchanged(
    lanes: Sequence[Callable[[Call], _Made]], width: int, advance: Callable[[Step], None] | None
) -> list[_Made | Failed]:
    """The plans of the points of a sweep, of which none is beaten by that of another point.

    What fails side by side is done again by fewer at a time; one by one, a point that fails is left out. Halves of the
    batch, as others are tried again by, would each plan for all points.

    Raises:
        UserError: something the user gave is wrong.
    """
    while width > 1:
        try:
            return _exchanged(_all_planned(lanes, width), width, advance)
        except UserError:
            raise
        except Exception as error:
            log.info("%d plans side by side failed (%s); fewer are made at a time", width, error)
        width //= 2
    outcomes = _all_planned([partial(_attempted, lane) for lane in lanes], width)
    made = sum(isinstance(each, _Made) for each in outcomes)
    if 0 < made < len(outcomes):
        log.warning(
            "exchange: %d of %d plans of the sweep failed; the others go on from each other's plans alone",
            len(outcomes) - made,
            len(outcomes),
        )
    try:
        return _exchanged(outcomes, width, advance)
    except Exception as error:
        failed = _failed(error)
        return [each if isinstance(each, Failed) else failed for each in outcomes]


def _attempted(plan: Callable[[Call], _Made], call: Call) -> _Made | Failed:
    """A plan, or why there is none."""
    try:
        return plan(call)
    except UserError:
        raise
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Failed:
    """The error that is being handled, as an engine says it."""
    return Failed(f"{type(error).__name__}: {error}", format_exc())


def _exchanged(
    outcomes: Sequence[_Made | Failed], width: int, advance: Callable[[Step], None] | None
) -> list[_Made | Failed]:
    """The same with plans of which none is beaten by that of another point; each takes its share of the time."""
    made = [each for each in outcomes if isinstance(each, _Made)]
    if len(made) < 2:
        return list(outcomes)

    def tell(number: int, step: Step) -> None:
        if advance is not None:
            advance(step)

    with Stopwatch(of_process=True) as stopwatch:
        plans = iter(exchanged([each.planned for each in made], tell, width))
    return [
        each
        if isinstance(each, Failed)
        else _later(each._replace(planned=each.planned._replace(plan=next(plans))), stopwatch, len(made))
        for each in outcomes
    ]


def _planned(
    options: OptimizeOptions, case: Case, item: Item, advance: Callable[[Step], None] | None, call: Call
) -> _Made:
    """The plan of one run by itself."""
    classes, lane, queue = case.classes, case.lane(item.lane), item.way.queue
    assert classes is not None
    problem = scaled(case.fixed_lengths, lane.rate_scale, lane.size_scale)
    model = class_model(problem, classes.of_file, len(classes.names), queue)
    start = start_of(options, case, item, model, call)
    settings = settings_of(options, case, item)
    deadlines, outcome = promised(options, case), None
    if deadlines is None:
        plan = plan_classes(model, start, settings, advance, call)
    else:
        outcome = plan_for_deadlines(options, case, item, model, start, settings, advance)
        plan = outcome.plan
    return _Made(item, problem, Planned(model, settings, plan), outcome, 0.0, 0.0)


def _rows_of(
    options: OptimizeOptions, case: Case, made: _Made
) -> tuple[dict[str, Any], dict[str, Iterator[pa.Table]]]:
    """Row of ``runs`` and the other datasets of a plan."""
    item, problem, (model, _, plan), outcome, solve_s, compile_s = made
    classes, queue = case.classes, item.way.queue
    assert classes is not None and item.way.importance is not None
    row = item.run.row() | {
        "iterations": plan.iterations,
        "solve_s": solve_s,
        "compile_s": compile_s,
        "device": device_name(),
    }
    if not np.isfinite(plan.objective):
        return row | _unstable(case, item, model, plan), {}
    solution, deadlines = _solution(queue, case, model, plan), promised(options, case)
    columns = class_rows.class_columns(model, plan, solution, classes, case.names)
    row |= plan_rows.plan_columns(solution, case, case.lane(item.lane)) | {
        "z_s": None,
        "class_latency_s": json.dumps(dict(zip(classes.names, columns["latency_s"], strict=True))),
    }
    if np.isfinite(plan.joint_gap):
        row["scheduling_gap"] = plan.joint_gap
    # chunks served together have no estimate
    if options.estimate and case.names.per_node == 1 and problem.files.count <= MOST_KINDS:
        row |= _estimates(options, case, item, problem, plan)
    columns["importance"] = np.array(item.way.importance)
    if outcome is not None and deadlines is not None:
        columns |= deadline_columns(outcome, deadlines, options.deadline_by)
        row["deadlines_met"] = outcome.met
        if not outcome.met:
            row["status"] = str(Status.INFEASIBLE)
            late = why_late(outcome, deadlines, options.deadline_by, classes)
            row["error"] = late if row["error"] is None else f"{row['error']}; {late}"
    name, k = item.run.run_id, code_k(case.files)
    datasets = plan_rows.datasets(case, [(item, solution)])
    datasets |= {
        "file_plans": iter([class_rows.file_plans(name, solution, k, case.names, classes)]),
        "history": iter([class_rows.history(name, plan, classes)]),
        "class_plans": iter([class_rows.class_plans(name, columns, classes)]),
    }
    if queue == "weighted":
        weights = np.asarray(plan.weights)
        datasets["class_weights"] = iter([class_rows.class_weights(name, weights, classes, case.names)])
    return row, datasets


def _estimates(
    options: OptimizeOptions, case: Case, item: Item, problem: Problem, plan: ClassPlan
) -> dict[str, float | None]:
    """Columns of a run with what its plan is estimated to deliver; null where that is not finite."""
    assert case.classes is not None
    laws = laws_of(options, case, case.lane(item.lane))
    served = "partitioned" if item.way.queue == "weighted" else "priority"
    reads = np.asarray(plan.probabilities), np.asarray(plan.stored)
    every = class_estimates(problem, laws, *reads, case.classes, served, np.asarray(plan.weights))["all"]
    assert every.quantiles is not None
    return plan_rows.estimate_columns(every.mean[0], every.quantiles[0, QUANTILES.index("p99_s")])


def start_of(options: OptimizeOptions, case: Case, item: Item, model: ClassModel, call: Call) -> Start:
    """The start of a run, whose classes and queues are ``model``; ``call`` runs its steps."""
    lane, importance = case.lane(item.lane), item.way.importance
    how = "certified" if options.start == "search" else str(options.start)
    start = _start(case, lane, how, options.seed)
    if options.start != "search" or item.way.queue != "weighted" or options.weights is not None:
        return start
    assert importance is not None
    return search_start(model, start, importance, lane.theta, options.seed, call)


@lru_cache(maxsize=4)
def _start(case: Case, lane: Lane, how: str, seed: int) -> Start:
    """What does not depend on queue and importance, made once for the next runs."""
    problem = scaled(case.fixed_lengths, lane.rate_scale, lane.size_scale)
    earlier = None if case.earlier is None else (case.earlier.probabilities, case.earlier.stored)
    return start_plan(problem, lane.theta, how, seed, earlier)


def settings_of(options: OptimizeOptions, case: Case, item: Item) -> Settings:
    """Settings of a run's alternation."""
    assert case.classes is not None and item.way.importance is not None
    fixed = shares(options.weights, case.classes.names)
    return Settings(
        order=order_of(item.way.queue, options.objective),
        importance=item.way.importance,
        theta=case.lane(item.lane).theta,
        eps=options.eps,
        max_iterations=options.max_iterations,
        weights=None if fixed is None else np.asarray(fixed),
        seed=options.seed,
    )


def _solution(queue: str, case: Case, model: ClassModel, plan: ClassPlan) -> Solution:
    """The plan as plans of other queues are: files with one z each."""
    problem, classes = model.problem, case.classes
    assert classes is not None
    reads, stored = jnp.asarray(plan.probabilities), jnp.asarray(plan.stored)
    plain = EVALUATE(problem, reads, stored, jnp.zeros(()))
    served = "partitioned" if queue == "weighted" else "priority"
    by_file = class_bounds(
        problem, np.asarray(reads), np.asarray(stored), classes.of_file, served, np.asarray(plan.weights)
    )
    share = np.asarray(problem.share)
    read = share > 0
    evaluation = Evaluation(
        objective=jnp.asarray(plan.objective),
        latency=jnp.asarray(np.sum(share[read] * by_file[read])),
        latency_shared_z=jnp.sum(model.share * plan.latency),
        z=jnp.asarray(jnp.nan),
        cost=plain.cost,
        file_latency=jnp.asarray(by_file),
        file_cost=plain.file_cost,
        load=plain.load,
    )
    iterations, converged = jnp.asarray(plan.iterations), jnp.asarray(plan.converged)
    history = jnp.asarray(np.array([step.objective for step in plan.steps], float))
    return Solution(reads, stored, evaluation, iterations, converged, history)


def _unstable(case: Case, item: Item, model: ClassModel, plan: ClassPlan) -> dict[str, Any]:
    """Columns that say which node or which class's share is overloaded, and what is allowed."""
    classes, nodes = case.classes, case.names.nodes
    assert classes is not None
    work = class_work(model, kind_reads(model, plan.probabilities), other_work(model, plan.stored))
    load = np.asarray(work[0])
    total = load.sum(axis=0)
    if total.max() >= 1 or item.way.queue == "priority":
        background = np.asarray(model.problem.nodes.background[0])
        spread = EVENLY
        error = overload(total, background, case.lane(item.lane).rate_scale, nodes, spread)
    else:
        weights = np.asarray(plan.weights)
        ratio = load / weights
        number, node = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        error = (
            f"weights: class {classes.names[number]} asks for {load[number, node]:.3g} of node "
            f"{nodes[int(node)].as_py()}, its share is {weights[number, node]:.3g}; allowed: shares above what every "
            "class asks for (weights=null plans them), or lower rates"
        )
    return {"status": str(Status.UNSTABLE), "error": error, "max_load": float(total.max())}
