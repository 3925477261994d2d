"""What reads of several classes of files meet at the nodes: laws of waits, slower service, waits that depend.

Under priority a class waits for the classes up to its own and for what is in service; under a strict partition it has
queues of its own.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.dependence import in_common, priority_correlations, wait_correlation
from ecjax.queueing.priority_wait import priority_wait_law
from ecjax.queueing.wait_law import WaitLaw, wait_law
from ecjax.queueing.workload import Workload, access_arrivals, node_arrivals

_POINTS = 4096
_LEAST = 1e-6  # share of a class that has none at a node: whatever it reads there is not stable


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ClassQueues:
    """Queues of K classes at m nodes."""

    of_file: jax.Array  # (r,) class of each file, a whole number below K
    slowness: jax.Array  # (K, m) service times are so many times those of the workload
    waits: WaitLaw  # (K, m, ...)
    correlation: jax.Array  # (K, m, m) of the waits of every two nodes, see ``dependence``
    load: jax.Array  # (m,) rho of all work


def fcfs_queues(probabilities: jax.Array, load: Workload) -> ClassQueues:
    """One class: first come, first served.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes.
    """
    rates, sizes = node_arrivals(load, probabilities)
    wait = wait_law(rates, sizes, load.service, load.background, _POINTS)
    correlation = wait_correlation(probabilities, load.rate, load.chunk_bytes, load.service, load.background)
    rho = jnp.sum(rates * load.service.moments(sizes)[0], axis=0)
    if load.background is not None:
        rho = rho + load.background[0]
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
    writes: jax.Array | None = None,
) -> ClassQueues:
    """Non-preemptive priority, class 0 first.

    Args:
        probabilities: pi, (r, m).
        load: files and nodes; its background work is served with the last class.
        of_file: class of each file, (r,).
        count: K.
        writes: chunk writes of each file at each node, 1/s, (r, m), served with the class of their file.
    """
    rates, sizes = _class_arrivals(probabilities, load, of_file, count, writes)
    class_load = jnp.einsum("kbm,bm->km", rates, load.service.moments(sizes)[0])
    if load.background is not None:
        class_load = class_load.at[-1].add(load.background[0])
    common = in_common(
        probabilities, load.rate, load.chunk_bytes, load.service, _beside(load, load.background, writes)
    )
    return ClassQueues(
        of_file,
        jnp.ones((count, load.service.nodes)),
        priority_wait_law(rates, sizes, load.service, load.background, _POINTS),
        priority_correlations(*common, class_load),
        class_load.sum(axis=0),
    )


def partitioned_queues(
    probabilities: jax.Array,
    load: Workload,
    of_file: jax.Array,
    weights: jax.Array,
    writes: jax.Array | None = None,
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
    rates, sizes = _class_arrivals(probabilities, load, of_file, count, writes)
    other = jnp.zeros((3, load.service.nodes)) if load.background is None else load.background

    def of_class(arguments):
        number, own, slowness = arguments
        member = (of_file == number)[:, None]
        service = load.service.slowed(slowness)
        last = jnp.where(number == count - 1, other, 0) * slowness[None] ** jnp.arange(1, 4.0)[:, None]
        beside = _beside(
            replace(load, service=service), last, None if writes is None else jnp.where(member, writes, 0)
        )
        wait = wait_law(own, sizes, service, last, _POINTS)
        reads = jnp.where(member[:, 0], load.rate, 0)
        return wait, wait_correlation(probabilities, reads, load.chunk_bytes, service, beside)

    slowness = 1 / jnp.maximum(weights, _LEAST)
    waits, correlation = lax.map(of_class, (jnp.arange(count, dtype=of_file.dtype), rates, slowness))
    rho = jnp.einsum("kbm,bm->m", rates, load.service.moments(sizes)[0]) + other[0]
    return ClassQueues(of_file, slowness, waits, correlation, rho)


def _class_arrivals(probabilities, load, of_file, count, writes):
    """Chunk rates (K, b, m) and sizes (b, m) of what comes to the nodes."""
    accesses = load.rate[:, None] * probabilities
    if writes is not None:
        accesses = accesses + writes
    member = of_file[None, :, None] == jnp.arange(count, dtype=of_file.dtype)[:, None, None]
    rates, sizes = jax.vmap(lambda own: access_arrivals(load, jnp.where(own, accesses, 0)))(member)
    if load.exact:
        return rates, sizes[0]
    # sizes that stand for ranges follow the class: every class has its own, at which no other has a rate
    ranges, nodes = sizes.shape[1:]
    apart = jnp.eye(count)[:, :, None, None] * rates[None]
    return apart.reshape(count, count * ranges, nodes), sizes.reshape(count * ranges, nodes)


def _beside(load, background, writes):
    """Load, A_2 and A_3 of what comes to the nodes beside reads, (3, m)."""
    other = jnp.zeros((3, load.service.nodes)) if background is None else background
    if writes is None:
        return other
    moments = load.service.moments(load.chunk_bytes[:, None])
    return other + jnp.stack([jnp.sum(writes * moment, axis=0) for moment in moments])
