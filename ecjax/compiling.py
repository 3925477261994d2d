"""Compilation said as such: what Numba and JAX compile is announced, counted and timed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Any

from ecjax.console import log

_PATIENCE_S = 0.5  # a program that is loaded from the cache is there before
_EVERY_S = 5.0  # between two lines
_BACKEND = "backend_compile_duration"


class Compilation:
    """What has been compiled since the context was entered.

    Attributes:
        seconds: time in which at least one thread compiled (Numba) or traced and compiled (JAX).
        programs: how many functions and programs.
    """

    def __init__(self, say: Callable[[str], None] = log.info) -> None:
        self.seconds, self.programs = 0.0, 0
        self._say = say
        self._lock = Lock()
        self._compiling, self._since, self._said = 0, 0.0, 0.0
        self._waiting = False  # whether a timer runs
        self._over = False

    def begun(self) -> None:
        """A compiler begins."""
        with self._lock:
            if not self._compiling:
                self._since = time.perf_counter()
            self._compiling += 1
            wait = self._said == 0.0 and self._compiling == 1 and not self._waiting
            self._waiting |= wait
        if wait:
            self._announce_later()

    def ended(self) -> None:
        """A compiler ends."""
        with self._lock:
            self._compiling = max(0, self._compiling - 1)
            self.programs += 1
            now = time.perf_counter()
            seconds = self.seconds + now - self._since  # also of what is still being compiled around this
            if not self._compiling:
                self.seconds = seconds
            say = self._said and now - self._said > _EVERY_S
            if say:
                self._said = now
        if say:
            self._say(f"compiling: {self.programs} programs, {seconds:.0f} s so far")

    def over(self) -> None:
        """Nothing is announced from here on."""
        self._over = True

    def _announce_later(self) -> None:
        timer = Timer(_PATIENCE_S, self._announce)
        timer.daemon = True
        timer.start()

    def _announce(self) -> None:
        """Say it once, if a compiler has been at it for as long as that."""
        with self._lock:
            busy = self._compiling > 0 and not self._over
            say = busy and time.perf_counter() - self._since >= _PATIENCE_S
            again = busy and not say
            self._waiting = again
            if say:
                self._said = time.perf_counter()
        if say:
            self._say("compiling, once per installation")
        elif again:
            self._announce_later()


@contextmanager
def announced(say: Callable[[str], None] = log.info) -> Iterator[Compilation]:
    """Watch the compilers that are imported already, until the context is left.

    Args:
        say: hears that they are busy.
    """
    compilation = Compilation(say)
    undo = [watch(compilation) for name, watch in _WATCHED.items() if name in sys.modules]
    try:
        yield compilation
    finally:
        compilation.over()
        for stop in undo:
            stop()


def _watch_numba(compilation: Compilation) -> Any:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            compilation.begun()

        def on_end(self, event: Any) -> None:
            compilation.ended()

    listener = Listener()
    event.register("numba:compile", listener)
    return lambda: event.unregister("numba:compile", listener)


def _watch_jax(compilation: Compilation) -> Any:
    import jax

    def requested(event: str, **_: str | int) -> None:
        if event.endswith("compile_requests_use_cache"):
            compilation.begun()

    def ended(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith(_BACKEND):
            compilation.ended()

    jax.monitoring.register_event_listener(requested)
    jax.monitoring.register_event_duration_secs_listener(ended)

    def stop() -> None:
        jax.monitoring.unregister_event_listener(requested)
        jax.monitoring.unregister_event_duration_listener(ended)

    return stop


_WATCHED = {"numba": _watch_numba, "jax": _watch_jax}
