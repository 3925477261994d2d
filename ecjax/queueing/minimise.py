"""The minimising z of the order-statistic bound, and its derivative.

One problem: weights w_j >= 0 with sum k > 1, means E_j, variances V_j, any one shape::

    f(z) = z + sum_j w_j/2 [(E_j - z) + sqrt((E_j - z)^2 + V_j)],   convex in z.

Bracket. With u_j = (z - E_j)/sqrt(V_j), f'(z) = 1 - sum_j w_j g(u_j), where g(u) = (1 - u/sqrt(1 +
u^2))/2 falls from 1 to 0 and g(c) = 1/k at c = (k - 2)/(2 sqrt(k - 1)). At z = max_j E_j + c sqrt(V_j)
every u_j >= c, so f' >= 0; at the minimum over j every u_j <= c, so f' <= 0: the minimiser lies between
the two.

Iteration. With G = sum_j w_j g(u_j), solve U(z) = (1 - 2 G/k)/sqrt(1 - (1 - 2 G/k)^2) = c by Newton's
method: U is linear in z when the nodes are alike (one step from anywhere) and linear towards both ends
always, where f' itself is flat. A step that leaves the bracket or is more than half of the one before is
replaced by bisection.
"""

import jax
import jax.numpy as jnp
from jax import lax

# Bisection alone needs 53 halvings and a refused step costs one more evaluation; usually 3 to 5 are enough.
_MOST_EVALUATIONS = 128


def single(total: jax.Array) -> jax.Array:
    """Whether k, a sum of probabilities, is 1 (or less) to rounding: then the infimum is at z = -inf.

    The bound grows like sqrt(k - 1), so that a sum of 1 + 1e-13 would move it by 3e-7 standard deviations.
    """
    return total <= 1 + 2**14 * jnp.finfo(total.dtype).eps


def total(values: jax.Array) -> jax.Array:
    """Sum over all axes, the last one first: the form that XLA spreads over the cores."""
    return values.sum(axis=-1).sum() if values.ndim else values


def only_finite(mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean and variance with 0 in place of infinite ones, and where they were finite."""
    finite = ~(jnp.isinf(mean) | jnp.isinf(variance))
    zero = jnp.zeros_like(mean)
    return jnp.where(finite, mean, zero), jnp.where(finite, variance, zero), finite


def hyperbola(z: jax.Array, mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return d = E - z, s = sqrt(d^2 + V) and 1/s; 1/s and the derivatives are 0 at d = V = 0."""
    d = mean - z
    square = d * d + variance
    positive = square > 0
    inverse = jnp.where(positive, lax.rsqrt(jnp.where(positive, square, jnp.ones_like(d))), jnp.zeros_like(d))
    return d, square * inverse, inverse


def _slopes(z, weights, mean, variance):
    """1 - f'(z) and f''(z)."""
    d = mean - z
    # the smallest number keeps 1/s finite at d = V = 0; in this order the factors of V/s^3 cannot overflow
    inverse = lax.rsqrt(d * d + variance + jnp.finfo(d.dtype).tiny)
    used = weights > 0
    zero = jnp.zeros_like(weights)
    return (
        total(jnp.where(used, 0.5 * weights * (1 + d * inverse), zero)),
        total(jnp.where(used, 0.5 * weights * (variance * inverse * inverse * inverse), zero)),
    )


def _solve(weights, mean, variance, start):
    dtype = weights.dtype
    eps = jnp.finfo(dtype).eps
    used = weights > 0
    k = total(weights)
    several = ~single(k)
    k = jnp.where(several, k, jnp.full_like(k, 2))
    c = (k - 2) / (2 * jnp.sqrt(k - 1))
    deviation = jnp.sqrt(variance)
    alone = mean + c * deviation  # the minimiser, were all nodes like this one
    infinity = jnp.full_like(alone, jnp.inf)
    lower = jnp.min(jnp.where(used, alone, infinity), axis=-1).min()
    upper = jnp.max(jnp.where(used, alone, -infinity), axis=-1).max()
    smallest = jnp.min(jnp.where(used, deviation, infinity), axis=-1).min()
    solvable = several & jnp.isfinite(lower) & jnp.isfinite(upper)
    lower, upper = (jnp.where(solvable, end, jnp.zeros_like(end)) for end in (lower, upper))
    if start is None:
        zero = jnp.zeros_like(weights)
        centre = total(jnp.where(used, weights * mean, zero)) / k
        spread = total(jnp.where(used, weights * (variance + (mean - centre) ** 2), zero)) / k
        start = centre + c * jnp.sqrt(spread)
    start = jnp.clip(jnp.where(jnp.isnan(start), lower, start), lower, upper)
    resolution = 2 * eps * jnp.maximum(jnp.abs(lower), jnp.abs(upper))
    # Newton's next error is about (last step)^2/smallest: below rounding once the step is this small
    small = jnp.sqrt(eps) / 16 * smallest

    def unfinished(state):
        return ~state[-2] & (state[-1] < _MOST_EVALUATIONS)

    def improve(state):
        z, lower, upper, last, _, count = state
        g, curvature = _slopes(z, weights, mean, variance)
        lower = jnp.where(g >= 1, z, lower)
        upper = jnp.where(g <= 1, z, upper)
        share = g / k
        room = 4 * share * (1 - share)
        step = k * room * jnp.sqrt(room) / (2 * curvature) * (c - (1 - 2 * share) / jnp.sqrt(room))
        size = jnp.abs(step)
        accepted = (z + step >= lower) & (z + step <= upper) & (size <= 0.5 * last)
        middle = 0.5 * (lower + upper)
        done = (
            (accepted & (size <= jnp.maximum(small, resolution)))
            | (jnp.abs(g - 1) <= 2 * eps * k)
            | (upper - lower <= resolution)
        )
        balanced = jnp.abs(g - 1) <= 2 * eps * k
        following = jnp.where(accepted, z + step, jnp.where(balanced, z, middle))
        return following, lower, upper, jnp.where(accepted, size, upper - lower), done, count + 1

    state = (start, lower, upper, 2 * (upper - lower), ~(upper > lower), jnp.zeros((), jnp.int32))
    return lax.while_loop(unfinished, improve, state)[0]


@jax.custom_jvp
def minimiser(weights, mean, variance, start):
    """The minimising z of one problem; 0 where there is none (k <= 1, or a used node with infinite delay).

    Args:
        weights: w_j >= 0, any shape.
        mean: E_j, the same shape; infinite ones are ignored where the weight is 0.
        variance: V_j, the same shape.
        start: a guess of z, or None.
    """
    return _solve(weights, mean, variance, start)


@minimiser.defjvp
def _minimiser_jvp(primals, tangents):
    # f'(z; w, E, V) = 0 differentiated; z by this function again, so that higher derivatives follow
    weights, mean, variance, _ = primals
    z = minimiser(*primals)
    mean, variance, finite = only_finite(mean, variance)
    d, _, inverse = hyperbola(z, mean, variance)
    bend = 0.5 * weights * variance * inverse * inverse * inverse
    curvature = total(bend)
    slope = (
        total(jnp.where(finite, 0.5 * (1 + d * inverse), jnp.zeros_like(d)) * tangents[0])
        + total(bend * tangents[1])
        - total(0.25 * weights * d * inverse * inverse * inverse * tangents[2])
    )
    exists = (curvature > 0) & ~single(total(weights))
    return z, jnp.where(exists, slope / jnp.where(exists, curvature, jnp.ones_like(z)), jnp.zeros_like(z))
