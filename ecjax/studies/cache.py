"""``ecjax cache``: how fast reads are when edges keep chunks near, under policies that choose which."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ecjax.console import log
from ecjax.report import cache as figures
from ecjax.studies import cache_summary
from ecjax.studies.batches import run_batches
from ecjax.studies.cache_inputs import Case, read_cases
from ecjax.studies.cache_network import between
from ecjax.studies.cache_options import checked
from ecjax.studies.cache_run import JOB, Batch, Choice, Given, choices, parameters
from ecjax.studies.cache_sampling import sampling_study
from ecjax.studies.options_cache import CacheOptions
from ecjax.studies.outcome import exit_code, runs_of
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
        begin = partial(_begin, options, store.writes("cached"))
        run_batches([(work, work.items) for work in grid], begin, store, options.resume, "replaying reads")
    runs = runs_of(options.out, names)
    cache_summary.show(runs, console, options.out)
    figures.draw(Path(options.out), runs, options.figures, console)
    return exit_code(runs)


def _begin(
    options: CacheOptions,
    write_cached: bool,
    pool: Executor,
    work: _Work,
    items: dict[str, Choice],
    advance: Callable[[int], None],
) -> Batch:
    case, seed = work.case, work.seed
    about = {"input": case.source.description} | {name: getattr(options, name) for name in _ALIKE}
    about |= {name: getattr(options, name) for name in ("memory", "period_s", "replan_reads")}
    given = Given(case, seed, case.source.reads(seed), case.stored(seed), options, about)
    return Batch(pool, items, given, write_cached, advance)


def _items(case: Case, seed: int, options: CacheOptions) -> dict[str, Choice]:
    """The replays of one point and seed by run id."""
    shared = asdict(case.point) | {name: getattr(options, name) for name in _ALIKE}
    return {
        run_id(JOB, shared | parameters(choice, options), case.source.input_id, seed, "float64"): choice
        for choice in choices(options)
    }
