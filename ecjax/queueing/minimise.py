"""The minimising z of the order-statistic bound, and its derivative.

One problem: weights w_j >= 0 with sum k > 1, means E_j, variances V_j, any one shape::

    f(z) = z + sum_j w_j/2 [(E_j - z) + sqrt((E_j - z)^2 + V_j)],   convex in z.

Bracket. With u_j = (z - E_j)/sqrt(V_j), f'(z) = 1 - sum_j w_j g(u_j), where g(u) = (1 - u/sqrt(1 + u^2))/2
falls from 1 to 0 and g(c) = 1/k at c = (k - 2)/(2 sqrt(k - 1)). At z = max_j E_j + c sqrt(V_j), over nodes
with w_j > 0, every u_j >= c, so f' >= 0; at the minimum over j every u_j <= c, so f' <= 0: the minimiser
lies between the two.

Iteration. With G = sum_j w_j g(u_j) and q = 1 - 2G/k, solve U(z) = q/sqrt(1 - q^2) = c by Newton's method: U
is linear in z when the nodes are alike (one step from anywhere) and always towards both ends, where f' itself
is flat. A step that leaves the bracket or is more than half of the one before is replaced by bisection.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.programs import program


def single(total: jax.Array) -> jax.Array:
    """Whether k, a sum of probabilities, is 1 (or less) to rounding: then the infimum is at z = -inf.

    The bound grows like sqrt(k - 1), so that a sum of 1 + 1e-13 would move it by 3e-7 standard deviations.
    """
    return total <= 1 + 2**14 * jnp.finfo(total.dtype).eps


def is_used(weights: jax.Array) -> jax.Array:
    """Where the weight is above 0; one that is not a number counts, so that it reaches the result."""
    return ~(weights <= 0)


def sums(*values: jax.Array) -> tuple[jax.Array, ...]:
    """Sums over all axes of two or more arrays of one shape, in one pass (no derivative)."""
    return _reduce(values, [jnp.sum] * len(values))


def by_row(values: Sequence[jax.Array], kinds: Sequence) -> tuple[jax.Array, ...]:
    """Reductions of arrays of one shape over the last axis, each jnp.sum, jnp.min or jnp.max (no derivative).

    One reduction of all arrays: XLA on CPUs runs it five times faster than one by one.
    """
    pairwise = {jnp.sum: (0.0, lax.add), jnp.min: (jnp.inf, lax.min), jnp.max: (-jnp.inf, lax.max)}
    starts = [jnp.asarray(pairwise[kind][0], value.dtype) for kind, value in zip(kinds, values, strict=True)]
    operations = [pairwise[kind][1] for kind in kinds]

    def both(left, right):
        return tuple(operation(a, b) for operation, a, b in zip(operations, left, right, strict=True))

    return tuple(lax.reduce(tuple(values), tuple(starts), both, (values[0].ndim - 1,)))


def _reduce(values: Sequence[jax.Array], kinds: Sequence) -> tuple[jax.Array, ...]:
    return tuple(kind(row) for kind, row in zip(kinds, by_row(values, kinds), strict=True))


def hyperbola(z: jax.Array, mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return d = E - z, s = sqrt(d^2 + V) and 1/s; 1/s and the derivatives are 0 at d = V = 0."""
    d = mean - z
    square = d * d + variance
    positive = square > 0
    inverse = jnp.where(positive, lax.rsqrt(jnp.where(positive, square, jnp.ones_like(d))), jnp.zeros_like(d))
    return d, square * inverse, inverse


