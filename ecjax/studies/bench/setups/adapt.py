"""Replays of a proxy: one core under static and adaptive codes, and the whole sweep of TOFEC's Fig. 7."""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from ecjax.adapt import strategies
from ecjax.adapt.arrivals import constant, poisson
from ecjax.adapt.calibrated import calibrated
from ecjax.adapt.delays import BUILT_IN, DelayModel, mean_delay, tasks_of
from ecjax.adapt.proxy import RequestClass, Strategy
from ecjax.adapt.replay import replay
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.study import adapt_study
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import side_by_side
from ecjax.studies.bench.setups.adapt_simpy import SIMPY_REQUESTS, beside_simpy

THREADS = 16
READS = RequestClass("read_3MB", "read", 3e6, 1.0, 6, 2.0, False)
REQUESTS, QUICK_REQUESTS = 10**6, 10**4
STATIC_PER_S, ADAPTIVE_PER_S = 2e6, 1e6  # requests/s on one core: the targets
SWEEP_TARGET_S = 300.0
SWEEP_LOADS = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95]
_LOADS = {"(1,1)": 0.5, "(3,2)": 0.4, "(12,6)": 0.1}


def rows(settings: Settings) -> list[Row]:
    """Requests on one core under every law of delays; (3,2) and TOFEC beside SimPy on the same draws."""
    count = QUICK_REQUESTS if settings.quick else REQUESTS
    found = []
    for law, model in BUILT_IN.items():
        began = time.perf_counter()
        own = calibrated([READS], [model], THREADS)
        calibrating_s = time.perf_counter() - began
        given = _strategies(model) | {"calibrated": own}
        runs = {
            name: _timed(model, strategy, _LOADS.get(name, 0.5), count, settings.seed)
            for name, strategy in given.items()
        }
        for name, timing in side_by_side(runs, settings.repeats).items():
            per_s = STATIC_PER_S if name in _LOADS else ADAPTIVE_PER_S
            load = _LOADS.get(name, 0.5)
            found.append(
                Row(
                    variant=f"{name}, {law}",
                    size=f"{count:,} requests, {THREADS} threads, load {load:g}",
                    rows=count,
                    dtype="float64",
                    target_s=None if settings.quick else count / per_s,
                    note=f"{count / timing.min_s:,.0f} requests/s on one core",
                    **timing._asdict(),
                )
            )
        found.append(
            Row(
                variant=f"thresholds of calibrated, {law}",
                size=f"{THREADS} threads, k_max {READS.k_max}, r_max {READS.r_max:g}",
                median_s=calibrating_s,
                min_s=calibrating_s,
                repeats=1,
                dtype="float64",
                note="replays on all cores, compilation of the first law included",
            )
        )
    model = BUILT_IN["shifted_exp"]
    few = min(count, SIMPY_REQUESTS)
    for name in ("(3,2)", "tofec"):
        requests = poisson(constant(_rate(model, 0.4), np.ones(1)), few, settings.seed)
        found += beside_simpy(name, _strategies(model)[name], READS, model, requests, THREADS, settings)
    return found


def sweep(settings: Settings) -> list[Row]:
    """Eight loads, all 27 static codes, the strategies that adapt: 10^6 requests each, on all cores, with tables."""
    requests = QUICK_REQUESTS if settings.quick else REQUESTS
    loads = SWEEP_LOADS[:2] if settings.quick else SWEEP_LOADS
    with TemporaryDirectory() as out:
        options = AdaptOptions(
            codes="all", load=loads, requests=requests, seed=settings.seed, figures=[], out=out
        )
        began = time.perf_counter()
        adapt_study(options, Console(quiet=True))
        seconds = time.perf_counter() - began
        replays = len(list((Path(out) / "runs").glob("*.parquet")))
    return [
        Row(
            variant="sweep of Fig. 7",
            size=f"{len(loads)} loads, {requests:,} requests per replay, {replays} replays",
            median_s=seconds,
            min_s=seconds,
            repeats=1,
            rows=replays * requests,
            lanes=replays,
            dtype="float64",
            target_s=None if settings.quick else SWEEP_TARGET_S,
            note="compilation, capacities and tables are part of it",
        )
    ]


def _strategies(model: DelayModel) -> dict[str, Strategy]:
    classes, models = [READS], [model]
    return {
        "(1,1)": strategies.static([(1, 1)]),
        "(3,2)": strategies.static([(3, 2)]),
        "(12,6)": strategies.static([(12, 6)]),
        "tofec": strategies.tofec(classes, models, THREADS),
        "greedy": strategies.greedy(classes),
    }


def _rate(model: DelayModel, load: float) -> float:
    return load * THREADS / mean_delay(model, READS.bytes)


def _timed(model: DelayModel, strategy: Strategy, load: float, count: int, seed: int) -> Callable[[], float]:
    requests = poisson(constant(_rate(model, load), np.ones(1)), count, seed)
    tasks = tasks_of([READS], [model])

    def run() -> float:
        began = time.perf_counter()
        replay(*requests, tasks, strategy, THREADS, seed)
        return time.perf_counter() - began

    return run
