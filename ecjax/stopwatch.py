"""Time of a piece of work, and how much of it went into compiling, which the machine does once and not every time."""

import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_STAGES = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")


class Stopwatch:
    """Context that measures time, and how much of it went into compiling, by Numba and JAX.

    Loading machine code from a cache, and waiting for another thread that has a compiler, count as compiling. JAX has
    to be imported before the context is entered.

    Args:
        of_process: whether whatever any thread compiles meanwhile counts, or only what this one and those do that run a
            function that has ``joined``. The former is for work that has threads of its own and runs alone.

    Attributes:
        own_s: time without compiling.
        compile_s: time in which at least one of its threads compiled.
    """

    def __init__(self, *, of_process: bool = False) -> None:
        self.own_s = self.compile_s = 0.0
        self._threads = None if of_process else {get_ident()}
        self._intervals: list[tuple[float, float]] = []

    def joined(self, function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        """The same function; the thread that runs it counts meanwhile."""

        def run(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
            threads, thread = self._threads, get_ident()
            if threads is None or thread in threads:
                return function(*args, **kwargs)
            threads.add(thread)
            try:
                return function(*args, **kwargs)
            finally:
                threads.discard(thread)

        return run

    def __enter__(self) -> "Stopwatch":
        if "jax" in sys.modules:
            _watch_jax_always()
        self._began = time.perf_counter()
        _RUNNING.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _RUNNING.remove(self)
        ended = time.perf_counter()
        self.compile_s = covered(self._intervals, self._began, ended)
        self.own_s = ended - self._began - self.compile_s

    def hear(self, began: float, ended: float) -> None:
        """Count what the calling thread compiled between two times of ``time.perf_counter``."""
        if self._threads is None or get_ident() in self._threads:
            self._intervals.append((began, ended))


_RUNNING: list[Stopwatch] = []
_BEGAN: list[float] = []  # time.time() when the wait for what runs now began


def compiled(seconds: float) -> None:
    """Let the stopwatches that run hear that this thread has compiled for so long, until now."""
    ended = time.perf_counter()
    for stopwatch in list(_RUNNING):
        stopwatch.hear(ended - seconds, ended)


def wait_begins() -> None:
    """What this process runs next, a command of a sweep or a call from Python, is waited for from now on."""
    _BEGAN[:] = [time.time()]


def waited_since() -> float | None:
    """``time.time()`` when that wait began; None where it is as old as the process, of a command."""
    return _BEGAN[0] if _BEGAN else None


def covered(intervals: Iterable[tuple[float, float]], began: float, ended: float) -> float:
    """How much of the time between two moments lies in at least one of some intervals."""
    total, reached = 0.0, began
    for first, last in sorted(intervals):
        first, last = max(first, reached), min(last, ended)
        if last > first:
            total += last - first
            reached = last
    return total


@cache
def _watch_jax_always() -> None:
    """Let stopwatches hear of JAX from now on."""
    jax: Any = sys.modules["jax"]  # who does not need it does not import it here

    def ended(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith(_STAGES):
            compiled(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(ended)
