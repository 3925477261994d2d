"""``ecjax cache partitions=[...]``: how near sampled partitions of a cache come to the best of all of them."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.console import Console

import ecjax
from ecjax.cache.knapsack import exact
from ecjax.cache.sampling import SCHEMES
from ecjax.cache.sampling_study import SamplingStudy
from ecjax.cache.valuation import valuation
from ecjax.engine import Worker, open_engine
from ecjax.status import Status
from ecjax.studies.cache.figures import sampling as figures
from ecjax.studies.cache.inputs import Case, read_cases
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of, show_errors
from ecjax.tables.store import ResultStore, run_id

JOB = "cache"
ALL, BEST = "optimal", "exact"  # every partition gone through; the same plan without partitions
_MOST_ROWS = 200_000  # of the dataset partitions, per setting; of more, as many at equal distances
_LEVEL = 1.96


class _Item(NamedTuple):
    """A way to find a plan of one cache."""

    case: int  # place among the cases of the study
    seed: int
    method: str
    samples: int | None


class _Cache(NamedTuple):
    """One cache to plan."""

    rates: np.ndarray  # (M,) reads, in any unit
    latency_s: np.ndarray  # (M, K)


def sampling_study(options: CacheOptions, console: Console) -> int:
    """Plan the cache of the first edge by all partitions and by sampled ones; returns the exit code.

    Args:
        options: checked, with partitions.
        console: where to print.

    Raises:
        UserError: something the user gave is wrong; there are too many partitions to go through.
    """
    assert options.partitions is not None
    cases = read_cases(replace(options, fail=[None], half_life_s=options.half_life_s[:1]))
    methods: list[tuple[str, int | None]] = [(ALL, None), (BEST, None)]
    methods += [(scheme, count) for scheme in SCHEMES for count in options.partitions]
    grid = [
        (cases, _items(place, cases[place], seed, methods, options))
        for seed in range(options.seed, options.seed + options.seeds)
        for place in range(len(cases))
    ]
    names = [name for _, items in grid for name in items]
    with (
        open_engine(options.engine) as engine,
        ResultStore(options.out, {"file_id": cases[0].source.item_ids.type}, options.write) as store,
    ):
        run_batches(
            grid,
            partial(_solve, options),
            partial(_blank, options),
            store,
            engine,
            options.resume,
            "planning by partitions",
            at_once=1,  # what is timed is alone on its core
            divisible=False,  # going through all partitions, which every plan is compared with, is most of the work
        )
    runs = runs_of(options.out, names)
    figures.show(runs, console, options.out)
    show_errors(runs, console)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _items(
    place: int, case: Case, seed: int, methods: list[tuple[str, int | None]], options: CacheOptions
) -> dict[str, _Item]:
    shared = asdict(case.point) | {"parity": options.parity, "buckets": options.buckets}
    shared |= {"rounds": options.rounds}
    found = {}
    for method, samples in methods:
        own = shared | {"partitions": {"method": method, "samples": samples}}
        name = run_id(JOB, own, case.source.input_id, seed, "float64")
        found[name] = _Item(place, seed, method, samples)
    return found


def _cache(case: Case, seed: int, options: CacheOptions) -> _Cache:
    """The cache of the first edge: popularity by the law, or as counted in the reads."""
    rates = case.source.popularity
    if rates is None:
        rates = np.bincount(case.source.reads(seed).item, minlength=case.point.items).astype(float)
    node_of = case.stored(seed).node_of[:, : case.point.k]
    return _Cache(rates, case.network.latency_s[0][node_of].min(axis=2))


def _solve(options: CacheOptions, cases: list[Case], items: dict[str, _Item], worker: Worker) -> Solved:
    first = next(iter(items.values()))  # all are of one case and seed
    case, seed = cases[first.case], first.seed
    cache = _cache(case, seed, options)
    study = SamplingStudy(cache.rates, cache.latency_s, case.point.capacity)
    every, seconds = _timed(study.all_latencies)
    best = float(every.min())
    rows, tables = [], []
    for name, item in items.items():
        row = _blank(options, cases, name, item)
        if item.method == ALL:
            row |= {"mean_s": best, "solve_s": seconds}
            tables.append(_sequence(name, every))
        elif item.method == BEST:
            found, took = _timed(lambda: _exact(cache, case.point.capacity))
            row |= {"mean_s": found, "solve_s": took}
        else:
            assert item.samples is not None
            row |= _sampled(study, item.method, item.samples, seed, options.rounds)
        rows.append(row | {"status": str(Status.OK), "above_optimum": row["mean_s"] / best - 1})
        worker.advance(1)
    return rows, {"partitions": iter(tables)}


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    found = call()
    return found, time.perf_counter() - began


def _exact(cache: _Cache, capacity: int) -> float:
    """Mean latency of a read with the exact plan, s."""
    tau = valuation(cache.rates, cache.latency_s)
    chunks = exact(tau, capacity)
    saved = np.take_along_axis(tau, chunks[:, None], axis=1).sum()
    return float((tau[:, -1].sum() - saved) / cache.rates.sum())


def _sampled(study: SamplingStudy, scheme: str, samples: int, seed: int, rounds: int) -> dict[str, Any]:
    """A scheme with random choices, again and again."""
    seeds = range(seed * rounds, (seed + 1) * rounds)
    found, seconds = _timed(lambda: study.sampled_latencies(scheme, samples, seeds))
    spread = float(found.std(ddof=1)) if rounds > 1 else math.nan
    row = {"mean_s": float(found.mean()), "replications": rounds, "solve_s": seconds / rounds}
    if math.isfinite(spread):
        row |= {"std_s": spread, "ci_s": _LEVEL * spread / math.sqrt(rounds)}
    return row


def _sequence(name: str, every: np.ndarray) -> pa.Table:
    """Rows of ``partitions``: mean latency by place in the sequence."""
    count = min(len(every), _MOST_ROWS)
    chosen = np.linspace(0, len(every) - 1, count).round().astype(np.int64)
    place = chosen / max(len(every) - 1, 1)
    return pa.table({"run_id": [name] * count, "place": place, "mean_s": every[chosen]})


def _blank(options: CacheOptions, cases: list[Case], name: str, item: _Item) -> dict[str, Any]:
    """What is known of a plan before it is found: a row of ``runs`` without status and results."""
    case = cases[item.case]
    about = {"input": case.source.description, "parity": options.parity, "buckets": options.buckets}
    return {
        "run_id": name,
        "job": JOB,
        "method": item.method,
        "samples": item.samples,
        **asdict(case.point),
        "input_id": case.source.input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": item.seed,
        "params": json.dumps(about, sort_keys=True),
    }
