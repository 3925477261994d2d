"""Replays that compute on one core each: in this process, with one worker process, and with two."""

from dataclasses import replace
from functools import partial

import numpy as np

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric
from ecjax.engine import Engine, Task, Worker, open_engine
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Outcome, Runner
from ecjax.studies.bench.setups.engine import SERIAL, engines, has_ray, ignore, not_measured


def two_actors(runner: Runner, items: int, replays: int, target_ratio: float) -> list[Row]:
    """Items that compute on one core each, on every engine: of two actors so many times the speed of one is due.

    Workers are started, and programs compiled, before the clock runs.
    """
    tasks = [Task(replays, {str(item): runner.seed + item * replays}) for item in range(items)]
    outcomes: dict[str, Outcome] = {}
    for name, options in engines(1, 2):
        with open_engine(options) as engine:
            outcomes[name] = runner.time(partial(_results, engine, tasks))
    assert all(outcome.value == outcomes[SERIAL].value for outcome in outcomes.values())
    size = f"{items} items of {replays} replays"
    rows = [Row(f"ecjax, {name}", size, *outcome.timing, rows=items) for name, outcome in outcomes.items()]
    if not has_ray():
        return [*rows, not_measured()]
    serial, one, two = rows
    note = f"{one.min_s / two.min_s:.3g} times as fast as one actor, {serial.min_s / two.min_s:.3g} times as serial"
    return [serial, one, replace(two, target_s=one.min_s / target_ratio, note=note)]


def replay_several(replays: int, items: dict[str, int], worker: Worker) -> float:
    """Sum of mean completion times of Table I under D-Target, s, from a seed on."""
    fabric = Fabric(np.full(60, 1e9), np.full(60, 1e9))
    total = 0.0
    for first in items.values():
        for seed in range(first, first + replays):
            workload = generate(ReadSettings(), seed)
            outcome = replay(workload, fabric, "dtarget", "smallest_load", seed)
            total += float(outcome.completion_s.mean())
    return total


def _results(engine: Engine, tasks: list[Task]) -> list[float]:
    return sorted(result.value for result in engine.map(replay_several, tasks, ignore))
