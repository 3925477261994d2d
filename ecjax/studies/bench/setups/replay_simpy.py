"""The replay of a plan beside SimPy, a general simulator, on the same requests, nodes and service times.

SimPy gets all that is random ready-made, and counts nothing but latencies; a resource per node is its own way of a
queue, and a request waits for all of its accesses.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np

from ecjax.replay import laws, subset
from ecjax.replay.completion import connection
from ecjax.replay.system import System
from ecjax.streams import arrivals, streams
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import side_by_side
from ecjax.studies.bench.setups.reference_system import NEED, NODES, House, house, replayed

LOAD = 0.7
REQUESTS, QUICK_REQUESTS = 20_000, 500


def rows(settings: Settings) -> list[Row]:
    """Replays by both, with the ratio of their speeds; ours alone where SimPy is not installed."""
    count = QUICK_REQUESTS if settings.quick else REQUESTS
    own = house("shifted exponential", NODES, LOAD, settings.seed)
    paths: dict[str, np.ndarray] = {}

    def by_ecjax() -> float:
        outcome, seconds = replayed(own, count, settings.seed, paths=True)
        paths["ecjax"] = outcome.tally.paths
        return seconds

    variants: dict[str, Callable[[], float]] = {"ecjax replay": by_ecjax}
    if find_spec("simpy"):
        given = drawn(own, count, settings.seed)

        def by_simpy() -> float:
            began = time.perf_counter()
            paths["SimPy"] = latencies(NODES, *given)
            return time.perf_counter() - began

        variants["SimPy"] = by_simpy
    times = side_by_side(variants, settings.repeats)
    ours = times["ecjax replay"]
    notes = {"ecjax replay": "SimPy is not installed: nothing to compare with"}
    if "SimPy" in times:
        ratio = times["SimPy"].min_s / ours.min_s
        apart = np.abs(paths["SimPy"] - paths["ecjax"]).max()
        notes = {
            "ecjax replay": f"{ratio:.0f} times as fast as SimPy; no latency differs by more than {apart:.1g} s",
            "SimPy": f"{count / times['SimPy'].min_s:,.0f} reads/s; nothing is drawn, latencies only",
        }
    common: dict[str, Any] = {
        "size": f"{count:,} reads, k = {NEED}, {NODES} nodes, first come first served",
        "rows": count,
        "nodes": NODES,
        "dtype": "float64",
    }
    return [
        Row(variant=name, **timing._asdict(), note=notes[name], **common) for name, timing in times.items()
    ]


def drawn(own: House, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Times (b,), nodes (b, k), service times (b, k) and connection delays (b, k) of the requests of a replay, s."""
    blocks = list(arrivals.poisson(own.rates, count, seed))
    times, files = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return times, *_draws(own.system, files, seed, NEED)


@numba.njit(cache=True)
def _draws(system: System, files: np.ndarray, seed: int, need: int) -> tuple[np.ndarray, ...]:
    nodes = system.connect.shape[1]
    keys = [streams.key(seed, purpose) for purpose in (streams.DISPATCH, streams.SERVICE, streams.CONNECT)]
    order, chosen = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    where = np.empty((files.size, need), np.int64)
    work, delay = np.empty(where.shape), np.empty(where.shape)
    for request in range(files.size):
        row = system.row[files[request]]
        begin, end = system.start[row], system.start[row + 1]
        if need == end - begin:
            for i in range(need):
                chosen[i] = begin + i
        else:
            subset.draw(system.units, begin, end, order, chosen, streams.stream(keys[0], request))
        for i in range(need):
            entry = chosen[i]
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
    found = np.empty(len(times))

    def access(node, seconds, after):
        with servers[node].request() as turn:
            yield turn
            yield world.timeout(seconds)
        if after > 0:
            yield world.timeout(after)

    def request(number, own_nodes, seconds, after):
        arrived = world.now
        yield world.all_of(
            [world.process(access(*one)) for one in zip(own_nodes, seconds, after, strict=True)]
        )
        found[number] = world.now - arrived

    def source():
        each = zip(times.tolist(), where.tolist(), work.tolist(), delay.tolist(), strict=True)
        for number, (at, *chunks) in enumerate(each):
            yield world.timeout(at - world.now)
            world.process(request(number, *chunks))

    world.process(source())
    world.run()
    return found
