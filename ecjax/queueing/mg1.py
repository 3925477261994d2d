"""Sojourn time of chunks at nodes that serve first come, first served: M/G/1 with a mixture of chunk
classes.

With chunk rates Lambda_cj of class c at node j and raw service moments m_n[c, j] (Lemma 3 of Xiang, Lan,
Aggarwal, Chen, "Joint latency and cost optimization for erasure-coded data center storage", extended
from one class to a
mixture)::

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
        first = jnp.broadcast_arrays(self.mean, as_float(mean))
        second = jnp.broadcast_arrays(self.variance, as_float(variance))
        return Delay(first[0] + first[1], second[0] + second[1])


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
    idle = jnp.where(unstable, jnp.ones_like(rho), 1 - rho)
    mean = a_2 / (2 * idle)
    variance = a_3 / (3 * idle) + mean**2
    infinite = jnp.full_like(mean, jnp.inf)
    return Delay(jnp.where(unstable, infinite, mean), jnp.where(unstable, infinite, variance))


def load(rates: ArrayLike, moments: ServiceMoments) -> jax.Array:
    """Load rho of every node, (m,): rates (C, m) or (m,) in 1/s, moments of the same shape."""
    return _over_classes(_checked(rates, moments) * as_float(moments.first))


def fcfs(
    rates: ArrayLike,
    moments: ServiceMoments,
    background: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
) -> Delay:
    """Sojourn time of each class of chunks at each node, served first come, first served.

    Args:
        rates: chunk rates Lambda_cj, 1/s, (C, m), or (m,) for one class.
        moments: service moments of the same shape.
        background: (rho, A_2, A_3) of other work of the nodes (writes, repair), each (m,); it makes chunks
            wait and has no row in the result.

    Returns:
        Delay of the shape of ``rates``; infinite in the column of a node whose load is 1 or more.

    Raises:
        ValueError: rates and moments differ in shape.
    """
    rate = _checked(rates, moments)
    sums = [_over_classes(rate * as_float(m)) for m in (moments.first, moments.second, moments.third)]
    if background is not None:
        sums = [own + as_float(other) for own, other in zip(sums, background, strict=True)]
    wait = waiting(*sums)
    return Delay(moments.first, moments.variance).plus(wait.mean, wait.variance)


def _checked(rates: ArrayLike, moments: ServiceMoments) -> jax.Array:
    rate = as_float(rates)
    if rate.shape != jnp.shape(moments.first) or rate.ndim > 2:
        raise ValueError(
            f"rates have shape {rate.shape}, moments {jnp.shape(moments.first)}: "
            "both must be (C, m), classes by nodes, or (m,)"
        )
    return rate


def _over_classes(values: jax.Array) -> jax.Array:
    return values.sum(axis=0) if values.ndim == 2 else values
