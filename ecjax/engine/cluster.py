"""The engine on Ray: long-lived worker processes, on this machine or on the nodes of a cluster.

The driver hands tasks to workers that are ready, looks after them itself (Ray restarts nothing), and replaces workers
that die. A worker gets its next task while it is busy only where tasks are short: a queued task cannot be taken back.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import ecjax
from ecjax.engine.joining import gpus_in_cluster, join, places

# after ``joining``, which tells Ray what it is to leave alone
import ray  # isort: skip
from ray.exceptions import RayError, RaySystemError, RayTaskError  # isort: skip

from ecjax.engine.actor import Description, Runner
from ecjax.engine.opening import EngineOptions
from ecjax.engine.tasks import Done, Failed, Function, Lost, Task, halves
from ecjax.errors import UserError

log = logging.getLogger("ecjax")

_SHORT_S = 0.2  # tasks below this are queued at a worker that is busy
_TICK_S = 1.0
_PATIENCE_S = 600.0  # for the first worker: a cluster that grows has to start a node
_FAILED_STARTS = 4  # one after another; what they lack (memory, say) may come back
_LONGEST_PAUSE_S = 20.0
_USABLE, _USABLE_OF_GPU = (
    0.5,
    0.9,
)  # for arrays, of the memory that is free on a node (its workers share that), or of a GPU


@contextmanager
def joined(options: EngineOptions, accelerated: bool) -> Iterator["Cluster"]:
    """The engine while Ray is joined.

    Raises:
        UserError: the cluster cannot be joined, or has no room for a worker.
    """
    with join(options.address):
        cluster = Cluster(options, accelerated)
        try:
            yield cluster
        finally:
            cluster.close()


@dataclass
class _Job:
    """A task on its way."""

    task: Task
    tries: int = 0


@dataclass
class _Worker:
    """A worker process."""

    handle: Any
    ready: Any  # reference to its description
    about: Description | None = None
    jobs: dict[Any, _Job] = field(
        default_factory=dict
    )  # by reference to the answers, in order; the first runs
    began: float = 0.0
    shown: float = 0.0  # items of the running job that were reported as done


class Cluster:
    """Workers, and maps over them.

    Args:
        options: sizes and number of the workers.
        accelerated: whether the work gains from a GPU.

    Raises:
        UserError: the nodes have no room for a worker.
    """

    def __init__(self, options: EngineOptions, accelerated: bool) -> None:
        gpus = options.gpus_per_actor
        if gpus is None:
            gpus = 1.0 if accelerated and gpus_in_cluster() >= 1 else 0.0
        self._cores, self._gpus, self._retries = options.cpus_per_actor, gpus, options.retries
        room = places(self._cores, gpus)
        if options.address is None and room == 0:
            raise UserError(
                f"engine: found cpus_per_actor={self._cores}, gpus_per_actor={gpus:g}; allowed: what this machine has, "
                f"{_amounts(ray.cluster_resources())}"
            )
        self.workers = options.actors or max(room, 1)
        self._actors: list[_Worker] = []
        self._failed_starts = 0  # one after another
        self._next_start = 0.0  # not before
        self._begun = time.monotonic()

    @property
    def memory_bytes(self) -> float | None:
        """Memory of a worker for arrays: the least of those that are ready; waits for the first."""
        while not (found := [one.about for one in self._actors if one.about is not None]):
            self._start(1)
            self._look(_TICK_S)
        return min(
            about.memory_bytes
            * (
                _USABLE_OF_GPU
                if about.gpu
                else _USABLE / max(1, min(about.node_cores // self._cores, self.workers))
            )
            for about in found
        )

    def close(self) -> None:
        """Let the workers go."""
        for one in self._actors:
            with suppress(RayError):
                ray.kill(one.handle)
        self._actors.clear()

    def map(
        self,
        function: Function,
        tasks: Sequence[Task],
        advance: Callable[[float], Any],
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """See ``Engine.map``. A worker runs one task at a time, whatever ``at_once`` says."""
        waiting = deque(_Job(task) for task in tasks)
        sent = _Sent(function, tasks)
        took = _SHORT_S  # mean time of a task
        self._begun = time.monotonic()
        try:
            while waiting or any(one.jobs for one in self._actors):
                self._start(len(waiting) + sum(len(one.jobs) for one in self._actors))
                ready = [one for one in self._actors if one.about is not None]
                deep = 2 if took < _SHORT_S and len(waiting) > len(ready) else 1
                for depth in range(1, deep + 1):
                    for one in ready:
                        if waiting and len(one.jobs) < depth:
                            self._submit(one, waiting.popleft(), sent)
                for one, reference in self._look(_TICK_S):
                    if reference not in one.jobs:
                        continue  # it was lost with another task of its worker
                    seconds = time.monotonic() - one.began
                    shown, one.began, one.shown = one.shown, time.monotonic(), 0.0
                    job = one.jobs.pop(reference)
                    try:
                        answers = ray.get(reference)
                    except RayTaskError as error:
                        advance(len(job.task.items) - shown)
                        yield Done(job.task, error=Failed(_text(error.cause if error.cause else error)))
                        sent.forget(job.task)
                    except RayError as error:
                        advance(-shown)
                        again, given_up = self._lost(one, job, error)
                        waiting.extendleft(reversed(again))
                        if given_up is not None:
                            advance(len(job.task.items))
                            yield given_up
                            sent.forget(job.task)
                    else:
                        took += 0.1 * (seconds - took)
                        advance(len(job.task.items) - shown)
                        for answer in answers:
                            yield _done(job.task, answer)
                        sent.forget(job.task)
                self._show(advance)
        finally:
            # what was asked for and is not wanted any more would hold up the next map
            for one in [one for one in self._actors if one.jobs]:
                self._drop(one)

    def _start(self, wanted: int) -> None:
        """Have as many workers as are wanted and allowed, on nodes in turn."""
        while len(self._actors) < min(wanted, self.workers) and time.monotonic() >= self._next_start:
            handle = (
                ray.remote(concurrency_groups={"watch": 1})(Runner)  # type: ignore[call-overload]
                .options(
                    num_cpus=self._cores,
                    num_gpus=self._gpus,
                    max_restarts=0,
                    max_task_retries=0,
                    scheduling_strategy="SPREAD",
                )
                .remote(self._cores, self._gpus)
            )
            self._actors.append(_Worker(handle, handle.describe.remote()))

    def _submit(self, one: _Worker, job: _Job, sent: "_Sent") -> None:
        if not one.jobs:
            one.began = time.monotonic()
        reference = one.handle.run.remote([sent.function], [sent.shared(job.task)], job.task.items)
        one.jobs[reference] = job

    def _look(self, seconds: float) -> list[tuple[_Worker, Any]]:
        """Wait for something to happen; what is done, and by whom. Workers that became ready are marked."""
        place = {reference: one for one in self._actors for reference in one.jobs}
        starting = {one.ready: one for one in self._actors if one.about is None}
        references = [*place, *starting]
        if not references:
            time.sleep(0.1)  # until the next start
            return []
        found, _ = ray.wait(references, num_returns=1, timeout=seconds)
        if found:
            found, _ = ray.wait(references, num_returns=len(references), timeout=0)
        elif len(starting) == len(self._actors) and time.monotonic() - self._begun > _PATIENCE_S:
            raise UserError(
                f"engine: no worker of {self._cores} cores and {self._gpus:g} GPUs could be started in "
                f"{_PATIENCE_S:g} s; the cluster has {_amounts(ray.cluster_resources())}, of which "
                f"{_amounts(ray.available_resources())} are free"
            )
        for reference in found:
            if reference in starting:
                self._greet(starting[reference])
        return [(place[reference], reference) for reference in found if reference in place]

    def _greet(self, one: _Worker) -> None:
        """Look at a new worker."""
        try:
            about = ray.get(one.ready)
            if about.version != ecjax.__version__:
                raise RuntimeError(
                    f"node {about.node} has ecjax {about.version}, this machine {ecjax.__version__}; allowed: the same"
                )
        except Exception as error:
            self._drop(one)
            self._failed_starts += 1
            self._next_start = time.monotonic() + min(2.0**self._failed_starts, _LONGEST_PAUSE_S)
            cause = error.cause if isinstance(error, RayTaskError) and error.cause else error
            log.warning("a worker could not be started: %s", _text(cause))
            if self._failed_starts >= _FAILED_STARTS and not any(other.about for other in self._actors):
                raise UserError(f"engine: workers cannot be started: {_text(cause)}") from error
            return
        one.about, self._failed_starts = about, 0

    def _lost(self, one: _Worker, job: _Job, error: RayError) -> tuple[list[_Job], Done | None]:
        """What is to be tried again after a worker died over a job; the job itself, if it is given up."""
        others = list(one.jobs.values())  # were only queued there
        one.jobs.clear()
        self._drop(one)
        job.tries += 1
        log.warning("a worker is gone (%s); %d runs are tried again", _text(error), len(job.task.items))
        if job.tries <= self._retries:
            return [job, *others], None
        if len(job.task.items) > 1:
            return [_Job(half, max(self._retries - 1, 0)) for half in halves(job.task)] + others, None
        text = f"its worker was lost, {job.tries} times: {_text(error)}"
        return others, Done(job.task, error=Lost(text))

    def _drop(self, one: _Worker) -> None:
        with suppress(RayError):
            ray.kill(one.handle)
        if one in self._actors:
            self._actors.remove(one)

    def _show(self, advance: Callable[[float], Any]) -> None:
        """Report the parts of long tasks that are done."""
        asked = {
            one.handle.advanced.options(concurrency_group="watch").remote(): one
            for one in self._actors
            if one.jobs and time.monotonic() - one.began > 2 * _TICK_S
        }
        if not asked:
            return
        found, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_TICK_S)
        for reference in found:
            one = asked[reference]
            with suppress(RayError):
                done = ray.get(reference)
                advance(done - one.shown)
                one.shown = done


class _Sent:
    """What tasks share, in the cluster's object store for as long as a task needs it."""

    def __init__(self, function: Function, tasks: Sequence[Task]) -> None:
        self.function = ray.put(function)
        self._references: dict[int, Any] = {}
        self._left: dict[int, int] = {}  # items that are not done
        for task in tasks:
            self._left[id(task.shared)] = self._left.get(id(task.shared), 0) + len(task.items)

    def shared(self, task: Task) -> Any:
        """Reference to what a task shares with others."""
        key = id(task.shared)
        if key not in self._references:
            self._references[key] = ray.put(task.shared)
        return self._references[key]

    def forget(self, task: Task) -> None:
        """A task is done; what it shared goes with the last one."""
        key = id(task.shared)
        self._left[key] -= len(task.items)
        if self._left[key] == 0:
            self._references.pop(key, None)


def _done(task: Task, answer: Any) -> Done:
    part = Task(task.shared, {name: task.items[name] for name in answer.names})
    if answer.error is None:
        return Done(part, answer.value)
    text, trace = answer.error
    return Done(part, error=UserError(text) if trace is None else Failed(text, trace))


def _amounts(resources: dict[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} cores and {resources.get('GPU', 0):g} GPUs"


def _text(error: BaseException) -> str:
    """What Ray or a worker says, in one line, without the names that Ray gave things."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    if isinstance(error, RayError) and len(lines) > 1:
        # where a worker raised, its trace comes before what it raised
        raised = isinstance(error, RaySystemError) or "creation task" in lines[0]
        lines = lines[-1:] if raised else lines[1:]
    text = " ".join(" ".join(lines).split())
    return f"{type(error).__name__}: {text[:300]}"
