"""The two consoles: results go to standard output; progress bars and log lines share the one on standard error."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

# A pipe or file has no width of its own; 80 columns would cut the tables.
OUTPUT = Console(width=None if sys.stdout.isatty() else 120)
MESSAGES = Console(stderr=True)

log = logging.getLogger("ecjax")


def show_log_lines() -> None:
    """Send ecjax's own log lines to ``MESSAGES``.

    Not by ``logging.config.dictConfig``: it closes the handlers of other libraries, and with them, under a test runner
    or notebook that replaced standard error, the stream.
    """
    handler = RichHandler(console=MESSAGES, show_path=False)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


@contextmanager
def progress(what: str, total: int | None, console: Console = MESSAGES) -> Iterator[Callable[[int], None]]:
    """Show how far long work is: a bar on a terminal, a log line per tenth elsewhere.

    Args:
        what: a few words, in the present participle.
        total: items in all, or None where that is not known.
        console: where the bar goes.

    Yields:
        A function to call with the number of items just done.
    """
    if not console.is_terminal:
        yield _lines(what, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _lines(what: str, total: int | None) -> Callable[[int], None]:
    count = shown = 0

    def advance(done: int) -> None:
        nonlocal count, shown
        count += done
        # where the end is not known a line comes with every doubling
        step = shown if total is None else total / 10
        if count >= shown + step:
            shown = count
            log.info("%s: %d%s", what, count, "" if total is None else f" of {total}")

    return advance
