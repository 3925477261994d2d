"""Replays of 12 nodes on one core: plans and policies, queues, memory that does not grow, and one parallel scan."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ecjax.simulation.run import Outcome, Policy, Queue
from ecjax.streams import arrivals
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Runner, clocked
from ecjax.studies.bench.setups.reference_system import CLASSES, NEED, NODES, reference_system, replay

LOAD = 0.7
PLACED = 8  # nodes of a file, where it is not on all
LANES = 8
SCAN, LOOP = "ecjax scan (JAX)", "ecjax replay, one core"


def replayed(
    runner: Runner,
    name: str,
    requests: int,
    law: str = "shifted exponential",
    n: int = NODES,
    load: float = LOAD,
    queue: str = "fcfs",
    policy: Mapping[str, Any] | None = None,
) -> Iterator[Row]:
    """One way to replay.

    Args:
        runner: times it.
        name: goes to ``size``.
        requests: how many.
        law: of the service times.
        n: nodes of a file.
        load: of the plan at the busiest node.
        queue: at the nodes; classes share them alike.
        policy: fields of ``Policy``.
    """
    reference = reference_system(law, n, load, runner.seed)
    policy_used = Policy(**(policy or {}))
    queues = Queue(queue) if queue == "fcfs" else Queue(queue, (1 / CLASSES,) * CLASSES)
    outcome = runner.time(partial(replay, reference, requests, runner.seed, policy_used, queues))
    result: Outcome = outcome.value
    utilisation = (result.tally.busy.sum(axis=0) / result.span).max()
    per_s = requests / outcome.timing.min_s
    size = f"{name}, {requests:,} reads, k = {NEED}, {NODES} nodes"
    note = (
        f"{NEED * per_s / 1e6:.1f} million chunk accesses/s, {per_s / 1e6:.2f} million reads/s on one core; "
        f"busiest node: utilisation {utilisation:.2f}"
    )
    yield Row(
        "ecjax replay", size, *outcome.timing, rows=requests, node_count=NODES, dtype="float64", note=note
    )


def memory(runner: Runner, short: int, long: int, growth: float) -> list[Row]:
    """A short replay and a long one, of so many chunk accesses, each in a fresh process: memory must not grow.

    The long one should take at most ``growth`` times the peak memory of the short one.
    """
    rows = []
    for accesses in (short, long):
        requests = accesses // NEED
        small, large = ({"requests": count, "seed": runner.seed} for count in (100, requests))
        outcome = runner.alone("replay:stream", small, large)
        rows.append(
            Row(
                "ecjax replay",
                f"{accesses:,} chunk accesses, lognormal, n = {PLACED}",
                *outcome.timing,
                rows=requests,
                node_count=NODES,
                dtype="float64",
                peak_rss_bytes=outcome.peak_rss_bytes,
                note=f"{accesses / outcome.timing.min_s / 1e6:.1f} million chunk accesses/s",
            )
        )
    limit = int(growth * (rows[0].peak_rss_bytes or 0))
    return [rows[0], replace(rows[1], target_bytes=limit)]


def stream(requests: int, seed: int) -> Clocked:
    """One replay of ``memory``."""
    reference = reference_system("lognormal", PLACED, LOAD, seed)
    return clocked(partial(replay, reference, requests, seed))


def scanned(runner: Runner, requests: int, requests_on_cpu: int) -> Iterator[Row]:
    """Replications as one scan, meant for accelerators, and by the compiled loop; a CPU gets few requests."""
    import jax  # the other cases do not load it

    from ecjax.simulation.scan import tallies_fcfs
    from ecjax.studies.bench.setups.device_limits import Work, against_limits

    count = requests_on_cpu if jax.devices()[0].platform == "cpu" else requests
    reference = reference_system("shifted exponential", PLACED, LOAD, runner.seed)
    seeds = runner.seed + np.arange(LANES)

    def by_scan() -> None:
        blocks = list(arrivals.poisson(reference.rates, count, runner.seed))
        times, files = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        tallies_fcfs(reference.system, times, files, seeds, CLASSES)

    def by_loop() -> None:
        for seed in seeds:
            replay(reference, count, int(seed))

    accesses = LANES * count * NEED
    also = {SCAN: "; one stream of arrivals for all, files not counted one by one", LOOP: ""}
    for name, outcome in runner.race({SCAN: by_scan, LOOP: by_loop}).items():
        row = Row(
            name,
            f"{LANES} x {count:,} reads, k = {NEED}, {NODES} nodes",
            *outcome.timing,
            rows=count,
            node_count=NODES,
            lanes=LANES,
            dtype="float64",
            compile_s=outcome.first.seconds - outcome.timing.min_s if name == SCAN else None,
            note=f"{accesses / outcome.timing.min_s / 1e6:.1f} million chunk accesses/s{also[name]}",
        )
        # an access begins at the later of two moments and adds its service to it
        yield against_limits(row, Work(operations=2.0 * accesses)) if name == SCAN else row
