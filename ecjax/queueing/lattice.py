"""Laws on a lattice 0, h, 2h, ..., and their convolution by damped Fourier transforms.

A law is its mass at the N lattice points; what lies beyond them is dropped. Damping by exp(-16 i/N) makes the
circular transform linear: what wraps around is multiplied by exp(-16), about 1e-7.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammainc, gammaln

from ecjax.queueing.service_law import Stalls, UnitLaw, cumulative

_DAMPING = 16.0


def transform(mass: jax.Array) -> jax.Array:
    """Damped Fourier transform over the last axis, (..., N) -> (..., N/2 + 1)."""
    return jnp.fft.rfft(mass * jnp.broadcast_to(_damping(mass.shape[-1]), mass.shape))


def mass_of(transformed: jax.Array, points: int) -> jax.Array:
    """Inverse of ``transform``, (..., N)."""
    mass = jnp.fft.irfft(transformed, points)
    return mass / jnp.broadcast_to(_damping(points), mass.shape)


def sums_of(transformed: jax.Array, points: int) -> jax.Array:
    """Running sums of what ``mass_of`` gives, (..., N): dividing by 1 - z takes less time than adding."""
    summing = 1 / (1 - jnp.exp(logarithms(points)))
    sums = mass_of(transformed * jnp.broadcast_to(summing, transformed.shape), points)
    # running sums do not fall to 0: what wraps around is all of the mass
    return sums - jnp.exp(-_DAMPING) * sums[..., -1:]


def logarithms(points: int) -> jax.Array:
    """Logarithms of the points z where ``transform`` takes its power series sum_i mass_i z^i, (N/2 + 1,)."""
    turn = jnp.arange(points // 2 + 1, dtype=float) * (2 * jnp.pi / points)
    return lax.complex(jnp.full_like(turn, -_DAMPING / points), -turn)


def service_mass(
    unit: UnitLaw,
    offset: jax.Array,
    scale: jax.Array,
    step: jax.Array,
    points: int,
    upper: bool = False,
    stalls: Stalls | None = None,
) -> jax.Array:
    """Mass of offset + scale U + stall, (N,): each part is split between its neighbours so that the mean is kept.

    Args:
        unit: one law, (n,).
        offset: s, ().
        scale: s, ().
        step: h, s, ().
        points: N.
        upper: move everything to the next lattice point at or above instead, so that the lattice law is an upper
            bound in distribution.
        stalls: of the node, (s,).
    """
    if upper:
        return jnp.diff(_integrals(unit, offset, scale, step, points, stalls)[1], prepend=0.0)
    return _second_difference(_integrals(unit, offset, scale, step, points + 1, stalls)[2]) / step


def residual_mass(
    unit: UnitLaw,
    offset: jax.Array,
    scale: jax.Array,
    step: jax.Array,
    points: int,
    upper: bool = False,
    stalls: Stalls | None = None,
) -> jax.Array:
    """Mass of the density Pr(X > x), which integrates to E[X], for X = offset + scale U + stall; arguments as above."""
    x, _, once, twice = _integrals(unit, offset, scale, step, points if upper else points + 1, stalls)
    if upper:
        return jnp.diff(x - once, prepend=0.0)
    return _second_difference(x * x / 2 - twice) / step


def gamma_mass(
    mean: jax.Array, variance: jax.Array, step: jax.Array, points: int, upper: bool = False
) -> jax.Array:
    """Mass of a gamma law with this mean (s) and variance (s^2), (N,); a constant where the variance is 0."""
    varies = (variance > 1e-10 * mean * mean) & (mean > 0)
    shape = jnp.where(varies, mean * mean / jnp.where(varies, variance, 1), 1)
    scale = jnp.where(varies, variance / jnp.where(varies, mean, 1), 1)
    x = jnp.arange(points + (0 if upper else 1), dtype=float) * step
    at = x / scale
    if upper:
        # a constant that is a lattice point, but for rounding, stays there
        constant = jnp.where(x >= mean * (1 - 1e-12), 1.0, 0.0)
        return jnp.diff(jnp.where(varies, gammainc(shape, at), constant), prepend=0.0)
    probability = gammainc(shape, at)
    # the incomplete gamma function takes most of the time: that of shape + 1 follows from that of shape
    density = jnp.exp(shape * jnp.log(jnp.maximum(at, 1e-300)) - at - gammaln(shape + 1))
    integral = x * probability - shape * scale * (probability - density)
    return _second_difference(jnp.where(varies, integral, jnp.maximum(x - mean, 0))) / step


def lattice_cumulative(sums: jax.Array, x: jax.Array, step: jax.Array) -> jax.Array:
    """Pr(<= x) between the lattice points, from the running sums (N,) of a mass that keeps means.

    The running sum at i h is the average of the cumulative distribution over (i h, i h + h), so it is taken at the
    middle of that interval, and linear interpolation keeps the mean.
    """
    points = sums.shape[-1]
    place = x / step - 0.5
    index = jnp.clip(jnp.floor(place), -1, points - 1).astype(jnp.int32)
    part = jnp.clip(place - index.astype(place.dtype), 0, 1)
    below = jnp.where(index < 0, 0, sums[jnp.maximum(index, 0)])
    above = sums[jnp.minimum(index + 1, points - 1)]
    return below + part * (above - below)


def _damping(points: int) -> jax.Array:
    return jnp.exp(-_DAMPING / points * jnp.arange(points, dtype=float))


def _integrals(unit, offset, scale, step, points, stalls=None):
    """Lattice points, Pr(X <= x) there, and its first and second integral."""
    if stalls is not None:
        return _with_stalls(unit, offset, scale, step, points, stalls)
    x = jnp.arange(points, dtype=float) * step
    # rounding must not put a jump that meets a lattice point behind it
    nudged = x * (1 + 1e-13)
    varies = scale > 0
    safe = jnp.where(varies, scale, 1)
    probability, once, twice = cumulative(unit, (nudged - offset) / safe)
    past = jnp.maximum(x - offset, 0)
    return (
        x,
        jnp.where(varies, probability, jnp.where(nudged >= offset, 1.0, 0.0)),
        jnp.where(varies, safe * once, past),
        jnp.where(varies, safe * safe * twice, past * past / 2),
    )


def _with_stalls(unit, offset, scale, step, points, stalls):
    """The same of a mixture of laws that are shifted."""
    x, *without = _integrals(unit, offset, scale, step, points)

    def add(total, stall):
        probability, time = stall
        later = _integrals(unit, offset + time, scale, step, points)[1:]
        return [one + probability * two for one, two in zip(total, later, strict=True)], None

    alone = 1 - jnp.sum(stalls.probability)
    # one after the other: all at once would take as much memory as there are stalls
    mixed, _ = lax.scan(add, [alone * part for part in without], tuple(stalls))
    return x, *mixed


def _second_difference(integral):
    """Differences of the slopes of an integral that is 0 up to the first point: N + 1 values give N masses."""
    return jnp.diff(jnp.diff(integral), prepend=0.0)
