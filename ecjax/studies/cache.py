"""``ecjax cache``: how fast reads are when edges keep chunks near, under policies that choose which."""

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from ecjax.console import log, progress
from ecjax.report import cache as figures
from ecjax.status import Status
from ecjax.studies import cache_summary
from ecjax.studies.cache_inputs import Case, read_cases
from ecjax.studies.cache_network import between
from ecjax.studies.cache_options import checked
from ecjax.studies.cache_run import JOB, Batch, Choice, Given, choices, parameters
from ecjax.studies.cache_sampling import sampling_study
from ecjax.studies.options_cache import CacheOptions
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id

_ALIKE = ("parity", "buckets", "jitter", "edge_s", "decode_s", "warm_up")  # of all policies


class _Work(NamedTuple):
    """Replays that share their reads and their network."""

    case: Case
    seed: int
    items: dict[str, Choice]  # by run id


def cache_study(options: CacheOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    if options.partitions is not None:
        return sampling_study(options, console)
    cases = read_cases(options)
    for seconds in options.neighbours:
        between(seconds, len(cases[0].edge_ids))  # a mistake there should end all of it
    seeds = range(options.seed, options.seed + options.seeds)
    grid = [_Work(case, seed, _items(case, seed, options)) for seed in seeds for case in cases]
    names = [name for work in grid for name in work.items]
    for words in dict.fromkeys(case.source.description for case in cases):
        log.info("%s", words)
    with ResultStore(options.out, {"file_id": cases[0].source.item_ids.type}, options.write) as store:
        done = store.finished(names) if options.resume else set()
        if done:
            log.info("%d of %d replays are finished in %s", len(done), len(names), options.out)
        left = [work._replace(items=_without(work.items, done)) for work in grid]
        with progress("replaying reads", sum(len(work.items) for work in left)) as advance:
            _run([work for work in left if work.items], options, store, advance)
    runs = read_results(options.out, "runs").set_index("run_id").loc[names].reset_index()
    cache_summary.show(runs, console, options.out)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def _run(grid: Iterable[_Work], options: CacheOptions, store: ResultStore, advance: Any) -> None:
    """Replay on all cores and commit in order, each point and seed once all of it is done."""
    cores = os.cpu_count() or 1
    waiting: deque[Batch] = deque()
    pool = ThreadPoolExecutor(cores)  # the replays let go of the interpreter
    try:
        for work in grid:
            case = work.case
            about = {"input": case.source.description} | {name: getattr(options, name) for name in _ALIKE}
            about |= {name: getattr(options, name) for name in ("memory", "period_s")}
            about |= {"replan_reads": options.replan_reads}
            given = Given(
                case, work.seed, case.source.reads(work.seed), case.stored(work.seed), options, about
            )
            waiting.append(Batch(pool, work.items, given, store.writes("cached"), advance))
            if len(waiting) > cores:  # reads that wait take memory
                store.commit(*waiting.popleft().rows())
        while waiting:
            store.commit(*waiting.popleft().rows())
    finally:
        pool.shutdown(cancel_futures=True)


def _items(case: Case, seed: int, options: CacheOptions) -> dict[str, Choice]:
    """The replays of one point and seed by run id."""
    shared = asdict(case.point) | {name: getattr(options, name) for name in _ALIKE}
    return {
        run_id(JOB, shared | parameters(choice, options), case.source.input_id, seed, "float64"): choice
        for choice in choices(options)
    }


def _without(items: dict[str, Choice], done: set[str]) -> dict[str, Choice]:
    return {name: item for name, item in items.items() if name not in done}
