"""Processes that start together compile a function once: while one of them does, the others wait for its code.

Numba looks for code in its cache before it compiles, and does not mind that another process is compiling the same:
workers of Ray, of a sweep or of tests, which all need the same functions first, would each take minutes for them.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from ecjax.stopwatch import compiled

_LONGEST_S = 240.0  # who has a lock for longer may be halted: others go on without it
_EVERY_S = 0.05


def compile_alone(dispatcher: Dispatcher, folder: Path, kind: str = "") -> None:
    """Let a function be compiled by one process at a time.

    Args:
        dispatcher: the function.
        folder: where its code is kept. The files that are locked are in one beside it, the same for all versions.
        kind: of code, where a function has several.
    """
    compile_function: Callable[[Any], Any] = dispatcher.compile
    function = dispatcher.py_func
    name = f"{folder.name.rpartition('-')[0]} {function.__qualname__}{kind}"
    path = folder.parent / "locks" / hashlib.sha256(name.encode()).hexdigest()[:16]
    locked = False

    def compile_one(signature: Any) -> Any:
        nonlocal locked
        began = time.perf_counter()
        try:
            # Numba's own first, which all threads of a process share: none that waits for it has the lock of a function
            with global_compiler_lock:
                if locked:  # a function that calls itself
                    return compile_function(signature)
                with _lock(path, dispatcher):
                    locked = True
                    try:
                        return compile_function(signature)
                    finally:
                        locked = False
        finally:
            compiled(time.perf_counter() - began)

    setattr(dispatcher, "compile", compile_one)  # noqa: B010  (Numba asks the instance)


@contextmanager
def _lock(path: Path, dispatcher: Dispatcher) -> Iterator[None]:
    """Have the lock of a file; not where it cannot be had, or is held for long. It ends with its process."""
    lock = FileLock(path)
    with suppress(OSError, NotImplementedError, Timeout):  # a folder for others, a file system without locks
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:  # whoever counts and announces what Numba compiles hears of the wait
            with event.trigger_event("numba:compile", data={"dispatcher": dispatcher}):
                lock.acquire(timeout=_LONGEST_S, poll_interval=_EVERY_S)
    try:
        yield
    finally:
        lock.release()
