"""Bounds on the latency of files whose classes have queues of their own at the nodes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ecjax import planning
from ecjax.programs import program
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
    shares = np.asarray(weights, float)
    share = np.array(np.broadcast_to(shares.T, (problem.nodes.count, len(shares))).T)
    if queue == "priority":
        share = np.ones_like(share)
    bound = _bounds(
        problem,
        jnp.asarray(probabilities, float),
        jnp.asarray(stored, float),
        jnp.asarray(of_file, int),
        jnp.asarray(share),
        queue == "priority",
    )
    return np.asarray(bound)


@partial(program, static_argnames="first_goes_first")
def _bounds(
    problem: planning.Problem,
    probabilities: jax.Array,
    stored: jax.Array,
    of_file: jax.Array,
    share: jax.Array,
    first_goes_first: bool,
) -> jax.Array:
    """As ``class_bounds``, with the shares of the classes at every node, (K, m): ones under priority."""
    files, nodes = problem.files, problem.nodes
    reads, writes = (planning.of_files(problem, rows) for rows in (probabilities, stored))
    member = (of_file[None, :] == jnp.arange(len(share))[:, None]).astype(float)
    powers = files.chunk_bytes[None, :] ** jnp.arange(4.0)[:, None]
    work = jnp.einsum("ki,pi,ij->pkj", member, powers * files.rate[None, :], reads)
    if problem.writes is not None:
        written = files.write_bytes[None, :] ** jnp.arange(4.0)[:, None]
        work = work + jnp.einsum("ki,pi,ij->pkj", member, written * files.write_rate[None, :], writes)
    sums = jnp.einsum("npj,pkj->nkj", nodes.service, work).at[:, -1].add(nodes.background)
    # classes that read nothing at a node have no moments; a rate of 1 lets the sums stand for them
    rates = jnp.where(work[0] > 0, work[0], 1)
    service = ServiceMoments(*(part / rates for part in sums))
    delay = priority(rates, service) if first_goes_first else weighted(rates, service, share)
    wait_mean = delay.mean - service.first / share
    wait_variance = delay.variance - service.variance / share**2
    # the file's own service on the server of its class
    first, second = (jnp.einsum("pj,pi->ij", nodes.service[n], powers) for n in (0, 1))
    slow = 1 / share[of_file]
    mean = first * slow + wait_mean[of_file] + nodes.connect_mean[None]
    variance = (second - first**2) * slow**2 + wait_variance[of_file] + nodes.connect_variance[None]
    return latency_bound(reads, Delay(mean, jnp.maximum(variance, 0)))
