"""The time in which an amount of work is worked off while more arrives: Takacs's ballot theorem on a lattice.

With A(t) the compound Poisson work that arrives in a time t, an amount v is worked off at time t with probability
(density, off a lattice)

    Pr(T(v) = t) = (v / t) Pr(A(t) = t - v)

("Combinatorial Methods in the Theory of Stochastic Processes", 1967, section 2.13). For an amount V on the lattice
h, 2h, ... this is a coefficient of a product of transforms,

    Pr(T = n h) = (1 / n) [z^n]  (sum_i i Pr(V = i h) z^i)  exp(-n h sum_b Lambda_b (1 - E[z^X_b])),

exact for services on the same lattice: no fixed point for the law of a busy period is needed.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.lattice import logarithms, transform

_BLOCK = 64  # a power n = 64 a + b is a product of two: N^2 numbers are never there at once


def worked_off(amount: jax.Array, arriving: jax.Array, step: jax.Array) -> jax.Array:
    """Mass of the time to work off an amount, (N,); what takes longer than the lattice is dropped.

    Args:
        amount: mass of V, (N,), of any total; what is at 0 stays there. N is a multiple of 64.
        arriving: sum_b Lambda_b Pr(X_b = i h), 1/s, (N,): rates of arrivals with a service of i h.
        step: h, s, ().
    """
    points = amount.shape[-1]
    number = jnp.arange(points, dtype=float)
    start, served = transform(amount * number), transform(arriving)
    growth = -logarithms(points) - lax.complex(step, jnp.zeros_like(step)) * (
        jnp.sum(arriving).astype(served.dtype) - served
    )
    # the inverse transform at n of what is taken to the power n: a sum over the frequencies, of which all but the
    # first and the last stand for two
    share = jnp.full(points // 2 + 1, 2 / points).at[jnp.array([0, points // 2])].set(1 / points)
    place = jnp.arange(_BLOCK).astype(growth.dtype)
    low = jnp.exp(place[None, :] * growth[:, None])
    block = (_BLOCK * jnp.arange(points // _BLOCK)).astype(growth.dtype)
    high = jnp.exp(block[:, None] * growth[None, :]) * (start * share.astype(growth.dtype))[None, :]
    coefficient = (high.real @ low.real - high.imag @ low.imag).ravel()
    return jnp.where(number > 0, coefficient / jnp.maximum(number, 1), amount)
