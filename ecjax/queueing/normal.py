"""The normal distribution in one expression: several times as fast as two expressions of which one is taken."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from numpy.polynomial import chebyshev
from scipy import special

_DEGREE = 20  # errors of 2e-13


def _coefficients() -> list[float]:
    """Of log(erfc(z) exp(z^2) / t) as a polynomial of 2 t - 1, where t = 1 / (1 + z / 2)."""
    place = chebyshev.chebpts1(_DEGREE + 1)
    t = (place + 1) / 2
    values = np.log(special.erfcx(2 / t - 2) / t)
    return chebyshev.cheb2poly(chebyshev.chebfit(place, values, _DEGREE)).tolist()


_POLYNOMIAL = _coefficients()


@jax.custom_jvp
def normal_cumulative(x: ArrayLike) -> jax.Array:
    """Phi(x) to a relative error of 1e-12, any shape.

    The form is that of Press, Teukolsky, Vetterling, Flannery, Numerical Recipes, section 6.2.
    """
    scaled = jnp.asarray(x, float) * -np.sqrt(0.5)
    size = jnp.abs(scaled)
    t = 1 / (1 + size / 2)
    place = 2 * t - 1
    exponent = jnp.full_like(place, _POLYNOMIAL[-1])
    for coefficient in _POLYNOMIAL[-2::-1]:
        exponent = exponent * place + coefficient
    tail = 0.5 * t * jnp.exp(exponent - size * size)
    return jnp.where(scaled >= 0, tail, 1 - tail)


@normal_cumulative.defjvp
def _derivative(primals, tangents):
    (x,), (change,) = primals, tangents
    return normal_cumulative(x), jnp.exp(-x * x / 2) / np.sqrt(2 * np.pi) * change
