"""Replays of a proxy: one core under static and adaptive codes, and the whole sweep of TOFEC's Fig. 7."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pyarrow.dataset import dataset
from rich.console import Console

from ecjax.adaptation import strategies
from ecjax.adaptation.arrivals import Requests, constant, poisson
from ecjax.adaptation.calibrated import calibrated
from ecjax.adaptation.delays import BUILT_IN, DelayModel, mean_delay, tasks_of
from ecjax.adaptation.proxy import RequestClass, Strategy
from ecjax.adaptation.replay import replay
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.study import adapt_study
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner

THREADS = 16
READS = RequestClass("read_3MB", "read", 3e6, 1.0, 6, 2.0, False)
LOAD, LOADS = 0.5, {"(3,2)": 0.4, "(12,6)": 0.1}


def strategies_under(runner: Runner, law: str, requests: int) -> Iterator[Row]:
    """Requests on one core under a law of delays, by strategies; and what the thresholds of one of them take."""
    model, classes = BUILT_IN[law], [READS]
    tasks = tasks_of(classes, [model])
    calibrating = runner.once().time(partial(calibrated, classes, [model], THREADS))
    runs = {}
    for name, strategy in (named_strategies(model) | {"calibrated": calibrating.value}).items():
        arrived = poisson_requests(model, LOADS.get(name, LOAD), requests, runner.seed)
        runs[name] = partial(replay, *arrived, tasks, strategy, THREADS, runner.seed)
    for name, outcome in runner.race(runs).items():
        size = f"{requests:,} requests, {THREADS} threads, load {LOADS.get(name, LOAD):g}"
        note = f"{requests / outcome.timing.min_s:,.0f} requests/s on one core"
        yield Row(f"{name}, {law}", size, *outcome.timing, rows=requests, dtype="float64", note=note)
    size = f"{THREADS} threads, k_max {READS.k_max}, r_max {READS.r_max:g}"
    note = "replays on all cores, compilation of the first law included"
    yield Row(f"thresholds of calibrated, {law}", size, *calibrating.timing, dtype="float64", note=note)


def sweep(runner: Runner, loads: tuple[float, ...], requests: int) -> Iterator[Row]:
    """Some loads, all 27 static codes, the strategies that adapt, on all cores, with tables."""
    with TemporaryDirectory() as out:
        options = AdaptOptions(
            codes="all", load=list(loads), requests=requests, seed=runner.seed, figures=[], out=out
        )
        outcome = runner.time(partial(adapt_study, options, Console(quiet=True)))
        replays = dataset(Path(out) / "runs").count_rows()
    size = f"{len(loads)} loads, {requests:,} requests per replay, {replays} replays"
    rows, note = replays * requests, "compilation, capacities and tables are part of it"
    yield Row("sweep of Fig. 7", size, *outcome.timing, rows=rows, lanes=replays, dtype="float64", note=note)


def named_strategies(model: DelayModel) -> dict[str, Strategy]:
    """Static codes, and those that adapt without a calibration."""
    classes, models = [READS], [model]
    return {
        "(1,1)": strategies.static([(1, 1)]),
        "(3,2)": strategies.static([(3, 2)]),
        "(12,6)": strategies.static([(12, 6)]),
        "tofec": strategies.tofec(classes, models, THREADS),
        "greedy": strategies.greedy(classes),
    }


def poisson_requests(model: DelayModel, load: float, count: int, seed: int) -> Requests:
    """Reads at a load of the threads, were every one a single task."""
    rate = load * THREADS / mean_delay(model, READS.bytes)
    return poisson(constant(rate, np.ones(1)), count, seed)
