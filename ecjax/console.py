"""The two consoles: results go to standard output; progress bars and log lines share the one on standard error."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from threading import Lock

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ecjax.display import displayed

# a pipe or file has no width of its own, unless COLUMNS says one
OUTPUT = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)
MESSAGES = Console(stderr=True)

log = logging.getLogger("ecjax")

_SERIOUS = ("red", "yellow")  # styles of errors and warnings


class Wanted(Enum):
    """What a command prints: tables and log lines, what matters only, or an object for another program."""

    ALL = "all"
    QUIET = "--quiet"
    JSON = "--json"


_wanted = Wanted.ALL


def wanted() -> Wanted:
    """What the command that runs prints."""
    return _wanted


@contextmanager
def printing(what: Wanted) -> Iterator[None]:
    """Print this only, until the context is left."""
    global _wanted
    before, level = (_wanted, OUTPUT.quiet), log.level
    _wanted, OUTPUT.quiet = what, what is not Wanted.ALL
    try:
        yield
    finally:
        (_wanted, OUTPUT.quiet) = before
        log.setLevel(level)


def show_log_lines() -> None:
    """Send ecjax's own log lines to ``MESSAGES``.

    Not by ``logging.config.dictConfig``: it closes the handlers of other libraries, and with them, under a test runner
    or notebook that replaced standard error, the stream.
    """
    log.handlers[:] = [log_handler(MESSAGES)]
    log.setLevel(logging.WARNING if _wanted is Wanted.QUIET else logging.INFO)
    log.propagate = False


def log_handler(console: Console) -> logging.Handler:
    """What writes log lines to a console."""
    handler = RichHandler(console=console, show_path=False)
    handler.setFormatter(LogLine())
    return handler


class LogLine(logging.Formatter):
    """The message of a log line, each of its lines as it can be shown."""

    def format(self, record: logging.LogRecord) -> str:
        """The text."""
        return "\n".join(map(displayed, super().format(record).split("\n")))


def say(console: Console, text: str, style: str = "", soft_wrap: bool = False) -> None:
    """Print a line; text in it is text, not markup. Errors and warnings of a quiet console go to ``MESSAGES``.

    Args:
        console: where.
        text: the line.
        style: of rich.
        soft_wrap: leave it to the terminal to break the line, so that paths can be copied from it.
    """
    if console.quiet and style in _SERIOUS:
        console = MESSAGES
    console.print(Text(displayed(text), style=style), soft_wrap=soft_wrap)


def conclude(console: Console, text: str) -> None:
    """Print the line that a study ends with, also where tables are not wanted."""
    before = console.quiet
    console.quiet = _wanted is Wanted.JSON
    try:
        say(console, text, "bold")
    finally:
        console.quiet = before


@contextmanager
def progress(what: str, total: int | None, console: Console = MESSAGES) -> Iterator[Callable[[float], None]]:
    """Show how far long work is, items/s and the time left: a bar on a terminal, a log line per tenth elsewhere.

    Args:
        what: a few words, in the present participle.
        total: items in all, or None where that is not known.
        console: where the bar goes.

    Yields:
        A function to call with the number of items just done, or parts of them; from any thread.
    """
    if _wanted is Wanted.QUIET:
        yield lambda items: None
        return
    if not console.is_terminal:
        yield _lines(what, total)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), _Speed())
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task(displayed(what), total=total)
        yield lambda items: bar.advance(task, items)


class _Speed(ProgressColumn):
    """Items per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{_rounded(speed)}/s", style="progress.data.speed")


def _rounded(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def _lines(what: str, total: int | None) -> Callable[[float], None]:
    count = shown = 0.0
    lock, begun = Lock(), time.monotonic()

    def advance(items: float) -> None:
        nonlocal count, shown
        with lock:
            count += items
            # where the end is not known a line comes with every doubling
            step = shown if total is None else total / 10
            if count < shown + step or count <= shown:
                return
            shown = count
            speed = count / max(time.monotonic() - begun, 1e-9)
            text = (
                f"{what}: {count:.0f}" + ("" if total is None else f" of {total}") + f", {_rounded(speed)}/s"
            )
            if total is not None and count < total:
                text += f", {_duration((total - count) / speed)} left"
            log.info("%s", text)

    return advance


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
