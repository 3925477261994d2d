"""Small systems to replay, for tests."""

import numpy as np

from ecjax.simulation import laws
from ecjax.simulation.system import System, whole_units
from ecjax.streams import streams


def law_table(
    kind: str, nodes: int, offset=0.0, scale=1.0, a=0.0, b=0.0, offset_per_byte=0.0, scale_per_byte=0.0
):
    """One law for every node; offset and scale may be (m,)."""
    table = np.zeros((nodes, 9))
    table[:, 0], table[:, 1], table[:, 2], table[:, 3] = offset, offset_per_byte, scale, scale_per_byte
    table[:, 4], table[:, 5], table[:, 6] = a, b, laws.KINDS.index(kind)
    return laws.Laws(table, np.zeros(1))


def make_system(
    need,
    placements,
    service: laws.Laws,
    probabilities=None,
    classes=None,
    queues=None,
    chunk_bytes=1.0,
    connect=None,
    extra_s=0.0,
    link_s=0.0,
    chunks=1,
) -> System:
    """A system in which every file has a placement row of its own.

    Args:
        need: (r,) chunks per read.
        placements: r lists of nodes.
        service: laws, one per node.
        probabilities: r lists, need / n where not given.
        classes: (r,) reporting class, 0 where not given; -1 is not reported.
        queues: (r,) class at the nodes, 0 where not given.
        chunk_bytes, extra_s, link_s: scalars or (r,).
        connect: (2, m) shape and scale.
        chunks: served together, everywhere.
    """
    need = np.asarray(need, np.int64)
    r, m = len(need), len(service.table)
    start = np.concatenate(([0], np.cumsum([len(nodes) for nodes in placements])))
    node = np.concatenate([np.asarray(nodes, np.int64) for nodes in placements])
    if probabilities is None:
        probabilities = [
            np.full(len(nodes), k / len(nodes)) for k, nodes in zip(need, placements, strict=True)
        ]
    zeros = np.zeros(r, np.int64)
    return System(
        laws=service,
        connect=np.zeros((2, m)) if connect is None else np.asarray(connect, float),
        need=need,
        chunk_bytes=np.broadcast_to(np.asarray(chunk_bytes, float), r).copy(),
        extra_s=np.broadcast_to(np.asarray(extra_s, float), r).copy(),
        link_s=np.broadcast_to(np.asarray(link_s, float), r).copy(),
        group=zeros if classes is None else np.asarray(classes, np.int64),
        queue=zeros if queues is None else np.asarray(queues, np.int64),
        row=np.arange(r),
        start=start,
        node=node,
        law=node.copy(),
        units=whole_units(np.concatenate([np.asarray(p, float) for p in probabilities]), start, need),
        chunks=np.full(len(node), chunks, np.int64),
    )


def poisson(rates, count: int, seed: int = 0):
    """Arrival times (count,) and files (count,) of independent Poisson streams of these rates (r,)."""
    rng = np.random.default_rng(seed)
    rates = np.asarray(rates, float)
    times = np.cumsum(rng.standard_exponential(count)) / rates.sum()
    return times, rng.choice(len(rates), count, p=rates / rates.sum())


def service_time(system: System, seed: int, request: int, entry: int, file: int) -> float:
    """The service time that every engine draws for a request at the node of an entry."""
    counter = request * system.nodes + int(system.node[entry])
    state = streams.stream(np.uint64(streams.key(seed, streams.SERVICE)), counter)
    return float(
        laws.service(
            system.laws.table,
            system.laws.samples,
            int(system.law[entry]),
            float(system.chunk_bytes[file]),
            int(system.chunks[entry]),
            np.uint64(state),
        )
    )
