"""Several chunks of one file on one node (Lemma 4 of the JLCM paper, corrected).

The x chunks that a request reads from a node are served together, as one super-chunk. With rates nu_x of
super-chunks of x chunks and f_r = sum_x nu_x x (x-1) ... (x-r+1), the super-chunk S of the mixture has::

    nu E[S] = f_1 m_1,  nu E[S^2] = f_1 m_2 + f_2 m_1^2,  nu E[S^3] = f_1 m_3 + 3 f_2 m_1 m_2 + f_3 m_1^3,
    E[T^x] = x m_1 + E[W],  Var[T^x] = x (m_2 - m_1^2) + Var[W],  W the wait of M/G/1 with service S.

The paper prints chunk moments with the chunk rate in W, as if chunks arrived one by one; that is not a
bound (two constant chunks at load 0.5: a wait of 0.5 instead of 1).
"""

import jax.numpy as jnp
from jax.typing import ArrayLike

from ecjax.queueing.mg1 import Delay, waiting
from ecjax.queueing.moments import ServiceMoments, as_float


def superchunk(rates: ArrayLike, moments: ServiceMoments, counts: ArrayLike | None = None) -> Delay:
    """Time until the last of x chunks read together from a node is served.

    ``latency_bound`` with the probabilities p_j(x) and these delays, both flattened over x and j, bounds
    the file.

    Args:
        rates: nu_x = sum_i lambda_i p_ij(x), 1/s, (X, m), or (X,) for one node.
        moments: of one chunk, (m,), or scalars for one node or alike nodes.
        counts: chunks x of each row, (X,), whole numbers >= 0; 1, ..., X when not given.

    Returns:
        Delay of the shape of ``rates``; infinite on a node whose load f_1 m_1 is 1 or more.

    Raises:
        ValueError: the shapes do not fit.
    """
    rate = as_float(rates)
    m_1, m_2, m_3 = (as_float(moment) for moment in (moments.first, moments.second, moments.third))
    if m_1.ndim == 0:
        m_1, m_2, m_3 = (jnp.broadcast_to(moment, rate.shape[1:]) for moment in (m_1, m_2, m_3))
    x = as_float(jnp.arange(1, rate.shape[0] + 1) if counts is None else counts).astype(rate.dtype)
    if rate.shape[1:] != m_1.shape or rate.ndim > 2 or x.shape != rate.shape[:1]:
        raise ValueError(
            f"rates have shape {rate.shape}, moments {m_1.shape}, counts {x.shape}: "
            "they must be (X, m), (m,) or (), and (X,), or (X,), () and (X,)"
        )
    x = jnp.broadcast_to(x.reshape(x.shape + (1,) * m_1.ndim), rate.shape)
    f_1 = (rate * x).sum(axis=0)
    f_2 = (rate * x * (x - 1)).sum(axis=0)
    f_3 = (rate * x * (x - 1) * (x - 2)).sum(axis=0)
    wait = waiting(
        f_1 * m_1,
        f_1 * m_2 + f_2 * m_1**2,
        f_1 * m_3 + 3 * f_2 * m_1 * m_2 + f_3 * m_1**3,
    )
    variance = ServiceMoments(m_1, m_2, m_3).variance
    return Delay(x * m_1[None], x * variance[None]).plus(wait.mean, wait.variance)
