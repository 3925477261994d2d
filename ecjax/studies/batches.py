"""Grids of replays: batches on all cores, committed in their order, without what is finished already."""

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from ecjax.console import log, progress
from ecjax.tables.store import ResultStore

Shared = TypeVar("Shared")
Item = TypeVar("Item")


class Batch(Protocol):
    """Replays that share what they are given, under way in a pool."""

    def rows(self) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
        """Rows of ``runs`` and the other datasets, once all is done."""


def run_batches(
    grid: Sequence[tuple[Shared, dict[str, Item]]],
    begin: Callable[[Executor, Shared, dict[str, Item], Callable[[int], None]], Batch],
    store: ResultStore,
    resume: bool,
    what: str,
) -> None:
    """Run what a study asks for, and commit each batch once all of it is done.

    Args:
        grid: of every batch what its replays share, and the replays by run id.
        begin: submits replays to the pool; calls the last argument with the number of replays just done.
        store: where the rows go.
        resume: leave out runs that are finished in the store.
        what: a few words for the progress, in the present participle.
    """
    names = [name for _, items in grid for name in items]
    done = store.finished(names) if resume else set()
    if done:
        log.info("%d of %d replays are finished in %s", len(done), len(names), store.out)
    left = [
        (shared, {name: item for name, item in items.items() if name not in done}) for shared, items in grid
    ]
    cores = os.cpu_count() or 1
    waiting: deque[Batch] = deque()
    with progress(what, sum(len(items) for _, items in left)) as advance:
        pool = ThreadPoolExecutor(cores)  # the replays let go of the interpreter
        try:
            for shared, items in left:
                if items:
                    waiting.append(begin(pool, shared, items, advance))
                if len(waiting) > cores:  # what batches are given takes memory while they wait
                    store.commit(*waiting.popleft().rows())
            while waiting:
                store.commit(*waiting.popleft().rows())
        finally:
            pool.shutdown(cancel_futures=True)
