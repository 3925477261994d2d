"""Replications of a plan's replay as one parallel scan: meant for accelerators, beside the compiled loop on a core."""

import time

import jax
import numpy as np

from ecjax.replay.scan import tallies_fcfs
from ecjax.streams import arrivals
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import side_by_side
from ecjax.studies.bench.setups.reference_system import CLASSES, NEED, NODES, house, replayed

LOAD, PLACED = 0.7, 8
LANES = 8
SCAN, LOOP = "ecjax scan (JAX)", "ecjax replay, one core"
REQUESTS, CPU_REQUESTS, QUICK_REQUESTS = 1_000_000, 20_000, 2_000


def rows(settings: Settings) -> list[Row]:
    """The same replications by both; on a CPU few requests, where the loop is the faster one."""
    accelerator = jax.devices()[0].platform != "cpu"
    count = QUICK_REQUESTS if settings.quick else REQUESTS if accelerator else CPU_REQUESTS
    own = house("shifted exponential", PLACED, LOAD, settings.seed)
    seeds = settings.seed + np.arange(LANES)

    def by_scan() -> float:
        began = time.perf_counter()
        blocks = list(arrivals.poisson(own.rates, count, settings.seed))
        times, files = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        tallies_fcfs(own.system, times, files, seeds, CLASSES)
        return time.perf_counter() - began

    def by_loop() -> float:
        return sum(replayed(own, count, int(seed))[1] for seed in seeds)

    first = by_scan()
    times = side_by_side({SCAN: by_scan, LOOP: by_loop}, settings.repeats)
    accesses = LANES * count * NEED
    notes = {SCAN: "; one stream of arrivals for all, files not counted one by one", LOOP: ""}
    return [
        Row(
            variant=name,
            size=f"{LANES} x {count:,} reads, k = {NEED}, {NODES} nodes",
            **timing._asdict(),
            rows=count,
            nodes=NODES,
            lanes=LANES,
            dtype="float64",
            compile_s=first - timing.min_s if name == SCAN else None,
            note=f"{accesses / timing.min_s / 1e6:.1f} million chunk accesses/s{notes[name]}",
        )
        for name, timing in times.items()
    ]
