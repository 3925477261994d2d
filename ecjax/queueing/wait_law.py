"""The law of the wait at a node, on a lattice, by Pollaczek and Khinchine.

For M/G/1, first come first served, the wait is a geometric number of residual services (Pollaczek, Khinchine)::

    E[s^W] = (1 - rho) / (1 - sum_b Lambda_b E[X_b] E[s^R_b]),   R_b of density Pr(X_b > x) / E[X_b]

The transform is taken on the lattice; it is exact for the law that the lattice holds, which keeps E[R_b].
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from ecjax.queueing.lattice import gamma_mass, mass_of, residual_mass, transform
from ecjax.queueing.mg1 import waiting
from ecjax.queueing.service_law import ServiceLaw

MOST_LOAD = 0.9999
# lattice length: this part of the service times, and so many times E[W^2]/E[W] (16 means of an exponential wait)
TAIL = 1e-6
_LENGTHS = 8.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WaitLaw:
    """Waits before service at m nodes: ``idle`` at 0, the rest at the points i step."""

    step: jax.Array  # (m,) s
    idle: jax.Array  # (m,) Pr(W = 0)
    mass: jax.Array  # (m, N) Pr(0 < W = i step); at i = 0 what lies below half a step
    stable: jax.Array  # (m,) bool; the other entries of an unstable node mean nothing


def wait_law(
    rates: jax.Array,
    chunk_bytes: jax.Array,
    service: ServiceLaw,
    background: ArrayLike | None,
    points: int,
    upper: bool = False,
    served: ServiceLaw | None = None,
) -> WaitLaw:
    """Waits of M/G/1 nodes.

    Args:
        rates: chunk rates of the b-th size at each node, 1/s, (b, m).
        chunk_bytes: those sizes, B, (b, m).
        service: laws of the service times.
        background: (3, m) load, A_2 (s), A_3 (s^2) of other work; of its residual service only these moments are
            known, and a gamma law is taken.
        points: N.
        upper: lattice laws that are upper bounds in distribution instead of such that keep means.
        served: laws of longer services that the lattice has room for, too; None: only for those above.
    """
    first, second, third = service.moments(chunk_bytes)
    sums = [jnp.sum(rates * moment, axis=0) for moment in (first, second, third)]
    other = jnp.zeros((3, service.nodes)) if background is None else jnp.asarray(background)
    rho, a_2, a_3 = (part + more for part, more in zip(sums, other, strict=True))
    stable = rho < 1
    wait = waiting(jnp.minimum(rho, MOST_LOAD), a_2, a_3)
    length = lattice_length(wait.mean, wait.variance, chunk_bytes, rates, service)
    if served is not None:
        length = length + longest_service(chunk_bytes, rates, served)
    step = lax.stop_gradient(length / points)

    offset, scale = service.parts(chunk_bytes)

    def residual_of_node(law, rate, offset, scale, step):
        unit, stalls = law
        mass = jax.vmap(lambda a, b: residual_mass(unit, a, b, step, points, upper, stalls))
        return rate @ mass(offset, scale)

    laws = service.unit, service.stalls
    residual = jax.vmap(residual_of_node, in_axes=(0, 1, 1, 1, 0))(laws, rates, offset, scale, step)
    if background is not None:
        residual = residual + background_residual(other, step, points, upper)
    idle = jnp.maximum(1 - rho, 1 - MOST_LOAD)
    # above that load the lattice law is that of the least stable node that it can hold
    residual = residual * (MOST_LOAD / jnp.maximum(rho, MOST_LOAD))[:, None]
    spectrum = transform(residual)
    mass = idle[:, None] * mass_of(spectrum / (1 - spectrum), points)
    return WaitLaw(step, idle, mass, stable)


def lattice_length(
    mean: jax.Array,
    variance: jax.Array,
    chunk_bytes: jax.Array,
    rates: jax.Array,
    service: ServiceLaw,
) -> jax.Array:
    """Length of a lattice that covers waits of this mean (s) and variance (s^2) and the longest service, s, (m,).

    Args:
        mean: (m,).
        variance: (m,).
        chunk_bytes: B, (b, m).
        rates: 1/s, (b, m); sizes that do not come to a node (rate 0) do not count.
        service: laws.
    """
    waits = mean > 0
    longest = _LENGTHS * (variance + mean**2) / jnp.where(waits, mean, 1)
    return jnp.where(waits, longest, 0) + longest_service(chunk_bytes, rates, service)


def longest_service(chunk_bytes: jax.Array, rates: jax.Array | None, service: ServiceLaw) -> jax.Array:
    """A service time that all but 1e-6 of the chunks stay below, s, (m,); (b, m) without rates.

    Args:
        chunk_bytes: B, (b, m) or (b, 1).
        rates: sizes that do not come to a node (rate 0) do not count, (b, m).
        service: laws.
    """
    top = jax.vmap(lambda value, level: value[jnp.searchsorted(level, 1 - TAIL)])(
        service.unit.value, service.unit.level
    )
    offset, scale = service.parts(chunk_bytes)
    longest = offset + scale * top[None]
    if service.stalls is not None:
        stalls = jnp.where(service.stalls.probability > TAIL, service.stalls.time, 0)
        longest = longest + stalls.max(axis=1)[None]
    if rates is None:
        return longest
    read = jnp.where(rates > 0, longest, 0).max(axis=0)
    # a node that nothing reads still needs a lattice
    return jnp.where(read > 0, read, longest.max(axis=0))


def background_residual(other: jax.Array, step: jax.Array, points: int, upper: bool = False) -> jax.Array:
    """Mass of the residual service of other work, of which load, A_2 (s) and A_3 (s^2) are known, (3, m): (m, N)."""
    rho, a_2, a_3 = other
    busy = rho > 0
    safe = jnp.where(busy, rho, 1)
    mean = jnp.where(busy, a_2 / (2 * safe), 1)
    variance = jnp.where(busy, jnp.maximum(a_3 / (3 * safe) - mean**2, 0), 0)
    mass = jax.vmap(lambda a, b, h: gamma_mass(a, b, h, points, upper))(mean, variance, step)
    return rho[:, None] * mass
