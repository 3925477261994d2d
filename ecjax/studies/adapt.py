"""``ecjax adapt``: how fast a proxy answers under coding strategies, and how much it can serve."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.report import adapt as figures
from ecjax.studies import adapt_summary
from ecjax.studies.adapt_inputs import Case, read_cases
from ecjax.studies.adapt_options import checked
from ecjax.studies.adapt_points import Point
from ecjax.studies.adapt_proxy import Proxy
from ecjax.studies.adapt_run import JOB, Batch, Given
from ecjax.studies.adapt_strategies import TOFEC, Choice, choices
from ecjax.studies.batches import run_batches
from ecjax.studies.options_adapt import AdaptOptions
from ecjax.studies.outcome import exit_code, runs_of
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
    begin = partial(_begin, options)
    with ResultStore(options.out, {}, options.write) as store:
        run_batches([(work, work.items) for work in grid], begin, store, options.resume, "replaying requests")
    runs = runs_of(options.out, names)
    adapt_summary.show(runs, console, options.out)
    figures.draw(Path(options.out), runs, options.figures, console)
    return exit_code(runs)


def _begin(
    options: AdaptOptions,
    pool: Executor,
    work: _Work,
    items: dict[str, Choice],
    advance: Callable[[int], None],
) -> Batch:
    work.proxy.prepare(items.values())
    if options.capacity:
        work.proxy.search(pool, items.values())
    return Batch(pool, items, _given(work, options), advance)


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