def only_finite(mean: jax.Array, variance: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean and variance with 0 in place of infinite ones, and where they were finite."""
    finite = ~(jnp.isinf(mean) | jnp.isinf(variance))
    zero = jnp.zeros_like(mean)
    return jnp.where(finite, mean, zero), jnp.where(finite, variance, zero), finite


def _slopes(z, weights, mean, variance):
    """2 - 2 f'(z) and 2 f''(z)."""
    d = mean - z
    # the smallest number keeps 1/s finite at d = V = 0; in this order the factors of V/s^3 cannot overflow
    inverse = lax.rsqrt(d * d + variance + jnp.finfo(d.dtype).tiny)
    used = is_used(weights)
    return sums(
        jnp.where(used, weights * (1 + d * inverse), 0),
        jnp.where(used, weights * (variance * inverse * inverse * inverse), 0),
    )


@program
def _solve(weights, mean, variance, start):
    eps = jnp.finfo(weights.dtype).eps
    used = is_used(weights)
    deviation = jnp.sqrt(variance)
    k, first, second, smallest = _reduce(
        (
            weights,
            jnp.where(used, weights * mean, 0),
            jnp.where(used, weights * (variance + mean * mean), 0),
            jnp.where(used, deviation, jnp.inf),
        ),
        (jnp.sum, jnp.sum, jnp.sum, jnp.min),
    )
    several = ~single(k)
    k = jnp.where(several, k, 2)
    c = (k - 2) / (2 * jnp.sqrt(k - 1))
    alone = mean + c * deviation  # the minimiser, were all nodes like this one
    lower, upper = _reduce(
        (jnp.where(used, alone, jnp.inf), jnp.where(used, alone, -jnp.inf)), (jnp.min, jnp.max)
    )
    solvable = several & jnp.isfinite(lower) & jnp.isfinite(upper)
    lower, upper = (jnp.where(solvable, end, 0) for end in (lower, upper))
    if start is None:
        # that of one node with the spread of all; a guess, so that the cancellation does not matter
        start = first / k + c * jnp.sqrt(jnp.maximum(second / k - (first / k) ** 2, 0))
    start = jnp.clip(jnp.where(jnp.isfinite(start), start, lower), lower, upper)
    resolution = 2 * eps * jnp.maximum(jnp.abs(lower), jnp.abs(upper))
    # Newton's next error is about (last step)^2/smallest: below rounding once the step is this small
    small = jnp.maximum(jnp.sqrt(eps) / 16 * smallest, resolution)

    def improve(state):
        z, lower, upper, last = state
        g, curvature = _slopes(z, weights, mean, variance)
        lower = jnp.where(g >= 2, z, lower)
        upper = jnp.where(g <= 2, z, upper)
        share = g / (2 * k)
        room = 4 * share * (1 - share)  # 1 - q^2
        step = k * room / curvature * (c * jnp.sqrt(room) - (1 - 2 * share))
        width = upper - lower
        size = jnp.abs(step)
        newton = (z + step >= lower) & (z + step <= upper) & (size <= 0.5 * last)
        balanced = jnp.abs(g - 2) <= 4 * eps * k
        z = jnp.where(newton, z + step, jnp.where(balanced, z, 0.5 * (lower + upper)))
        converged = balanced | (newton & (size <= small)) | (width <= resolution)
        return (
            z,
            jnp.where(converged, z, lower),
            jnp.where(converged, z, upper),
            jnp.where(newton, size, width),
        )

    # a closed bracket marks a finished problem; half of every width or step makes an end certain
    state = (start, lower, upper, 2 * (upper - lower))
    return lax.while_loop(lambda state: state[2] > state[1], improve, state)[0]


@jax.custom_jvp
def minimiser(weights, mean, variance, start):
    """The minimising z of one problem; 0 where there is none (k <= 1, or a used node with infinite delay).

    Args:
        weights: w_j >= 0, any shape of one axis or more.
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
    curvature = bend.sum()
    slope = (
        jnp.where(finite, 0.5 * (1 + d * inverse), jnp.zeros_like(d)) * tangents[0]
        + bend * tangents[1]
        - 0.25 * weights * d * inverse * inverse * inverse * tangents[2]
    ).sum()
    exists = (curvature > 0) & ~single(weights.sum())
    return z, jnp.where(exists, slope / jnp.where(exists, curvature, jnp.ones_like(z)), jnp.zeros_like(z))
