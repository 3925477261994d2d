"""Latencies without simulation beside the replay that they stand for."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import programs
from ecjax.predict.workload import node_laws
from ecjax.queueing.class_queues import partitioned_queues, priority_queues
from ecjax.queueing.estimate import LEVELS, Estimate, estimate_latency
from ecjax.queueing.workload import Workload
from ecjax.simulation.run import Outcome, Queue
from ecjax.simulation.summary import Summary, summarise
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, clocked, compiled
from ecjax.studies.bench.setups.reference_system import (
    CLASSES,
    NEED,
    NODES,
    ReferenceSystem,
    reference_system,
    replay,
)

LOAD, PLACED = 0.7, 8
P99 = LEVELS.index(0.99)


def all_files(runner: Runner, files: int, requests: int) -> Iterator[Row]:
    """Mean and quantiles of all reads, by estimate and by a replay."""
    programs.use_compilation_cache()
    reference = reference_system("shifted exponential", PLACED, LOAD, runner.seed, files)
    program, compile_s = _compiled_estimate(reference)
    outcomes = runner.race({"estimate": program, "replay": partial(replay, reference, requests, runner.seed)})
    estimate, replayed = outcomes["estimate"], outcomes["replay"]
    reads_of_all = _summary(replayed.value).all
    assert reads_of_all is not None
    mean = float(estimate.value.mean / reads_of_all.mean[0] - 1)
    p99 = float(estimate.value.quantiles[P99] / reads_of_all.quantiles[0, 2] - 1)
    half_width = reads_of_all.half_width[0] / reads_of_all.mean[0]
    size = f"{files} files, k = {NEED}, {NODES} nodes, load {LOAD}"
    row = partial(Row, size=size, node_count=NODES, dtype="float64")
    note = f"beside the replay: mean {100 * mean:+.2f} %, 99 % quantile {100 * p99:+.2f} %"
    yield row("ecjax estimate", **estimate.timing._asdict(), rows=files, compile_s=compile_s, note=note)
    note = f"mean {reads_of_all.mean[0]:.4g} s +- {100 * half_width:.2f} %, one core"
    yield row(f"ecjax replay, {requests:,} reads", **replayed.timing._asdict(), rows=requests, note=note)


def by_class(runner: Runner, queue: str, law: str, load: float, files: int, requests: int) -> Iterator[Row]:
    """Classes with queues of their own: the time of an estimate, and its errors by class beside one replay."""
    programs.use_compilation_cache()
    reference = reference_system(law, PLACED, load, runner.seed, files)
    shares = np.full(CLASSES, 1 / CLASSES)
    queues = Queue(queue, shares if queue == "partitioned" else (1.0,))
    outcome, seconds = clocked(partial(replay, reference, requests, runner.seed, queue=queues))
    summary = _summary(outcome)
    of_file = jnp.asarray(reference.system.group)
    program, compile_s = _compiled_estimate(
        reference,
        partial(priority_queues, of_file=of_file, count=CLASSES)
        if queue == "priority"
        else partial(partitioned_queues, of_file=of_file, weights=jnp.full((CLASSES, NODES), 1 / CLASSES)),
    )
    estimate = runner.time(program)
    mean = np.asarray(estimate.value.group_mean) / summary.mean[:CLASSES] - 1
    p99 = np.asarray(estimate.value.group_quantiles)[:, P99] / summary.quantiles[:CLASSES, P99] - 1
    half_width = summary.half_width[:CLASSES] / summary.mean[:CLASSES]
    yield Row(
        f"ecjax estimate, {queue}, {law}",
        f"{files} files of {CLASSES} classes, k = {NEED}, {NODES} nodes, load {load}",
        *estimate.timing,
        rows=files,
        node_count=NODES,
        dtype="float64",
        compile_s=compile_s,
        note=f"beside the replay ({seconds:.1f} s), by class: mean {_percent(mean)}, 99 % quantile "
        f"{_percent(p99)}; mean of the replay +- {', '.join(f'{100 * part:.1f}' for part in half_width)} %",
    )


def reads(reference: ReferenceSystem) -> Workload:
    """The same reads, as the estimate takes them."""
    system, delay = reference.system, reference.system.connect[1]
    law = node_laws(system.laws, NODES)
    return Workload.of(reference.rates, system.chunk_bytes, system.need, law, (delay, 0 * delay))


def _compiled_estimate(
    reference: ReferenceSystem, queues: Callable[..., Any] | None = None
) -> tuple[Callable[[], Any], float]:
    """The estimate as one program, and s to compile it; queues by class, first come first served without."""
    groups = jnp.asarray(reference.system.group)

    def estimate(probabilities: jax.Array, load: Workload) -> Estimate:
        by_class = None if queues is None else queues(probabilities, load)
        return estimate_latency(probabilities, load, groups=groups, group_count=CLASSES, queues=by_class)

    return compiled(estimate, jnp.asarray(reference.probabilities), reads(reference))


def _summary(outcome: Outcome) -> Summary:
    return summarise([outcome.tally], [outcome.span])


def _percent(errors: np.ndarray) -> str:
    return ", ".join(f"{100 * error:+.1f}" for error in errors) + " %"
