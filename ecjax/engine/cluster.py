"""The engine on Ray: long-lived worker processes, on this machine or on the nodes of a cluster.

The driver hands tasks to workers that are ready. A worker is given its next task while it is busy only where tasks are
short: a task that is queued at a worker cannot be taken back.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ecjax.engine.joining import join

# after ``joining``, which tells Ray what it is to leave alone
import ray  # isort: skip
from ray.exceptions import RayError, RayTaskError  # isort: skip

from ecjax.engine.actor import Answer
from ecjax.engine.nodes import Nodes, Seen, now
from ecjax.engine.options import EngineOptions
from ecjax.engine.tasks import Done, Failed, Function, Lost, Task, halves
from ecjax.engine.worker_pool import Job, RemoteWorker, WorkerPool, text
from ecjax.errors import UserError
from ecjax.progress import detail

log = logging.getLogger("ecjax")

_SHORT_S = 0.2  # tasks below this are queued at a worker that is busy
_TICK_S = 1.0
_LONG_S = 2.0  # tasks above this are asked how far they are


@contextmanager
def joined(options: EngineOptions, accelerated: bool) -> Iterator["Cluster"]:
    """The engine while Ray is joined.

    Raises:
        UserError: the cluster cannot be joined, or has no room for a worker.
    """
    with join(options.address):
        cluster = Cluster(WorkerPool(options, accelerated), options.retries)
        try:
            yield cluster
        finally:
            cluster.close()


class Cluster:
    """Maps over the workers of a pool.

    Args:
        pool: the workers.
        retries: how often a task is tried again that was lost with its worker.
    """

    def __init__(self, pool: WorkerPool, retries: int) -> None:
        self._pool, self._retries = pool, retries
        self._last_poll = 0.0  # when workers were last asked how far they are
        self._nodes = Nodes()

    @property
    def workers(self) -> int:
        """How many workers there are to be."""
        return self._pool.size

    @property
    def memory_bytes(self) -> float:
        """Memory for the arrays of a worker; waits for the first one."""
        return self._pool.memory_bytes()

    def close(self) -> None:
        """Let the workers go; log lines say what was done where."""
        for one in list(self._pool.workers):
            self._pool.drop(one)
        for line in self._nodes.lines():
            log.info("%s", line)
        self._nodes = Nodes()

    def release(self) -> None:
        """See ``Engine.release``."""
        for one in [one for one in self._pool.workers if not one.jobs]:
            self._pool.drop(one)

    def map(
        self,
        function: Function,
        tasks: Sequence[Task],
        advance: Callable[[float], Any],
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """See ``Engine.map``. A worker runs one task at a time, whatever ``at_once`` says."""
        pool, waiting, sent = self._pool, deque(Job(task) for task in tasks), _Sent(function, tasks)
        took = _SHORT_S  # mean time of a task
        pool.forget_dead(_TICK_S)
        try:
            while waiting or any(one.jobs for one in pool.workers):
                pool.start(len(waiting) + sum(len(one.jobs) for one in pool.workers))
                _give(pool.ready, waiting, sent, queue=took < _SHORT_S)
                for one, reference in pool.look(_TICK_S):
                    if reference not in one.jobs:
                        continue  # it was lost with another task of its worker
                    seconds, shown = time.monotonic() - one.began, one.shown
                    one.began, one.shown = time.monotonic(), 0.0
                    job = one.jobs.pop(reference)
                    items = len(job.task.items)
                    try:
                        answers = ray.get(reference)
                        took += 0.1 * (seconds - took)
                        results = [_outcome(job.task, answer) for answer in answers]
                    except RayTaskError as error:
                        results = [Done(job.task, error=Failed(text(error)))]
                    except RayError as error:
                        again, results = self._lost(one, job, error)
                        waiting.extendleft(reversed(again))
                    if results and one.about is not None:
                        work = self._nodes.of(one.about.node)
                        work.items, work.busy_s = work.items + items, work.busy_s + seconds
                    advance((items if results else 0) - shown)
                    yield from results
                    if results:
                        sent.forget(job.task)
                self._show(advance)
        finally:
            # what was asked for and is not wanted any more would hold up the next map
            for one in [one for one in pool.workers if one.jobs]:
                pool.drop(one)

    def _lost(self, one: RemoteWorker, job: Job, error: RayError) -> tuple[list[Job], list[Done]]:
        """What is to be tried again after a worker died over a job; the job itself, if it is given up."""
        jobs = [job, *one.jobs.values()]
        if one.about is not None:
            self._nodes.of(one.about.node).lost += 1
        self._pool.drop(one)
        for each in jobs:
            each.alone = True
        again, given_up = jobs, list[Done]()
        what = "tried again"
        if len(jobs) > 1:
            # short ones: the first may have been done, and only its answer lost, when the next one began to kill
            what = "tried again, apart from each other"
        else:
            job.tries += 1
            if job.tries > self._retries and len(job.task.items) > 1:
                what = "tried again by halves"
                again = [Job(half, max(self._retries - 1, 0), alone=True) for half in halves(job.task)]
            elif job.tries > self._retries:
                what, again = "given up", []
                lost = Lost(f"its worker was lost, {job.tries} times: {text(error)}")
                given_up = [Done(job.task, error=lost)]
        log.warning("a worker is gone (%s); its runs, %d, are %s", text(error), _items(jobs), what)
        return again, given_up

    def _show(self, advance: Callable[[float], Any]) -> None:
        """Report the parts of long tasks that are done: ask now and then, and wait for no answer."""
        if time.monotonic() - self._last_poll < _TICK_S:
            return
        self._last_poll = time.monotonic()
        detail(now(Seen(one.about.node if one.about else "", bool(one.jobs)) for one in self._pool.workers))
        polls = {one.poll[0]: one for one in self._pool.workers if one.poll is not None}
        replies, _ = ray.wait(list(polls), num_returns=len(polls), timeout=0) if polls else ([], [])
        for reference in replies:
            one = polls[reference]
            assert one.poll is not None
            (_, began), one.poll = one.poll, None
            with suppress(RayError):
                progress = ray.get(reference)
                if began == one.began:  # of the task that runs now
                    advance(progress - one.shown)
                    one.shown = progress
        for one in self._pool.workers:
            if one.jobs and one.poll is None and time.monotonic() - one.began > _LONG_S:
                reference = one.handle.advanced.options(concurrency_group="watch").remote()
                one.poll = reference, one.began


class _Sent:
    """What tasks share, in the cluster's object store for as long as a task needs it."""

    def __init__(self, function: Function, tasks: Sequence[Task]) -> None:
        self.function = ray.put(function)
        self._references: dict[int, Any] = {}
        self._items_open: dict[int, int] = {}  # items that are not done
        for task in tasks:
            self._items_open[id(task.shared)] = self._items_open.get(id(task.shared), 0) + len(task.items)

    def shared(self, task: Task) -> Any:
        """Reference to what a task shares with others."""
        key = id(task.shared)
        if key not in self._references:
            self._references[key] = ray.put(task.shared)
        return self._references[key]

    def forget(self, task: Task) -> None:
        """A task is done; what it shared goes with the last one."""
        key = id(task.shared)
        self._items_open[key] -= len(task.items)
        if self._items_open[key] == 0:
            self._references.pop(key, None)


def _give(ready: list[RemoteWorker], waiting: deque[Job], sent: _Sent, queue: bool) -> None:
    """Give out jobs: one to each worker that has none; a second one while jobs are short and many are left."""
    for depth in (1, 2) if queue and len(waiting) > len(ready) else (1,):
        for one in ready:
            if not waiting or len(one.jobs) >= depth:
                continue
            if not one.jobs or not any(job.alone for job in (waiting[0], *one.jobs.values())):
                job = waiting.popleft()
                if not one.jobs:
                    one.began = time.monotonic()
                reference = one.handle.run.remote([sent.function], [sent.shared(job.task)], job.task.items)
                one.jobs[reference] = job


def _items(jobs: list[Job]) -> int:
    return sum(len(job.task.items) for job in jobs)


def _outcome(task: Task, answer: Answer) -> Done:
    part = Task(task.shared, {name: task.items[name] for name in answer.names})
    if answer.error is None:
        return Done(part, answer.value)
    words, trace = answer.error
    return Done(part, error=UserError(words) if trace is None else Failed(words, trace))
