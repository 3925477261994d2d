"""What reads of several classes of files meet at the nodes: laws of waits, slower service, waits that depend.

Under priority a class waits for the work of the classes up to its own, and the waits of two nodes depend as those of
first come, first served queues with that work. Under a strict partition a class has queues of its own.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.dependence import wait_correlation
from ecjax.queueing.priority_wait import priority_wait_law
from ecjax.queueing.wait_law import WaitLaw, wait_law
from ecjax.queueing.workload import Workload, access_arrivals, node_arrivals

_POINTS = 4096


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
    member = of_file[None, :] == jnp.arange(count)[:, None]
    rates, sizes = _class_arrivals(probabilities, load, member, writes)
    waits = priority_wait_law(rates, sizes, load.service, load.background, _POINTS)

    def correlation(k):
        own = jnp.where(of_file <= k, load.rate, 0)
        return wait_correlation(probabilities, own, load.chunk_bytes, load.service, load.background)

    rho = jnp.einsum("kbm,bm->m", rates, load.service.moments(sizes)[0])
    return ClassQueues(
        of_file,
        jnp.ones((count, load.service.nodes)),
        waits,
        lax.map(correlation, jnp.arange(count)),
        rho if load.background is None else rho + load.background[0],
    )


def _class_arrivals(probabilities, load, member, writes):
    """Chunk rates (K, b, m) and sizes (b, m) of what comes to the nodes."""
    accesses = load.rate[:, None] * probabilities
    if writes is not None:
        accesses = accesses + writes
    rates, sizes = jax.vmap(lambda own: access_arrivals(load, jnp.where(own[:, None], accesses, 0)))(member)
    if load.exact:
        return rates, sizes[0]
    # sizes in ranges follow the class: every class has its own, that no other has
    count, ranges, nodes = sizes.shape
    apart = jnp.eye(count)[:, :, None, None] * rates[None]
    return apart.reshape(count, count * ranges, nodes), sizes.reshape(count * ranges, nodes)
