"""How the engine scales: a model on paper, and workers that sleep beside it.

N workers take runs of t s; handing a run out and its answer back takes t_trip s, in which its worker waits; the
driver is busy with it for t_driver s, one run after another: handing out, the answer, the commit. Then

    runs/s = min(N / (t + t_trip), 1 / t_driver),

where N / t were ideal, and the driver is the limit from N = (t + t_trip) / t_driver workers on. t_trip is taken from
one worker and t_driver from all of them, both with runs that take no time. t_driver grows with N: the driver looks at
all workers for every answer.

Workers are simulated: one light process stands for 25 of them, as threads that sleep. Their driver, what it sends and
receives, and the files that it writes, are real; that all of it shares one machine makes t_trip and t_driver longer
than on a cluster. Runs are done one per task, as those of seconds would be; studies put short ones together.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ecjax.engine import Engine, EngineOptions, Worker, open_engine
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups.engine import batches_of_nothing, has_ray, not_measured, rows_of_nothing
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.tables.store import ResultStore

THREADS = 25  # workers that a process stands for
MEASURED_S, MOST_ITEMS = 4.0, 4000


@dataclass(frozen=True)
class Model:
    """See the module.

    Attributes:
        trip_s: t_trip.
        driver_s: t_driver.
    """

    trip_s: float
    driver_s: float

    def items_per_s(self, actors: int, item_s: float) -> float:
        """What so many workers do."""
        return min(actors / (item_s + self.trip_s), 1 / self.driver_s)


@dataclass(frozen=True)
class Measured:
    """A map: items, wall time, and CPU time of the driver's process, of all its threads, s."""

    items: int
    wall_s: float
    cpu_s: float


def beside_model(
    runner: Runner,
    actors: tuple[int, ...],
    beyond: tuple[int, ...],
    items_s: tuple[float, ...],
    most_items: int,
    trips: int,
    idle_items: int,
) -> Iterator[Row]:
    """Measured beside the model, and the model alone for more workers than one machine can stand for.

    Args:
        runner: without use: every map is long, and measured once, with the CPU time of the driver.
        actors: simulated workers.
        beyond: more of them, by the model alone.
        items_s: what items take.
        most_items: of a map.
        trips: items that t_trip is the mean of.
        idle_items: items that t_driver is the mean of.
    """
    if not has_ray():
        yield not_measured()
        return
    # no worker of its own: it is the session of Ray for the simulated ones
    with open_engine(EngineOptions("ray", actors=1)), crowd(1) as alone:
        trip_s = min(_measure(alone, 0.0, trips).wall_s for _ in range(2)) / trips
        for count in actors:
            with crowd(count) as engine:
                idle = [_measure(engine, 0.0, idle_items) for _ in range(2)]
                model = Model(trip_s, min(one.wall_s / one.items for one in idle))
                for item_s in items_s:
                    items = _items(model.items_per_s(count, item_s), count, most_items)
                    yield _row(count, item_s, _measure(engine, item_s, items), model)
    for count in beyond:
        for item_s in items_s:
            yield _extrapolated(count, item_s, model, max(actors))


@contextmanager
def crowd(actors: int) -> Iterator[Engine]:
    """The engine, over simulated workers; Ray is joined already."""
    from ecjax.engine.cluster import Cluster
    from ecjax.engine.worker_pool import RemoteWorker, WorkerPool, process

    pool = WorkerPool(EngineOptions("ray", actors=actors), accelerated=False)
    for first in range(0, actors, THREADS):
        threads = min(THREADS, actors - first)
        handle = process(1, 0.0, num_cpus=0, max_concurrency=threads)
        pool.workers += [RemoteWorker(handle, handle.describe.remote()) for _ in range(threads)]
    engine = Cluster(pool, retries=0)
    try:
        yield engine
    finally:
        engine.close()


def sleeping(item_s: float, items: dict[str, Any], worker: Worker) -> Solved:
    """Runs that take time and no core."""
    time.sleep(item_s * len(items))
    return rows_of_nothing(None, items, worker)


def _items(items_per_s: float, actors: int, most: int = MOST_ITEMS) -> int:
    """For a few seconds, in whole rounds of all workers."""
    rounds = min(items_per_s * MEASURED_S, most) / actors
    return actors * max(round(rounds), 2)


def _measure(engine: Engine, item_s: float, count: int) -> Measured:
    batches = batches_of_nothing(count, item_s)
    with (
        tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder,
        ResultStore(folder, TABLES, {}) as store,
    ):
        began, busy = time.perf_counter(), time.process_time()
        run_batches(batches, sleeping, store, engine, "sleeping")
        measured = Measured(count, time.perf_counter() - began, time.process_time() - busy)
        assert len(store.finished(run for batch in batches for run in batch.items)) == count
    return measured


def _row(actors: int, item_s: float, measured: Measured, model: Model) -> Row:
    return Row(
        f"ecjax, runs of {item_s:g} s",
        f"{actors} actors",
        median_s=measured.wall_s,
        min_s=measured.wall_s,
        repeats=1,
        rows=measured.items,
        lanes=actors,
        note=f"{measured.items / measured.wall_s:.4g} runs/s{_share(measured, actors, item_s)}, "
        f"{model.items_per_s(actors, item_s):.4g} by the model "
        f"(trip {1e3 * model.trip_s:.3g} ms, driver {1e3 * model.driver_s:.3g} ms); "
        f"the driver's CPU {measured.cpu_s / measured.wall_s:.0%} of a core",
    )


def _share(measured: Measured, actors: int, item_s: float) -> str:
    """Of what workers would do that never waited."""
    return f" ({measured.items / measured.wall_s * item_s / actors:.0%} of ideal)"


def _extrapolated(actors: int, item_s: float, model: Model, most_measured: int) -> Row:
    items_per_s = model.items_per_s(actors, item_s)
    share = f"{items_per_s * item_s / actors:.0%} of ideal"
    return Row(
        f"model alone, runs of {item_s:g} s",
        f"{actors} actors",
        median_s=MOST_ITEMS / items_per_s,
        min_s=MOST_ITEMS / items_per_s,
        repeats=0,
        rows=MOST_ITEMS,
        lanes=actors,
        note=f"not measured: {items_per_s:.4g} runs/s ({share}) by the model, with the driver as for {most_measured} "
        "actors",
    )
