"""``ecjax schedule``: how long transfers take under schedulers and source rules, and how short they could be."""

import itertools
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from ecjax.console import log
from ecjax.engine import Worker, open_engine
from ecjax.errors import UserError
from ecjax.studies.schedule import summary
from ecjax.studies.schedule.figures import kinds as figures
from ecjax.studies.schedule.inputs import Case, read_cases
from ecjax.studies.schedule.options import ScheduleOptions
from ecjax.studies.schedule.rules import checked
from ecjax.studies.schedule.run import JOB, Given, Item, Point, Wanted, replay_batch, run_row
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
from ecjax.tables.store import ResultStore, run_id


def schedule_study(options: ScheduleOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    cases = [_with_clients(case, options.client_bytes_per_s) for case in read_cases(options)]
    batches = [(case, seed) for case in cases for seed in _seeds(case, options)]
    grid = [(case, _items(case, seed, options)) for case, seed in batches]
    names = [name for _, items in grid for name in items]
    for words in dict.fromkeys(case.description for case in cases):
        log.info("%s", words)
    with (
        open_engine(options.engine) as engine,
        ResultStore(options.out, {"coflow_id": cases[0].coflow_ids.type}, options.write) as store,
    ):
        solve, blank = partial(_solve, options), partial(_blank, options)
        run_batches(grid, solve, blank, store, engine, options.resume, "replaying transfers")
    runs = runs_of(options.out, names)
    summary.show(runs, console, options.out)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _solve(options: ScheduleOptions, case: Case, items: dict[str, Item], worker: Worker) -> Solved:
    seed = next(iter(items.values())).seed  # the same of all items of a batch
    number = options.seed if seed is None else seed
    given = Given(case.workload(number), case.fabric, case.coflow_ids, case.input_id, _about(options, case))
    return replay_batch(items, given, Wanted(options.widths, options.lower_bound), number, worker)


def _blank(options: ScheduleOptions, case: Case, name: str, item: Item) -> dict[str, Any]:
    return run_row(name, item, case.input_id, _about(options, case))


def _about(options: ScheduleOptions, case: Case) -> dict[str, Any]:
    """What else was set, for the column params."""
    about = {"input": case.description, "widths": options.widths}
    return about | ({"generate": vars(options.generate)} if case.drawn else {})


def _with_clients(case: Case, capacity: float | None) -> Case:
    """The case with ports of this capacity for its clients, in bytes/s; None leaves it as it is.

    Raises:
        UserError: the case has no clients.
    """
    if capacity is None:
        return case
    if not case.chosen:
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
    point = Point(case.n, case.k, case.share_at_zero, case.rate_scale, case.size_scale)
    sources = options.sources if case.chosen else ["given"]
    found = {}
    for item in (Item(point, seed, *pair) for pair in itertools.product(sources, options.scheduler)):
        parameters = asdict(point) | {"sources": item.sources, "scheduler": item.scheduler}
        parameters |= {"widths": options.widths, "lower_bound": options.lower_bound}
        found[run_id(JOB, parameters, case.input_id, seed, "float64")] = item
    return found
