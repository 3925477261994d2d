"""Random nodes for the tests of the certified method's parts, and the latency of nodes by ``ecjax.queueing``."""

import jax.numpy as jnp
import numpy as np

from ecjax.planning.certified.data import Service
from ecjax.queueing import Delay, latency_bound_at, waiting


def service_of(
    seed: int, sizes: int = 1, nodes: int = 3, other: bool = False, alone: bool = False
) -> Service:
    """Nodes of different speed and variance for chunk sizes of a factor of 20."""
    random = np.random.default_rng(seed)
    size = np.sort(np.exp(random.uniform(0, np.log(20), sizes)))
    mean = random.uniform(0.3, 3, (nodes, 1)) * (random.uniform(0, 1, (nodes, 1)) + size)
    spread = random.uniform(0.05, 2, (nodes, 1))  # a gamma law has these moments
    moments = np.stack([mean, mean**2 * (1 + spread), mean**3 * (1 + spread) * (1 + 2 * spread)])
    background = np.zeros((nodes, 3))
    if other:
        background = moments[:, :, -1].T * (random.uniform(0.05, 0.4, nodes) / mean[:, -1])[:, None]
    return Service(
        size=size,
        moments=moments,
        mean=mean + random.uniform(0, 0.2, (nodes, 1)),
        variance=moments[1] - mean**2 + random.uniform(0, 0.05, (nodes, 1)),
        background=np.ascontiguousarray(background),
        rate=float(random.uniform(0.1, 10)),
        alone=alone,
        penalty=float(100 * mean.max()),
    )


def rates_of(service: Service, load: np.ndarray, seed: int, written: bool = False) -> np.ndarray:
    """Random rates (m, X) that bring each node to a load (m,), or to what it has already."""
    random = np.random.default_rng(seed)
    sizes = len(service.size)
    share = random.dirichlet(np.ones(sizes * (1 + written)), len(service.mean))
    moments = np.tile(service.moments[0], (1, 1 + written))
    room = np.maximum(load - service.background[:, 0], 0)
    return share * room[:, None] / (share * moments).sum(axis=1, keepdims=True)


def latency(service: Service, j: int, loads, z: float):
    """The part of one node, with rates (X,) as a JAX array, in the bound at z, without z itself; s."""
    sizes = len(service.size)
    reads = loads[:sizes]
    rates = reads + loads[sizes:] if len(loads) > sizes else reads
    work = jnp.asarray(service.background[j]) + jnp.asarray(service.moments[:, j]) @ rates
    wait = waiting(work[0], work[1], work[2])
    delay = Delay(jnp.asarray(service.mean[j]), jnp.asarray(service.variance[j])).plus(
        wait.mean, wait.variance
    )
    weights = reads / service.rate
    if service.alone:
        return jnp.sum(weights * delay.mean)
    return latency_bound_at(z, weights, delay) - z
