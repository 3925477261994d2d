"""Replays that compute on one core each: with one worker process, with two, and in threads of this process."""

from typing import Any

import numpy as np

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric
from ecjax.engine import EngineOptions, Task, Worker, open_engine
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, side_by_side
from ecjax.studies.bench.setups.engine import has_ray, ignore, not_measured, seconds

ITEMS = 16
REPLAYS = 100  # of Table I, within an item: about a second
RATIO_TARGET = 1.6


def rows(settings: Settings) -> list[Row]:
    """The same items on every engine; workers are started, and programs compiled, before the clock runs."""
    count, replays = (2, 1) if settings.quick else (ITEMS, REPLAYS)
    tasks = [Task(replays, {str(item): settings.seed + item * replays}) for item in range(count)]
    engines = {"serial": EngineOptions()}
    if has_ray():
        engines |= {f"Ray, {actors} actors": EngineOptions("ray", actors=actors) for actors in (1, 2)}
    times: dict[str, Timing] = {}
    sums: dict[str, list[float]] = {}
    for name, options in engines.items():
        with open_engine(options) as engine:

            def run(engine=engine, name=name) -> float:
                def replayed() -> None:
                    sums[name] = sorted(done.value for done in engine.map(replay_several, tasks, ignore))

                return seconds(replayed)

            times |= side_by_side({name: run}, settings.repeats)
    assert all(found == sums["serial"] for found in sums.values())
    found = []
    for name, timing in times.items():
        row = Row(f"ecjax, {name}", f"{count} items of {replays} replays", **timing._asdict(), rows=count)
        found.append(row)
    if not has_ray():
        return [*found, not_measured("ecjax, Ray")]
    serial, one, two = found
    target = None if settings.quick else one.min_s / RATIO_TARGET
    note = f"{one.min_s / two.min_s:.3g} times as fast as one actor, {serial.min_s / two.min_s:.3g} times as serial"
    return [serial, one, Row(**vars(two) | {"target_s": target, "note": note})]


def replay_several(replays: int, items: dict[str, int], worker: Worker) -> float:
    """Sum of mean completion times of Table I under D-Target, from a seed on."""
    fabric = Fabric(np.full(60, 1e9), np.full(60, 1e9))
    found: Any = 0.0
    for first in items.values():
        for seed in range(first, first + replays):
            workload = generate(ReadSettings(), seed)
            found += replay(workload, fabric, "dtarget", "smallest_load", seed).completion_s.mean()
    return float(found)
