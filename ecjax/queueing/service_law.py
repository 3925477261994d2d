"""Laws of chunk service times, tabulated so that compiled code can evaluate them.

The time to serve a chunk of B bytes at node j is X = offset_j(B) + scale_j(B) U_j, both affine in B, with U_j of a
law without unit; where nodes stall, X is T_j longer with probability p_j, whatever B. A law of U is kept as values and
cumulative probabilities between which the cumulative distribution is linear: a jump is two entries with one value.
Tables are made on the host, once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy import special

from ecjax import precision  # noqa: F401  (64-bit floats before the first array)
from ecjax.errors import UserError
from ecjax.model import with_stalls

_ENTRIES = 1025
# standard normal scores of the tabulated levels: even steps there are fine in both tails
_REACH = 6.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class UnitLaw:
    """Cumulative distribution of U >= 0, linear between the entries."""

    value: jax.Array  # (..., n) non-decreasing, no unit
    level: jax.Array  # (..., n) Pr(U <= value) after the jump, if there is one; 0 first, 1 last

    @classmethod
    def named(cls, kind: str, **parameters: float) -> "UnitLaw":
        """The law of U by name.

        ``deterministic`` (U = 1), ``exponential`` (mean 1; shifted through the offset), ``gamma`` (``shape``,
        scale 1), ``lognormal`` (``sigma``; exp(sigma N), N normal), ``pareto`` (``alpha``, ``ratio``; density
        ~ u^-(alpha + 1) on [1, ratio]), ``weibull`` (``shape``; E^(1/shape), E exponential), ``two_point``
        (``share``; U = 1 with this probability, else 0).

        Raises:
            UserError: an unknown kind, or parameters that are missing, unknown or out of range.
        """
        if kind not in _PARAMETERS:
            raise UserError(f"service law: kind {kind!r} is unknown, allowed are {', '.join(_PARAMETERS)}")
        names = _PARAMETERS[kind]
        if set(parameters) != set(names):
            raise UserError(
                f"service law {kind}: parameters {sorted(parameters)} given, {sorted(names)} needed"
            )
        for name, value in parameters.items():
            least = 1.0 if name == "ratio" else 0.0
            if not (np.isfinite(value) and value > least):
                raise UserError(
                    f"service law {kind}: {name} is {value}, it must be finite and above {least:g}"
                )
        if kind == "deterministic":
            return _law(np.ones(2), np.array([0.0, 1.0]))
        if kind == "two_point":
            below = max(0.0, 1.0 - parameters["share"])
            return _law(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, below, below, 1.0]))
        level = special.ndtr(np.linspace(-_REACH, _REACH, _ENTRIES))
        # upper levels from the other side: 1 - 1e-11 has lost five of its digits
        above = special.ndtr(-np.linspace(-_REACH, _REACH, _ENTRIES))
        entries = _QUANTILES[kind](level, above, *(parameters[name] for name in names))
        level[0], level[-1] = 0.0, 1.0
        return _law(entries, level)

    @classmethod
    def empirical(cls, samples: ArrayLike) -> "UnitLaw":
        """The law of a sample of service times (any unit: U carries it, with scale 1).

        A small sample keeps its jumps; a large one is joined linearly between about a thousand of its order
        statistics, which are dense in both tails.

        Args:
            samples: (N,), finite, >= 0.

        Raises:
            UserError: no samples, or a negative or infinite one.
        """
        values = np.asarray(samples, float).ravel()
        if values.size == 0:
            raise UserError("service law empirical: there are no samples, at least one is needed")
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if wrong.size:
            raise UserError(
                f"service law empirical: sample {wrong[0]} is {values[wrong[0]]}, it must be finite and >= 0"
            )
        x = np.sort(values)
        if 2 * x.size <= _ENTRIES:
            ends = np.arange(x.size + 1) / x.size
            return _law(np.repeat(x, 2), np.stack([ends[:-1], ends[1:]], axis=1).ravel())
        level = special.ndtr(np.linspace(-_REACH, _REACH, _ENTRIES))
        rank = np.unique(np.clip(np.round(level * (x.size - 1)).astype(int), 0, x.size - 1))
        return _law(x[rank], rank / (x.size - 1))


class Stalls(NamedTuple):
    """Stalls of one node, (s,), or of m, (m, s): X is so much longer with these probabilities, else as it is."""

    probability: jax.Array
    time: jax.Array  # s


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ServiceLaw:
    """Service times X = (offset + offset_per_byte B) + (scale + scale_per_byte B) U of chunks of B bytes at m nodes."""

    unit: UnitLaw  # (m, n)
    offset: jax.Array  # (m,) s
    offset_per_byte: jax.Array  # (m,) s/B
    scale: jax.Array  # (m,) s
    scale_per_byte: jax.Array  # (m,) s/B
    stalls: Stalls | None = None  # (m, s) what X has besides; None: nothing

    @classmethod
    def of_nodes(
        cls,
        units: UnitLaw | Sequence[UnitLaw],
        offset: ArrayLike = 0.0,
        offset_per_byte: ArrayLike = 0.0,
        scale: ArrayLike = 0.0,
        scale_per_byte: ArrayLike = 0.0,
        nodes: int | None = None,
        stalls: Stalls | None = None,
    ) -> "ServiceLaw":
        """Service laws of m nodes.

        Args:
            units: law of U, one for all nodes or one per node.
            offset: s, scalar or (m,).
            offset_per_byte: s/B, scalar or (m,).
            scale: s, scalar or (m,).
            scale_per_byte: s/B, scalar or (m,).
            nodes: m, where every argument is for all nodes.
            stalls: (m, s) each.

        Raises:
            UserError: a negative or infinite entry, or lengths that differ.
        """
        parts = {
            "offset": offset,
            "offset_per_byte": offset_per_byte,
            "scale": scale,
            "scale_per_byte": scale_per_byte,
        }
        arrays = {name: np.atleast_1d(np.asarray(part, float)) for name, part in parts.items()}
        several = list(units) if not isinstance(units, UnitLaw) else [units]
        count = nodes or max(len(several), *(len(array) for array in arrays.values()))
        for name, array in arrays.items():
            if array.ndim > 1 or len(array) not in (1, count):
                raise UserError(
                    f"service law: {name} has shape {array.shape}, it must have one entry or {count}"
                )
            wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
            if wrong.size:
                raise UserError(
                    f"service law: {name}[{wrong[0]}] is {array[wrong[0]]}, it must be finite and >= 0"
                )
        if len(several) not in (1, count):
            raise UserError(
                f"service law: {len(several)} laws for {count} nodes, there must be one or {count}"
            )
        full = {name: jnp.asarray(np.broadcast_to(array, (count,))) for name, array in arrays.items()}
        stacked = [
            jnp.broadcast_to(jnp.stack([getattr(law, part) for law in several]), (count, _ENTRIES))
            for part in ("value", "level")
        ]
        return cls(UnitLaw(*stacked), **full, stalls=stalls)

    @property
    def nodes(self) -> int:
        """Number of nodes m."""
        return self.offset.shape[-1]

    def slowed(self, factor: jax.Array) -> "ServiceLaw":
        """Laws of ``factor`` X, (m,)."""
        parts = (self.offset, self.offset_per_byte, self.scale, self.scale_per_byte)
        stalls = (
            None if self.stalls is None else self.stalls._replace(time=factor[:, None] * self.stalls.time)
        )
        offset, by_offset, scale, by_scale = (factor * part for part in parts)
        return ServiceLaw(self.unit, offset, by_offset, scale, by_scale, stalls)

    def taken(self, nodes: jax.Array) -> "ServiceLaw":
        """Laws of these nodes."""
        return jax.tree.map(lambda part: part[nodes], self)

    def parts(self, chunk_bytes: ArrayLike) -> tuple[jax.Array, jax.Array]:
        """Offset and scale, s, for chunks of these bytes, (..., m) or (..., 1); stalls come on top."""
        size = jnp.asarray(chunk_bytes, self.offset.dtype)
        shape = (1,) * (size.ndim - 1) + (-1,)
        offset, by_offset, scale, by_scale = (
            part.reshape(shape)
            for part in (self.offset, self.offset_per_byte, self.scale, self.scale_per_byte)
        )
        return offset + by_offset * size, scale + by_scale * size

    @jax.jit
    def moments(self, chunk_bytes: ArrayLike) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Raw moments E[X], E[X^2], E[X^3] (s, s^2, s^3) for chunks of these bytes, (..., m) or (..., 1)."""
        a, b = self.parts(chunk_bytes)
        first, second, third = (
            moment.reshape((1,) * (b.ndim - 1) + (-1,)) for moment in unit_moments(self.unit)
        )
        one = a + b * first
        two = a**2 + 2 * a * b * first + b**2 * second
        three = a**3 + 3 * a**2 * b * first + 3 * a * b**2 * second + b**3 * third
        if self.stalls is None:
            return one, two, three
        probability, time = self.stalls
        stall = [
            jnp.sum(probability * time**n, axis=1).reshape((1,) * (b.ndim - 1) + (-1,)) for n in (1, 2, 3)
        ]
        return with_stalls((one, two, three), stall)


