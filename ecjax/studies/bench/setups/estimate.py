"""Latencies without simulation beside the replay that they stand for."""

import jax.numpy as jnp

from ecjax import precision
from ecjax.predict.workload import node_laws
from ecjax.queueing.estimate import LEVELS, estimate_latency
from ecjax.queueing.workload import Workload
from ecjax.replay.summary import Summary, summarise
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import compiled, side_by_side, timed
from ecjax.studies.bench.setups.reference_system import CLASSES, NEED, NODES, House, house, replayed

LOAD, PLACED = 0.7, 8
REQUESTS, QUICK_REQUESTS, QUICK_FILES = 1_000_000, 20_000, 50


def rows(settings: Settings) -> list[Row]:
    """Mean and quantiles of 1000 files, by estimate and by a replay of 10^6 reads."""
    precision.use_compilation_cache()
    files = {"files": QUICK_FILES} if settings.quick else {}
    own = house("shifted exponential", PLACED, LOAD, settings.seed, **files)
    count = QUICK_REQUESTS if settings.quick else REQUESTS
    summaries: list[Summary] = []

    def by_replay() -> float:
        outcome, seconds = replayed(own, count, settings.seed)
        summaries.append(summarise([outcome.tally], [outcome.span]))
        return seconds

    arguments = jnp.asarray(own.probabilities), reads(own)
    groups = jnp.asarray(own.system.group)
    program, compile_s = compiled(
        lambda pi, load: estimate_latency(pi, load, groups=groups, group_count=CLASSES), *arguments
    )
    times = side_by_side(
        {"ecjax estimate": timed(program, *arguments), "ecjax replay": by_replay}, settings.repeats
    )
    found, replay = program(*arguments), summaries[-1].all
    assert replay is not None
    size = f"{len(own.rates)} files, k = {NEED}, {NODES} nodes, load {LOAD}"
    mean = float(found.mean / replay.mean[0] - 1)
    p99 = float(found.quantiles[LEVELS.index(0.99)] / replay.quantiles[0, 2] - 1)
    return [
        Row(
            variant="ecjax estimate",
            size=size,
            **times["ecjax estimate"]._asdict(),
            rows=len(own.rates),
            nodes=NODES,
            dtype="float64",
            compile_s=compile_s,
            note=f"beside the replay: mean {100 * mean:+.2f} %, 99 % quantile {100 * p99:+.2f} %",
        ),
        Row(
            variant=f"ecjax replay, {count:,} reads",
            size=size,
            **times["ecjax replay"]._asdict(),
            rows=count,
            nodes=NODES,
            dtype="float64",
            note=f"mean {replay.mean[0]:.4g} s +- {100 * replay.half_width[0] / replay.mean[0]:.2f} %, one core",
        ),
    ]


def reads(own: House) -> Workload:
    """The same reads, as the estimate takes them."""
    system, delay = own.system, own.system.connect[1]
    law = node_laws(system.laws, NODES)
    return Workload.of(own.rates, system.chunk_bytes, system.need, law, (delay, 0 * delay))
