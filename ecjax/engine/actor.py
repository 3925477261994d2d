"""What runs in a worker process of a Ray cluster."""

import socket
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import psutil
import ray

import ecjax
from ecjax.engine.limits import choose_device, limit_threads
from ecjax.engine.tasks import Task, Worker, attempt
from ecjax.errors import UserError

_KEPT = 4  # shared parts and functions that a worker remembers


class Answer(NamedTuple):
    """``Done`` without its task: the names of its items, the value, and what went wrong, by kind and text."""

    names: tuple[str, ...]
    value: Any
    error: tuple[str, str] | None


class Description(NamedTuple):
    """A worker process: where it is, what it has, what it runs."""

    node: str
    version: str
    memory_bytes: int  # of its node, or of its device
    device: str  # "" where the worker has no GPU


class Runner:
    """Runs tasks one after another, and keeps what they share and what was compiled.

    Args:
        cores: threads for its work.
        gpus: GPUs that Ray gave it.
    """

    def __init__(self, cores: int, gpus: float) -> None:
        limit_threads(cores)
        choose_device(gpus)
        self._gpus = gpus
        self._pool = ThreadPoolExecutor(cores)
        self._worker = Worker(self._pool, cores, self._advance, remote=True)
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._advanced = 0.0

    def describe(self) -> Description:
        """Where this is, once it is ready to work."""
        if self._gpus == 0:
            memory, device = psutil.virtual_memory().available, ""
        else:
            import jax

            first = jax.devices()[0]
            memory, device = (first.memory_stats() or {}).get("bytes_limit", 0), first.device_kind
        return Description(socket.gethostname(), ecjax.__version__, memory, device)

    def run(
        self, function: list[ray.ObjectRef], shared: list[ray.ObjectRef], items: dict[str, Any]
    ) -> list[Answer]:
        """Do items.

        Args:
            function: one reference, to the function; in a list, so that it is fetched here, and only once.
            shared: likewise, to what the items share.
            items: by name.
        """
        with self._lock:
            self._advanced = 0.0
        task = Task(self._fetched(shared[0]), items)
        answers = []
        for done in attempt(self._fetched(function[0]), task, self._worker):
            kind = "user" if isinstance(done.error, UserError) else "failed"
            error = None if done.error is None else (kind, str(done.error))
            answers.append(Answer(tuple(done.task.items), done.value, error))
        return answers

    def advanced(self) -> float:
        """Items of the present task that are done."""
        return self._advanced

    def _advance(self, items: float) -> None:
        with self._lock:
            self._advanced += items

    def _fetched(self, reference: ray.ObjectRef) -> Any:
        key = reference.hex()
        if key not in self._kept:
            self._kept[key] = ray.get(reference)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]
