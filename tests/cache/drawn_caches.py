"""Small systems drawn at random, to compare replays on."""

import numpy as np

from ecjax.cache.system import Network, Policy, Reads, Stored


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
    """Every copy of an item at another node; some copies are missing, never the first."""
    node_of = np.full((items, k + parity, copies), -1, dtype=np.int64)
    for m in range(items):
        node_of[m] = rng.permutation(nodes)[: (k + parity) * copies].reshape(k + parity, copies)
    missing = rng.random((items, k + parity, copies - 1)) < 0.3
    node_of[:, :, 1:][missing] = -1
    return Stored(k, node_of)


def drawn_network(rng, edges, nodes, jitter=0.0, outages=0, until=100.0):
    """No two latencies are equal, so that no two chunks of an item are worth the same."""
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
