"""What the tests have workers do: functions of a module, as a worker process imports them."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ecjax.errors import UserError


def total(shared, items, worker):
    """Sum of the items, and the process that added them up."""
    assert worker.remote
    return sum(items.values()), os.getpid()


def together(shared, items, worker):
    """As ``total``, but tasks wait until so many are running."""
    folder, count = shared
    (name,) = items
    (Path(folder) / name).touch()
    _wait_for(lambda: len(os.listdir(folder)) >= count)
    return os.getpid()


def place(shared, items, worker):
    """What a worker was given: cores, threads, what the shared part is to it."""
    import pyarrow

    return {
        "cores": worker.cores,
        "threads": worker.pool._max_workers,
        "arrow": pyarrow.cpu_count(),
        "numba": os.environ["NUMBA_NUM_THREADS"],
        "platforms": os.environ.get("JAX_PLATFORMS"),
        "shared": id(shared["large"]),
        "process": os.getpid(),
    }


def raises(shared, items, worker):
    """Fails with an item in ``shared``, as a whole."""
    wrong = [name for name in items if name in shared]
    if wrong:
        raise ValueError(f"found {wrong[0]}")
    return sorted(items)


def mistaken(shared, items, worker):
    """The user's mistake, in one item."""
    if "b" in items:
        raise UserError("table nodes: b")
    return sorted(items)


def slow_last(shared, items, worker):
    """The first task takes longest."""
    time.sleep(2.0 if "0" in items else 0)
    return sorted(items)


def parts(shared, items, worker):
    """Reports half an item, now and then."""
    for _ in range(2 * len(items)):
        worker.advance(0.5)
    return sorted(items)


def not_returnable(shared, items, worker):
    """A result that cannot be sent."""
    return (one for one in ())


def killed_once(folder, items, worker):
    """The worker dies with the second item of a task, in its first attempt."""
    for number, name in enumerate(items):
        mark = Path(folder) / name
        if number == 1 and not mark.exists():
            mark.touch()
            _die()
    return sorted(items)


def killed_always(shared, items, worker):
    """The worker dies with every task that has one of these items."""
    folder, deadly = shared
    for name in items:
        with (Path(folder) / name).open("a") as tries:
            tries.write("x")
        if name in deadly:
            _die()
    return sorted(items)


def exhausts(shared, items, worker):
    """Takes memory with one item until there is none."""
    if shared in items:
        import resource

        import numpy as np

        most = 4 << 30
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + most, before[1]))
        try:
            held = []
            while True:
                held.append(np.ones(most // 64))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    return sorted(items)


def on_nodes(folder, items, worker):
    """Takes a while and leaves word of the node it runs on."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    for name in items:
        (Path(folder) / f"{name}.{node}").touch()
        time.sleep(0.3)
    return sorted(items)


def forever_but_quick(mark, items, worker):
    """Never ends, unless there is nothing to leave its process in."""
    if mark is None:
        return "quick"
    Path(mark).write_text(str(os.getpid()))
    while True:
        time.sleep(0.02)


def ends_the_second_time(mark, items, worker):
    """The first one leaves its process and waits to be killed."""
    if "0" in items and not Path(mark).exists():
        forever_but_quick(mark, items, worker)
    return sorted(items)


# of a study

ROWS = 20_000  # of a run: so many that its worker writes them


def solve(deadly, folder, items, worker):
    """Rows of ``runs`` and their history; a worker dies with every task that has one of the deadly items."""
    rows = {"iteration": range(ROWS), "objective": [0.5] * ROWS}
    for name in items:
        with (Path(folder) / name).open("a") as tries:
            tries.write("x")
        if name in deadly:
            _die()
    history = (
        pa.table({"run_id": [name] * ROWS} | {key: list(value) for key, value in rows.items()})
        for name in items
    )
    return [item.run.row() | {"status": "ok"} for item in items.values()], {"history": history}


class Named(NamedTuple):
    """What an item needs of a run."""

    run_id: str
    seed: int

    def row(self):
        """Row of ``runs`` before it is done."""
        return {"run_id": self.run_id, "job": "optimize", "seed": self.seed}


class Item(NamedTuple):
    """An item with its run."""

    run: Named


def _address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
