"""The first three raw moments of chunk service times."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ecjax import precision  # noqa: F401  (64-bit floats before the first array)


def as_float(value: ArrayLike) -> jax.Array:
    """The value as a floating array; integers and booleans become the default float."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ServiceMoments:
    """Raw moments of the time a node takes to serve one chunk, waiting excluded.

    The three arrays have one shape: normally (C, m) for C classes of chunks (one per chunk size) on m
    nodes, or (m,) for a single class.
    """

    first: jax.Array  # [C, m], s: E[X]
    second: jax.Array  # [C, m], s^2: E[X^2]
    third: jax.Array  # [C, m], s^3: E[X^3]

    @property
    def variance(self) -> jax.Array:
        """Variance of the service time, s^2, [C, m]; not below 0, however the moments are rounded."""
        variance = as_float(self.second) - as_float(self.first) ** 2
        return jnp.where(variance < 0, 0, variance)

    def scaled(self, factor: ArrayLike) -> "ServiceMoments":
        """Moments of ``factor`` X: m_n factor^n.

        Args:
            factor: scalar, or an array that broadcasts with the moments: a (C, 1) factor turns the
                moments (m,) of one chunk size into those of C sizes, (C, m).
        """
        first, second, third, by = jnp.broadcast_arrays(
            *(as_float(value) for value in (self.first, self.second, self.third, factor))
        )
        return ServiceMoments(first * by, second * by**2, third * by**3)

    @classmethod
    def shifted_exponential(cls, shift: ArrayLike, mean_exponential: ArrayLike) -> "ServiceMoments":
        """Moments of D + Exp with mean P: D + P, D^2 + 2DP + 2P^2, D^3 + 3D^2 P + 6DP^2 + 6P^3.

        Args:
            shift: D, s, the part of the delay that does not vary.
            mean_exponential: P, s, mean of the exponential part; the shapes broadcast.
        """
        d, p = jnp.broadcast_arrays(as_float(shift), as_float(mean_exponential))
        return cls(d + p, d**2 + 2 * d * p + 2 * p**2, d**3 + 3 * d**2 * p + 6 * d * p**2 + 6 * p**3)

    @classmethod
    def exponential(cls, mean: ArrayLike) -> "ServiceMoments":
        """Moments of an exponential law with this mean (s): m, 2 m^2, 6 m^3."""
        first = as_float(mean)
        return cls(first, 2 * first**2, 6 * first**3)
