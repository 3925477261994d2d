"""``ecjax adapt``: how fast a proxy answers under coding strategies, and how much it can serve."""

from functools import partial

import pandas as pd
from rich.console import Console

from ecjax.console import log
from ecjax.display import without_secrets
from ecjax.engine import Engine
from ecjax.options import checked, identifying
from ecjax.studies.adapt.figures.kinds import draw
from ecjax.studies.adapt.inputs import Case, read_cases
from ecjax.studies.adapt.options import TOFEC, AdaptOptions
from ecjax.studies.adapt.prepare import prepared
from ecjax.studies.adapt.recommend import recommend
from ecjax.studies.adapt.run import Item, Settings, common_code, solve
from ecjax.studies.adapt.strategies import choices
from ecjax.studies.adapt.summary import show
from ecjax.studies.adapt.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.recommendation import Recommendation


def adapt_study(options: AdaptOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    _say_unused(options)

    def present(runs: pd.DataFrame) -> Recommendation | None:
        show(runs, console, options.out)
        draw(options.out, runs, options.figures, console)
        return recommend(runs)

    return run_study(TABLES, options, partial(_work, options), present, console)


def _say_unused(options: AdaptOptions) -> None:
    """Options of generated arrivals, of one class of requests and of a strategy that are not replayed."""
    if options.trace is not None:
        trace = f"trace={without_secrets(options.trace)}"
        say_unused(options, ["load", "requests"], trace)
        if options.classes is None:
            say_unused(options, ["bytes"], trace)
    elif options.steps is not None:
        say_unused(options, ["load", "requests"], "steps")
    elif options.rate is not None:
        say_unused(options, ["load"], "rate")
    if options.classes is not None:
        say_unused(options, ["bytes"], "classes")
    if TOFEC not in options.strategy:
        say_unused(options, ["memory"], f"strategy={','.join(options.strategy)}")


def _work(options: AdaptOptions, engine: Engine) -> Work:
    cases = read_cases(options)
    seeds = range(options.seed, options.seed + options.seeds)
    batches = [
        Batch(cases, _items(place, cases, seed, options)) for place in range(len(cases)) for seed in seeds
    ]
    for description in dict.fromkeys(case.proxy.description for case in cases):
        log.info("%s", description)
    settings = Settings(options.memory, options.capacity, options.storage_dollars_per_byte)

    def ready(finished: set[str]) -> list[Batch]:
        # of what is finished nothing is prepared
        return prepared(unfinished(batches)(finished), settings, engine)

    return Work(
        [name for batch in batches for name in batch.items],
        ready,
        partial(solve, settings),
        {},
        "replaying requests",
    )


def _items(place: int, cases: list[Case], seed: int, options: AdaptOptions) -> dict[str, Item]:
    """The replays of one case and seed by run id."""
    proxy, point, timeline_s = cases[place]
    remarks = {
        "input": proxy.description,
        "writes": options.writes,
        "classes": [each._asdict() for each in proxy.classes],
    }
    items = {}
    for choice in choices(options.strategy, options.codes, proxy.classes):
        parameters = point.names | identifying(options) | {"timeline_s": timeline_s} | choice._asdict()
        parameters |= {"memory": options.memory if choice.strategy == TOFEC else None}
        columns = {
            "strategy": choice.strategy,
            **common_code(choice.codes),
            "delays": proxy.delays,
            "arrivals": point.kind,
            "rate_per_s": point.rate_per_s,
            "load": point.load,
            "rate_scale": point.rate_scale,
        }
        run = Run(TABLES.job, parameters, proxy.input_id, seed, columns, remarks)
        items[run.run_id] = Item(run, place, choice)
    return items
