"""Small coflows drawn from a seed: sizes without ties, except for the flows of reads, or full of them."""

import numpy as np

from ecjax.coflow.workload import CHOSEN_LATER, Fabric, Workload, given_sources

CAPACITY = 5e7  # bytes/s; flows of 1 to 100 MB cross the limits of queues within seconds


def arrivals(rng, coflows):
    """A third of the coflows arrive with the one before."""
    gaps = rng.exponential(0.5, coflows) * (rng.uniform(size=coflows) > 0.33)
    return np.cumsum(gaps)


def fabric(rng, sends, receives, even):
    if even:
        return Fabric(np.full(sends, CAPACITY), np.full(receives, CAPACITY))
    return Fabric(CAPACITY * rng.uniform(0.5, 2, sends), CAPACITY * rng.uniform(0.5, 2, receives))


def first_of(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def transfers(seed, coflows=8, ports=4, width=5, even=False):
    """Coflows with given sources; flows of one coflow may share both ports."""
    rng = np.random.default_rng(seed)
    first = first_of(rng.integers(1, width + 1, coflows))
    flows = first[-1]
    workload = given_sources(
        arrivals(rng, coflows),
        first,
        rng.integers(ports, size=flows),
        rng.integers(ports, size=flows),
        rng.lognormal(np.log(1e7), 1.2, flows),
    )
    return workload, fabric(rng, ports, ports, even)


def shuffles(seed, coflows=6, ports=6, even=False):
    """All of some sources send to all of some targets, to each of them equally much within 10 %."""
    rng = np.random.default_rng(seed)
    source, target, size, counts = [], [], [], []
    for _ in range(coflows):
        mappers = rng.permutation(ports)[: rng.integers(1, ports + 1)]
        reducers = rng.permutation(ports)[: rng.integers(1, ports + 1)]
        of_reducer = rng.lognormal(np.log(1e7), 1.2, len(reducers))
        source.append(np.repeat(mappers, len(reducers)))
        target.append(np.tile(reducers, len(mappers)))
        size.append(np.tile(of_reducer, len(mappers)) * rng.uniform(0.9, 1.1, len(mappers) * len(reducers)))
        counts.append(len(size[-1]))
    flows = map(np.concatenate, (source, target, size))
    return given_sources(arrivals(rng, coflows), first_of(counts), *flows), fabric(rng, ports, ports, even)


def ties(seed, coflows=8, ports=3, width=4):
    """Coflows that arrive, advance and end together: sizes are multiples of what a port carries in half a second."""
    workload, _ = transfers(seed, coflows, ports, width)
    rng = np.random.default_rng([seed])
    return workload._replace(
        arrival_s=np.sort(rng.integers(0, coflows, coflows) / 2.0),
        bytes=CAPACITY / 2 * rng.integers(1, 4, len(workload.bytes)),
    ), fabric(rng, ports, ports, even=True)


def file_reads(seed, coflows=8, servers=6, clients=3, given=0.0, even=False):
    """Reads of k chunks of one size; a share ``given`` of the coflows has sources given, and sizes of their own."""
    rng = np.random.default_rng(seed)
    k = rng.integers(1, servers // 2 + 1, coflows)
    n = rng.integers(k, servers + 1)
    later = rng.uniform(size=coflows) >= given
    candidate = [rng.permutation(servers)[:count] for count in np.where(later, n, 0)]
    size = rng.lognormal(np.log(2e7), 1, coflows)
    first = first_of(k)
    chosen_later = np.repeat(later, k)
    own = rng.lognormal(0, 1, first[-1])
    workload = Workload(
        arrivals(rng, coflows),
        first,
        np.where(chosen_later, CHOSEN_LATER, rng.integers(servers, size=first[-1])),
        np.repeat(rng.integers(clients, size=coflows), k),
        np.repeat(size, k) * np.where(chosen_later, 1.0, own),
        first_of([len(some) for some in candidate]),
        np.concatenate(candidate).astype(np.int64),
    )
    return workload, fabric(rng, servers, clients, even)
