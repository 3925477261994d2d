"""Streams whose reader goes, as standard output of ``ecjax ... | head`` does. Imports nothing heavy."""

import os
import select
from contextlib import suppress
from typing import IO


def discard(stream: IO[str] | None) -> None:
    """Have all that is still written to a stream go nowhere, also what it has buffered."""
    with suppress(OSError, ValueError, AttributeError):  # not every stream is a file of the system
        descriptor = stream.fileno()  # type: ignore[union-attr]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def is_read(stream: IO[str] | None) -> bool:
    """Whether somebody may still read what is written to a stream."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return True
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def write_out(stream: IO[str] | None, text: str = "") -> None:
    """Write a text, and all that a stream has buffered; where its reader has gone they go nowhere.

    Raises:
        OSError: they cannot be written, as on a full disk; what comes after goes nowhere.
    """
    if stream is None or stream.closed:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        discard(stream)
        if not isinstance(error, BrokenPipeError):
            raise
