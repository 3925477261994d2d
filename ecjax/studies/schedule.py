"""``ecjax schedule``: how long transfers take under schedulers and source rules, and how short they could be."""

import itertools
import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.report import schedule as figures
from ecjax.status import Status
from ecjax.studies import schedule_summary
from ecjax.studies.options_schedule import ScheduleOptions
from ecjax.studies.schedule_inputs import Case, read_cases
from ecjax.studies.schedule_options import checked
from ecjax.studies.schedule_run import JOB, Batch, Given, Item, Point, Wanted
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id


def schedule_study(options: ScheduleOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    cases = [_with_clients(case, options.client_bytes_per_s) for case in read_cases(options)]
    batches = [(case, seed) for case in cases for seed in _seeds(case, options)]
    grid = [(case, seed, _items(case, seed, options)) for case, seed in batches]
    names = [name for *_, items in grid for name in items]
    for words in dict.fromkeys(case.description for case in cases):
        log.info("%s", words)
    with ResultStore(options.out, {"coflow_id": cases[0].coflow_ids.type}, options.write) as store:
        done = store.finished(names) if options.resume else set()
        if done:
            log.info("%d of %d replays are finished in %s", len(done), len(names), options.out)
        left = [(case, seed, _without(items, done)) for case, seed, items in grid]
        with progress("replaying transfers", sum(len(items) for *_, items in left)) as advance:
            _run([batch for batch in left if batch[2]], options, store, advance)
    runs = read_results(options.out, "runs").set_index("run_id").loc[names].reset_index()
    schedule_summary.show(runs, console, options.out)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def _run(
    batches: Iterable[tuple[Case, int | None, dict[str, Item]]],
    options: ScheduleOptions,
    store: ResultStore,
    advance: Any,
) -> None:
    """Replay batches on all cores and commit them in their order, each once all of it is done."""
    cores = os.cpu_count() or 1
    wanted = Wanted(options.widths, options.lower_bound)
    waiting: deque[Batch] = deque()
    pool = ThreadPoolExecutor(cores)  # the replays let go of the interpreter
    try:
        for case, seed, items in batches:
            number = options.seed if seed is None else seed
            about = {"input": case.description, "widths": options.widths}
            about |= {"generate": vars(options.generate)} if case.drawn else {}
            given = Given(case.workload(number), case.fabric, case.coflow_ids, case.input_id, about)
            waiting.append(Batch(pool, items, given, wanted, number, advance))
            if len(waiting) > cores:  # workloads that wait take memory
                store.commit(*waiting.popleft().rows())
        while waiting:
            store.commit(*waiting.popleft().rows())
    finally:
        pool.shutdown(cancel_futures=True)


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


def _without(items: dict[str, Item], done: set[str]) -> dict[str, Item]:
    return {name: item for name, item in items.items() if name not in done}
