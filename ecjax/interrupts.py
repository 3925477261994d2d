"""Ctrl-C, and what ends jobs elsewhere (SIGTERM), is answered soon, whatever the process is at. Imports nothing heavy.

Python turns the signal into an exception between two instructions of the main thread. One that waits for threads in
compiled code, or is in such code itself, gets there late; what is not yet written then is lost as it is after a kill,
and the next command clears it away.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
LINE = "ecjax: interrupted; what was finished is kept, and the same command goes on from there"
_PATIENCE_S = 1.5  # for an end in good order
_SHOW_CURSOR = "\x1b[?25h"  # which a progress bar hides

_farewells: list[Callable[[], object]] = []


class Terminated(KeyboardInterrupt):
    """The process was told to end, by SIGTERM."""


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Of a command that this has ended."""
    return EXIT_TERMINATED if isinstance(interrupt, Terminated) else EXIT_INTERRUPTED


@contextmanager
def answered() -> Iterator[None]:
    """End the process with exit code 130 and ``LINE`` if Ctrl-C has not ended it soon after, and 143 after SIGTERM.

    Only in the main thread, which alone may watch signals; elsewhere nothing happens.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGTERM, _terminate)
    threading.Thread(target=_watch, args=(read,), daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        signal.set_wakeup_fd(before)
        os.close(write)


@contextmanager
def same_answer() -> Iterator[None]:
    """Of a library that answers SIGTERM in its own way from within the block the answer is as it was before.

    Where nobody had one, as in a program that uses ecjax as a library, the library's stays.
    """
    before = signal.getsignal(signal.SIGTERM)
    yield
    if before is _terminate and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> None:
    raise Terminated


@contextmanager
def farewell(say: Callable[[], object]) -> Iterator[None]:
    """Call a function if the process is ended while the context is not left."""
    _farewells.append(say)
    try:
        yield
    finally:
        _farewells.remove(say)


def end_now(code: int) -> None:
    """End the process without waiting for its threads; what is buffered is written."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _watch(read: int) -> None:
    """Wait for one of these signals, or for the end of the pipe."""
    while signals := os.read(read, 256):
        if signal.SIGINT in signals or signal.SIGTERM in signals:
            _end_soon(read, EXIT_INTERRUPTED if signal.SIGINT in signals else EXIT_TERMINATED)
            break
    os.close(read)


def _end_soon(read: int, code: int) -> None:
    """Give the process its time to end in good order, then end it."""
    if _closed_within(read, _PATIENCE_S):
        return
    for say in _farewells:
        with suppress(Exception):
            say()
    with suppress(OSError, ValueError):
        cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
        sys.stderr.write(f"{cursor}\n{LINE}\n" if cursor else f"{LINE}\n")
    end_now(code)


def _closed_within(read: int, seconds: float) -> bool:
    """Whether the other end of a pipe is closed in time; further signals do not matter."""
    poll = select.poll()
    poll.register(read, select.POLLHUP)
    return bool(poll.poll(1000 * seconds))
