"""The law of the time from a request to the end of service at each node, at common points, given the factor.

T = W + X + connection, independent given the factor of ``dependence``. The part without wait, Pr(W = 0) Pr(X <= x), is
taken on a lattice of its own, so that small chunks stay sharp beside large ones, and without its stalls, which are
added where a law is looked at: beside stalls of a minute a service of milliseconds would be within one step.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import ndtri
from scipy import special

from ecjax.queueing.lattice import gamma_mass, lattice_cumulative, mass_of, service_mass, sums_of, transform
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.normal import normal_cumulative
from ecjax.queueing.service_law import ServiceLaw, Stalls
from ecjax.queueing.wait_law import WaitLaw, longest_service

# connection delays count up to so many times (mean + standard deviation)
_CONNECTIONS = 14.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ServedLaw:
    """Service and connection of C chunk sizes at m nodes, on the nodes' wait lattices and on finer ones."""

    coarse: jax.Array  # (C, m, N/2 + 1) transform
    step: jax.Array  # (C, m) s, of the finer lattices
    sums: jax.Array  # (C, m, N') Pr(X + connection <= x) by running sums, without stalls
    stalls: Stalls | None  # (m, s)


def served_law(
    sizes: jax.Array,
    service: ServiceLaw,
    connect: Delay | None,
    wait: WaitLaw,
    points: int,
    upper: bool = False,
) -> ServedLaw:
    """Laws of service plus connection.

    Args:
        sizes: chunk sizes, B, (C,).
        service: laws.
        connect: connection delay, a gamma law of this mean (s) and variance (s^2), (m,); None for none.
        wait: for its lattices.
        points: N' of the finer lattices.
        upper: upper bounds in distribution instead of laws that keep means.
    """
    alone = replace(service, stalls=None)
    longest = longest_service(sizes[:, None], None, alone)
    if connect is not None:
        longest = longest + (_CONNECTIONS * (connect.mean + jnp.sqrt(connect.variance)))[None, :]
    fine = lax.stop_gradient(longest / (points - 2))
    offset, scale = service.parts(sizes[:, None])

    def spectrum(step, count, stalls):
        one = jax.vmap(lambda law, a, b, h: service_mass(law[0], a, b, h, count, upper, law[1]))
        steps, laws = jnp.broadcast_to(step, offset.shape), (service.unit, stalls)
        result = transform(jax.vmap(one, in_axes=(None, 0, 0, 0))(laws, offset, scale, steps))
        if connect is None:
            return result
        delay = jax.vmap(lambda a, b, h: gamma_mass(a, b, h, count, upper))
        # size by size: arrays of all together do not stay in a processor's caches
        return result * transform(lax.map(lambda h: delay(connect.mean, connect.variance, h), step))

    coarse = spectrum(wait.step[None], wait.mass.shape[-1], service.stalls)
    sums = running(mass_of(spectrum(fine, points, None), points))
    return ServedLaw(coarse, fine, sums, service.stalls)


def served_cumulative(sums: jax.Array, x: jax.Array, step: jax.Array, stalls: Stalls | None) -> jax.Array:
    """Pr(X + connection <= x) of one size at one node, (X,), from running sums without stalls; see ``ServedLaw``."""
    alone = lattice_cumulative(sums, x, step)
    if stalls is None:
        return alone

    def add(total, stall):
        probability, time = stall
        return total + probability * lattice_cumulative(sums, x - time, step), None

    return lax.scan(add, (1 - jnp.sum(stalls.probability)) * alone, tuple(stalls))[0]


def running(mass: jax.Array) -> jax.Array:
    """Running sums over the last axis, in [0, 1]."""
    return jnp.clip(jnp.cumsum(mass, axis=-1), 0, 1)


