"""The one console: progress bars on a terminal, log lines elsewhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

log = logging.getLogger("ecjax")


class Advance(Protocol):
    """Reports that work was done; ``done`` counts items."""

    def __call__(self, done: int) -> None: ...  # noqa: D102


@contextmanager
def progress(console: Console, what: str, total: int | None) -> Iterator[Advance]:
    """Show how far long work is.

    Args:
        console: where to show it.
        what: a few words, in the present participle.
        total: items in all, or None where that is not known.
    """
    if not console.is_terminal:
        state = {"done": 0, "next": 1}

        def count(done: int) -> None:
            state["done"] += done
            # a line per tenth, or per doubling where the end is not known
            if state["done"] >= state["next"]:
                log.info("%s: %d%s", what, state["done"], "" if total is None else f" of {total}")
                step = state["done"] if total is None else max(1, total // 10)
                state["next"] = state["done"] + step

        yield count
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
