"""Runs of ``ecjax optimize`` with queues by class: one plan at a time, and its rows."""

import json
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from ecjax.model import Evaluation
from ecjax.optimize import Solution, evaluate, scaled
from ecjax.optimize.classes.alternate import ClassPlan, Settings, Step, plan_classes
from ecjax.optimize.classes.model import ClassModel, class_model, class_work, kind_reads, other_work
from ecjax.optimize.classes.search import search_start
from ecjax.optimize.classes.start import Start, start_plan
from ecjax.predict.class_bounds import class_bounds
from ecjax.problem.arrays import code_k
from ecjax.problem.feasibility import overload
from ecjax.problem.lengths import given_lengths
from ecjax.status import Status
from ecjax.studies.optimize import class_rows as class_tables
from ecjax.studies.optimize import rows as plan_tables
from ecjax.studies.optimize.class_rules import deadlines, order_of, shares
from ecjax.studies.optimize.deadlines import deadline_columns, plan_for_deadlines, why_late
from ecjax.studies.optimize.run import Item, Study, Unstable, run_row
from ecjax.studies.spine.compile_time import CompileTime


def class_run(
    item: Item, study: Study, advance: Callable[[Step], None] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Row of ``runs`` and the other datasets of one plan.

    Args:
        item: the run.
        study: what it belongs to.
        advance: called with every step.
    """
    starts = starts_of(study)
    classes = study.classes
    assert classes is not None and item.importance is not None
    began, compiling = time.perf_counter(), CompileTime()
    with compiling:
        problem = scaled(starts.problem, item.rate_scale, item.size_scale)
        model = class_model(problem, classes.of_file, len(classes.names), item.queue)
        start = starts.of(item, model)
        settings = settings_of(item, study)
        most = deadlines(study.options.deadline_s, classes.names)
        kept = None
        if most is None:
            plan = plan_classes(model, start, settings, advance)
        else:
            kept = plan_for_deadlines(item, study, model, start, settings, most, advance)
            plan = kept.plan
        solution = _solution(item, study, model, plan)
    taken = time.perf_counter() - began
    times = {"solve_s": taken - compiling.seconds, "compile_s": compiling.seconds}
    unstable = None if np.isfinite(plan.objective) else why_unstable(item, study, model, plan)
    row = run_row(item, solution, unstable, study, times)
    if unstable is not None:
        return row, {}
    weights = np.asarray(plan.weights) if item.queue == "weighted" else None
    told = class_tables.class_rows(model, plan, solution, classes)
    row["class_latency_s"] = json.dumps(dict(zip(classes.names, told["latency_s"], strict=True)))
    if np.isfinite(plan.joint_gap):
        row["scheduling_gap"] = plan.joint_gap
    name = study.run_ids[item]
    k, share = code_k(study.files), np.asarray(problem.share)
    tables: dict[str, Any] = dict(plan_tables.datasets([(name, solution)], k, share, study.names))
    tables["file_plans"] = iter([class_tables.file_plans(name, solution, k, study.names, classes)])
    tables["history"] = iter([class_tables.history(name, plan, classes)])
    more: dict[str, Any] = {"importance": np.array(item.importance)}
    if kept is not None and most is not None:
        more |= deadline_columns(kept, most, study.options.deadline_by)
        row["deadlines_met"] = kept.met
        if not kept.met:
            row["status"] = str(Status.INFEASIBLE)
            row["error"] = why_late(kept, most, study.options.deadline_by, classes)
    tables["class_plans"] = iter([class_tables.class_plans(name, told, classes, more)])
    if weights is not None:
        tables["class_weights"] = iter([class_tables.class_weights(name, weights, classes, study.names)])
    return row, tables


@lru_cache(maxsize=1)
def starts_of(study: Study) -> "Starts":
    """Starts of a study, kept for its next run."""
    return Starts(study)


class Starts:
    """Starts of the plans of a study; what does not depend on queue and importance is made once."""

    def __init__(self, study: Study) -> None:
        """Fix the code lengths: those of the files' column n, else the durability floor."""
        self.study = study
        self.problem = given_lengths(study.problem, study.names, study.files)
        self._made = lru_cache(maxsize=4)(self._make)

    def of(self, item: Item, model: ClassModel) -> Start:
        """The start of a run, whose classes and queues are ``model``."""
        options, theta = self.study.options, theta_of(item, self.study)
        start = self._made(theta, item.rate_scale, item.size_scale)
        if options.start != "search" or item.queue != "weighted" or options.weights is not None:
            return start
        assert item.importance is not None
        return search_start(model, start, item.importance, theta, options.seed)

    def _make(self, theta: float, rate_scale: float, size_scale: float) -> Start:
        study = self.study
        problem = scaled(self.problem, rate_scale, size_scale)
        given = None if study.given is None else (study.given.probabilities, study.given.stored)
        how = "certified" if study.options.start == "search" else str(study.options.start)
        return start_plan(problem, theta, how, study.options.seed, given)


def theta_of(item: Item, study: Study) -> float:
    """Theta of a run, s per dollar of mean cost per file."""
    return item.theta * (study.problem.files.count if study.options.theta_per == "total" else 1)


def settings_of(item: Item, study: Study) -> Settings:
    """Settings of a run's alternation."""
    options, classes = study.options, study.classes
    assert classes is not None and item.importance is not None
    fixed = shares(options.weights, classes.names)
    return Settings(
        order=order_of(item.queue, options.objective),
        importance=item.importance,
        theta=theta_of(item, study),
        eps=options.eps,
        max_iterations=options.max_iterations,
        weights=None if fixed is None else np.asarray(fixed),
        seed=options.seed,
    )


def _solution(item: Item, study: Study, model: ClassModel, plan: ClassPlan) -> Solution:
    """The plan as other plans are told: files with one z each."""
    problem, classes = model.problem, study.classes
    assert classes is not None
    reads, stored = jnp.asarray(plan.probabilities), jnp.asarray(plan.stored)
    plain = evaluate(problem, reads, stored, jnp.zeros(()))
    queue = "partitioned" if item.queue == "weighted" else "priority"
    by_file = class_bounds(
        problem, np.asarray(reads), np.asarray(stored), classes.of_file, queue, np.asarray(plan.weights)
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
    history = jnp.asarray([step.objective for step in plan.steps])
    return Solution(reads, stored, evaluation, iterations, converged, history)


def why_unstable(item: Item, study: Study, model: ClassModel, plan: ClassPlan) -> Unstable:
    """Which node or which class's share is overloaded, and what is allowed, in one line."""
    classes = study.classes
    assert classes is not None
    work = class_work(model, kind_reads(model, plan.probabilities), other_work(model, plan.stored))
    load = np.asarray(work[0])
    total = load.sum(axis=0)
    if total.max() >= 1 or item.queue == "priority":
        background = np.asarray(model.problem.nodes.background[0])
        spread = "with reads spread as evenly as they go"
        error = overload(total, background, item.rate_scale, study.names.nodes, spread)
        return Unstable(error, float(total.max()))
    ratio = load / np.asarray(plan.weights)
    number, node = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    error = (
        f"weights: class {classes.names[number]} asks for {load[number, node]:.3g} of node "
        f"{study.names.nodes[int(node)].as_py()}, its share is {np.asarray(plan.weights)[number, node]:.3g}; allowed: "
        "shares above what every class asks for (weights=null plans them), or lower rates"
    )
    return Unstable(error, float(total.max()))
