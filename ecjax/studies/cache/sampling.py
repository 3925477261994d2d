"""``ecjax cache partitions=[...]``: how near sampled partitions of a cache come to the best of all of them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ecjax.caching.knapsack import exact
from ecjax.caching.sampling import SCHEMES
from ecjax.caching.sampling_study import SamplingStudy
from ecjax.caching.valuation import valuation
from ecjax.engine import Engine, Worker
from ecjax.errors import UserError
from ecjax.intervals import half_width
from ecjax.options import identifying, shown
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.cache.inputs import Case, laws_of, read_cases
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.tables import ALL, BEST, TABLES
from ecjax.studies.spine.batches import Batch, Solved
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, unfinished
from ecjax.studies.spine.unused import say_unused

_MOST_ROWS = 200_000  # of the dataset partitions, per setting; of more, as many at equal distances
_OF_REPLAYS = (
    *("policy", "samples", "period_s", "replan_reads", "half_life_s", "memory", "neighbours"),
    *("buckets", "jitter", "edge_s", "decode_s", "outages", "fail", "warm_up"),
)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Item:
    """A way to find a plan of one cache.

    Attributes:
        run: its identity.
        case: place among the cases of the study.
        seed: of the places of chunks, and of random choices.
        scheme: of ``SCHEMES``, or ALL or BEST.
        samples: partitions that it looks at; None of ALL and BEST.
    """

    run: Run
    case: int
    seed: int
    scheme: str
    samples: int | None


class Cache(NamedTuple):
    """One cache to plan."""

    rates: np.ndarray  # (M,) reads, in any unit
    latency_s: np.ndarray  # (M, K)


def sampling_work(options: CacheOptions, engine: Engine) -> Work:
    """Plans of the cache of the first edge by all partitions and by sampled ones.

    Args:
        options: checked, with partitions.
        engine: where it runs.

    Raises:
        UserError: something the user gave is wrong.
    """
    _say_unused(options)
    cases = read_cases(
        replace(options, fail=[None], half_life_s=options.half_life_s and options.half_life_s[:1])
    )
    seeds = range(options.seed, options.seed + options.seeds)
    batches = [
        Batch(cases, _items(place, case, seed, options)) for seed in seeds for place, case in enumerate(cases)
    ]
    return Work(
        [name for batch in batches for name in batch.items],
        unfinished(batches),
        partial(solve, options.rounds),
        {"file_id": cases[0].source.item_ids.type},
        "planning by partitions",
        at_once=1,  # what is timed is alone on its core
        divisible=False,  # going through all partitions, which every plan is compared with, is most of the work
    )


def _say_unused(options: CacheOptions) -> None:
    """Say which options are of replays only, or of reads, whose popularity is known where no ranks drift."""
    names = [*_OF_REPLAYS]
    if options.trace is not None:
        names += ["rate_scale"]
    elif not any(law.moved for law in laws_of(options)):
        names += ["reads", "rate_per_s", "edges"]
    say_unused(options, names, f"partitions={shown(options.partitions)}")


def _items(place: int, case: Case, seed: int, options: CacheOptions) -> dict[str, Item]:
    """The plans of one cache by run id."""
    point, remarks = asdict(case.point), {"input": case.source.description}
    plans: list[tuple[str, int | None]] = [(ALL, None), (BEST, None)]
    plans += [(scheme, count) for scheme in SCHEMES for count in options.partitions or []]
    items = {}
    for scheme, samples in plans:
        parameters = point | identifying(options) | {"partitions": {"method": scheme, "samples": samples}}
        columns = point | {"scheme": scheme, "samples": samples}
        run = Run(TABLES.job, parameters, case.source.input_id, seed, columns, remarks)
        items[run.run_id] = Item(run, place, seed, scheme, samples)
    return items


def solve(rounds: int, cases: list[Case], items: dict[str, Item], worker: Worker) -> Solved:
    """Rows of ``runs`` and the dataset ``partitions`` of plans of one cache.

    Args:
        rounds: repetitions of every random choice.
        cases: all points of the study.
        items: plans, by run id; all of one case and seed.
        worker: where they are made.

    Raises:
        UserError: there are too many partitions to go through.
    """
    first = next(iter(items.values()))
    case, seed = cases[first.case], first.seed
    cache = _cache(case, seed)
    study = SamplingStudy(cache.rates, cache.latency_s, case.point.capacity)
    every, seconds = _timed(study.all_latencies)
    best = float(every.min())
    rows, tables = [], []
    for name, item in items.items():
        if item.scheme == ALL:
            values: dict[str, Any] = {"mean_s": best, "solve_s": seconds}
            tables.append(_sequence(name, every))
        elif item.samples is None:
            mean, took = _timed(partial(_exact, cache, case.point.capacity))
            values = {"mean_s": mean, "solve_s": took}
        else:
            values = _sampled(study, item.scheme, item.samples, seed, rounds)
        values |= {"status": str(Status.OK), "above_optimum": _above(values["mean_s"], best)}
        rows.append(item.run.row() | values)
        worker.advance(1)
    return rows, {"partitions": tables}


def _cache(case: Case, seed: int) -> Cache:
    """The cache of the first edge: popularity by the law, or as counted in its reads.

    Raises:
        UserError: it has none.
    """
    rates = case.source.popularity
    if rates is None:
        reads = case.source.reads(seed)
        rates = np.bincount(reads.item[reads.edge == 0], minlength=case.point.items).astype(float)
        if not rates.any():
            raise UserError("partitions: found no reads at the first edge; allowed: some")
    node_of = case.stored(seed).node_of[:, : case.point.k]
    return Cache(rates, case.network.latency_s[0][node_of].min(axis=2))


def _above(mean_s: float, best_s: float) -> float | None:
    """What a mean is above the best, relative; None where the cache can keep everything and the best is 0."""
    if mean_s == best_s:
        return 0.0
    return mean_s / best_s - 1 if best_s > 0.0 else None


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    """What a call returns, and the seconds that it took, compilation apart."""
    with Stopwatch() as stopwatch:
        result = call()
    return result, stopwatch.own_s


def _exact(cache: Cache, capacity: int) -> float:
    """Mean latency of a read with the exact plan, s."""
    tau = valuation(cache.rates, cache.latency_s)
    chunks = exact(tau, capacity)
    saved = np.take_along_axis(tau, chunks[:, None], axis=1).sum()
    return float((tau[:, -1].sum() - saved) / cache.rates.sum())


def _sampled(study: SamplingStudy, scheme: str, samples: int, seed: int, rounds: int) -> dict[str, Any]:
    """A scheme with random choices, again and again."""
    seeds = range(seed * rounds, (seed + 1) * rounds)
    means, seconds = _timed(lambda: study.sampled_latencies(scheme, samples, seeds))
    row = {"mean_s": float(means.mean()), "replications": rounds, "solve_s": seconds / rounds}
    if rounds > 1:
        row |= {"std_s": float(means.std(ddof=1)), "ci_s": half_width(means)}
    return row


def _sequence(name: str, every: np.ndarray) -> pa.Table:
    """Rows of ``partitions``: mean latency by place in the sequence."""
    count = min(len(every), _MOST_ROWS)
    places = np.linspace(0, len(every) - 1, count).round().astype(np.int64)
    place = places / max(len(every) - 1, 1)
    return pa.table({"run_id": [name] * count, "place": place, "mean_s": every[places]})
