"""A slow simulator of the proxy in plain Python: a heap of events, two queues, and threads that each hold a task.

Rules
- All completions of a time are taken before anything starts or arrives at that time; so a request whose k-th completion
  falls on the time at which another of its tasks could start does not start it.
- Then idle threads take, one by one, the first task of the task queue or, where that is empty, the first task of the
  first request of the request queue, whose other tasks join the task queue.
- Then requests of that time arrive, in their order, each after the one before has been admitted if it could be: the
  signal is that of the state in between, the arriving request not counted.
- Tasks of one request are numbered in the order in which they were created, which is that in which they start.
"""

import heapq
from collections import deque
from typing import NamedTuple

import numpy as np

COMPLETION, ARRIVAL = range(2)  # the order of events at one time


class Task:
    def __init__(self, request, number, start_s, delay_s):
        self.request, self.number, self.start_s = request, number, start_s
        self.due_s = self.end_s = start_s + delay_s
        self.cancelled = False


class Request:
    def __init__(self, number, arrival_s, background, level, n, k):
        self.number, self.arrival_s, self.background = number, arrival_s, background
        self.level, self.n, self.k = level, n, k
        self.completed = 0
        self.admitted_s = self.done_s = None


class Run(NamedTuple):
    """All requests, and all tasks that were started, in the order of their start."""

    requests: list
    tasks: list
    signal: list  # at every arrival, smoothed

    @property
    def latency_s(self):
        return np.array([request.done_s - request.arrival_s for request in self.requests])

    @property
    def admitted_s(self):
        return np.array([request.admitted_s for request in self.requests])

    @property
    def level(self):
        return np.array([request.level for request in self.requests])

    @property
    def busy_s(self):
        return sum(task.end_s - task.start_s for task in self.tasks)


class Proxy:
    """The state of a proxy; ``delay(i, j, k)`` is the delay of task j of request i with dimension k, s."""

    def __init__(self, threads, delay):
        self.delay = delay
        self.threads = [None] * threads  # the task that each serves
        self.request_queue, self.task_queue = deque(), deque()
        self.in_system = 0
        self.events, self.tasks = [], []

    def signals(self):
        """Waiting, in system, idle."""
        return len(self.request_queue), self.in_system, self.threads.count(None)

    def start(self, now, thread, request, number):
        task = Task(request, number, now, self.delay(request.number, number, request.k))
        self.threads[thread] = task
        self.tasks.append(task)
        heapq.heappush(self.events, (task.due_s, COMPLETION, len(self.tasks), thread, task))

    def dispatch(self, now):
        """Give work to idle threads as long as there is any."""
        while None in self.threads and (self.task_queue or self.request_queue):
            if not self.task_queue:
                request = self.request_queue.popleft()
                request.admitted_s = now
                self.task_queue.extend((request, number) for number in range(request.n))
            self.start(now, self.threads.index(None), *self.task_queue.popleft())

    def complete(self, now, thread, task):
        if task.cancelled:
            return
        self.threads[thread] = None
        request = task.request
        request.completed += 1
        if request.completed != request.k:
            return
        request.done_s = now
        self.in_system -= 1
        if not request.background:
            self.cancel(now, request)

    def cancel(self, now, request):
        """Stop what a request has running, except for what completes at this very time; forget what waits."""
        for thread, task in enumerate(self.threads):
            if task is not None and task.request is request and task.due_s > now:
                task.cancelled, task.end_s = True, now
                self.threads[thread] = None
        self.task_queue = deque(entry for entry in self.task_queue if entry[0] is not request)

    def arrive(self, request):
        self.in_system += 1
        self.request_queue.append(request)


def level_of(edges, value):
    """Level m has edges[m - 1] <= value < edges[m]."""
    level = 0
    while level < len(edges) and edges[level] <= value:
        level += 1
    return level


def simulate(arrival_s, class_of, delay, strategy, threads, background):
    """Replay requests; ``background`` per class, the others as of ``ecjax.adaptation.replay``."""
    proxy = Proxy(threads, delay)
    for number, time in enumerate(arrival_s):
        heapq.heappush(proxy.events, (float(time), ARRIVAL, number, None, None))
    requests, signal, smoothed = [], [], 0.0
    while proxy.events:
        now, kind, order, thread, task = heapq.heappop(proxy.events)
        if kind == COMPLETION:
            proxy.complete(now, thread, task)
            if not proxy.events or proxy.events[0][:2] != (now, COMPLETION):
                proxy.dispatch(now)
            continue
        value = proxy.signals()[strategy.signal]
        smoothed = strategy.memory * smoothed + (1 - strategy.memory) * value
        signal.append(smoothed)
        c = int(class_of[order])
        level = level_of(strategy.edges[c], smoothed)
        code = int(strategy.n[c, level]), int(strategy.k[c, level])
        requests.append(Request(order, now, background[c], level, *code))
        proxy.arrive(requests[-1])
        proxy.dispatch(now)
    return Run(requests, proxy.tasks, signal)
