"""Sojourn time of chunks at nodes that serve first come, first served: M/G/1 with several chunk classes.

With chunk rates Lambda_cj of class c at node j and raw service moments m_n[c, j] (Lemma 3 of Xiang, Lan,
Aggarwal, Chen, "Joint latency and cost optimization for erasure-coded data center storage", extended
from one class to a mixture)::

    rho_j = sum_c Lambda_cj m_1[c,j],   A_2 = sum_c Lambda_cj m_2[c,j],   A_3 = sum_c Lambda_cj m_3[c,j]
    E[W_j] = A_2 / (2 (1 - rho_j)),     Var[W_j] = A_3 / (3 (1 - rho_j)) + E[W_j]^2
    E[T_cj] = m_1[c,j] + E[W_j],        Var[T_cj] = m_2[c,j] - m_1[c,j]^2 + Var[W_j]

W is the wait before service, T the sojourn (wait and service); the paper calls T the waiting time Q.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ecjax.queueing.moments import ServiceMoments, as_float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Delay:
    """Mean and variance of a delay; both infinite where the node is not stable."""

    mean: jax.Array  # [C, m], s
    variance: jax.Array  # [C, m], s^2

    def plus(self, mean: ArrayLike, variance: ArrayLike) -> "Delay":
        """Sum with an independent delay, for instance of the connection; the shapes broadcast.

        Args:
            mean: s.
            variance: s^2.
        """
        means = jnp.broadcast_arrays(as_float(self.mean), as_float(mean))
        variances = jnp.broadcast_arrays(as_float(self.variance), as_float(variance))
        return Delay(means[0] + means[1], variances[0] + variances[1])


@jax.jit
def waiting(load: ArrayLike, second: ArrayLike, third: ArrayLike) -> Delay:
    """Wait before service of an M/G/1 queue, from the sums over its classes (any one shape).

    Where the load is 1 or more, mean and variance are infinite and their derivatives zero.

    Args:
        load: rho = sum_c Lambda_c m_1[c].
        second: A_2 = sum_c Lambda_c m_2[c], s.
        third: A_3 = sum_c Lambda_c m_3[c], s^2.
    """
    rho, a_2, a_3 = as_float(load), as_float(second), as_float(third)
    unstable = rho >= 1
    idle = jnp.where(unstable, 1, 1 - rho)
    mean = a_2 / (2 * idle)
    variance = a_3 / (3 * idle) + mean**2
    return Delay(jnp.where(unstable, jnp.inf, mean), jnp.where(unstable, jnp.inf, variance))


def load(rates: ArrayLike, moments: ServiceMoments) -> jax.Array:
    """Load rho of every node, (m,).

    Args:
        rates: chunk rates, 1/s, (C, m), or (m,) for one class.
        moments: service moments of the same shape, or of one that broadcasts to it.
    """
    rate, service = _broadcast(rates, moments)
    return _over_classes(rate * service.first)


def fcfs(
    rates: ArrayLike,
    moments: ServiceMoments,
    background: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
) -> Delay:
    """Sojourn time of each class of chunks at each node, served first come, first served.

    Args:
        rates: chunk rates Lambda_cj, 1/s, (C, m), or (m,) for one class.
        moments: service moments of the same shape, or of one that broadcasts to it.
        background: (rho, A_2, A_3) of other work of the nodes (writes, repair), each (m,); it makes chunks
            wait and has no row in the result.

    Returns:
        Delay of the shape of ``rates``; infinite in the column of a node whose load is 1 or more.

    Raises:
        ValueError: the shapes do not fit.
    """
    rate, service = _broadcast(rates, moments)
    sums = [_over_classes(rate * moment) for moment in (service.first, service.second, service.third)]
    if background is not None:
        sums = [part + as_float(other) for part, other in zip(sums, background, strict=True)]
    wait = waiting(*sums)
    return Delay(service.first, service.variance).plus(wait.mean, wait.variance)


def _broadcast(rates: ArrayLike, moments: ServiceMoments) -> tuple[jax.Array, ServiceMoments]:
    rate = as_float(rates)
    parts = [as_float(moment) for moment in (moments.first, moments.second, moments.third)]
    shape = parts[0].shape
    axes = zip(reversed(shape), reversed(rate.shape), strict=False)
    if rate.ndim > 2 or len(shape) > rate.ndim or any(size not in (1, full) for size, full in axes):
        raise ValueError(
            f"rates have shape {rate.shape}, moments {shape}: "
            "rates must be (C, m), classes by nodes, or (m,), and moments must broadcast to them"
        )
    return rate, ServiceMoments(*(jnp.broadcast_to(part, rate.shape) for part in parts))


def _over_classes(values: jax.Array) -> jax.Array:
    return values.sum(axis=0) if values.ndim == 2 else values
