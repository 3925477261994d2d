"""Fewer numbers for clusters of many nodes: one law for nodes that are alike, and of each file the nodes it reads."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.queueing.mg1 import waiting
from ecjax.queueing.wait_law import MOST_LOAD
from ecjax.queueing.workload import Workload, node_arrivals

_LEAST_LAWS, _LEAST_SPREAD = 16, 16
_ALIKE = 0.02  # relative width of what counts as one mean wait, its second moment and load


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Condensed:
    """What estimates of many nodes are computed from; made on the host by ``condense``."""

    of_node: jax.Array  # (m,) law of each node, a whole number below C
    like: jax.Array  # (C,) node whose law it is
    spread: int = field(metadata={"static": True})  # no file is read from more nodes

    @classmethod
    def none(cls, nodes: int) -> "Condensed":
        """Every node has a law of its own, and files may be read from all."""
        return cls(jnp.arange(nodes), jnp.arange(nodes), nodes)


def condense(probabilities: ArrayLike, load: Workload) -> Condensed:
    """Nodes served alike whose load and mean and mean square of waits differ by less than 2 % share one law.

    The law is that of the node in the middle of them, so that waits are about 1 % off at a node. C is m or 16
    times a power of 4 and the spread m or a power of 2, as each is a program to compile.

    Args:
        probabilities: pi, (r, m).
        load: reads and nodes, first come, first served.
    """
    reads = np.asarray(probabilities, float)
    m = reads.shape[1]
    spread = max(_LEAST_SPREAD, 1 << (int((reads > 0).sum(axis=1).max(initial=1)) - 1).bit_length())
    apart = Condensed(jnp.arange(m), jnp.arange(m), min(spread, m))
    if 2 * _LEAST_LAWS > m:
        return apart
    rates, sizes = node_arrivals(load, jnp.asarray(reads))
    other = 0.0 if load.background is None else np.asarray(load.background)
    work = np.stack([np.asarray((rates * moment).sum(axis=0)) for moment in load.work.moments(sizes)]) + other
    wait = waiting(np.minimum(work[0], MOST_LOAD), work[1], work[2])
    mean = np.asarray(wait.mean)
    traffic = np.stack([work[0], mean, mean**2 + np.asarray(wait.variance)])
    steps = np.floor(np.log(np.maximum(traffic, 1e-30)) / _ALIKE)
    _, of_node = np.unique(np.vstack([_served(load), work[0] >= 1, steps]), axis=1, return_inverse=True)
    of_node = of_node.ravel()
    count = _LEAST_LAWS
    while count <= of_node.max():
        count *= 4
    if 2 * count > m:
        return apart
    order = np.lexsort((work[0], of_node))
    middle = np.searchsorted(of_node[order], np.arange(count), side="left")
    after = np.searchsorted(of_node[order], np.arange(count), side="right")
    like = order[np.minimum((middle + after) // 2, m - 1)]
    return Condensed(jnp.asarray(of_node), jnp.asarray(like), min(spread, m))


def _served(load: Workload) -> np.ndarray:
    """Numbers that are equal where services are, (F, m)."""
    service = load.service
    # equal laws have equal sums, and others almost surely not
    draw = np.random.default_rng(0).uniform(0.5, 1.5, (2, service.unit.value.shape[-1]))
    law = np.asarray(service.unit.value) @ draw[0] + np.asarray(service.unit.level) @ draw[1]
    parts = [service.offset, service.offset_per_byte, service.scale, service.scale_per_byte]
    if load.connect is not None:
        parts += [load.connect.mean, load.connect.variance]
    if load.channels is not None:
        parts += [load.channels]
    return np.vstack([law, *(np.broadcast_to(part, law.shape) for part in parts)])
