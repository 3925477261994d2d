"""What the engine costs: per item beside work that takes no time, and once for the start of Ray."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from ecjax.engine import Engine, EngineOptions, Task, Worker, open_engine
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, side_by_side
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.tables.store import ResultStore

ITEMS, ACTORS = 1000, 2
ITEM_TARGET_S = 0.002
PHASES = ("import Ray", "start Ray", "first worker is ready", "first task", "stop Ray")


def overhead(settings: Settings) -> list[Row]:
    """Items that do nothing, one per task: handed out and back, and with a commit of a row and a small dataset each."""
    count = 20 if settings.quick else ITEMS
    found = []
    for name, options in engines():
        with open_engine(options) as engine, _sessions(engine) as run:
            variants = {
                "hand out": lambda engine=engine: seconds(lambda: _handed_out(engine, count)),
                "hand out and commit": lambda run=run: seconds(lambda: run(count)),
            }
            times = side_by_side(variants, settings.repeats)
        found += [_per_item(f"ecjax, {name}: {what}", count, times[what], settings) for what in times]
    return found if has_ray() else [*found, not_measured("ecjax, Ray")]


def start(settings: Settings) -> list[Row]:
    """From nothing to the answer of the first task, and back."""
    if not has_ray():
        return [not_measured("ecjax, Ray")]
    taken: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for _ in range(settings.repeats):
        marks = [time.perf_counter()]
        import ecjax.engine.cluster  # noqa: F401  (slow the first time only)

        marks.append(time.perf_counter())
        with open_engine(EngineOptions("ray", actors=1)) as engine:
            marks.append(time.perf_counter())
            assert engine.memory_bytes
            marks.append(time.perf_counter())
            _handed_out(engine, 1)
            marks.append(time.perf_counter())
        marks.append(time.perf_counter())
        for phase, begun, ended in zip(PHASES, marks[:-1], marks[1:], strict=True):
            taken[phase].append(ended - begun)
    taken["import Ray"] = taken["import Ray"][:1]
    return [
        Row(f"ecjax, Ray: {phase}", "one worker", sorted(times)[len(times) // 2], min(times), len(times))
        for phase, times in taken.items()
    ]


def has_ray() -> bool:
    """Whether Ray is installed."""
    return find_spec("ray") is not None


def engines() -> list[tuple[str, EngineOptions]]:
    """Those to be compared, by name."""
    on_ray = EngineOptions("ray", actors=ACTORS)
    return [("serial", EngineOptions())] + ([(f"Ray, {ACTORS} actors", on_ray)] if has_ray() else [])


def not_measured(variant: str) -> Row:
    """The row of what needs Ray, where there is none."""
    return Row(variant, "", math.nan, math.nan, 0, note="Ray is not installed: not measured")


def seconds(call: Callable[[], Any]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def ignore(items: float) -> None:
    """Progress that nobody looks at."""


def nothing(shared: Any, items: dict[str, Any], worker: Worker) -> None:
    """An item that takes no time."""


def _handed_out(engine: Engine, count: int) -> None:
    done = list(engine.map(nothing, [Task(None, {str(item): item}) for item in range(count)], ignore))
    assert len(done) == count and all(one.error is None for one in done)


@contextmanager
def _sessions(engine: Engine) -> Iterator[Callable[[int], None]]:
    """A function that commits so many runs to a new folder each time."""
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        yield partial(_committed, engine, folder)


def _committed(engine: Engine, folder: str, count: int) -> None:
    out = Path(folder) / f"out{len(os.listdir(folder))}"
    grid = [(None, {f"{item:016x}": item}) for item in range(count)]
    with ResultStore(out, {}) as store:
        run_batches(grid, _solve, _blank, store, engine, resume=False, what="running nothing")
        assert len(os.listdir(out / "runs")) == len(os.listdir(out / "history")) == count


def _solve(shared: None, items: dict[str, int], worker: Worker) -> Solved:
    rows = [_blank(shared, name, item) | {"status": "ok"} for name, item in items.items()]
    columns = {"run_id": list(items) * 3, "iteration": [0, 1, 2], "objective": [1.0, 0.5, 0.25]}
    return rows, {"history": pa.table(columns)}


def _blank(shared: None, name: str, item: int) -> dict[str, Any]:
    return {"run_id": name, "job": "bench", "seed": item}


def _per_item(variant: str, count: int, timing: Timing, settings: Settings) -> Row:
    return Row(
        variant=variant,
        size=f"{count} items, one per task",
        **timing._asdict(),
        rows=count,
        lanes=ACTORS if "Ray" in variant else None,
        target_s=None if settings.quick else ITEM_TARGET_S * count,
        note=f"{1000 * timing.min_s / count:.3g} ms per item",
    )
