"""Commits of what batches came to: a file costs milliseconds, whatever is in it, so that small batches share one.

They wait for others for half a second at most. A kill takes what waits, and that is less than what it takes of the work
that is under way, but for runs that are shorter still.
"""

from collections import deque
from collections.abc import Callable, Mapping
from threading import Condition, RLock, Thread
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.tables.seals import Contents
from ecjax.tables.store import ResultStore, Tables

WAIT_S = 0.5  # for others
MOST_RUNS = 500  # of a commit
MOST_WAITING = 4 * MOST_RUNS

Rows = list[dict[str, Any]]


class Written(NamedTuple):
    """What came of a batch.

    Attributes:
        rows: of ``runs``.
        datasets: the others, or what was written of them.
        is_small: whether it may be committed with others: its datasets are tables, and small.
    """

    rows: Rows
    datasets: Mapping[str, Tables | Contents]
    is_small: bool = False


class Commits:
    """Commits batches to a store: small ones together, by a thread of its own, before half a second has passed.

    Use it as a context manager; on leaving, all is committed, also where an error ends the work.

    Args:
        store: open.
    """

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._using = RLock()  # the store
        self._changed = Condition()
        self._waiting: deque[tuple[Written, Callable[[], None]]] = deque()
        self._runs = 0  # that wait
        self._error: BaseException | None = None
        self._is_over = False
        self._thread = Thread(target=self._commit_waiting, name="commits", daemon=True)

    def __enter__(self) -> "Commits":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()
        if error is None:
            self._raise()

    def add(self, written: Written, keep: Callable[[], None] = lambda: None) -> None:
        """Commit a batch, now or soon.

        Args:
            written: what came of it.
            keep: called before, while nothing else uses the store.

        Raises:
            UserError: as ``ResultStore.commit``, of this batch or of those that waited.
            ValueError: likewise.
        """
        self._raise()
        if not written.is_small:
            with self._using:
                keep()
                self._store.commit(written.rows, written.datasets)
            return
        with self._changed:
            self._waiting.append((written, keep))
            self._runs += len(written.rows)
            if len(self._waiting) == 1 or self._runs >= MOST_RUNS:
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._error is not None or self._runs < MOST_WAITING)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _commit_waiting(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_over)
                self._changed.wait_for(lambda: self._is_over or self._runs >= MOST_RUNS, WAIT_S)
                together = self._take()
            if not together:
                return
            try:
                with self._using:
                    for _, keep in together:
                        keep()
                    self._store.commit(*_joined([written for written, _ in together]))
            except BaseException as error:  # it is the other thread's to handle
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return

    def _take(self) -> list[tuple[Written, Callable[[], None]]]:
        """The batches that have waited longest."""
        together: list[tuple[Written, Callable[[], None]]] = []
        runs = 0
        while self._waiting and runs < MOST_RUNS:
            together.append(self._waiting.popleft())
            runs += len(together[-1][0].rows)
        self._runs -= runs
        self._changed.notify_all()
        return together


def _joined(together: list[Written]) -> tuple[Rows, dict[str, Tables]]:
    """Several batches as one; of a dataset without rows there is still a file, which says that it was written."""
    tables: dict[str, list[pa.Table]] = {}
    for written in together:
        for name, parts in written.datasets.items():
            tables.setdefault(name, []).extend(parts)
    joined: dict[str, Tables] = {
        name: pa.concat_tables(parts) if parts else iter(()) for name, parts in tables.items()
    }
    return [row for written in together for row in written.rows], joined
