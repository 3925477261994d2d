"""What reads of several classes of files meet at the nodes: laws of waits, slower service, waits that depend.

Under priority a class waits for the classes up to its own and for what is in service; under a strict partition it has
queues of its own.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.channels import over_channels
from ecjax.queueing.dependence import wait_correlation
from ecjax.queueing.priority_dependence import priority_correlations
from ecjax.queueing.priority_wait import priority_wait_law
from ecjax.queueing.wait_law import WaitLaw, wait_law
from ecjax.queueing.workload import MOST_SIZES, Workload, access_arrivals, node_arrivals

_POINTS = 4096
_LEAST = 1e-6  # share of a class that has none at a node: whatever it reads there is not stable


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ClassQueues:
    """Queues of K classes at m nodes."""

    of_file: jax.Array  # (r,) class of each file, a whole number below K
    slowness: jax.Array  # (K, m) service times are so many times those of the workload
    waits: WaitLaw  # (K, m, ...); of fewer nodes where they are condensed
    correlation: jax.Array  # (K, m, m) of the waits of every two nodes, see ``dependence``
    load: jax.Array  # (m,) rho of all work


class ClassWrites(NamedTuple):
    """Writes, each of which reaches all nodes of its file at once, with the class of the file."""

    rates: jax.Array  # (r, m) 1/s, chunks that are written at each node
    chunk_bytes: jax.Array | None  # (r,) B; None: as of a read
    common: jax.Array  # (K, 2, m, m), of each class at every two nodes, see ``dependence.with_writes``


def fcfs_queues(probabilities: jax.Array, load: Workload, like: jax.Array | None = None) -> ClassQueues:
    """One class: first come, first served.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes.
        like: nodes whose waits are computed, (C,); None: all.
    """
    rates, sizes = node_arrivals(load, probabilities)
    rho = _load(rates[None], sizes, load)
    at = jnp.arange(load.service.nodes) if like is None else like
    service, other = load.service.taken(at), None if load.background is None else load.background[:, at]
    if load.channels is None:
        wait = wait_law(rates[:, at], sizes[:, at], service, other, _POINTS)
    else:
        wait = wait_law(rates[:, at], sizes[:, at], load.work.taken(at), other, _POINTS, served=service)
        wait = over_channels(wait, rho[at], load.channels[at])
    correlation = wait_correlation(
        probabilities, load.rate, load.chunk_bytes, load.work, load.background, load.common_writes
    )
    nodes = load.service.nodes
    return ClassQueues(
        jnp.zeros(load.files, int),
        jnp.ones((1, nodes)),
        jax.tree.map(lambda leaf: leaf[None], wait),
        correlation[None],
        rho,
    )


def priority_queues(
    probabilities: jax.Array,
    load: Workload,
    of_file: jax.Array,
    count: int,
    writes: ClassWrites | None = None,
) -> ClassQueues:
    """Non-preemptive priority, class 0 first.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes; its background work is served with the last class.
        of_file: class of each file, (r,).
        count: K.
        writes: served with the class of their file; None: nothing is written.
    """
    member = of_file[None, :] == jnp.arange(count, dtype=of_file.dtype)[:, None]
    rates, sizes = _class_arrivals(probabilities, load, member, writes)
    beside = _beside(load, member, _background(load, count), writes)
    common = None if writes is None else writes.common
    return ClassQueues(
        of_file,
        jnp.ones((count, load.service.nodes)),
        priority_wait_law(rates, sizes, load.service, load.background, _POINTS),
        priority_correlations(
            probabilities, load.rate, load.chunk_bytes, load.service, member, beside, common
        ),
        _load(rates, sizes, load),
    )


def partitioned_queues(
    probabilities: jax.Array,
    load: Workload,
    of_file: jax.Array,
    weights: jax.Array,
    writes: ClassWrites | None = None,
) -> ClassQueues:
    """Strict partition: each class has its part of a node, first come, first served.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes; its background work is served with the last class.
        of_file: class of each file, (r,).
        weights: parts w of the classes at the nodes, (K, m); 0 where a class has none.
        writes: as in ``priority_queues``.
    """
    count = weights.shape[0]
    member = of_file[None, :] == jnp.arange(count, dtype=of_file.dtype)[:, None]
    rates, sizes = _class_arrivals(probabilities, load, member, writes)
    slowness = 1 / jnp.maximum(weights, _LEAST)
    powers = slowness[:, None, :] ** jnp.arange(1, 4.0)[None, :, None]
    other = _background(load, count)
    beside = _beside(load, member, other, writes)
    if writes is None:
        common = None
    else:
        both = slowness[:, :, None] * slowness[:, None, :]
        common = writes.common * jnp.stack([jnp.sqrt(both), both], axis=1)

    def of_class(arguments):
        mask, rates, other, beside, slowness, common = arguments
        service = load.service.slowed(slowness)
        wait = wait_law(rates, sizes, service, other, _POINTS)
        reads = jnp.where(mask, load.rate, 0)
        return wait, wait_correlation(probabilities, reads, load.chunk_bytes, service, beside, common)

    of_classes = member, rates, powers * other, powers * beside, slowness, common
    waits, correlation = lax.map(of_class, of_classes)
    return ClassQueues(of_file, slowness, waits, correlation, _load(rates, sizes, load))


def _class_arrivals(probabilities, load, member, writes):
    """Chunk rates (K, b, m) and sizes (b, m) of what comes to the nodes."""
    accesses = load.rate[:, None] * probabilities
    if writes is not None and writes.chunk_bytes is None:
        accesses = accesses + writes.rates
    parts = [_by_class(load, accesses, member)]
    if writes is not None and writes.chunk_bytes is not None:
        # sizes that no read need have, by ranges
        knots = jnp.geomspace(jnp.min(writes.chunk_bytes), jnp.max(writes.chunk_bytes), MOST_SIZES)
        written = replace(load, chunk_bytes=writes.chunk_bytes, sizes=knots, exact=False)
        parts.append(_by_class(written, writes.rates, member))
    rates, sizes = (jnp.concatenate(each, axis=-2) for each in zip(*parts, strict=True))
    return rates, sizes


def _by_class(load, accesses, member):
    rates, sizes = jax.vmap(lambda mask: access_arrivals(load, jnp.where(mask[:, None], accesses, 0)))(member)
    if load.exact:
        return rates, sizes[0]
    # sizes that stand for ranges follow the class: every class has its own, at which no other has a rate
    count, ranges, nodes = sizes.shape
    apart = jnp.eye(count)[:, :, None, None] * rates[None]
    return apart.reshape(count, count * ranges, nodes), sizes.reshape(count * ranges, nodes)


def _background(load, count):
    """Load, A_2 and A_3 of the nodes' other work by the class that it is served with, the last: (K, 3, m)."""
    other = jnp.zeros((count, 3, load.service.nodes))
    return other if load.background is None else other.at[-1].set(load.background)


def _beside(load, member, background, writes):
    """The same of all that comes to the nodes beside reads."""
    if writes is None:
        return background
    size = load.chunk_bytes if writes.chunk_bytes is None else writes.chunk_bytes
    moments = jnp.stack(load.service.moments(size[:, None]))
    return background + jnp.einsum("ki,im,nim->knm", member.astype(float), writes.rates, moments)


def _load(rates, sizes, load):
    rho = jnp.einsum("kbm,bm->m", rates, load.work.moments(sizes)[0])
    return rho if load.background is None else rho + load.background[0]
