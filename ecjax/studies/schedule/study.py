"""``ecjax schedule``: how long transfers take under schedulers and source rules, and how short they could be."""

import itertools
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from ecjax.console import log
from ecjax.engine import Engine
from ecjax.errors import UserError
from ecjax.options import checked, identifying
from ecjax.studies.schedule.figures.kinds import draw
from ecjax.studies.schedule.inputs import Case, read_cases
from ecjax.studies.schedule.options import ScheduleOptions
from ecjax.studies.schedule.recommend import recommend
from ecjax.studies.schedule.run import Item, Point, Settings, solve
from ecjax.studies.schedule.summary import show
from ecjax.studies.schedule.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.tables.recommendation import Recommendation
from ecjax.tables.run_ids import run_id


def schedule_study(options: ScheduleOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)

    def present(runs: pd.DataFrame) -> Recommendation | None:
        show(runs, console, options.out)
        draw(options.out, runs, options.figures, console)
        return recommend(runs)

    return run_study(TABLES, options, partial(_work, options), present, console)


def _work(options: ScheduleOptions, engine: Engine) -> Work:
    cases = [_with_clients(case, options.client_bytes_per_s) for case in read_cases(options)]
    for description in dict.fromkeys(case.description for case in cases):
        log.info("%s", description)
    batches = [Batch(case, _items(case, seed, options)) for case in cases for seed in _seeds(case, options)]
    return Work(
        [name for batch in batches for name in batch.items],
        unfinished(batches),
        partial(solve, Settings(options.widths, options.lower_bound, options.seed)),
        {"coflow_id": cases[0].coflow_ids.type},
        "replaying transfers",
    )


def _with_clients(case: Case, capacity: float | None) -> Case:
    """The case with ports of this capacity for its clients, in bytes/s; None leaves it as it is.

    Raises:
        UserError: the case has no clients.
    """
    if capacity is None:
        return case
    if not case.source_selection:
        raise UserError(
            f"client_bytes_per_s: found {capacity:g} with transfers; allowed: with reads (transfers: ports=TABLE)"
        )
    fabric = case.fabric._replace(receive=np.full(len(case.fabric.receive), float(capacity)))
    name = run_id("inputs", {"input": case.input_id, "client_bytes_per_s": float(capacity)}, "", None, "")
    return replace(case, fabric=fabric, input_id=name)


def _seeds(case: Case, options: ScheduleOptions) -> list[int | None]:
    """One seed after another; a single None where nothing is random."""
    return list(range(options.seed, options.seed + options.seeds)) if case.random else [None]


def _items(case: Case, seed: int | None, options: ScheduleOptions) -> dict[str, Item]:
    """The replays of one workload by run id."""
    point = asdict(Point(case.n, case.k, case.share_at_zero, case.rate_scale, case.size_scale))
    remarks: dict[str, Any] = {"input": case.description}
    remarks |= {"generate": asdict(options.generate)} if case.drawn else {}
    # part of the input id
    capacities = {
        "port_bytes_per_s": options.port_bytes_per_s,
        "client_bytes_per_s": options.client_bytes_per_s,
    }
    remarks |= {name: value for name, value in capacities.items() if value is not None}
    items = {}
    for sources, scheduler in itertools.product(
        options.sources if case.source_selection else ["given"], options.scheduler
    ):
        columns = point | {"sources": sources, "scheduler": scheduler}
        run = Run(TABLES.job, columns | identifying(options), case.input_id, seed, columns, remarks)
        items[run.run_id] = Item(run, sources, scheduler)
    return items
