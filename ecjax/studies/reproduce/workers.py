"""Processes of this machine that run functions side by side, for work that Python does in one thread.

A process is started as a module, not forked (JAX has threads) nor by ``multiprocessing`` (which runs the main program
again); it ends with the connection to it, however that ends.
"""

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from ecjax.garbage import collect_seldom

# a GPU that several processes share: none takes most of its memory at once
_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
_PATIENCE_S = 5.0


class WorkerEnded(RuntimeError):
    """A process ended while it ran a function: for want of memory, or by a signal."""


class Here(Executor):
    """Runs a function when it is submitted, in this process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        """The result of a function, computed."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class Workers(Executor):
    """Some processes, started as they are needed.

    Args:
        count: how many at most.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._lock = Lock()
        self._idle: list[_Worker] = []  # the one that was used last is taken first
        self._all: list[_Worker] = []
        self._over = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        """The result of a function that another process can import.

        The future raises WorkerEnded if its process ends, and what the function raises.
        """
        return self._threads.submit(self._answer, function, arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, whatever they are at."""
        with self._lock:
            self._over = True
        for worker in self._all:
            worker.end()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _answer(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        worker = self._worker()
        try:
            answer = worker.answer(function, arguments)
        except (EOFError, OSError):
            raise WorkerEnded(worker.how_it_ended()) from None
        with self._lock:
            self._idle.append(worker)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _worker(self) -> "_Worker":
        with self._lock:
            if self._over:
                raise WorkerEnded("the command ends")
            if self._idle:
                return self._idle.pop()
            self._all.append(_Worker())
            return self._all[-1]


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes for as long as the context lasts; for a count of 1 this one."""
    with Here() if count == 1 else Workers(count) as executor:
        yield executor


class _Worker:
    """A process, and the connection to it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ecjax.studies.reproduce.workers", str(theirs.fileno())],
                env=_SHARED_GPU | os.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is answered by the command, which ends it
            )

    def answer(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """What the function returns, or the exception that it raises."""
        self._connection.send((function, arguments))
        return self._connection.recv()

    def how_it_ended(self) -> str:
        """In words."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S)
        code = self._process.poll()
        return "its process was ended" + (f" by signal {-code}" if code and code < 0 else "")

    def end(self) -> None:
        """End it at once; what it has not written is lost as it is after a kill."""
        self._process.kill()
        self._process.wait()
        self._connection.close()


def _serve(connection: Connection) -> None:
    """Answer until the other end is closed, which ends the process whatever it is at."""
    requests: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                requests.put(connection.recv_bytes())
        os._exit(0)

    Thread(target=listen, daemon=True).start()
    while True:
        connection.send_bytes(_reply(requests.get()))


def _reply(request: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(request)
        return pickle.dumps(function(*arguments))
    except Exception as error:  # raised again where the answer is read
        with suppress(Exception):
            dumped = pickle.dumps(error)
            pickle.loads(dumped)
            return dumped
        return pickle.dumps(RuntimeError("".join(traceback.format_exception(error))))


if __name__ == "__main__":
    collect_seldom()
    _serve(Connection(int(sys.argv[1])))
