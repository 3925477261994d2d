"""The worker processes on Ray: they are started, looked at, replaced when they die.

Ray restarts nothing by itself: a worker that comes back somewhere would be waited for, while others have time.
"""

import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError, RaySystemError, RayTaskError

import ecjax
from ecjax.engine.actor import Description, Runner
from ecjax.engine.joining import gpus_in_cluster, places
from ecjax.engine.options import EngineOptions
from ecjax.engine.tasks import Task
from ecjax.errors import UserError

log = logging.getLogger("ecjax")

_RECOUNT_S = 10.0
_PATIENCE_S = 600.0  # for the first worker: a cluster that grows has to start a node
_SAID_S = 10.0  # without a worker: why is said then
_FAILED_STARTS = 4  # one after another; what they lack (memory, say) may come back
_LONGEST_PAUSE_S = 20.0


@dataclass
class Job:
    """A task on its way.

    Attributes:
        task: what to do.
        tries: workers that died over it.
        alone: it was on a worker that died: nothing else is to be where it is, so that it is known what kills.
    """

    task: Task
    tries: int = 0
    alone: bool = False


@dataclass
class RemoteWorker:
    """A worker process.

    Attributes:
        handle: Ray's.
        ready: reference to its description.
        about: its description, once it is ready.
        jobs: what it was given, by reference to the answers, in order; the first runs, the others are queued there.
        began: when the first one began, s of the monotonic clock.
        shown: items of the first one that were reported as done.
        poll: reference to how many there are by now, and ``began`` of that time.
    """

    handle: Any
    ready: Any
    about: Description | None = None
    jobs: dict[Any, Job] = field(default_factory=dict)
    began: float = 0.0
    shown: float = 0.0
    poll: tuple[Any, float] | None = None


