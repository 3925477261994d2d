"""Tasks, what comes of them, and what they run in."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from traceback import format_exc
from typing import Any, NamedTuple, Protocol

from ecjax.engine.memory_maps import forget_programs
from ecjax.errors import UserError


class Task(NamedTuple):
    """Items that are done together.

    Attributes:
        shared: what they have in common; the very same object in all tasks that share it, so that a worker is sent it
            once.
        items: what to do, by name.
    """

    shared: Any
    items: dict[str, Any]


class Failed(Exception):
    """A function raised.

    Args:
        text: names the exception.
        trace: where it was raised.
    """

    def __init__(self, text: str, trace: str = "") -> None:
        super().__init__(text)
        self.trace = trace


class Lost(Exception):
    """A worker or its node died, every time that the task was tried."""


class Done(NamedTuple):
    """What came of a task, or of a part of it.

    Attributes:
        task: the items that are done.
        value: what the function returned.
        error: why there is no value: ``Failed``, ``Lost`` or ``UserError``.
    """

    task: Task
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class Worker:
    """The process that a function runs in.

    Attributes:
        pool: its threads, for calls that let go of the interpreter; such a call must not wait for another one.
        cores: number of these threads.
        advance: to be called with the number of items (or parts of them) just done.
        remote: whether it is another process than the one that asked.
    """

    pool: Executor
    cores: int
    advance: Callable[[float], None]
    remote: bool = False


Function = Callable[[Any, dict[str, Any], Worker], Any]


class Engine(Protocol):
    """Where tasks run."""

    @property
    def workers(self) -> int:
        """How many processes there are, or are to be."""

    @property
    def memory_bytes(self) -> float:
        """Memory of a worker, or of its GPU, for the arrays of a task."""

    def map(
        self,
        function: Function,
        tasks: Sequence[Task],
        advance: Callable[[float], Any],
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """Run a function over tasks, and say what came of them as they are done; of halved tasks, in parts.

        Args:
            function: of a module (or a ``partial`` of one), with arguments and results that can be pickled.
            tasks: what to do.
            advance: called with the number of items just done.
            at_once: tasks at a time within a process; default: as many as it has cores.
        """

    def release(self) -> None:
        """Let processes go that have nothing to do; the next map starts them again."""


def attempt(function: Function, task: Task, worker: Worker) -> list[Done]:
    """Run a task; where it fails as a whole, its halves, down to single items."""
    forget_programs()
    try:
        return [Done(task, function(task.shared, task.items, worker))]
    except UserError as error:
        return [Done(task, error=error)]
    except Exception as error:
        if len(task.items) <= 1:
            return [Done(task, error=Failed(f"{type(error).__name__}: {error}", format_exc()))]
    # out of the handler, so that what the task held in memory is free
    return [outcome for half in halves(task) for outcome in attempt(function, half, worker)]


def halves(task: Task) -> list[Task]:
    """The two halves of a task of at least two items."""
    items = list(task.items.items())
    middle = len(items) // 2
    return [Task(task.shared, dict(part)) for part in (items[:middle], items[middle:])]
