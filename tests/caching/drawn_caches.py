"""Small systems drawn at random, to compare replays on."""

import math

import numpy as np

from ecjax.caching.replay import replay
from ecjax.caching.system import Network, Policy, Reads, Stored
from ecjax.streams import streams
from ecjax.streams import ziggurat as draws


def policy(name, capacity, **changes):
    """A policy with values that any of them can work with."""
    usual = Policy(
        name,
        capacity=capacity,
        half_life_s=20.0,
        memory=0.7,
        samples=3,
        period_s=15.0,
        replan_reads=0,
        seed=5,
    )
    return usual._replace(**changes)


def drawn_stored(rng, items, k, parity, copies, nodes):
    """Chunks at nodes in a random order, again and again if there are few; some copies are missing, never the first."""
    total = (k + parity) * copies
    rounds = -(-total // nodes)
    node_of = np.empty((items, k + parity, copies), dtype=np.int64)
    for m in range(items):
        places = np.concatenate([rng.permutation(nodes) for _ in range(rounds)])[:total]
        node_of[m] = places.reshape(k + parity, copies)
    missing = rng.random((items, k + parity, copies - 1)) < 0.3
    node_of[:, :, 1:][missing] = -1
    return Stored(k, node_of)


def drawn_network(rng, edges, nodes, jitter=0.0, outages=0, until=100.0):
    """Times to nodes that are all different, and outages."""
    start = rng.uniform(0.0, until, outages)
    return Network(
        latency_s=rng.uniform(0.05, 1.0, (edges, nodes)),
        jitter=jitter,
        edge_s=0.01,
        decode_s=0.02,
        down_node=rng.integers(0, nodes, outages),
        down_from_s=start,
        down_until_s=start + rng.exponential(until / 2, outages),
    )


def drawn_reads(rng, count, items, edges, until=100.0):
    """Zipf 1.0 at times drawn uniformly."""
    weight = 1.0 / np.arange(1, items + 1)
    return Reads(
        time_s=np.sort(rng.uniform(0.0, until, count)),
        item=rng.choice(items, count, p=weight / weight.sum()).astype(np.int64),
        edge=rng.integers(0, edges, count),
    )


def first(reads, count):
    """The first of the reads."""
    return Reads(*(column[:count] for column in reads))


def chunks_of(row):
    """What one edge keeps, {item: set of chunks}, of its bit sets."""
    return {m: {j for j in range(64) if int(bits) >> j & 1} for m, bits in enumerate(row) if bits}


def counted(reads, edges, items):
    """How often each edge reads each item, (E, M)."""
    popularity = np.zeros((edges, items))
    np.add.at(popularity, (reads.edge, reads.item), 1.0)
    return popularity


def prefixes(reads, stored, network, config):
    """What the engine finds after the first 0, 1, 2, ... reads; fixed plans know all of them from the start."""
    known = counted(reads, len(network.latency_s), len(stored.node_of))
    for count in range(len(reads.time_s) + 1):
        yield replay(first(reads, count), stored, network, config, known)


def kept_by(edge):
    """The same of an edge of the plain replay."""
    return {item: chunks for item, chunks in edge.kept.items() if chunks}


def lognormal(jitter, seed):
    """The factor of a node in a read, from the normal number that the engine draws for the two."""
    sigma = math.sqrt(math.log(1 + jitter**2))
    key = np.uint64(streams.key(seed, 20))

    def factor(number, node):
        read = np.uint64(streams.stream(key, number))
        score = draws.normal(np.uint64(draws.task_state(read, node)))
        return math.exp(sigma * score - sigma**2 / 2)

    return factor