class WorkerPool:
    """All workers of an engine.

    Args:
        options: their sizes and number.
        accelerated: whether the work gains from a GPU.

    Raises:
        UserError: this machine has no room for a worker. A cluster may grow.
    """

    def __init__(self, options: EngineOptions, accelerated: bool) -> None:
        gpus = options.gpus_per_actor
        if gpus is None:
            gpus = 1.0 if accelerated and gpus_in_cluster() >= 1 else 0.0
        self._cores, self._gpus = options.cpus_per_actor, gpus
        self._actors, self._room, self._counted = options.actors, 0, -math.inf
        self._failed_starts = 0  # one after another
        self._next_start = 0.0  # not before
        self._alone_since = time.monotonic()  # without a worker that is ready
        self._said = False  # that no node has room
        self.workers: list[RemoteWorker] = []
        if options.address is None and self._places() == 0:
            raise UserError(
                f"engine: found cpus_per_actor={self._cores}, gpus_per_actor={gpus:g}; allowed: what this machine has, "
                f"{_amounts(ray.cluster_resources())}"
            )

    @property
    def size(self) -> int:
        """How many workers there are to be: as many as were asked for, else as many as the nodes have room for now."""
        return self._actors or max(self._places(), 1)

    def _places(self) -> int:
        if time.monotonic() - self._counted > _RECOUNT_S:  # clusters grow
            self._room, self._counted = places(self._cores, self._gpus), time.monotonic()
        return self._room

    @property
    def ready(self) -> list[RemoteWorker]:
        """Those that can work."""
        return [one for one in self.workers if one.about is not None]

    def memory_bytes(self) -> float:
        """Memory for the arrays of a worker: the least of those that are ready; waits for the first of them."""
        while not self.ready:
            self.start(1)
            self.look(1.0)
        return min(self._memory_of(one.about) for one in self.ready if one.about is not None)

    def _memory_of(self, about: Description) -> float:
        workers = 1 if about.gpu else max(1, min(about.node_cores // self._cores, self.size))
        return about.memory_bytes / workers

    def start(self, number: int) -> None:
        """Have so many workers, if there are to be so many; on nodes in turn."""
        if not self.workers:
            self._alone_since = time.monotonic()
        while len(self.workers) < min(number, self.size) and time.monotonic() >= self._next_start:
            handle = process(self._cores, self._gpus)
            self.workers.append(RemoteWorker(handle, handle.describe.remote()))

    def forget_dead(self, seconds: float) -> None:
        """Let go of workers that died while they had nothing to do, before a job is lost with them."""
        idle = [one for one in self.ready if not one.jobs]
        polls = {one.handle.advanced.options(concurrency_group="watch").remote(): one for one in idle}
        answered, _ = ray.wait(list(polls), num_returns=len(polls), timeout=seconds) if polls else ([], [])
        for reference in answered:
            try:
                ray.get(reference)
            except RayError as error:
                log.warning("a worker is gone (%s); nothing ran there", text(error))
                self.drop(polls[reference])

    def look(self, seconds: float) -> list[tuple[RemoteWorker, Any]]:
        """Wait for something to happen: workers that became ready are let in; references to answers, and by whom.

        Raises:
            UserError: no worker can be started.
        """
        if self.ready:
            self._alone_since = time.monotonic()
        answers = {reference: one for one in self.workers for reference in one.jobs}
        starting = {one.ready: one for one in self.workers if one.about is None}
        references = [*answers, *starting]
        if not references:
            time.sleep(0.1)  # until the next start
            return []
        replies, _ = ray.wait(references, num_returns=1, timeout=seconds)
        if replies:
            replies, _ = ray.wait(references, num_returns=len(references), timeout=0)
        elif not self.ready and time.monotonic() - self._alone_since > _PATIENCE_S:
            raise UserError(
                f"engine: no worker of {self._cores} cores and {self._gpus:g} GPUs could be started in "
                f"{_PATIENCE_S:g} s; the cluster has {_amounts(ray.cluster_resources())}, of which "
                f"{_amounts(ray.available_resources())} are free"
            )
        elif not self.ready and not self._said and time.monotonic() - self._alone_since > _SAID_S:
            self._said = True
            if self._places() == 0:
                log.warning(
                    "no node has room for a worker of %d cores and %g GPUs, the whole cluster has %s: waiting for one "
                    "to join, at most %g s",
                    *(self._cores, self._gpus, _amounts(ray.cluster_resources()), _PATIENCE_S),
                )
        for reference in replies:
            if reference in starting:
                self._let_in(starting[reference])
        return [(answers[reference], reference) for reference in replies if reference in answers]

    def _let_in(self, one: RemoteWorker) -> None:
        try:
            about = ray.get(one.ready)
            if about.version != ecjax.__version__:
                raise RuntimeError(
                    f"node {about.node} has ecjax {about.version}, this machine {ecjax.__version__}; allowed: the same"
                )
        except Exception as error:
            self.drop(one)
            log.warning("a worker could not be started: %s", text(error))
            if time.monotonic() >= self._next_start:  # those that were started together count once
                self._failed_starts += 1
                pause = min(2.0 ** min(self._failed_starts, 10), _LONGEST_PAUSE_S)
                self._next_start = time.monotonic() + pause
            if self._failed_starts >= _FAILED_STARTS and not self.workers:
                raise UserError(f"engine: workers cannot be started: {text(error)}") from error
            return
        one.about, self._failed_starts = about, 0

    def drop(self, one: RemoteWorker) -> None:
        """Let a worker go; what it was given is forgotten."""
        one.jobs.clear()
        with suppress(RayError):
            ray.kill(one.handle)
        if one in self.workers:
            self.workers.remove(one)


def process(cores: int, gpus: float, **more: Any) -> Any:
    """Start a worker process; Ray's handle of it.

    Args:
        cores: of it.
        gpus: of it.
        more: options of the Ray actor that are to be others.
    """
    options = {"num_cpus": cores, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
    options |= {"scheduling_strategy": "SPREAD"} | more
    actor = ray.remote(concurrency_groups={"watch": 1})(Runner)  # type: ignore[call-overload]
    return actor.options(**options).remote(cores, gpus)


def _amounts(resources: dict[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} cores and {resources.get('GPU', 0):g} GPUs"


def text(error: BaseException) -> str:
    """What Ray or a worker says, in one line, without the names that Ray gave things."""
    if isinstance(error, RayTaskError) and error.cause is not None:
        error = error.cause
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    if isinstance(error, RayError) and len(lines) > 1:
        # where a worker raised, its trace comes before what it raised
        raised = isinstance(error, RaySystemError) or "creation task" in lines[0]
        lines = lines[-1:] if raised else lines[1:]
    words = " ".join(" ".join(lines).partition("Some common causes")[0].split())
    return f"{type(error).__name__}: {words[:300]}"
