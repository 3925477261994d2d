"""Replays of coflows: Table I of the D-Target paper under every scheduler, and an hour of shuffles on 150 ports."""

import time
from collections.abc import Callable

import numpy as np

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import SCHEDULERS, replay
from ecjax.coflow.workload import Fabric, Workload, given_sources
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import peak_rss_bytes, side_by_side
from ecjax.studies.schedule.inputs import read_cases
from ecjax.studies.schedule.options import ScheduleOptions

NINE = ("dtarget", "varys", "sincronia", "aalo", "baraat", "pfabric", "fair", "fifo", "equal_share")
REPLAYS, REPLAYS_TARGET_S = 100, 30.0
TRACE_TARGETS_S = {"fair": 6.0, "varys": 20.0}
TRACE_SCHEDULERS = ("fair", "varys", "local_search", "pfabric", "equal_share")
TRACE_TARGET_BYTES = 10**9
PORT_BYTES_PER_S = 125e6


def rows(settings: Settings) -> list[Row]:
    """Table I under every scheduler with smallest-load-first; the nine of the target together."""
    count = 2 if settings.quick else REPLAYS
    fabric = Fabric(np.full(60, 1e9), np.full(60, 1e9))
    workloads = [generate(ReadSettings(), settings.seed + i) for i in range(count)]

    def all_under(scheduler: str) -> Callable[[], float]:
        def run() -> float:
            began = time.perf_counter()
            for seed, workload in enumerate(workloads):
                replay(workload, fabric, scheduler, "smallest_load", seed)
            return time.perf_counter() - began

        return run

    first = time.perf_counter()
    for scheduler in SCHEDULERS:
        replay(workloads[0], fabric, scheduler, "smallest_load")
    compile_s = time.perf_counter() - first
    times = side_by_side({name: all_under(name) for name in SCHEDULERS}, settings.repeats)
    size = f"{count} workloads of 512 reads, (8, 4), 60 servers"
    found = [
        Row(variant=name, size=size, rows=512 * count, lanes=count, dtype="float64", **timing._asdict())
        for name, timing in times.items()
    ]
    together = Row(
        variant="nine schedulers together",
        size=size,
        median_s=sum(times[name].median_s for name in NINE),
        min_s=sum(times[name].min_s for name in NINE),
        repeats=settings.repeats,
        rows=512 * count * len(NINE),
        lanes=count * len(NINE),
        dtype="float64",
        compile_s=compile_s,
        target_s=None if settings.quick else REPLAYS_TARGET_S,
    )
    return [together, *found]


def trace(settings: Settings) -> list[Row]:
    """Shuffles as in the Facebook trace, or ``trace=`` itself, with the bound that tells what could be gained."""
    workload, fabric, name = _shuffles(settings)
    judged = settings.trace is not None and not settings.quick
    began = time.perf_counter()
    bound = lower_bound(workload, fabric).mean_s
    note = f"bound in {time.perf_counter() - began:.1f} s with compilation"
    found = []
    for scheduler in TRACE_SCHEDULERS:
        began = time.perf_counter()
        _compile(scheduler)
        compile_s = time.perf_counter() - began
        taken, mean = [], 0.0
        for _ in range(settings.repeats):
            began = time.perf_counter()
            mean = float(replay(workload, fabric, scheduler).completion_s.mean())
            taken.append(time.perf_counter() - began)
        found.append(
            Row(
                variant=scheduler,
                size=f"{name}: {len(workload.arrival_s)} coflows, {len(workload.bytes):,} flows",
                median_s=float(np.median(taken)),
                min_s=min(taken),
                repeats=settings.repeats,
                rows=len(workload.bytes),
                nodes=len(fabric.send),
                dtype="float64",
                compile_s=compile_s,
                objective=mean,
                lower_bound=bound,
                gap=mean / bound - 1,
                peak_rss_bytes=peak_rss_bytes(),
                target_s=TRACE_TARGETS_S.get(scheduler) if judged else None,
                target_bytes=TRACE_TARGET_BYTES if judged else None,
                note=note,
            )
        )
    return found


def _compile(scheduler: str) -> None:
    small = generate(ReadSettings(requests=2, n=2, k=1), 0)
    replay(small, Fabric(np.ones(60), np.ones(60)), scheduler, "random")


def _shuffles(settings: Settings) -> tuple[Workload, Fabric, str]:
    if settings.trace is not None:
        (case,) = read_cases(ScheduleOptions(trace=settings.trace, seeds=1))
        return case.workload(0), case.fabric, settings.trace
    ports, coflows = (20, 30) if settings.quick else (150, 526)
    random = np.random.default_rng(settings.seed)
    arrival = np.sort(random.uniform(0, 3600 * coflows / 526, coflows))
    sides = np.minimum(np.exp(random.normal(1.5, 1.7, (coflows, 2))).astype(int) + 1, ports)
    parts = [
        (
            np.tile(random.permutation(ports)[:mappers], reducers),
            np.repeat(to, mappers),
            np.repeat(size, mappers) / mappers,
        )
        for mappers, reducers in sides
        for to, size in [(random.permutation(ports)[:reducers], np.exp(random.normal(18, 2, reducers)))]
    ]
    source, target, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    first = np.concatenate([[0], np.cumsum(sides.prod(axis=1))])
    fabric = Fabric(np.full(ports, PORT_BYTES_PER_S), np.full(ports, PORT_BYTES_PER_S))
    return given_sources(arrival, first, source, target, size), fabric, "generated shuffles"
