"""In which order tasks are carried out, some at a time."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """Something to do.

    Attributes:
        name: of it; no other has the same.
        begin: begins it.
        end: takes what came of it.
        after: names of the tasks that have to end before it begins.
        alone: whether nothing else may run meanwhile, as it measures times.
    """

    name: str
    begin: Callable[[], Future[Any]]
    end: Callable[[Future[Any]], None]
    after: frozenset[str]
    alone: bool


def carry_out(tasks: Iterable[Task], at_once: int) -> None:
    """Carry out tasks: those that have to be alone when the others are done, else in their order.

    Args:
        tasks: all of them.
        at_once: how many at a time.

    Raises:
        ValueError: some wait for each other, or for one that is not there.
    """
    waiting = sorted(tasks, key=lambda task: task.alone)
    running: dict[Future[Any], Task] = {}
    ended: set[str] = set()
    while waiting or running:
        while len(running) < at_once and not any(task.alone for task in running.values()):
            ready = (task for task in waiting if task.after <= ended and not (task.alone and running))
            task = next(ready, None)
            if task is None:
                break
            waiting.remove(task)
            running[task.begin()] = task
        if not running:
            raise ValueError(f"tasks that wait for each other: {', '.join(task.name for task in waiting)}")
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            task.end(future)
            ended.add(task.name)
