"""Gamma laws at many points at once, from a table: 1e-3 near, differentiable, and far cheaper than the function.

Wilson and Hilferty: the cube root of a gamma variable is nearly normal. Over that normal score y and the logarithm of
the shape the distribution is smooth, so that a table between whose entries one is linear does.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

SHAPES = np.geomspace(0.02, 1e5, 128)
SCORES = np.linspace(-8.0, 12.0, 401)


@cache
def table() -> np.ndarray:
    """Distribution at every shape and score, (shapes, scores)."""
    shape = SHAPES[:, None]
    root = 1 - 1 / (9 * shape) + SCORES[None, :] / (3 * np.sqrt(shape))
    return special.gammainc(shape, shape * np.maximum(root, 0.0) ** 3)


def gamma_cumulative(x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
    """Pr(G <= x) of gamma laws; shapes broadcast.

    Args:
        x: s, above 0.
        mean: s, above 0.
        variance: s^2, above 0.
    """
    values = jnp.asarray(table())
    shape = jnp.clip(mean**2 / variance, SHAPES[0], SHAPES[-1])
    step = float(np.log(SHAPES[1] / SHAPES[0]))
    row, up = _between(jnp.log(shape / SHAPES[0]) / step, len(SHAPES))
    score = (jnp.cbrt(x / mean) - 1 + 1 / (9 * shape)) * 3 * jnp.sqrt(shape)
    column, right = _between((score - SCORES[0]) / (SCORES[1] - SCORES[0]), len(SCORES))
    row, column = jnp.broadcast_arrays(row, column)
    flat, place = values.ravel(), row * len(SCORES) + column
    low = flat[place] + right * (flat[place + 1] - flat[place])
    place = place + len(SCORES)
    high = flat[place] + right * (flat[place + 1] - flat[place])
    return low + up * (high - low)


def _between(position: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Entry at or below a position, and how far it is on the way to the next."""
    entry = jnp.clip(jnp.floor(jax.lax.stop_gradient(position)), 0, count - 2)
    return entry.astype(jnp.int32), jnp.clip(position - entry, 0.0, 1.0)
