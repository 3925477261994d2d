"""``ecjax replay``: what plans and dispatch policies deliver, beside their estimate and their bound."""

import itertools
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax import precision
from ecjax.cores import available_cores
from ecjax.engine import Engine
from ecjax.options import checked, identifying
from ecjax.studies.replay.figures.kinds import draw
from ecjax.studies.replay.inputs import Case, queues_of, read_cases
from ecjax.studies.replay.log import log_work, show_log
from ecjax.studies.replay.operating_point import Point, weights_of
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import Plan
from ecjax.studies.replay.run import Item, solve
from ecjax.studies.replay.summary import show
from ecjax.studies.replay.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.tables.ids import id_types


def replay_study(options: ReplayOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some found no stable queues).

    Raises:
        UserError: something the user gave is wrong; no replay was written.
    """
    options = checked(options)
    precision.use_compilation_cache()
    prepare, print_runs = (log_work, show_log) if options.predicts_log else (_work, show)

    def present(runs: pd.DataFrame) -> None:
        print_runs(runs, console, options)
        draw(options.out, runs, options.figures, console)

    return run_study(TABLES, options, partial(prepare, options), present)


def _work(options: ReplayOptions, engine: Engine) -> Work:
    cases = read_cases(options)
    # a task per replay: its replications take the cores first, then replays do
    batches = [
        Batch(case, {item.run.run_id: item})
        for case in cases
        for item in (_item(case, point, options) for point in _points(case.plan, options))
    ]
    return Work(
        [name for batch in batches for name in batch.items],
        unfinished(batches),
        partial(solve, options),
        id_types(*(table for case in cases for table in (case.plan.nodes, case.plan.files))),
        "replaying",
        inputs=_inputs,
        at_once=max(1, available_cores() // options.replications),
    )


def _inputs(case: Case) -> tuple[str, dict[str, pa.Table]]:
    return case.plan.run.input_id, {"nodes": case.plan.nodes, "files": case.plan.files}


def _points(plan: Plan, options: ReplayOptions) -> list[Point]:
    """The replays of a plan."""
    ways = itertools.product(
        options.policy,
        queues_of(options, plan),
        options.service or [],
        options.rate_scale,
        options.size_scale,
    )
    return [Point(*way) for way in ways]


def _item(case: Case, point: Point, options: ReplayOptions) -> Item:
    plan, shares = case.plan, point.queue in ("partitioned", "shared")
    parameters = identifying(options) | asdict(point)
    parameters |= {"plan_run": plan.run.run_id, "inputs": case.fingerprints}
    parameters["weights"] = weights_of(options, plan).tolist() if shares else None
    columns: dict[str, Any] = {
        "plan_run": plan.run.run_id,
        "method": plan.run.method,
        "theta": plan.run.theta,
        "cost_dollars_per_period": plan.run.cost_dollars_per_period,
        "importance": plan.run.importance,
        "class_rate_scale": plan.run.class_rate_scale,
        "policy": point.policy,
        "queue": point.queue,
        "service": point.service,
        "arrivals": options.arrivals,
        "rate_scale": point.rate_scale * plan.run.rate_scale,
        "size_scale": point.size_scale * plan.run.size_scale,
        "file_count": len(plan.files),
        "node_count": len(plan.nodes),
        "replications": options.replications,
    }
    remarks = {} if case.log is None else {"log": case.log}
    return Item(Run(TABLES.job, parameters, plan.run.input_id, options.seed, columns, remarks), point)
