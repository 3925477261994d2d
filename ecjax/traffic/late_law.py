"""The law of the time that a read takes at a busy node, from moments: a gamma law that begins at a shift.

Two moments of the workload are known, its mean and its variance. A queue in balance has waits of an exponential tail
and a variance of mean^2; one that has been filling has less variance, and the tail of a normal law. Normal laws that
are cut off at 0 are both: the exponential law is their limit, and the wait of reflected Brownian motion from empty is
half of one. So the third moment of a wait is that of the normal law cut off at 0 with its mean and variance, and where
the variance is above mean^2 that of a gamma law. Work comes in chunks, though, and no Brownian motion: a sum of so many
of them as a Poisson law says, of variance V, has a third moment of V m_3/m_2, of which a queue in balance has none
besides its tail's; the part 1 - V/mean^2 of it is added. With the moments of the service added, the gamma law with a
shift (Pearson's type III) has all three.

Beside exact M_t/M/1 queues whose rate changes between two levels, the 99 % point of the wait is within 2.5 %; beside
one whose rate is a wave that rises above 1, that of the sojourn within 2 %, where a gamma law without a shift is 3 to
5 % above.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from ecjax.programs import program
from ecjax.traffic.gamma_table import gamma_cumulative

LEAST_SCV = 1e-4  # of waits
LEAST_SKEWNESS = 0.01  # nearly a normal law
_SQUARES = 257  # squared coefficients of variation, from 0 to 1
_CUTS = np.linspace(-12.0, 10.0, 4001)  # where normal laws are cut off, in deviations from their centre
_NEAR = 1e-9  # of the mean: the least time after the shift at which the law is taken


class Served(NamedTuple):
    """What chunks take at nodes, each (m,)."""

    mean: jax.Array  # s, of service and connection delay
    variance: jax.Array  # s^2
    third: jax.Array  # s^3, the third central moment
    lump: jax.Array  # s, m_3/m_2 of the service


@program
def late_cumulative(points: jax.Array, wait: jax.Array, spread: jax.Array, service: Served) -> jax.Array:
    """Pr(L <= x) of waits and services together, (m, P).

    Args:
        points: s, (P,).
        wait: s, (m,), mean of the workload at a busy node.
        spread: s^2, (m,), its variance, at least ``LEAST_SCV`` mean^2.
        service: of the chunk that is read; the others' are like it.
    """
    square = spread / jnp.where(wait > 0, wait, 1.0) ** 2
    filling = jnp.interp(square, *map(jnp.asarray, cut_normal_skewness())) * spread**1.5
    filling = filling + (1 - square) * service.lump * spread
    third = jnp.where(square < 1, filling, gamma_third(wait, spread)) + service.third
    mean, variance = wait + service.mean, jnp.maximum(spread + service.variance, LEAST_SCV * service.mean**2)
    skewness = jnp.maximum(third / variance**1.5, LEAST_SKEWNESS)
    mean_after = 2 * jnp.sqrt(variance) / skewness
    after = points[None, :] - (mean - mean_after)[:, None]
    return gamma_cumulative(
        jnp.maximum(after, _NEAR * mean_after[:, None]), mean_after[:, None], variance[:, None]
    )


def gamma_third(mean: jax.Array, variance: jax.Array) -> jax.Array:
    """Third central moment of gamma laws; 0 where the mean is 0."""
    return 2 * variance**2 / jnp.where(mean > 0, mean, 1.0)


@cache
def cut_normal_skewness() -> tuple[np.ndarray, np.ndarray]:
    """Squared coefficients of variation from 0 to 1, and the skewness of normal laws cut off at 0 that have them."""
    hazard = np.exp(-(_CUTS**2) / 2) / np.sqrt(2 * np.pi) / special.ndtr(-_CUTS)
    excess = hazard - _CUTS
    variance = 1 - hazard * excess
    third = hazard * (2 * hazard**2 - 3 * _CUTS * hazard + _CUTS**2 - 1)
    square, skewness = np.append(variance / excess**2, 1.0), np.append(third / variance**1.5, 2.0)
    at = np.linspace(0.0, 1.0, _SQUARES)
    return at, np.interp(at, square, skewness, left=0.0)
