"""The replay of a proxy beside SimPy, on the same requests and delays.

Threads are processes of SimPy that take a task, wait until it is done or cancelled (an interrupt), and take the next.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np

from ecjax.adaptation.delays import BUILT_IN, tasks_of
from ecjax.adaptation.proxy import Strategy
from ecjax.adaptation.replay import PURPOSE, replay
from ecjax.machine_code import njit
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups import simpy_rivals
from ecjax.studies.bench.setups.adapt import READS, THREADS, named_strategies, poisson_requests

LAW = "shifted_exp"  # tasks are exponential and do not depend on each other
LOAD = 0.4


def beside_simpy(runner: Runner, name: str, requests: int) -> Iterator[Row]:
    """A strategy whose signal is the number that waits, by both; ours alone where SimPy is not installed."""
    model = BUILT_IN[LAW]
    strategy = named_strategies(model)[name]
    arrived = poisson_requests(model, LOAD, requests, runner.seed)
    tasks = tasks_of([READS], [model])

    def by_ecjax() -> np.ndarray:
        return replay(*arrived, tasks, strategy, THREADS, runner.seed).latency_s

    def prepare() -> simpy_rivals.Latencies:
        units = drawn(requests, int(strategy.n.max()), runner.seed)
        return partial(latencies, arrived.arrival_s, units, tasks.shift[0], tasks.scale[0], strategy, THREADS)

    for who, outcome, note in simpy_rivals.beside_simpy(runner, by_ecjax, prepare, "requests"):
        size = f"{name}: {requests:,} requests, {THREADS} threads"
        yield Row(f"{who} {name}", size, *outcome.timing, rows=requests, dtype="float64", note=note)


@njit()
def drawn(count: int, most: int, seed: int) -> np.ndarray:
    """Exponential numbers of the tasks of the requests of a replay, (count, most)."""
    numbers = np.empty((count, most))
    key = np.uint64(streams.key(seed, PURPOSE))
    for request in range(count):
        state = streams.stream(key, request)
        for task in range(most):
            numbers[request, task] = draws.exponential(draws.task_state(state, task + 1))
    return numbers


def latencies(
    arrival: np.ndarray,
    units: np.ndarray,
    shift: np.ndarray,
    scale: np.ndarray,
    strategy: Strategy,
    threads: int,
) -> np.ndarray:
    """Latency of every request in SimPy, s.

    Args:
        arrival: (N,) s.
        units: exponential numbers of the tasks, (N, largest n).
        shift: s, by k.
        scale: s, by k.
        strategy: of one class; its signal is the number that waits.
        threads: L.
    """
    import simpy

    world = simpy.Environment()
    waiting: deque = deque()  # requests
    tasks: deque = deque()  # (request, its number)
    idle: deque = deque()  # events of the threads that have nothing to do
    latency = np.empty(len(arrival))
    edges = strategy.edges[0]

    class Request:
        def __init__(self, number, n, k):
            self.number, self.n, self.k = number, n, k
            self.completed, self.running = 0, {}

    def wake(count):
        for _ in range(min(count, len(idle))):
            idle.popleft().succeed()

    def thread():
        while True:
            if not tasks:
                if not waiting:
                    event = world.event()
                    idle.append(event)
                    yield event
                    continue
                request = waiting.popleft()
                tasks.extend((request, number) for number in range(request.n))
                wake(request.n - 1)
            request, number = tasks.popleft()
            request.running[number] = world.active_process
            try:
                yield world.timeout(shift[request.k] + scale[request.k] * units[request.number, number])
            except simpy.Interrupt:
                continue
            del request.running[number]
            request.completed += 1
            if request.completed == request.k:
                latency[request.number] = world.now - arrival[request.number]
                for process in request.running.values():
                    process.interrupt()
                while tasks and tasks[0][0] is request:
                    tasks.popleft()

    def source():
        smoothed = 0.0
        for number, at in enumerate(arrival.tolist()):
            yield world.timeout(at - world.now)
            smoothed = strategy.memory * smoothed + (1 - strategy.memory) * len(waiting)
            level = int(np.searchsorted(edges, smoothed, side="right"))
            waiting.append(Request(number, int(strategy.n[0, level]), int(strategy.k[0, level])))
            wake(1)

    for _ in range(threads):
        world.process(thread())
    world.process(source())
    world.run()
    return latency
