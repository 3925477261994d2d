"""``ecjax cache``: how fast reads are when edges keep chunks near, under policies that choose which."""

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from rich.console import Console

from ecjax.console import log
from ecjax.engine import Worker, open_engine
from ecjax.studies.cache import summary
from ecjax.studies.cache.figures import kinds as figures
from ecjax.studies.cache.inputs import Case, read_cases
from ecjax.studies.cache.network import between
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.rules import checked
from ecjax.studies.cache.run import ALIKE, JOB, Given, Item, choices, parameters, replay_batch, run_row
from ecjax.studies.cache.sampling import sampling_study
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
from ecjax.tables.store import ResultStore, run_id


@dataclass(frozen=True)
class _Study:
    """What all replays share.

    Attributes:
        cases: points of the sweep.
        least_s: mean latency with the reference, by place of the case and seed; a worker keeps what it has found, for
            the other replays of the point.
    """

    cases: list[Case]
    least_s: dict[tuple[int, int], float | None] = field(default_factory=dict)


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
    study = _Study(cases)
    seeds = range(options.seed, options.seed + options.seeds)
    grid = [(study, _items(place, case, seed, options)) for seed in seeds for place, case in enumerate(cases)]
    names = [name for _, items in grid for name in items]
    for words in dict.fromkeys(case.source.description for case in cases):
        log.info("%s", words)
    with (
        open_engine(options.engine) as engine,
        ResultStore(options.out, {"file_id": cases[0].source.item_ids.type}, options.write) as store,
    ):
        solve, blank = partial(_solve, options, store.writes("cached")), partial(_blank, options)
        run_batches(grid, solve, blank, store, engine, options.resume, "replaying reads")
    runs = runs_of(options.out, names)
    summary.show(runs, console, options.out)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _solve(
    options: CacheOptions, write_cached: bool, study: _Study, items: dict[str, Item], worker: Worker
) -> Solved:
    first = next(iter(items.values()))  # all are of one case and seed
    case, key = study.cases[first.case], (first.case, first.seed)
    given = Given(case, first.seed, case.source.reads(first.seed), case.stored(first.seed), options)
    rows, datasets, least_s = replay_batch(items, given, study.least_s.get(key), write_cached, worker)
    study.least_s[key] = least_s
    return rows, datasets


def _blank(options: CacheOptions, study: _Study, name: str, item: Item) -> dict[str, Any]:
    return run_row(name, item, study.cases[item.case], options)


def _items(place: int, case: Case, seed: int, options: CacheOptions) -> dict[str, Item]:
    """The replays of one point and seed by run id."""
    shared = asdict(case.point) | {name: getattr(options, name) for name in ALIKE}
    found = {}
    for choice in choices(options):
        name = run_id(JOB, shared | parameters(choice, options), case.source.input_id, seed, "float64")
        found[name] = Item(place, seed, choice)
    return found
