"""Dependence between the waits of nodes under non-preemptive priority, as correlations of the copula of ``dependence``.

Of the classes after its own a class meets no more than what is in service, which depends less from node to node than
their work. With loads rho of classes at the two nodes (their mean), u the squared coefficient of variation of all
service times there, and a^2(P, C, rho) the correlation of first come, first served::

    a_k^2 = a^2(P_k, C_k, rho) [1 - (rho_{>k} (1 - rho_{<k}) sqrt(1 - rho_{<=k}))^q],   q = 0.66 + 0.12 / (u + 0.026)

P_k and C_k are shares of common work in which that of the classes after k counts (1 - rho)^1.5. For the last class all
this is first come, first served. Where a^2 is 1, nodes do the same all the time and a_k^2 is 1 too.

The constants were fitted to simulations of two and three classes of equal chunks (shares of the first from 1/23 to
3/4), 2, 4, 7 and 12 of 12 nodes, loads of 0.3, 0.6 and 0.9, and constant, shifted exponential, Weibull, exponential
and lognormal services, so that the means of the slowest read fit; the weights of P_k and u to classes that read from
unlike numbers of nodes, and chunks of unlike sizes.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.dependence import between, common_work, pair_correlation, shares, with_writes
from ecjax.queueing.service_law import ServiceLaw

_COMPLETE = 32  # power of a^2 that is 1 for nodes that do the same, and next to nothing for others


def priority_correlations(
    probabilities: jax.Array,
    rates: jax.Array,
    chunk_bytes: jax.Array,
    service: ServiceLaw,
    member: jax.Array,
    background: jax.Array,
    common_writes: jax.Array | None = None,
) -> jax.Array:
    """Correlation of the waits of every class at every two nodes, (K, m, m), in [0, 1]; 0 on the diagonals.

    Args:
        probabilities: pi, (r, m).
        rates: 1/s, (r,).
        chunk_bytes: B, (r,).
        service: laws.
        member: files of each class, (K, r) bool; the first class goes first.
        background: load, A_2, A_3 of other work that is served with each class, (K, 3, m).
        common_writes: the part of it that reaches nodes together, (K, 2, m, m), see ``dependence.with_writes``.
    """
    common = jax.vmap(
        lambda mask: common_work(probabilities, jnp.where(mask, rates, 0), chunk_bytes, service)
    )(member)
    common = with_writes(common, common_writes)
    _, _, load = shares(jax.tree.map(lambda part: part.sum(axis=0), common), background.sum(axis=0))
    class_load = common.load + background[:, 0]
    through = jnp.cumsum(class_load, axis=0)
    total = jnp.clip(through[-1], 0, 1)
    idle_power = _root(1 - total) ** 3
    rate = jnp.sum(rates[:, None] * probabilities, axis=0)
    reads = common.load.sum(axis=0)
    read = reads > 0
    variation = rate * common.second.sum(axis=0) / jnp.where(read, reads, 1) ** 2 - 1
    power = between(0.66 + 0.12 / (jnp.maximum(variation, 0) + 0.026))

    def of_class(k):
        later = jnp.arange(member.shape[0]) > k

        def counted(parts, weight):
            axes = later.reshape((-1,) + (1,) * (parts.ndim - 1))
            return jnp.sum(jnp.where(axes, weight[None], 1) * parts, axis=0)

        both = _root(idle_power[:, None] * idle_power[None, :])
        scaled = jax.tree.map(lambda parts: counted(parts, both if parts.ndim == 3 else idle_power), common)
        requests, work, _ = shares(
            scaled, counted(background, jnp.broadcast_to(idle_power, background.shape[1:]))
        )
        own_load = jnp.clip(through[k], 0, 1)
        # roots and powers have no derivative at 0
        met = (
            jnp.maximum(between(total - own_load), 1e-9)
            * (1 - between(own_load - class_load[k]))
            * jnp.sqrt(jnp.maximum(1 - between(own_load), 1e-9))
        )
        together = pair_correlation(requests, work, load)
        return together * (1 - jnp.clip(met, 1e-9, 1) ** power * (1 - together**_COMPLETE))

    return lax.map(of_class, jnp.arange(member.shape[0]))


def _root(values):
    """Square root; its derivative is 0, not infinite, at 0: at nodes that have no time left."""
    positive = values > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, values, 1)), 0)
