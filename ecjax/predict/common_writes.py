"""What writes bring to several nodes at once, which the joint law of waits (``queueing.dependence``) takes.

A write reaches every node that holds a chunk of its file at the same time, as a read reaches k of them. So the waits
that a read meets there rise together, and the last of them is shorter than those of independent work.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from ecjax import planning
from ecjax.queueing.service_law import ServiceLaw


def common_writes(
    rates: np.ndarray, stored: np.ndarray, sizes: np.ndarray, service: ServiceLaw
) -> np.ndarray:
    """Sums over writes of what they bring to every two nodes, as ``dependence.CommonWork`` has them of reads.

    Args:
        rates: writes of each row, 1/s, (b,).
        stored: (b, m) bool, nodes that they reach.
        sizes: mean of the chunks' bytes, and root of the mean of their squares, (2, b).
        service: laws of the work at the m nodes.

    Returns:
        (2, m, m): rates x sqrt(x x'), and rates x x x' (s), x the mean service time of a chunk at a node.
    """
    written = rates > 0
    rates, sizes, holds = rates[written], sizes[:, written], csr_array(stored[written].astype(bool))
    row = np.repeat(np.arange(len(rates)), np.diff(holds.indptr))
    # means are affine in the size
    largest = max(float(sizes.max(initial=0.0)), 1.0)
    least, most = np.asarray(service.moments(np.array([[0.0], [largest]]))[0])
    pairs = []
    for size, power in zip(sizes / largest, (0.5, 1.0), strict=True):
        mean = least[holds.indices] + size[row] * (most - least)[holds.indices]
        part = csr_array((np.sqrt(rates[row]) * mean**power, holds.indices, holds.indptr), holds.shape)
        pairs.append((part.T @ part).toarray())
    return np.stack(pairs)


def problem_writes(problem: planning.Problem, stored: np.ndarray, service: ServiceLaw) -> jax.Array | None:
    """``common_writes`` of a plan; None where nothing is written.

    Args:
        problem: scaled.
        stored: (R, m) bool, chunks that writes load.
        service: laws of the nodes' service times, of one channel.
    """
    if problem.writes is None:
        return None
    rate, size, square, _ = np.asarray(problem.writes)
    each = np.where(rate > 0, rate, 1.0)
    channels = problem.nodes.channels
    work = service if channels is None else service.slowed(1 / jnp.asarray(channels))
    sizes = np.stack([size / each, np.sqrt(square / each)])
    return jax.device_put(common_writes(rate, np.asarray(stored), sizes, work))
