r"""The projection on the capped simplex of many rows at once, node by node: what fits into a hand-written kernel.

As in ``projection`` p_j(tau) = clip(y_j - tau, 0, u_j), and the sum over the nodes falls in tau. Newton's method on
this piecewise linear sum ends within a few turns; where a step leaves the bracket, which every turn narrows, the middle
is tried. The two breakpoints around tau then give p by interpolation, so that the sum is right at any scale of y.
"""

from collections.abc import Sequence
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax

# Newton's method needs three to six; halving a bracket of floats as many as these have bits
_MOST_TURNS = 80
_ROUNDING = 8  # units in the last place of k: as near as sums come


def project_columns(
    points: Sequence[jax.Array], upper: Sequence[jax.Array] | None, k: jax.Array
) -> list[jax.Array]:
    """Nearest points of {0 <= p <= u, sum p = k}, all weights 1.

    Args:
        points: m arrays (rows,), a coordinate of each row; finite.
        upper: m arrays (rows,), bounds within [0, 1]; None for 1.
        k: (rows,) sums, from 0 to the sum of the bounds.

    Returns:
        m arrays (rows,).
    """
    nodes, dtype = range(len(points)), k.dtype
    top = [jnp.ones_like(k) for _ in nodes] if upper is None else upper
    leave = [points[j] - top[j] for j in nodes]
    first, last = reduce(jnp.minimum, leave), reduce(jnp.maximum, points)
    # no more than there is, and of nothing nothing
    target = jnp.clip(k, 0, reduce(jnp.add, top))

    def turn(state):
        tau, low, high, ended, count = state
        total, free = jnp.zeros_like(k), jnp.zeros_like(k)
        for j in nodes:
            value = jnp.clip(points[j] - tau, 0, top[j])
            total = total + value
            free = free + ((value > 0) & (value < top[j])).astype(dtype)
        excess = total - target
        low, high = jnp.where(excess >= 0, tau, low), jnp.where(excess <= 0, tau, high)
        newton = tau + excess / jnp.maximum(free, 1)
        middle = 0.5 * (low + high)
        following = jnp.where((free > 0) & (newton > low) & (newton < high), newton, middle)
        met = jnp.abs(excess) <= _ROUNDING * jnp.finfo(dtype).eps * target
        inside = (following > low) & (following < high)
        # between neighbouring numbers there is a jump: beyond it is what it takes away
        tau = jnp.where(ended | met, tau, jnp.where(inside, following, high))
        return tau, low, high, ended | met | ~inside, count + 1

    def unfinished(state):
        # no reduction of truth values in kernels
        return (jnp.max(jnp.where(state[3], 0, 1)) > 0) & (state[4] < _MOST_TURNS)

    all_free = (reduce(jnp.add, points) - target) / len(points)
    start = jnp.clip(all_free, first, last), first, last, k != k, jnp.int32(0)
    tau = lax.while_loop(unfinished, turn, start)[0]

    # beyond the last breakpoint nothing is left
    low, high = first, jnp.full_like(k, jnp.inf)
    for j in nodes:
        for edge in (points[j], leave[j]):
            low = jnp.where(edge <= tau, jnp.maximum(low, edge), low)
            high = jnp.where(edge > tau, jnp.minimum(high, edge), high)
    left, right = ([_at(points[j], leave[j], top[j], end) for j in nodes] for end in (low, high))
    at_low, at_high = reduce(jnp.add, left), reduce(jnp.add, right)
    fall = at_low - at_high
    share = jnp.where(fall > 0, jnp.clip((at_low - target) / jnp.where(fall > 0, fall, 1), 0, 1), 0)
    return [jnp.clip(left[j] + share * (right[j] - left[j]), 0, top[j]) for j in nodes]


def _at(point: jax.Array, leave: jax.Array, top: jax.Array, tau: jax.Array) -> jax.Array:
    """p(tau); compared with the rounded breakpoints it is exactly u and 0 beyond them."""
    return jnp.where(tau <= leave, top, jnp.where(tau >= point, 0, jnp.minimum(point - tau, top)))
