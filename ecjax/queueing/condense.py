"""Fewer numbers for clusters of many nodes: one law for nodes that are alike, and of each file the nodes it reads."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.queueing.mg1 import waiting
from ecjax.queueing.wait_law import MOST_LOAD
from ecjax.queueing.workload import Workload, node_arrivals

_LEAST_LAWS = 16
LEAST_SPREAD = 16  # nodes that files are read from, at least, in the shapes of what is computed
# relative distances at which loads, mean waits and their second moments are alike
_ALIKE = 0.005, 0.01, 0.014, 0.02


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
    """Nodes served alike share a law of waits where their loads and the mean and mean square of waits are within 2 %.

    The law is that of a node among them, chosen such that few are needed, and then such that waits are as near as so
    few laws allow. C is m or 16 times a power of 2 and the spread m or a power of 2, as each is a program to compile.

    Args:
        probabilities: pi, (r, m).
        load: reads and nodes, first come, first served.
    """
    reads = np.asarray(probabilities, float)
    m = reads.shape[1]
    spread = max(LEAST_SPREAD, 1 << (int((reads > 0).sum(axis=1).max(initial=1)) - 1).bit_length())
    apart = Condensed(jnp.arange(m), jnp.arange(m), min(spread, m))
    if not is_condensed(m):
        return apart
    rates, sizes = node_arrivals(load, jnp.asarray(reads))
    other = 0.0 if load.background is None else np.asarray(load.background)
    work = np.stack([np.asarray((rates * moment).sum(axis=0)) for moment in load.work.moments(sizes)]) + other
    wait = waiting(np.minimum(work[0], MOST_LOAD), work[1], work[2])
    mean = np.asarray(wait.mean)
    traffic = np.log(np.maximum([work[0], mean, mean**2 + np.asarray(wait.variance)], 1e-30))
    _, kind = np.unique(np.vstack([_served(load), work[0] >= 1]), axis=1, return_inverse=True)
    of_node, like = _covered(traffic, kind.ravel(), _ALIKE[-1])
    count = _LEAST_LAWS
    while count < len(like):
        count *= 2
    if _no_fewer(count, m):
        return apart
    of_node, like = next(
        (of_node, like)
        for of_node, like in (_covered(traffic, kind.ravel(), apart) for apart in _ALIKE)
        if len(like) <= count
    )
    return Condensed(jnp.asarray(of_node), jnp.asarray(np.resize(like, count)), min(spread, m))


def is_condensed(nodes: int) -> bool:
    """Whether so many nodes may have fewer laws, which depends on their loads."""
    return not _no_fewer(_LEAST_LAWS, nodes)


def _no_fewer(count: int, nodes: int) -> bool:
    """Whether so many laws are hardly fewer than the nodes."""
    return 4 * count > 3 * nodes


def _covered(traffic: np.ndarray, kind: np.ndarray, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """For each node one of its kind whose numbers are nowhere farther apart; in turn, the one that most are near to.

    Args:
        traffic: (F, m).
        kind: (m,).
        apart: at most.

    Returns:
        (m,) place in the list of these nodes, and the list.
    """
    near = kind[:, None] == kind
    for numbers in traffic:
        near &= np.abs(numbers[:, None] - numbers) <= apart
    count, of_node = near.sum(axis=1), np.full(len(kind), -1)
    like: list[int] = []
    while np.any(of_node < 0):
        chosen = int(count.argmax())
        new = near[chosen] & (of_node < 0)
        of_node[new] = len(like)
        like.append(chosen)
        count -= near[:, new].sum(axis=1)
    return of_node, np.array(like)


def _served(load: Workload) -> np.ndarray:
    """Numbers that are equal where services are, (F, m)."""
    service = load.service
    # equal laws have equal sums, and others almost surely not
    draw = np.random.default_rng(0).uniform(0.5, 1.5, (2, service.unit.value.shape[-1]))
    law = np.asarray(service.unit.value) @ draw[0] + np.asarray(service.unit.level) @ draw[1]
    parts = [service.offset, service.offset_per_byte, service.scale, service.scale_per_byte]
    if service.stalls is not None:
        parts += [*service.stalls.probability.T, *service.stalls.time.T]
    if load.connect is not None:
        parts += [load.connect.mean, load.connect.variance]
    if load.channels is not None:
        parts += [load.channels]
    return np.vstack([law, *(np.broadcast_to(part, law.shape) for part in parts)])
