"""Bounds on the latency of files whose classes have queues of their own at the nodes."""

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ecjax import planning
from ecjax.queueing import Delay, ServiceMoments, latency_bound, priority, weighted


def class_bounds(
    problem: planning.Problem,
    probabilities: np.ndarray,
    stored: np.ndarray,
    of_file: np.ndarray,
    queue: str,
    weights: ArrayLike,
) -> np.ndarray:
    """Bound on the mean latency of every file, (r,) s; infinite where its class is not stable at a node that it reads.

    Under sharing it is the bound of the strict partition with the same weights, which is never faster.

    Args:
        problem: scaled.
        probabilities: (R, m).
        stored: (R, m) bool, chunks that writes load.
        of_file: (r,) class, 0 goes first under priority; other work goes with the last class.
        queue: "priority", "partitioned" or "shared".
        weights: (K, m) shares of the classes at every node, or (K,) for all nodes alike; under priority only their
            number counts.
    """
    files, nodes = problem.files, problem.nodes
    shares = np.asarray(weights, float)
    count = len(shares)
    reads, writes = (planning.of_files(problem, jnp.asarray(rows, float)) for rows in (probabilities, stored))
    member = jnp.asarray(of_file[None, :] == np.arange(count)[:, None], float)
    powers = files.chunk_bytes[None, :] ** jnp.arange(4.0)[:, None]
    work = jnp.einsum("ki,pi,ij->pkj", member, powers * files.rate[None, :], reads)
    if problem.writes is not None:
        work = work + jnp.einsum("ki,pi,ij->pkj", member, powers * files.write_rate[None, :], writes)
    sums = jnp.einsum("npj,pkj->nkj", nodes.service, work).at[:, -1].add(nodes.background)
    # classes that read nothing at a node have no moments; a rate of 1 lets the sums stand for them
    rates = jnp.where(work[0] > 0, work[0], 1)
    service = ServiceMoments(*(part / rates for part in sums))
    share = jnp.asarray(np.broadcast_to(shares if shares.ndim == 2 else shares[:, None], rates.shape))
    if queue == "priority":
        share = jnp.ones_like(share)
    delay = priority(rates, service) if queue == "priority" else weighted(rates, service, share)
    wait_mean = delay.mean - service.first / share
    wait_variance = delay.variance - service.variance / share**2
    # the file's own service on the server of its class
    first, second = (jnp.einsum("pj,pi->ij", nodes.service[n], powers) for n in (0, 1))
    slow = 1 / share[of_file]
    mean = first * slow + wait_mean[of_file] + nodes.connect_mean[None]
    variance = (second - first**2) * slow**2 + wait_variance[of_file] + nodes.connect_variance[None]
    return np.asarray(latency_bound(reads, Delay(mean, jnp.maximum(variance, 0))))
