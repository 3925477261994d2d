"""Grids of runs: tasks for an engine, committed as they are done, without what is finished already."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ecjax.console import log
from ecjax.display import displayed
from ecjax.engine import Engine, Failed, Function, Lost, Task, Worker
from ecjax.errors import UserError
from ecjax.progress import progress
from ecjax.status import Status
from ecjax.studies.spine.commits import Commits, Rows, Written
from ecjax.studies.spine.run import Run
from ecjax.tables.finite import NotFinite, check_row, ok_runs
from ecjax.tables.store import DatasetWriter, ResultStore, Tables

Solved = tuple[Rows, Mapping[str, Tables]]  # rows of ``runs``, and the other datasets

TASKS_PER_WORKER = 2  # at least, so that workers end at about the same time
_SMALL_BYTES = 1 << 18  # of all datasets of a batch; whoever computes larger ones writes them


class HasRun(Protocol):
    """An item of a batch: one run."""

    @property
    def run(self) -> Run:
        """Its identity."""


class Batch(NamedTuple):
    """Runs that are done together.

    Attributes:
        shared: what they have in common; the very same object in all batches that share it.
        items: what to do, by run id.
    """

    shared: Any
    items: Mapping[str, Any]


Solve = Callable[[Any, dict[str, Any], Worker], Solved]


class Driven(NamedTuple):
    """What runs in this process, and hands parts of a run to the engine.

    Attributes:
        solve: runs the runs of a batch: what they share, items, the engine, and a function to be called with the number
            of parts just done; raises ``Failed`` or ``Lost`` where they cannot be done.
        parts: of all runs, where that is known beforehand.
    """

    solve: Callable[[Any, dict[str, Any], Engine, Callable[[float], None]], Solved]
    parts: int | None


def run_batches(
    batches: Sequence[Batch],
    solve: Solve,
    store: ResultStore,
    engine: Engine,
    verb: str,
    *,
    at_once: int | None = None,
    divisible: bool = True,
    keep: Callable[[Any], None] = lambda shared: None,
    all_unstable_is_wrong: bool = False,
) -> None:
    """Run batches, and commit what is done as it is done. A run that fails is a row that says so.

    Args:
        batches: of items that have a ``run``.
        solve: runs some runs of a batch; of a module, or a ``partial`` of such (see ``Engine.map``). Rows do not depend
            on which runs of the batch are done together.
        store: where the rows go.
        engine: where the work runs.
        verb: a few words for the progress, in the present participle.
        at_once: batches at a time within a process; default: as many as it has cores.
        divisible: whether the runs of a batch may be spread over workers; not where one program runs them all.
        keep: called with what a batch shares before its runs are committed.
        all_unstable_is_wrong: whether batches without a single stable run are the user's mistake; nothing is committed
            then.

    Raises:
        UserError: something the user gave is wrong.
    """
    tasks = [Task(shared, dict(items)) for shared, items in batches]
    if divisible and engine.workers > 1:
        tasks = _divided(tasks, engine.workers)
    held: list[tuple[Any, Rows]] = []  # unstable ones, while there are no others
    hold = all_unstable_is_wrong
    function: Function = partial(_solved, solve, store.writer)
    items = sum(len(task.items) for task in tasks)
    with progress(verb, items) as advance, Commits(store) as commits:
        for part, value, error in engine.map(function, tasks, advance, at_once):
            if isinstance(error, UserError):
                raise error
            written = value if error is None else Written(failed_rows(part.items, error), {})
            if hold and all(row["status"] == str(Status.UNSTABLE) for row in written.rows):
                held.append((part.shared, written.rows))
                continue
            hold = False
            for shared, unstable in held:
                commits.add(Written(unstable, {}), partial(keep, shared))
            held.clear()
            commits.add(written, partial(keep, part.shared))
    if held:
        raise UserError(
            min((row for _, rows in held for row in rows), key=lambda row: row["max_load"])["error"]
        )


def run_driven(
    batches: Sequence[Batch], driven: Driven, store: ResultStore, engine: Engine, verb: str
) -> None:
    """Run batches in this process, one after another, and commit each; a run that fails is a row that says so.

    Args:
        batches: of items that have a ``run``.
        driven: runs them.
        store: where the rows go.
        engine: for parts of the work.
        verb: a few words for the progress, in the present participle.

    Raises:
        UserError: something the user gave is wrong.
    """
    for shared, items in batches:
        with progress(verb, driven.parts) as advance:
            try:
                store.commit(*driven.solve(shared, dict(items), engine, advance))
            except (Failed, Lost, NotFinite) as error:
                store.commit(failed_rows(items, error), {})


def failed_rows(items: Mapping[str, HasRun], error: Exception) -> Rows:
    """Rows of runs that failed together, which is said.

    Args:
        items: the runs by id.
        error: why; of ``Failed``, with where.
    """
    few = ", ".join(list(items)[:3]) + (" ..." if len(items) > 3 else "")
    log.error("%s failed: %s\n%s", few, error, getattr(error, "trace", ""))
    status = {"status": str(Status.FAILED), "error": displayed(error)}
    return [item.run.row() | status for item in items.values()]


def _divided(tasks: Iterable[Task], workers: int) -> list[Task]:
    """The tasks, in parts where there are too few of them."""
    tasks = list(tasks)
    parts = math.ceil(TASKS_PER_WORKER * workers / max(len(tasks), 1))
    divided = []
    for task in tasks:
        items, several = list(task.items.items()), min(parts, len(task.items))
        divided += [Task(task.shared, dict(items[first::several])) for first in range(several)]
    return divided


def _solved(
    solve: Callable[[Any, dict[str, Any], Worker], Solved],
    writer: DatasetWriter,
    shared: Any,
    items: dict[str, Any],
    worker: Worker,
) -> Written:
    """Rows of ``runs``, and the other datasets, of which large ones are written by whoever computes them."""
    rows, datasets = solve(shared, items, worker)
    for row in rows:
        check_row(row, writer.tables)
    datasets, are_small = _begun({name: rest for name, rest in datasets.items() if writer.writes(name)})
    if are_small:
        return Written(rows, writer.conformed(datasets, ok_runs(rows)), is_small=True)
    if writer.reaches():
        try:
            return Written(rows, writer.write(list(items), datasets, ok_runs(rows)))
        except UserError:
            if not worker.remote:
                raise
            # what hinders this worker (a folder of its node that is mounted read-only) need not hinder the driver
            rows, datasets = solve(shared, items, worker)
    return Written(rows, writer.conformed(datasets, ok_runs(rows)))


def _begun(datasets: Mapping[str, Tables]) -> tuple[dict[str, Tables], bool]:
    """The same datasets, and whether they are small; no more of them is computed than tells that."""
    left = _SMALL_BYTES
    begun: dict[str, Tables] = {}
    for name, tables in datasets.items():
        if isinstance(tables, pa.Table):
            begun[name] = tables
            left -= tables.nbytes
            continue
        first, rest = [], iter(tables)
        while left >= 0 and (table := next(rest, None)) is not None:
            first.append(table)
            left -= table.nbytes
        begun[name] = chain(first, rest)
    return begun, left >= 0
