"""``ecjax adapt``: how fast a proxy answers under coding strategies, and how much it can serve."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from rich.console import Console

from ecjax.console import log
from ecjax.engine import Worker, open_engine
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.adapt import summary
from ecjax.studies.adapt.figures import kinds as figures
from ecjax.studies.adapt.inputs import Case, Point, read_cases
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.prepare import prepared
from ecjax.studies.adapt.proxy import Proxy
from ecjax.studies.adapt.rules import checked
from ecjax.studies.adapt.run import JOB, Given, Item, replay_batch, run_row
from ecjax.studies.adapt.strategies import TOFEC, Choice, choices
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
from ecjax.tables.store import ResultStore, run_id

_INTERVALS = 120  # of the timeline of steps


def adapt_study(options: AdaptOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    proxies = [Proxy(case, options.threads) for case in read_cases(options)]
    batches = [
        items for place in range(len(proxies)) for items in _batches(place, proxies[place].case, options)
    ]
    names = [name for items in batches for name in items]
    for words in dict.fromkeys(proxy.case.description for proxy in proxies):
        log.info("%s", words)
    with open_engine(options.engine) as engine, ResultStore(options.out, {}, options.write) as store:
        done = store.finished(names) if options.resume else set()
        left = {name: item for items in batches for name, item in items.items() if name not in done}
        wanted = [(item.proxy, item.choice) for item in left.values()]
        proxies, failed = prepared(proxies, wanted, options, engine)
        blank = partial(_blank, options)
        for name, item in left.items():
            if (item.proxy, item.choice) in failed:
                told = {"status": str(Status.FAILED), "error": failed[item.proxy, item.choice]}
                store.commit([blank(proxies, name, item) | told], {})
        grid = [(proxies, _possible(items, failed)) for items in batches]
        solve = partial(_solve, options)
        run_batches(grid, solve, blank, store, engine, options.resume, "replaying requests")
    runs = runs_of(options.out, names)
    summary.show(runs, console, options.out)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _possible(items: dict[str, Item], failed: dict[tuple[int, Choice], str]) -> dict[str, Item]:
    """Those of a batch whose strategies are prepared."""
    return {name: item for name, item in items.items() if (item.proxy, item.choice) not in failed}


def _solve(options: AdaptOptions, proxies: list[Proxy], items: dict[str, Item], worker: Worker) -> Solved:
    first = next(iter(items.values()))  # all are of one point and seed
    proxy, seed = proxies[first.proxy], first.seed
    point = proxy.case.points[first.point]
    requests = point.requests(seed)
    if not len(requests.arrival_s):
        raise UserError(
            f"{point.kind}: found no request with seed={seed}, at {point.rate_per_s:g} requests/s; allowed: "
            "higher rates, or for longer"
        )
    given = Given(
        proxy,
        point,
        point.kind == "poisson" and options.rates is None,
        seed,
        requests,
        _interval(point, options),
        options.storage_dollars_per_byte,
        _about(options, proxy.case),
    )
    return replay_batch(items, given, worker)


def _blank(options: AdaptOptions, proxies: list[Proxy], name: str, item: Item) -> dict[str, Any]:
    case = proxies[item.proxy].case
    return run_row(name, item, case, _about(options, case))


def _about(options: AdaptOptions, case: Case) -> dict[str, Any]:
    """What else was set, for the column params."""
    about = {"input": case.description, "threads": options.threads, "writes": options.writes}
    return about | {"memory": options.memory, "classes": [given._asdict() for given in case.classes]}


def _interval(point: Point, options: AdaptOptions) -> float | None:
    """Length of the intervals of the timeline, s; None: there is none."""
    if options.timeline_s is None and point.end_s is not None:
        return point.end_s / _INTERVALS
    return options.timeline_s


def _batches(place: int, case: Case, options: AdaptOptions) -> Iterator[dict[str, Item]]:
    """The replays of every point and seed of a case, by run id."""
    wanted = choices(options.strategy, options.codes, case.classes)
    for number, point in enumerate(case.points):
        for seed in range(options.seed, options.seed + options.seeds):
            items = {}
            for choice in wanted:
                parameters = point.names | {"strategy": choice.strategy, "codes": choice.codes}
                parameters |= {"threads": options.threads, "capacity": options.capacity}
                parameters |= {"timeline_s": _interval(point, options)}
                parameters |= {"storage_dollars_per_byte": options.storage_dollars_per_byte}
                parameters |= {"memory": options.memory if choice.strategy == TOFEC else None}
                name = run_id(JOB, parameters, case.input_id, seed, "float64")
                items[name] = Item(place, number, seed, choice)
            yield items
