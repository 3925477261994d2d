"""Latencies of four classes with queues of their own, without simulation, beside the replay that they stand for."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from ecjax import precision
from ecjax.queueing.class_queues import partitioned_queues, priority_queues
from ecjax.queueing.estimate import LEVELS, estimate_latency
from ecjax.replay.run import Queue
from ecjax.replay.summary import summarise
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, compiled, side_by_side, timed
from ecjax.studies.bench.setups.estimate import reads
from ecjax.studies.bench.setups.reference_system import CLASSES, NEED, NODES, house, replayed

PLACED = 8
CASES = (
    ("priority", "shifted exponential", 0.3),
    ("priority", "shifted exponential", 0.7),
    ("priority", "shifted exponential", 0.9),
    ("priority", "exponential", 0.7),
    ("priority", "lognormal", 0.7),
    ("partitioned", "shifted exponential", 0.7),
)
REQUESTS, QUICK_REQUESTS, QUICK_FILES = 3_000_000, 20_000, 50


def rows(settings: Settings) -> list[Row]:
    """An estimate of 1000 files for each queue, law and load: its time, and its errors by class."""
    precision.use_compilation_cache()
    return [_row(*case, settings) for case in CASES[: 1 if settings.quick else None]]


def _row(queue: str, law: str, load: float, settings: Settings) -> Row:
    own = house(law, PLACED, load, settings.seed, **({"files": QUICK_FILES} if settings.quick else {}))
    shares = np.full(CLASSES, 1 / CLASSES)
    outcome, seconds = replayed(
        own,
        QUICK_REQUESTS if settings.quick else REQUESTS,
        settings.seed,
        queue=Queue(queue, shares if queue == "partitioned" else (1.0,)),
    )
    told = summarise([outcome.tally], [outcome.span])
    groups = jnp.asarray(own.system.group)
    met = (
        partial(priority_queues, of_file=groups, count=CLASSES)
        if queue == "priority"
        else partial(partitioned_queues, of_file=groups, weights=jnp.full((CLASSES, NODES), 1 / CLASSES))
    )
    arguments = jnp.asarray(own.probabilities), reads(own)
    program, compile_s = compiled(
        lambda pi, load: estimate_latency(pi, load, groups=groups, group_count=CLASSES, queues=met(pi, load)),
        *arguments,
    )
    time: Timing = side_by_side({queue: timed(program, *arguments)}, settings.repeats)[queue]
    found = program(*arguments)
    mean = np.asarray(found.group_mean) / told.mean[:CLASSES] - 1
    place = LEVELS.index(0.99)
    p99 = np.asarray(found.group_quantiles)[:, place] / told.quantiles[:CLASSES, place] - 1
    width = told.half_width[:CLASSES] / told.mean[:CLASSES]
    return Row(
        variant=f"{queue}, {law}",
        size=f"{len(own.rates)} files of {CLASSES} classes, k = {NEED}, {NODES} nodes, load {load}",
        **time._asdict(),
        rows=len(own.rates),
        nodes=NODES,
        dtype="float64",
        compile_s=compile_s,
        note=f"beside the replay ({seconds:.1f} s), by class: mean {_percent(mean)}, 99 % quantile {_percent(p99)}; "
        f"mean of the replay +- {', '.join(f'{100 * part:.1f}' for part in width)} %",
    )


def _percent(errors: np.ndarray) -> str:
    return ", ".join(f"{100 * error:+.1f}" for error in errors) + " %"
