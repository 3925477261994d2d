"""Upper bounds on the latency of reads that end with the last of k chunks (Lemma 2 of the JLCM paper).

For any joint law of the node delays with means E_j and variances V_j, and any dispatch that asks node j
with probability pi_j, sum_j pi_j = k::

    T <= min_z  z + sum_j pi_j/2 [(E_j - z) + sqrt((E_j - z)^2 + V_j)]

Alike nodes give E + sqrt((k - 1) V) (equation 8 of the paper prints sqrt(k - 1) V, which has the wrong
unit). At k = 1 the infimum is at z = -inf and equals sum_j pi_j E_j.

Derivatives: by the envelope theorem for the bound, by implicit differentiation for z, so that second
derivatives hold. Those with respect to pi_j at k = 1 are E_j, right along sum_j dpi_j = 0 (the bound
rises like sqrt(k - 1) beyond). Nodes with infinite delay contribute no derivative.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ecjax.queueing.mg1 import Delay
from ecjax.queueing.minimise import hyperbola, is_used, minimiser, only_finite, single, sums
from ecjax.queueing.moments import as_float


def latency_bound(probabilities: ArrayLike, delay: Delay) -> jax.Array:
    """Bound on the mean latency of each file, s, with its own minimising z.

    Args:
        probabilities: pi, (m,) or (r, m); each row sums to the k of its file.
        delay: sojourn times at the nodes, (m,), or (r, m) where they differ by file.

    Returns:
        Scalar or (r,); infinite where a node that is read (pi > 0) has infinite delay.

    Raises:
        ValueError: the shapes do not fit.
    """
    return _over_rows(_minimum, (1, 1, 1), _checked(probabilities, delay))[0]


def latency_bound_at(z: ArrayLike, probabilities: ArrayLike, delay: Delay) -> jax.Array:
    """The bound at a given z, s: z + sum_j pi_j/2 [(E_j - z) + sqrt((E_j - z)^2 + V_j)].

    Args:
        z: s, scalar or (r,).
        probabilities: pi, (m,) or (r, m).
        delay: (m,) or (r, m).
    """
    return _over_rows(_at, (0, 1, 1, 1), (z, *_checked(probabilities, delay)))


def shared_z(
    weights: ArrayLike, mean: ArrayLike, variance: ArrayLike, start: ArrayLike | None = None
) -> tuple[jax.Array, jax.Array]:
    """Minimum over z of f(z) = z + sum w/2 [(E - z) + sqrt((E - z)^2 + V)], and its z, over whole arrays.

    Args:
        weights: w >= 0, (m,) or (r, m): for one z over files lambda_i pi_ij / sum_i lambda_i. Their
            sum is the mean k; where it is 1 (or less), f is taken in its limit z = -inf, sum w E.
        mean: E, s, of the same shape.
        variance: V, s^2, of the same shape.
        start: z to start from, s; a good one saves evaluations and changes nothing else.

    Returns:
        (minimum, z), s, scalars.
    """
    w, e, v = as_float(weights), as_float(mean), as_float(variance)
    guess = None if start is None else as_float(start)
    return _minimum(w, e, v, guess)


def _over_rows(function, ranks, arguments):
    """One file's function over the leading axes that its arguments have beyond the given ranks."""
    arrays = [as_float(argument) for argument in arguments]
    extra = [array.ndim - rank for array, rank in zip(arrays, ranks, strict=True)]
    for depth in range(1, max(extra) + 1):
        function = jax.vmap(function, in_axes=[0 if axes >= depth else None for axes in extra])
    return function(*arrays)


def _checked(probabilities, delay):
    arrays = [as_float(value) for value in (probabilities, delay.mean, delay.variance)]
    shapes = [array.shape for array in arrays]
    longest = max(shapes, key=len)
    if any(not shape or longest[-len(shape) :] != shape for shape in shapes):
        raise ValueError(
            f"probabilities have shape {shapes[0]}, mean delays {shapes[1]}, variances {shapes[2]}: "
            "each must be (m,) or (r, m)"
        )
    return arrays