def waits_given(wait: WaitLaw, loading: jax.Array, factor: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Pr(W = 0 | y), (Y, m), and the transform of the positive waits given y, (Y, m, N/2 + 1).

    Args:
        wait: laws of the waits.
        loading: a, (), of all nodes.
        factor: y, (Y,).
    """
    sums = wait.idle[:, None] + jnp.cumsum(wait.mass, axis=-1)
    # beyond these probabilities the score and its derivative mean nothing
    score = ndtri(jnp.clip(sums, 1e-14, 1 - 1e-13))
    empty = ndtri(jnp.clip(wait.idle, 1e-14, 1 - 1e-13))
    shift, spread = factor[:, None] * loading, jnp.sqrt(1 - loading**2)
    idle = normal_cumulative((empty[None] - shift) / spread)
    conditional = normal_cumulative((score[None] - shift[:, :, None]) / spread)
    mass = jnp.diff(jnp.concatenate([idle[:, :, None], conditional], axis=-1), axis=-1)
    return idle, transform(mass)


def cumulative_at(
    x: jax.Array, idle: jax.Array, waits: jax.Array, wait: WaitLaw, served: ServedLaw
) -> jax.Array:
    """Pr(T <= x) of C chunk sizes at m nodes, 0 at nodes that are not stable: (C, m, Y, X).

    Args:
        x: s, (C, X).
        idle: Pr(W = 0) under each of Y conditions, (Y, m).
        waits: transform of the positive waits, (Y, m, N/2 + 1).
        wait: for its lattices.
        served: service and connection.
    """

    def at_node(idle, waits, step, stable, stalls, of_size, x):
        coarse, fine, sums = of_size
        later = after_wait(waits, coarse[None], wait.mass.shape[-1])
        return jax.vmap(lambda idle, later: _sojourn(x, idle, fine, sums, stalls, step, later, stable))(
            idle, later
        )

    over_nodes = jax.vmap(at_node, in_axes=(1, 1, 0, 0, 0, 0, None))

    def of_size(arguments):
        *of_size, x = arguments
        return over_nodes(idle, waits, wait.step, wait.stable, served.stalls, tuple(of_size), x)

    return lax.map(of_size, (served.coarse, served.step, served.sums, x))


def service_at(x: jax.Array, served: ServedLaw) -> jax.Array:
    """Pr(X + connection <= x) at points (C, X): (C, m, X)."""
    at_nodes = jax.vmap(served_cumulative, in_axes=(0, None, 0, 0))
    return jax.vmap(at_nodes, in_axes=(0, 0, 0, None))(served.sums, x, served.step, served.stalls)


def after_wait(waits: jax.Array, coarse: jax.Array, points: int) -> jax.Array:
    """Running sums of the sojourn of requests that wait, (..., N), from the transforms of both parts."""
    # a sum of transformed numbers can be below 0 by their rounding
    return jnp.maximum(sums_of(waits * coarse, points), 0)


def common_points(wait: WaitLaw, served: ServedLaw, reads: jax.Array, count: int) -> jax.Array:
    """Points at which the laws of one chunk size are compared, s, (C, X), rising: quantiles of the nodes together.

    The levels have even normal scores, so that there are points far into the tail, and points next to jumps.

    Args:
        wait: waits.
        served: services.
        reads: requests for each size at each node, any unit, (C, m).
        count: X.
    """
    level = jnp.asarray(special.ndtr(np.linspace(-4.0, 5.2, count)))
    waits = transform(wait.mass)
    points = wait.mass.shape[-1]

    def of_size(arguments):
        coarse, fine, sums, reads = arguments
        later = after_wait(waits, coarse, points)

        def halve(_, bounds):
            low, high = bounds
            middle = (low + high) / 2
            reached = (
                jax.vmap(_sojourn)(
                    middle, wait.idle, fine, sums, served.stalls, wait.step, later, wait.stable
                )
                >= level[None]
            )
            return jnp.where(reached, low, middle), jnp.where(reached, middle, high)

        top = wait.step * points + fine * sums.shape[-1]
        high = jnp.broadcast_to(top[:, None], (top.shape[0], count))
        _, points_of_node = lax.fori_loop(0, 30, halve, (jnp.zeros_like(high), high))
        return _merged(points_of_node, reads, wait.stable)

    return lax.stop_gradient(lax.map(of_size, (served.coarse, served.step, served.sums, reads)))


def _sojourn(x, idle, fine, sums, stalls, step, later, stable):
    """Pr(T <= x) at one node under one condition, (X,)."""
    value = idle * served_cumulative(sums, x, fine, stalls) + lattice_cumulative(later, x, step)
    return jnp.where(stable, jnp.clip(value, 0, 1), 0.0)


def _merged(points, reads, stable):
    """Points of the nodes (m, X) as X points, denser where nodes that are read have theirs."""
    count = points.shape[1]
    mask = (reads > 0) & stable
    # a size that no stable node serves still needs points
    mask = jnp.where(mask.any(), mask, stable | ~stable.any())
    share = jnp.where(mask, reads, 0)
    total = share.sum()
    weight = jnp.where(mask, 1 / mask.sum(dtype=float) + share / jnp.where(total > 0, total, 1), 0)
    order = jnp.argsort(points.ravel())
    passed = jnp.cumsum(jnp.repeat(weight, count, total_repeat_length=points.size)[order])
    return jnp.interp(jnp.linspace(passed[0], passed[-1], count), passed, points.ravel()[order])
