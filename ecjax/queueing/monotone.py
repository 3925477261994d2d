"""Interpolation of monotone data by cubics that stay monotone and have a continuous slope.

Fritsch and Carlson (SIAM J. Numer. Anal. 17, 1980), slopes by Brodlie's harmonic mean as in SciPy's
``PchipInterpolator``, whose end slopes differ. Unlike linear interpolation its derivatives by the data are those of
the function behind them, to second order.
"""

import jax
import jax.numpy as jnp


def interpolate(at: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Values at the places ``at``, (q,); the first and last value beyond the ends.

    Args:
        at: (q,).
        x: rising, equal neighbours are allowed, (n,).
        y: non-decreasing, (n,).
    """
    last = x.shape[0] - 1
    high = jnp.clip(jnp.searchsorted(x, at, side="left"), 1, last)
    low = high - 1
    width, rise = _steps(x, y, low, high)
    before = _steps(x, y, jnp.maximum(low - 1, 0), jnp.maximum(high - 1, 1))
    after = _steps(x, y, jnp.minimum(low + 1, last - 1), jnp.minimum(high + 1, last))
    left = jnp.where(low == 0, rise, _slope(width, rise, *before))
    right = jnp.where(high == last, rise, _slope(width, rise, *after))
    t = jnp.clip(_ratio(at - x[low], width), 0, 1)
    cubic = t * t * (3 - 2 * t)
    bent = width * (left * t * (1 - t) ** 2 - right * t * t * (1 - t))
    return y[low] + (y[high] - y[low]) * cubic + bent


def _steps(x, y, low, high):
    """Width and mean slope of some intervals."""
    width = x[high] - x[low]
    return width, _ratio(y[high] - y[low], width)


def _slope(width, rise, next_width, next_rise):
    """Slope at the point between two intervals; that of one where the other is a single place."""
    one, other = 2 * next_width + width, next_width + 2 * width
    both = _ratio((one + other) * rise * next_rise, one * next_rise + other * rise)
    return jnp.where(next_width > 0, both, rise)


def _ratio(numerator, denominator):
    positive = denominator > 0
    return jnp.where(positive, numerator / jnp.where(positive, denominator, 1), 0)
