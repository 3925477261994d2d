"""Replays of coflows: Table I of the D-Target paper under every scheduler, and an hour of shuffles on 150 ports."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import SCHEDULERS, replay
from ecjax.coflow.workload import Fabric, Workload, given_sources
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, clocked
from ecjax.studies.schedule.inputs import read_cases
from ecjax.studies.schedule.options import ScheduleOptions

NINE = ("dtarget", "varys", "sincronia", "aalo", "baraat", "pfabric", "fair", "fifo", "equal_share")
TRACE_SCHEDULERS = ("fair", "varys", "local_search", "pfabric", "equal_share")
PORT_BYTES_PER_S = 125e6


def table_one(runner: Runner, workloads: int) -> Iterator[Row]:
    """Table I under every scheduler with smallest-load-first; nine of them together."""
    fabric = Fabric(np.full(60, 1e9), np.full(60, 1e9))
    generated = [generate(ReadSettings(), runner.seed + i) for i in range(workloads)]

    def replay_all(scheduler: str) -> None:
        for seed, workload in enumerate(generated):
            replay(workload, fabric, scheduler, "smallest_load", seed)

    def compile_all() -> None:
        for scheduler in SCHEDULERS:
            replay(generated[0], fabric, scheduler, "smallest_load")

    compile_s = clocked(compile_all).seconds
    outcomes = runner.race({name: partial(replay_all, name) for name in SCHEDULERS})
    size = f"{workloads} workloads of 512 reads, (8, 4), 60 servers"
    yield Row(
        "nine schedulers together",
        size,
        median_s=sum(outcomes[name].timing.median_s for name in NINE),
        min_s=sum(outcomes[name].timing.min_s for name in NINE),
        repeats=runner.repeats,
        rows=512 * workloads * len(NINE),
        lanes=workloads * len(NINE),
        dtype="float64",
        compile_s=compile_s,
    )
    for name, outcome in outcomes.items():
        yield Row(name, size, *outcome.timing, rows=512 * workloads, lanes=workloads, dtype="float64")


def shuffles(
    runner: Runner, ports: int, coflows: int, target_s: Mapping[str, float], target_bytes: int
) -> Iterator[Row]:
    """Shuffles as in the Facebook trace, or ``trace=`` itself, with the bound that tells what could be gained.

    Args:
        runner: times the schedulers, and has the trace.
        ports: of the generated shuffles.
        coflows: of them.
        target_s: by scheduler, for a trace.
        target_bytes: of peak memory, for a trace.
    """
    workload, fabric, name = _trace(runner.trace) if runner.trace else _generated(ports, coflows, runner.seed)
    bound_s, seconds = clocked(lambda: lower_bound(workload, fabric).mean_s)
    for scheduler in TRACE_SCHEDULERS:
        compile_s = clocked(partial(_compile, scheduler)).seconds
        outcome = runner.time(partial(replay, workload, fabric, scheduler))
        yield Row(
            scheduler,
            f"{name}: {len(workload.arrival_s)} coflows, {len(workload.bytes):,} flows",
            *outcome.timing,
            rows=len(workload.bytes),
            node_count=len(fabric.send),
            dtype="float64",
            compile_s=compile_s,
            objective=float(outcome.value.completion_s.mean()),
            lower_bound=bound_s,
            target_s=target_s.get(scheduler) if runner.trace else None,
            target_bytes=target_bytes if runner.trace else None,
            note=f"bound in {seconds:.1f} s with compilation",
        )


def _compile(scheduler: str) -> None:
    small = generate(ReadSettings(requests=2, n=2, k=1), 0)
    replay(small, Fabric(np.ones(60), np.ones(60)), scheduler, "random")


def _trace(path: str) -> tuple[Workload, Fabric, str]:
    (case,) = read_cases(ScheduleOptions(trace=path, seeds=1))
    return case.workload(0), case.fabric, path


def _generated(ports: int, coflows: int, seed: int) -> tuple[Workload, Fabric, str]:
    random = np.random.default_rng(seed)
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