def _minimum(weights, mean, variance, start=None):
    """Minimum of f and its z."""
    return _at_minimum(minimiser(weights, mean, variance, start), weights, mean, variance)


@jax.jit
def _sums(z, weights, mean, variance):
    """Sums over the used nodes of w_j (E_j - z + s_j)/2, of w_j E_j, and of w_j."""
    used = is_used(weights)
    d = mean - z
    above = 0.5 * weights * (d + jnp.sqrt(d * d + variance))
    return sums(jnp.where(used, above, 0), jnp.where(used, weights * mean, 0), weights)


@jax.jit
def _slopes(z, weights, mean, variance, limit):
    """Derivatives of the sum of w_j (E_j - z + s_j)/2 (w_j E_j where ``limit``) by w_j, E_j and V_j."""
    mean, variance, finite = only_finite(mean, variance)
    d, s, inverse = hyperbola(z, mean, variance)
    by_weight = jnp.where(finite, jnp.where(limit, mean, 0.5 * (d + s)), jnp.zeros_like(d))
    by_mean = jnp.where(limit, weights, 0.5 * weights * (1 + d * inverse))
    by_variance = jnp.where(limit, jnp.zeros_like(d), 0.25 * weights * inverse)
    return by_weight, by_mean, by_variance


def _along(slopes, tangents):
    return sum(slope * tangent for slope, tangent in zip(slopes, tangents, strict=True)).sum()


@jax.custom_jvp
def _at(z, weights, mean, variance):
    """Value of f at z, sum w E at z = -inf."""
    limit = jnp.isneginf(z)
    z = jnp.where(limit, jnp.zeros_like(z), z)
    above, plain, _ = _sums(z, weights, mean, variance)
    return jnp.where(limit, plain, z + above)


@_at.defjvp
def _at_jvp(primals, tangents):
    z, weights, mean, variance = primals
    limit = jnp.isneginf(z)
    slopes = _slopes(jnp.where(limit, jnp.zeros_like(z), z), weights, mean, variance, limit)
    # E_j and z enter the sum by their difference only
    by_z = jnp.where(limit, jnp.zeros_like(z), 1 - slopes[1].sum())
    return _at(*primals), _along(slopes, tangents[1:]) + by_z * tangents[0]


@jax.custom_jvp
def _at_minimum(z, weights, mean, variance):
    """Value of f at its minimiser z, and z: -inf for a sum of 1, inf where the value is.

    The first derivative of the value ignores that of z (envelope theorem), the second does not.
    """
    above, plain, k = _sums(z, weights, mean, variance)
    limit = single(k)
    value = jnp.where(limit, plain, z + above)
    z = jnp.where(limit, jnp.full_like(z, -jnp.inf), z)
    return value, jnp.where(jnp.isposinf(value), jnp.full_like(z, jnp.inf), z)


@_at_minimum.defjvp
def _at_minimum_jvp(primals, tangents):
    z, weights, mean, variance = primals
    value, reported = _at_minimum(*primals)
    limit = jnp.isneginf(reported)
    by_weight, by_mean, by_variance = _slopes(z, weights, mean, variance, limit)
    by_mean = jnp.where(limit, by_mean, by_mean + _kink(by_mean, z, weights, mean, variance))
    return (value, reported), (_along((by_weight, by_mean, by_variance), tangents[1:]), tangents[0])


def _kink(by_mean, z, weights, mean, variance):
    """What f'(z) = 0, sum of by_mean = 1, leaves to the constant delay that z has run into, if there is one."""
    distance = jnp.where(is_used(weights) & (variance == 0), jnp.abs(mean - z), jnp.inf)
    touched = jnp.isfinite(distance) & (distance <= distance.min())
    share = jnp.where(touched, weights, 0)
    total = share.sum()
    return share * jnp.where(total > 0, (1 - by_mean.sum()) / jnp.where(total > 0, total, 1), 0)
