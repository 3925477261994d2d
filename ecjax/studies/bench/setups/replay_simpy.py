"""The replay of a plan beside SimPy: a resource per node is SimPy's own way of a queue, and a request waits for all
of its accesses.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, subset
from ecjax.simulation.completion import connection
from ecjax.simulation.system import System
from ecjax.streams import arrivals, streams
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.studies.bench.setups import simpy_rivals
from ecjax.studies.bench.setups.reference_system import (
    NEED,
    NODES,
    ReferenceSystem,
    reference_system,
    replay,
)

LOAD = 0.7


def beside_simpy(runner: Runner, requests: int) -> Iterator[Row]:
    """Replays by both; ours alone where SimPy is not installed."""
    reference = reference_system("shifted exponential", NODES, LOAD, runner.seed)

    def by_ecjax() -> np.ndarray:
        return replay(reference, requests, runner.seed, paths=True).tally.paths

    def prepare() -> simpy_rivals.Latencies:
        return partial(latencies, NODES, *drawn(reference, requests, runner.seed))

    for name, outcome, note in simpy_rivals.beside_simpy(runner, by_ecjax, prepare, "reads"):
        variant = "ecjax replay" if name == "ecjax" else name
        size = f"{requests:,} reads, k = {NEED}, {NODES} nodes, first come first served"
        yield Row(variant, size, *outcome.timing, rows=requests, node_count=NODES, dtype="float64", note=note)


def drawn(reference: ReferenceSystem, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Times (b,), nodes (b, k), service times (b, k) and connection delays (b, k) of the requests of a replay, s."""
    blocks = list(arrivals.poisson(reference.rates, count, seed))
    times, files = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return times, *_draws(reference.system, files, seed, NEED)


@njit()
def _draws(system: System, files: np.ndarray, seed: int, need: int) -> tuple[np.ndarray, ...]:
    nodes = system.connect.shape[1]
    keys = [streams.key(seed, purpose) for purpose in (streams.DISPATCH, streams.SERVICE, streams.CONNECT)]
    order, selection = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    where = np.empty((files.size, need), np.int64)
    work, delay = np.empty(where.shape), np.empty(where.shape)
    for request in range(files.size):
        row = system.row[files[request]]
        begin, end = system.start[row], system.start[row + 1]
        if need == end - begin:
            for i in range(need):
                selection[i] = begin + i
        else:
            subset.draw(system.units, begin, end, order, selection, streams.stream(keys[0], request))
        for i in range(need):
            entry = selection[i]
            node = system.node[entry]
            counter = request * nodes + node
            where[request, i] = node
            work[request, i] = laws.service(
                system.laws.table,
                system.laws.samples,
                system.law[entry],
                system.chunk_bytes[files[request]],
                1,
                streams.stream(keys[1], counter),
            )
            delay[request, i] = connection(system.connect, node, streams.stream(keys[2], counter))
    return where, work, delay


def latencies(
    nodes: int, times: np.ndarray, where: np.ndarray, work: np.ndarray, delay: np.ndarray
) -> np.ndarray:
    """Latency of every request in SimPy, s; arguments as ``drawn`` gives them."""
    import simpy

    world = simpy.Environment()
    servers = [simpy.Resource(world) for _ in range(nodes)]
    latency = np.empty(len(times))

    def access(node, seconds, after):
        with servers[node].request() as turn:
            yield turn
            yield world.timeout(seconds)
        if after > 0:
            yield world.timeout(after)

    def request(number, nodes_of, seconds, after):
        arrived = world.now
        yield world.all_of(
            [world.process(access(*one)) for one in zip(nodes_of, seconds, after, strict=True)]
        )
        latency[number] = world.now - arrived

    def source():
        each = zip(times.tolist(), where.tolist(), work.tolist(), delay.tolist(), strict=True)
        for number, (at, *chunks) in enumerate(each):
            yield world.timeout(at - world.now)
            world.process(request(number, *chunks))

    world.process(source())
    world.run()
    return latency
