"""Grids of runs: tasks for an engine, committed as they are done, without what is finished already."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ecjax.console import log, progress
from ecjax.engine import Engine, Function, Task, Worker
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables.store import DatasetWriter, ResultStore, Tables

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Rows = list[dict[str, Any]]
Solved = tuple[Rows, Mapping[str, Tables]]  # rows of ``runs``, and the other datasets

TASKS_PER_WORKER = 2  # at least, so that workers end at about the same time


def run_batches(
    grid: Sequence[tuple[Shared, dict[str, Item]]],
    solve: Callable[[Shared, dict[str, Item], Worker], Solved],
    blank: Callable[[Shared, str, Item], dict[str, Any]],
    store: ResultStore,
    engine: Engine,
    resume: bool,
    what: str,
    *,
    at_once: int | None = None,
    divisible: bool = True,
    keep: Callable[[Shared], None] = lambda shared: None,
    all_unstable_is_wrong: bool = False,
) -> None:
    """Run what a study asks for, and commit what is done as it is done. A run that fails is a row that says so.

    Args:
        grid: of every batch what its runs share, and the runs by run id.
        solve: runs some runs of a batch; of a module, or a ``partial`` of such (see ``Engine.map``). Rows do not depend
            on which runs of the batch are done together.
        blank: what is known of a run before it is done: its row without status and results.
        store: where the rows go.
        engine: where the work runs.
        resume: leave out runs that are finished in the store.
        what: a few words for the progress, in the present participle.
        at_once: batches at a time within a process; default: as many as it has cores.
        divisible: whether the runs of a batch may be spread over workers; not where one program runs them all.
        keep: called with what a batch shares before its runs are committed.
        all_unstable_is_wrong: whether a study without a single stable run is the user's mistake; nothing is committed
            then.

    Raises:
        UserError: something the user gave is wrong.
    """
    names = [name for _, items in grid for name in items]
    done = store.finished(names) if resume else set()
    if done:
        log.info("%d of %d runs are finished in %s", len(done), len(names), store.out)
    left = [
        Task(shared, {name: item for name, item in items.items() if name not in done})
        for shared, items in grid
    ]
    tasks = [task for task in left if task.items]
    if divisible and engine.workers > 1:
        tasks = _divided(tasks, engine.workers)
    held: list[tuple[Shared, Rows]] = []  # unstable ones, while there are no others
    hold = all_unstable_is_wrong and not done
    function: Function = partial(_solved, solve, store.writer)
    with progress(what, sum(len(task.items) for task in tasks)) as advance:
        for part, value, error in engine.map(function, tasks, advance, at_once):
            if isinstance(error, UserError):
                raise error
            if error is not None:
                few = ", ".join(list(part.items)[:3]) + (" ..." if len(part.items) > 3 else "")
                log.error("%s failed: %s\n%s", few, error, getattr(error, "trace", ""))
                told = {"status": str(Status.FAILED), "error": str(error)}
                value = [blank(part.shared, name, item) | told for name, item in part.items.items()], {}
            rows, datasets = value
            if hold and all(row["status"] == str(Status.UNSTABLE) for row in rows):
                held.append((part.shared, rows))
                continue
            hold = False
            for shared, unstable in held:
                keep(shared)
                store.commit(unstable, {})
            held.clear()
            keep(part.shared)
            store.commit(rows, datasets)
    if held:
        raise UserError(
            min((row for _, rows in held for row in rows), key=lambda row: row["max_load"])["error"]
        )


def _divided(tasks: Iterable[Task], workers: int) -> list[Task]:
    """The tasks, in parts where there are too few of them."""
    tasks = list(tasks)
    parts = math.ceil(TASKS_PER_WORKER * workers / max(len(tasks), 1))
    found = []
    for task in tasks:
        items, several = list(task.items.items()), min(parts, len(task.items))
        found += [Task(task.shared, dict(items[first::several])) for first in range(several)]
    return found


def _solved(
    solve: Callable[[Any, dict[str, Any], Worker], Solved],
    writer: DatasetWriter,
    shared: Any,
    items: dict[str, Any],
    worker: Worker,
) -> tuple[Rows, Mapping[str, Tables] | None]:
    """Rows of ``runs``, and the other datasets where they are not written yet: whoever computes them writes them."""
    rows, datasets = solve(shared, items, worker)
    if writer.reaches():
        try:
            writer.write(list(items), datasets)
            return rows, None
        except UserError:
            if not worker.remote:
                raise
            # what hinders this worker (a folder of its node that is mounted read-only) need not hinder the driver
            rows, datasets = solve(shared, items, worker)
    return rows, writer.conformed(datasets)