def unit_moments(law: UnitLaw) -> tuple[jax.Array, jax.Array, jax.Array]:
    """E[U], E[U^2], E[U^3] of a tabulated law, (...)."""
    a, b = law.value[..., :-1], law.value[..., 1:]
    mass = jnp.diff(law.level, axis=-1)
    return (
        jnp.sum(mass * (a + b), axis=-1) / 2,
        jnp.sum(mass * (a * a + a * b + b * b), axis=-1) / 3,
        jnp.sum(mass * (a + b) * (a * a + b * b), axis=-1) / 4,
    )


def cumulative(law: UnitLaw, u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Pr(U <= u), E[(u - U)+] and E[(u - U)+^2]/2: each the integral of the one before.

    Args:
        law: one law, (n,).
        u: any shape.
    """
    value, level = law.value, law.level
    width = jnp.diff(value)
    slope = jnp.where(width > 0, jnp.diff(level) / jnp.where(width > 0, width, 1), 0)
    once = jnp.concatenate([jnp.zeros(1), jnp.cumsum(width * (level[1:] + level[:-1]) / 2)])
    steps = width * (once[:-1] + width * (level[:-1] / 2 + width * slope / 6))
    twice = jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])
    index = jnp.searchsorted(value, u, side="right") - 1
    before = index < 0
    index = jnp.maximum(index, 0)
    t = jnp.where(before, 0, u - value[index])
    rise = jnp.where(index < slope.shape[0], slope[jnp.minimum(index, slope.shape[0] - 1)], 0)
    base = level[index]
    probability = jnp.where(before, 0, base + rise * t)
    first = once[index] + t * (base + t * rise / 2)
    second = twice[index] + t * (once[index] + t * (base / 2 + t * rise / 6))
    return probability, jnp.where(before, 0, first), jnp.where(before, 0, second)


def _law(value: np.ndarray, level: np.ndarray) -> UnitLaw:
    """A table of the common length: the last entry is repeated."""
    missing = (0, _ENTRIES - len(value))
    return UnitLaw(
        jnp.asarray(np.pad(value, missing, mode="edge")), jnp.asarray(np.pad(level, missing, mode="edge"))
    )


def _gamma(level, above, shape):
    return np.where(level < 0.5, special.gammaincinv(shape, level), special.gammainccinv(shape, above))


def _pareto(level, above, alpha, ratio):
    # Pr(U > u) = (u^-alpha - ratio^-alpha) / (1 - ratio^-alpha)
    return (above * (1 - ratio**-alpha) + ratio**-alpha) ** (-1 / alpha)


_QUANTILES: dict[str, Callable[..., np.ndarray]] = {
    "exponential": lambda level, above: -np.log(above),
    "gamma": _gamma,
    "lognormal": lambda level, above, sigma: np.exp(sigma * np.linspace(-_REACH, _REACH, _ENTRIES)),
    "pareto": _pareto,
    "weibull": lambda level, above, shape: (-np.log(above)) ** (1 / shape),
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "deterministic": (),
    "exponential": (),
    "gamma": ("shape",),
    "lognormal": ("sigma",),
    "pareto": ("alpha", "ratio"),
    "two_point": ("share",),
    "weibull": ("shape",),
}
