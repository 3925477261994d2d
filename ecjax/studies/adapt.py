"""``ecjax adapt``: how fast a proxy answers under coding strategies, and how much it can serve."""

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.report import adapt as figures
from ecjax.status import Status
from ecjax.studies import adapt_summary
from ecjax.studies.adapt_inputs import Case, read_cases
from ecjax.studies.adapt_options import checked
from ecjax.studies.adapt_points import Point
from ecjax.studies.adapt_proxy import Proxy
from ecjax.studies.adapt_run import JOB, Batch, Given
from ecjax.studies.adapt_strategies import TOFEC, Choice, choices
from ecjax.studies.options_adapt import AdaptOptions
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id

_INTERVALS = 120  # of the timeline of steps


class _Work(NamedTuple):
    """Replays that share their requests."""

    proxy: Proxy
    point: Point
    seed: int
    items: dict[str, Choice]  # by run id


def adapt_study(options: AdaptOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    grid = [work for case in read_cases(options) for work in _works(case, options)]
    names = [name for work in grid for name in work.items]
    for words in dict.fromkeys(work.proxy.case.description for work in grid):
        log.info("%s", words)
    with ResultStore(options.out, {}, options.write) as store:
        done = store.finished(names) if options.resume else set()
        if done:
            log.info("%d of %d replays are finished in %s", len(done), len(names), options.out)
        left = [work._replace(items=_without(work.items, done)) for work in grid]
        with progress("replaying requests", sum(len(work.items) for work in left)) as advance:
            _run([work for work in left if work.items], options, store, advance)
    runs = read_results(options.out, "runs").set_index("run_id").loc[names].reset_index()
    adapt_summary.show(runs, console, options.out)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def _run(grid: Iterable[_Work], options: AdaptOptions, store: ResultStore, advance: Any) -> None:
    """Replay on all cores and commit in order, each point and seed once all of it is done."""
    cores = os.cpu_count() or 1
    waiting: deque[Batch] = deque()
    pool = ThreadPoolExecutor(cores)  # the replays let go of the interpreter
    try:
        for work in grid:
            work.proxy.prepare(work.items.values())
            if options.capacity:
                work.proxy.search(pool, work.items.values())
            waiting.append(Batch(pool, work.items, _given(work, options), advance))
            if len(waiting) > cores:  # requests that wait take memory
                store.commit(*waiting.popleft().rows())
        while waiting:
            store.commit(*waiting.popleft().rows())
    finally:
        pool.shutdown(cancel_futures=True)


def _given(work: _Work, options: AdaptOptions) -> Given:
    case, point = work.proxy.case, work.point
    requests = point.requests(work.seed)
    if not len(requests.arrival_s):
        raise UserError(
            f"{point.kind}: found no request with seed={work.seed}, at {point.rate_per_s:g} requests/s; allowed: "
            "higher rates, or for longer"
        )
    about = {"input": case.description, "threads": options.threads, "writes": options.writes}
    about |= {"memory": options.memory, "classes": [given._asdict() for given in case.classes]}
    return Given(
        work.proxy,
        point,
        point.kind == "poisson" and options.rates is None,
        work.seed,
        requests,
        _interval(point, options),
        options.storage_dollars_per_byte,
        about,
    )


def _interval(point: Point, options: AdaptOptions) -> float | None:
    """Length of the intervals of the timeline, s; None: there is none."""
    if options.timeline_s is None and point.end_s is not None:
        return point.end_s / _INTERVALS
    return options.timeline_s


def _works(case: Case, options: AdaptOptions) -> Iterable[_Work]:
    proxy = Proxy(case, options.threads, options.memory, options.seed)
    wanted = choices(options.strategy, options.codes, case.classes)
    for point in case.points:
        for seed in range(options.seed, options.seed + options.seeds):
            items = {}
            for choice in wanted:
                parameters = point.names | {"strategy": choice.strategy, "codes": choice.codes}
                parameters |= {"threads": options.threads, "capacity": options.capacity}
                parameters |= {"timeline_s": _interval(point, options)}
                parameters |= {"storage_dollars_per_byte": options.storage_dollars_per_byte}
                parameters |= {"memory": options.memory if choice.strategy == TOFEC else None}
                items[run_id(JOB, parameters, case.input_id, seed, "float64")] = choice
            yield _Work(proxy, point, seed, items)


def _without(items: dict[str, Choice], done: set[str]) -> dict[str, Choice]:
    return {name: item for name, item in items.items() if name not in done}
