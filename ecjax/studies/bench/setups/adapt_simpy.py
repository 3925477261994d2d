"""The replay of a proxy beside SimPy, a general simulator, on the same requests and delays.

SimPy gets all that is random ready-made, and counts nothing but latencies. Threads are processes that take a task, wait
until it is done or cancelled (an interrupt), and take the next.
"""

import time
from collections import deque
from importlib.util import find_spec

import numba
import numpy as np

from ecjax.adapt.arrivals import Requests
from ecjax.adapt.delays import DelayModel, tasks_of
from ecjax.adapt.proxy import RequestClass, Strategy
from ecjax.adapt.replay import PURPOSE, replay
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import side_by_side

SIMPY_REQUESTS = 10_000


def beside_simpy(
    name: str,
    strategy: Strategy,
    given: RequestClass,
    model: DelayModel,
    requests: Requests,
    threads: int,
    settings: Settings,
) -> list[Row]:
    """A replay by both, with the ratio of their speeds; ours alone where SimPy is not installed.

    Args:
        name: of the strategy.
        strategy: its signal is the number that waits.
        given: the one class of the requests.
        model: exponential, and tasks do not depend on each other.
        requests: to replay.
        threads: L.
        settings: of the benchmark.
    """
    count = len(requests.arrival_s)
    tasks = tasks_of([given], [model])
    paths: dict[str, np.ndarray] = {}

    def by_ecjax() -> float:
        began = time.perf_counter()
        paths["ecjax"] = replay(*requests, tasks, strategy, threads, settings.seed).latency_s
        return time.perf_counter() - began

    variants = {"ecjax": by_ecjax}
    if find_spec("simpy"):
        units = drawn(count, int(strategy.n.max()), settings.seed)

        def by_simpy() -> float:
            began = time.perf_counter()
            paths["SimPy"] = latencies(
                requests.arrival_s, units, tasks.shift[0], tasks.scale[0], strategy, threads
            )
            return time.perf_counter() - began

        variants["SimPy"] = by_simpy
    times = side_by_side(variants, settings.repeats)
    notes = {"ecjax": "SimPy is not installed: nothing to compare with"}
    if "SimPy" in times:
        ratio = times["SimPy"].min_s / times["ecjax"].min_s
        apart = np.abs(paths["SimPy"] - paths["ecjax"]).max()
        notes = {
            "ecjax": f"{ratio:,.0f} times as fast as SimPy; no latency differs by more than {apart:.1g} s",
            "SimPy": f"{count / times['SimPy'].min_s:,.0f} requests/s; nothing is drawn, latencies only",
        }
    size = f"{name}: {count:,} requests, {threads} threads"
    return [
        Row(
            variant=f"{who} {name}",
            size=size,
            rows=count,
            dtype="float64",
            note=notes[who],
            **timing._asdict(),
        )
        for who, timing in times.items()
    ]


@numba.njit(cache=True)
def drawn(count: int, most: int, seed: int) -> np.ndarray:
    """Exponential numbers of the tasks of the requests of a replay, (count, most)."""
    found = np.empty((count, most))
    key = np.uint64(streams.key(seed, PURPOSE))
    for request in range(count):
        state = streams.stream(key, request)
        for task in range(most):
            found[request, task] = draws.exponential(draws.task_state(state, task + 1))
    return found


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
    found = np.empty(len(arrival))
    edges = strategy.edges[0]

    class Request:
        def __init__(self, number, n, k):
            self.number, self.n, self.k = number, n, k
            self.done, self.running = 0, {}

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
            request.done += 1
            if request.done == request.k:
                found[request.number] = world.now - arrival[request.number]
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
    return found
