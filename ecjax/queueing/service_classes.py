"""Sojourn times of service classes at nodes: priority and weighted queues, any number of classes.

Non-preemptive priority, class 1 first (Cobham; second moments by Kella and Yechiali), with chunk rates Lambda_k, raw
service moments m_n,k and A_n = sum_i Lambda_i m_n,i over all classes, B_k = sum_{i<k} Lambda_i m_2,i,
C_k = B_k + Lambda_k m_2,k, a = 1 - sum_{i<k} rho_i, b = 1 - sum_{i<=k} rho_i::

    E[W_k]   = A_2 / (2 a b)
    E[W_k^2] = A_3 / (3 a^2 b) + A_2 C_k / (2 a^2 b^2) + A_2 B_k / (2 a^3 b)
    T_k = W_k + X_k, independent.

The differentiated-latency paper has two classes; its means (3), (5) are these, its variance (4) is above and (6),
(21)-(23) are below the true ones, so that the bound built on them does not hold.

Weighted queues are strictly partitioned: class k has a server of its own, slower by its weight w (service X/w), which
no work-conserving way of sharing is slower than. The paper's (7), (8) leave 1/mu unscaled and come out too small.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ecjax.queueing.mg1 import Delay, waiting
from ecjax.queueing.moments import ServiceMoments, as_float


def priority(rates: ArrayLike, moments: ServiceMoments) -> Delay:
    """Sojourn time of every class at every node under non-preemptive priority; exact mean and variance.

    Args:
        rates: Lambda, chunk rates, 1/s, (K, m), or (K,) for one node; the first class goes first.
        moments: of the same shape, or one that broadcasts to it.

    Returns:
        Delay of the shape of ``rates``; infinite for a class whose load and those of the classes before it sum to 1
        or more. Classes before it stay finite: they wait for no more than the access in service.

    Raises:
        ValueError: the shapes do not fit.
    """
    rate, first, second, third = _broadcast(rates, moments)
    wait = priority_waiting(rate * first, rate * second, rate * third)
    return Delay(first, ServiceMoments(first, second, third).variance).plus(wait.mean, wait.variance)


@jax.jit
def priority_waiting(load: ArrayLike, second: ArrayLike, third: ArrayLike) -> Delay:
    """Wait before service of every class under non-preemptive priority, from the sums over its work.

    Args:
        load: rho_k, (K, m) or (K,); the first class goes first.
        second: Lambda_k m_2,k, s, of the same shape.
        third: Lambda_k m_3,k, s^2, of the same shape.

    Returns:
        Delay of that shape; infinite for a class whose load and those of the classes before it sum to 1 or more.
    """
    first, square, cube = as_float(load), as_float(second), as_float(third)
    through, squares = jnp.cumsum(first, axis=0), jnp.cumsum(square, axis=0)
    before = through - first
    unstable = through >= 1
    # of a class that is not stable as much is served as those before it leave: so much of it delays them
    idle = 1 - before
    served = jnp.clip(jnp.where(first > idle, idle / jnp.where(first > 0, first, 1), 1), 0, 1)
    a_2, a_3 = (jnp.sum(served * sums, axis=0, keepdims=True) for sums in (square, cube))
    a, b = (jnp.where(unstable, 1, 1 - sums) for sums in (before, through))
    mean = a_2 / (2 * a * b)
    later = (
        a_3 / (3 * a**2 * b) + a_2 * squares / (2 * a**2 * b**2) + a_2 * (squares - square) / (2 * a**3 * b)
    )
    variance = jnp.maximum(later - mean**2, 0)
    return Delay(jnp.where(unstable, jnp.inf, mean), jnp.where(unstable, jnp.inf, variance))


def weighted(rates: ArrayLike, moments: ServiceMoments, weights: ArrayLike) -> Delay:
    """Sojourn time of every class at every node under strict partition by weights; exact mean and variance.

    An upper bound, path by path, for every work-conserving sharing with these weights.

    Args:
        rates: Lambda, chunk rates, 1/s, (K, m), or (K,) for one node.
        moments: of the same shape, or one that broadcasts to it.
        weights: w, share of a node, > 0, (K,) or the shape of ``rates``.

    Returns:
        Delay of the shape of ``rates``; infinite where Lambda m_1 >= w.

    Raises:
        ValueError: the shapes do not fit.
    """
    rate, first, second, third = _broadcast(rates, moments)
    share = as_float(weights)
    if share.ndim == 1 and rate.ndim == 2:
        share = share[:, None]
    if share.ndim != rate.ndim or share.shape[0] != rate.shape[0]:
        raise ValueError(f"weights have shape {share.shape}, rates {rate.shape}: there must be one per class")
    slowed = ServiceMoments(first, second, third).scaled(1 / share)
    wait = waiting(rate * slowed.first, rate * slowed.second, rate * slowed.third)
    return Delay(slowed.first, slowed.variance).plus(wait.mean, wait.variance)


def _broadcast(
    rates: ArrayLike, moments: ServiceMoments
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    rate = as_float(rates)
    parts = [as_float(part) for part in (moments.first, moments.second, moments.third)]
    if rate.ndim not in (1, 2) or any(part.ndim > rate.ndim for part in parts):
        raise ValueError(
            f"rates have shape {rate.shape}, moments {parts[0].shape}: rates must be (K, m) or (K,), and moments must "
            "broadcast to them"
        )
    first, second, third = (jnp.broadcast_to(part, rate.shape) for part in parts)
    return rate, first, second, third
