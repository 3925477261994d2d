"""The two consoles: results go to standard output; progress bars and log lines share the one on standard error."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache

from rich.console import Console
from rich.logging import RichHandler
from rich.text import Text

from ecjax.display import displayed
from ecjax.pipes import discard


class _ReadConsole(Console):
    """A console whose reader may go (``ecjax ... | head``): the command goes on and ends as it would have."""

    def on_broken_pipe(self) -> None:
        """Print no more."""
        self.quiet = True
        discard(self.file)


# a pipe or file has no width of its own, unless COLUMNS says one
OUTPUT: Console = _ReadConsole(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)
MESSAGES: Console = _ReadConsole(stderr=True)

log = logging.getLogger("ecjax")

_NEXT = "Next: ecjax "  # what a command in a recommendation begins with
_SERIOUS = ("red", "yellow")  # styles of errors and warnings


class OutputMode(Enum):
    """What a command prints: tables and log lines, what matters only, or an object for another program."""

    ALL = "all"
    QUIET = "--quiet"
    JSON = "--json"


_remarks: list[str] = []
_mode = OutputMode.ALL


def output_mode() -> OutputMode:
    """What the command that runs prints."""
    return _mode


@contextmanager
def printing(what: OutputMode) -> Iterator[None]:
    """Print this only, until the context is left."""
    global _mode
    before, level = (_mode, OUTPUT.quiet), log.level
    _mode, OUTPUT.quiet = what, what is not OutputMode.ALL
    try:
        yield
    finally:
        (_mode, OUTPUT.quiet) = before
        log.setLevel(level)


def show_log_lines() -> None:
    """Send ecjax's own log lines to ``MESSAGES``.

    Not by ``logging.config.dictConfig``: it closes the handlers of other libraries, and with them, under a test runner
    or notebook that replaced standard error, the stream.
    """
    log.handlers[:] = [log_handler(MESSAGES)]
    log.setLevel(logging.WARNING if _mode is OutputMode.QUIET else logging.INFO)
    log.propagate = False


@contextmanager
def log_lines_of_libraries() -> Iterator[None]:
    """Send what other libraries log to ``MESSAGES``, too, within the block: warnings, or what their levels let pass."""
    handler = log_handler(MESSAGES)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@lru_cache(maxsize=1024)
def say_once(text: str) -> None:
    """A log line that the points of a sweep have in common."""
    log.info("%s", text)


def log_handler(console: Console) -> logging.Handler:
    """What writes log lines to a console."""
    handler = RichHandler(console=console, show_path=False, log_time_format="%Y-%m-%d %H:%M:%S")
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


def remark(console: Console, text: str, style: str = "") -> None:
    """Say what a result assumes, or why it is to be doubted; it is kept beside the recommendation, too.

    Args:
        console: where.
        text: a sentence or more.
        style: of rich.
    """
    say(console, text, style)
    _remarks.append(text)


def taken_remarks() -> tuple[str, ...]:
    """The different remarks since these were last taken, in their order."""
    remarks = tuple(dict.fromkeys(_remarks))
    _remarks.clear()
    return remarks


def conclude(console: Console, text: str) -> None:
    """Print the sentences that a study ends with, also of a command without tables.

    The command that comes next is on a line of its own, which the terminal breaks: where we broke it, a shell would
    take what was copied for two commands.
    """
    before = console.quiet
    console.quiet = _mode is OutputMode.JSON
    sentences, separator, command = text.partition(f" {_NEXT}")
    try:
        say(console, sentences, "bold")
        if separator:
            say(console, f"{_NEXT}{command}", "bold", soft_wrap=True)
    finally:
        console.quiet = before
