"""``ecjax cache``: how fast reads are when edges keep chunks near, under policies that choose which."""

from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import pandas as pd
from rich.console import Console

from ecjax.caching.system import Policy
from ecjax.console import log
from ecjax.engine import Engine
from ecjax.options import checked, identifying
from ecjax.studies.cache.figures import kinds, sampling
from ecjax.studies.cache.inputs import Case, read_cases
from ecjax.studies.cache.network import between, check_together
from ecjax.studies.cache.options import HALF_LIFE_S, CacheOptions
from ecjax.studies.cache.recommend import recommend, recommend_sampling
from ecjax.studies.cache.run import Distances, Item, Settings, solve
from ecjax.studies.cache.sampling import sampling_work
from ecjax.studies.cache.summary import show, show_plans
from ecjax.studies.cache.tables import COOPERATIVE, MIXTURE, REFERENCE, TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

_SAMPLED = ("samplex", "samplex_static")
_PERIODIC = ("agar", "exact_periodic")
# options that matter to some policies only
_OF_POLICY = dict.fromkeys((*_PERIODIC, COOPERATIVE), ("period_s",)) | {"exact": ("replan_reads",)}


class Choice(NamedTuple):
    """A policy; of ``samplex`` with its number of partitions, of edges that serve each other with their distance."""

    policy: str
    samples: int | None = None
    between_s: Distances | None = None


def cache_study(options: CacheOptions, console: Console) -> int:
    """Run the replays, or the study of sampling; returns the exit code (0, or 1 where some failed).

    Raises:
        UserError: something the user gave is wrong.
    """
    options = checked(options)
    replays = options.partitions is None

    def present(runs: pd.DataFrame) -> Recommendation | None:
        (show if replays else show_plans)(runs, console, options.out)
        (kinds if replays else sampling).draw(options.out, runs, options.figures or [], console)
        return recommend(runs) if replays else recommend_sampling(runs)

    prepare = partial(_work if replays else sampling_work, options)
    # workers with GPUs are few: most replays are better off on all processors
    return run_study(TABLES, options, prepare, present, console, options.device == "jax")


def _work(options: CacheOptions, engine: Engine) -> Work:
    cases = read_cases(options)
    for between_s in _distances(options):
        apart_s = between(between_s, len(cases[0].edge_ids))  # a mistake there should end all of it
        if max(options.capacity) > 0:
            check_together(apart_s, cases[0].network)
    for description in dict.fromkeys(case.source.description for case in cases):
        log.info("%s", description)
    _warn_of_late_plans(options, cases[0])
    seeds = range(options.seed, options.seed + options.seeds)
    batches = [
        Batch(cases, _items(place, case, seed, options)) for seed in seeds for place, case in enumerate(cases)
    ]
    return Work(
        [name for batch in batches for name in batch.items],
        unfinished(batches),
        partial(solve, Settings(uuid4().hex, options.warm_up, options.device)),
        {"file_id": cases[0].source.item_ids.type},
        "replaying reads",
    )


def _warn_of_late_plans(options: CacheOptions, case: Case) -> None:
    """Say so where what plans from time to time has not done it yet when reads begin to count."""
    late = [name for name in _PERIODIC if name in options.policy] + ["neighbours"] * bool(options.neighbours)
    if options.trace is None:
        span_s = options.reads / options.rate_per_s
    else:
        times = case.source.reads(options.seed).time_s
        span_s = float(times[-1] - times[0])
    if late and options.warm_up * span_s < options.period_s:
        begin, end, period = map(time_text, (options.warm_up * span_s, span_s, options.period_s))
        text = "%s: nothing is kept before period_s, %s, but reads count from %s on and end at %s; mend: %s"
        log.warning(text, " and ".join(late), period, begin, end, "a smaller period_s, or more reads")


def _choices(options: CacheOptions) -> list[Choice]:
    """What the options ``policy``, ``samples`` and ``neighbours`` name."""
    choices = []
    for name in options.policy:
        choices += [Choice(name, count) for count in options.samples] if name in _SAMPLED else [Choice(name)]
    return choices + [Choice(COOPERATIVE, None, between_s) for between_s in _distances(options)]


def _distances(options: CacheOptions) -> list[Distances]:
    """How far edges are from each other that serve each other, one after another; a matrix is one."""
    matrix = [row for row in options.neighbours or [] if isinstance(row, list)]
    return [matrix] if matrix else [each for each in options.neighbours or [] if isinstance(each, float)]


def _items(place: int, case: Case, seed: int, options: CacheOptions) -> dict[str, Item]:
    """The replays of one point and seed by run id."""
    reference = _run(case, seed, options, Choice(REFERENCE)).run_id
    items = {}
    for choice in _choices(options):
        run = _run(case, seed, options, choice)
        policy = Policy(
            choice.policy,
            case.point.capacity,
            _half_life_s(case, choice),
            options.memory,
            choice.samples or 1,
            options.period_s,
            options.replan_reads,
            seed,
        )
        items[run.run_id] = Item(run, place, policy, choice.between_s, reference)
    return items


def _half_life_s(case: Case, choice: Choice) -> float | None:
    """Of the counters of a policy; None: it has none."""
    mixture = choice.policy == MIXTURE and case.point.half_life_s is None
    return None if mixture else case.point.half_life_s or HALF_LIFE_S


def _run(case: Case, seed: int, options: CacheOptions, choice: Choice) -> Run:
    """The identity of a replay."""
    point = asdict(case.point) | {"half_life_s": _half_life_s(case, choice)}
    columns: dict[str, Any] = {"policy": choice.policy, "samples": choice.samples}
    parameters = point | identifying(options) | columns
    parameters |= {name: getattr(options, name) for name in _OF_POLICY.get(choice.policy, ())}
    columns |= point | case.source.columns
    if choice.between_s is not None:
        parameters["neighbours"] = choice.between_s
        columns["neighbour_s"] = choice.between_s if isinstance(choice.between_s, float) else None
    remarks = {"input": case.source.description}
    return Run(TABLES.job, parameters, case.source.input_id, seed, columns, remarks)
