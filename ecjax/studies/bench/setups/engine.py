"""What the engine costs: per item beside work that takes no time, and once for the start of Ray."""

import math
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.engine import Engine, EngineOptions, Task, Worker, open_engine
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, Timing
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.batches import Batch, Solved, run_batches
from ecjax.studies.spine.run import Run
from ecjax.tables.results import read_arrow, read_results
from ecjax.tables.store import ResultStore
from ecjax.tables.verify import verify

ACTORS = 2
PHASES = ("import Ray", "start Ray", "first worker is ready", "first task", "stop Ray")
SERIAL, NO_RAY = "serial", "Ray is not installed: not measured"


def overhead(runner: Runner, items: int) -> Iterator[Row]:
    """Items that do nothing, one per task: handed out and back, and with a commit of a row and a small dataset each."""
    for name, options in engines(ACTORS):
        with open_engine(options) as engine, tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
            variants = {
                "hand out": partial(_hand_out, engine, items),
                "hand out and commit": partial(_commit, engine, folder, items),
            }
            outcomes = runner.race(variants)
        size, lanes = f"{items} items, one per task", None if name == SERIAL else ACTORS
        for what, outcome in outcomes.items():
            note = f"{1000 * outcome.timing.min_s / items:.3g} ms per item"
            yield Row(f"ecjax, {name}: {what}", size, *outcome.timing, rows=items, lanes=lanes, note=note)
    if not has_ray():
        yield not_measured()


def commits(runner: Runner, items: int) -> Iterator[Row]:
    """A study of runs that do nothing: what each costs the driver, from hand-out to commit, and once all are there."""
    for name, options in engines(ACTORS):
        with open_engine(options) as engine, tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
            _hand_out(engine, ACTORS)  # workers are there
            busy = process_time()
            outcomes = runner.race({"hand out and commit": partial(_commit, engine, folder, items)})
            busy_ms = 1000 * (process_time() - busy) / items
            out = Path(folder) / os.listdir(folder)[0]
            outcomes |= runner.race(
                {
                    "open again": partial(_open_again, out, items),
                    "read runs": partial(read_results, out, "runs"),
                    "verify": partial(verify, out),
                }
            )
            files = len(os.listdir(out / "runs"))
        for what, outcome in outcomes.items():
            lanes = None if name == SERIAL else ACTORS
            note = f"{1000 * outcome.timing.min_s / items:.3g} ms per run"
            if what == "hand out and commit":
                note += f", {busy_ms:.3g} ms of it the driver's CPU; {files} files of runs"
            yield Row(
                f"ecjax, {name}: {what}", f"{items} runs", *outcome.timing, rows=items, lanes=lanes, note=note
            )
    if not has_ray():
        yield not_measured()


def start(runner: Runner) -> list[Row]:
    """From nothing to the answer of the first task, and back; nothing can warm that up."""
    if not has_ray():
        return [not_measured()]
    seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}

    def start_and_stop() -> None:
        is_loaded = "ecjax.engine.cluster" in sys.modules
        marks = [perf_counter()]
        import_module("ecjax.engine.cluster")
        marks.append(perf_counter())
        with open_engine(EngineOptions("ray", actors=1)) as engine:
            marks.append(perf_counter())
            assert engine.memory_bytes
            marks.append(perf_counter())
            _hand_out(engine, 1)
            marks.append(perf_counter())
        marks.append(perf_counter())
        for phase, begin, end in list(zip(PHASES, marks[:-1], marks[1:], strict=True))[is_loaded:]:
            seconds[phase].append(end - begin)

    replace(runner, warm_up=False).time(start_and_stop)
    # Ray may have been loaded before the only repeat
    measured = {phase: Timing.of(times) for phase, times in seconds.items() if times}
    return [Row(f"ecjax, Ray: {phase}", "one worker", *timing) for phase, timing in measured.items()]


def has_ray() -> bool:
    """Whether Ray is installed."""
    return find_spec("ray") is not None


def not_measured() -> Row:
    """The row of what needs Ray, where there is none."""
    return Row("ecjax, Ray", "", math.nan, math.nan, 0, note=NO_RAY)


def ignore(items: float) -> None:
    """Progress that nobody looks at."""


def nothing(shared: Any, items: dict[str, Any], worker: Worker) -> None:
    """An item that takes no time."""


def engines(*actors: int) -> list[tuple[str, EngineOptions]]:
    """Those to be compared, by name: in this process, and Ray with so many actors."""
    on_ray = [(f"Ray, {count} actors", EngineOptions("ray", actors=count)) for count in actors]
    return [(SERIAL, EngineOptions()), *(on_ray if has_ray() else [])]


def _hand_out(engine: Engine, count: int) -> None:
    results = list(engine.map(nothing, [Task(None, {str(item): item}) for item in range(count)], ignore))
    assert len(results) == count and all(one.error is None for one in results)


def _commit(engine: Engine, folder: str, count: int) -> None:
    """So many runs of nothing, to a new folder each time."""
    out = Path(folder) / f"out{len(os.listdir(folder))}"
    batches = batches_of_nothing(count, None)
    with ResultStore(out, TABLES, {}) as store:
        run_batches(batches, rows_of_nothing, store, engine, "running nothing")
    assert (
        len(read_arrow(out, "runs", ["run_id"])) == count == len(read_arrow(out, "history", ["run_id"])) / 3
    )


def _open_again(out: Path, count: int) -> None:
    """What resuming does first."""
    runs = [Run("optimize", {"item": item}, "", item).run_id for item in range(count)]
    with ResultStore(out, TABLES, {}) as store:
        assert len(store.finished(runs)) == count


class Item(NamedTuple):
    """A run of nothing."""

    run: Run


def batches_of_nothing(count: int, shared: Any) -> list[Batch]:
    """So many runs, each alone."""
    runs = [Run("optimize", {"item": item}, "", item) for item in range(count)]
    return [Batch(shared, {run.run_id: Item(run)}) for run in runs]


def rows_of_nothing(shared: None, items: dict[str, Item], worker: Worker) -> Solved:
    """The rows of such runs."""
    rows = [item.run.row() | {"status": "ok"} for item in items.values()]
    columns = {"run_id": list(items) * 3, "iteration": [0, 1, 2], "objective": [1.0, 0.5, 0.25]}
    return rows, {"history": pa.table(columns)}
