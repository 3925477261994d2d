"""The engine that is always there: threads of this process."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

from ecjax.cores import available_cores
from ecjax.engine.memory import usable_bytes
from ecjax.engine.tasks import Done, Function, Task, Worker, attempt


class Serial:
    """Tasks in threads of this process; results come in the order of the tasks."""

    workers = 1

    @property
    def memory_bytes(self) -> float:
        """Memory for the arrays of a task."""
        return usable_bytes()

    def map(
        self,
        function: Function,
        tasks: Sequence[Task],
        advance: Callable[[float], Any],
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """See ``Engine.map``."""
        cores = available_cores()
        # tasks wait for what they submit to the second pool, whose calls wait for nothing
        several, leaves = ThreadPoolExecutor(at_once or cores), ThreadPoolExecutor(cores)
        waiting: deque[Future[list[Done]]] = deque()

        stopped = Event()

        def unless_stopped(shared: Any, items: dict[str, Any], worker: Worker) -> Any:
            if stopped.is_set():  # what fails now fails for want of threads
                raise _Stopped
            return function(shared, items, worker)

        def run(task: Task) -> list[Done]:
            counted = _Counted(advance)
            outcomes = attempt(unless_stopped, task, Worker(leaves, cores, counted))
            advance(len(task.items) - counted.total)
            return outcomes

        try:
            for task in tasks:
                waiting.append(several.submit(run, task))
                if len(waiting) > (at_once or cores):  # what tasks return takes memory while it waits
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            stopped.set()
            several.shutdown(wait=False, cancel_futures=True)
            leaves.shutdown(cancel_futures=True)
            several.shutdown(cancel_futures=True)

    def release(self) -> None:
        """See ``Engine.release``. Threads are those of a map."""


class _Stopped(BaseException):
    """Nobody waits for the result any more."""


class _Counted:
    """Passes on what is done, and adds it up."""

    def __init__(self, advance: Callable[[float], Any]) -> None:
        self._advance, self._lock = advance, Lock()
        self.total = 0.0

    def __call__(self, items: float) -> None:
        with self._lock:
            self.total += items
        self._advance(items)
