"""What runs in a worker process of a Ray cluster."""

import os
import socket
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import ray

import ecjax
from ecjax.engine.limits import choose_device, limit_threads
from ecjax.engine.memory import usable_bytes, usable_on_host
from ecjax.engine.tasks import Task, Worker, attempt
from ecjax.errors import UserError

_KEPT = 4  # shared parts and functions that a worker remembers


class Answer(NamedTuple):
    """``Done`` without its task."""

    names: tuple[str, ...]  # of its items
    value: Any
    error: tuple[str, str | None] | None  # text, and where it was raised; None where it is the user's


class Description(NamedTuple):
    """A worker process: where it is, what it has, what it runs."""

    node: str
    node_cores: int
    version: str
    memory_bytes: float  # for arrays, of its GPU or of its whole node
    gpu: str  # what it is; "" where the worker has none


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
        self._cache: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._advanced = 0.0

    def describe(self) -> Description:
        """Where this is, once it is ready to work.

        Raises:
            RuntimeError: Ray gave it a GPU that JAX cannot use.
        """
        node, memory, gpu = socket.gethostname(), usable_on_host(), ""
        if self._gpus:
            import jax

            first = jax.devices()[0]
            if first.platform == "cpu":
                raise RuntimeError(
                    f"node {node}: JAX finds no GPU where Ray has one; install ecjax[cuda] there, or give "
                    "engine.gpus_per_actor=0"
                )
            memory, gpu = usable_bytes(), first.device_kind
        return Description(node, os.cpu_count() or 1, ecjax.__version__, memory, gpu)

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
        for outcome in attempt(self._fetched(function[0]), task, self._worker):
            trace = None if isinstance(outcome.error, UserError) else getattr(outcome.error, "trace", "")
            error = None if outcome.error is None else (str(outcome.error), trace)
            answers.append(Answer(tuple(outcome.task.items), outcome.value, error))
        return answers

    def advanced(self) -> float:
        """Items of the present task that are done."""
        return self._advanced

    def _advance(self, items: float) -> None:
        with self._lock:
            self._advanced += items

    def _fetched(self, reference: ray.ObjectRef) -> Any:
        key = reference.hex()
        if key not in self._cache:
            self._cache[key] = ray.get(reference)
            if len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return self._cache[key]
