"""The segment of tau in which the capped-simplex projection of a row sums to k (see ``projection``).

p(tau) is piecewise linear; what has to be found are the two breakpoints around the solution. Two finite methods: with
few nodes their axis is unrolled, and a sorting network and about log2(2m) evaluations of the sum, elementwise over
the rows, compile to one vectorised pass; with many nodes a search narrows the bracket breakpoint by breakpoint.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.queueing.minimise import by_row


class Coordinates(NamedTuple):
    """Coordinates of rows: p(tau) is ``upper`` up to tau = ``leave`` and 0 from tau = ``reach`` on."""

    reach: jax.Array  # w y
    leave: jax.Array  # w (y - u)
    upper: jax.Array  # u
    weight: jax.Array  # w

    @classmethod
    def of(cls, y: jax.Array, u: jax.Array | None, w: jax.Array | None) -> "Coordinates":
        """Of points y, bounds u and weights w (None: 1), arrays of one rank."""
        unit = jnp.ones((1,) * y.ndim, y.dtype)
        upper, weight = (unit if a is None else a for a in (u, w))
        return cls(weight * y, weight * (y - upper), upper, weight)

    def at(self, tau: jax.Array) -> jax.Array:
        """p(tau). Comparing with the rounded breakpoints makes p exactly u and 0 beyond them, whatever XLA fuses."""
        falling = jnp.minimum((self.reach - tau) / self.weight, self.upper)
        return jnp.where(tau <= self.leave, self.upper, jnp.where(tau >= self.reach, 0, falling))

    def valid(self) -> jax.Array:
        """Whether the numbers make a problem."""
        bounds = (self.upper >= 0) & (self.upper <= 1)
        return bounds & jnp.isfinite(self.reach) & jnp.isfinite(self.weight) & (self.weight > 0)


def columns(y: jax.Array, u: jax.Array | None, w: jax.Array | None) -> list[Coordinates]:
    """One Coordinates of (r,) arrays per node."""

    def column(array: jax.Array | None, j: int) -> jax.Array | None:
        return None if array is None else array[:, j]

    return [Coordinates.of(y[:, j], column(u, j), column(w, j)) for j in range(y.shape[1])]


def segment_unrolled(columns: list[Coordinates], k: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The breakpoints around the solution and its place between them in [0, 1]; all (r,), NaN if bad."""

    def total(tau: jax.Array) -> jax.Array:
        return _sum([c.at(tau) for c in columns])

    most = _sum([c.upper for c in columns])
    valid = reduce(jnp.logical_and, [c.valid() for c in columns])
    mark = _mark(k, most, valid, len(columns))
    breaks = [b for c in columns for b in (c.reach, c.leave)]
    low = _bisect(_sort(breaks), total, jnp.minimum(k, most)) / mark
    high = reduce(jnp.minimum, [jnp.where(b > low, b, jnp.inf) for b in breaks]) / mark
    return low, high, _share(total(low), total(high), k) / mark


def segment_searched(rows: Coordinates, k: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As ``segment_unrolled``, for rows (r, m) of many nodes, without sorting.

    Regula falsi, every third time bisection, snapped to the two breakpoints around the guess: they are the answer,
    or one of them is a new end of the bracket. Every turn takes a breakpoint out of it; three to six are usual.
    """

    def total(tau: jax.Array) -> jax.Array:
        return jnp.sum(rows.at(tau[:, None]), axis=-1)

    shape = rows.reach.shape
    most = jnp.sum(jnp.broadcast_to(rows.upper, shape), axis=-1)
    mark = _mark(k, most, jnp.all(rows.valid(), axis=-1), shape[1])
    target = jnp.minimum(k, most)
    low, high = jnp.min(jnp.broadcast_to(rows.leave, shape), axis=-1), jnp.max(rows.reach, axis=-1)
    nothing = target <= 0  # then the answer is beyond the last breakpoint

    def narrow(state):
        low, high, left, right, converged, turn = state
        fall = left - right
        falsi = low + (high - low) * jnp.clip((left - target) / jnp.where(fall > 0, fall, 1), 0, 1)
        guess = jnp.where((turn % 3 == 2) | ~(falsi < high), 0.5 * (low + high), falsi)
        # between neighbouring numbers the middle is one of them, and at the upper end no breakpoint would be taken out
        guess = jnp.where(guess < high, guess, low)[:, None]
        ends = low[:, None], high[:, None]
        # of every coordinate the breakpoint at or below the guess, and the one above it
        reach, leave = rows.reach, jnp.broadcast_to(rows.leave, shape)
        below, above = by_row(
            (
                jnp.where(reach <= guess, reach, jnp.where(leave <= guess, leave, ends[0])),
                jnp.where(leave > guess, leave, jnp.where(reach > guess, reach, ends[1])),
            ),
            (jnp.max, jnp.min),
        )
        below, above = jnp.maximum(below, low), jnp.minimum(above, high)
        at_below, at_above = by_row((rows.at(below[:, None]), rows.at(above[:, None])), (jnp.sum, jnp.sum))
        early, late = at_below < target, at_above >= target
        following = (
            jnp.where(late, above, jnp.where(early, low, below)),
            jnp.where(late, high, jnp.where(early, below, above)),
            jnp.where(late, at_above, jnp.where(early, left, at_below)),
            jnp.where(late, right, jnp.where(early, at_below, at_above)),
        )
        bracket = [jnp.where(converged, old, new) for old, new in zip(state[:4], following, strict=True)]
        ended = ~(early | late) | ~(following[1] > following[0])
        return *bracket, converged | ended, turn + 1

    start = (low, high, most, jnp.zeros_like(k), nothing | jnp.isnan(mark), jnp.zeros((), jnp.int32))
    bracket = lax.while_loop(lambda state: ~jnp.all(state[4]), narrow, start)
    low = jnp.where(nothing, high, bracket[0])
    high = jnp.where(nothing, jnp.inf, bracket[1])
    return low / mark, high / mark, _share(total(low), total(high), k) / mark


def _mark(k: jax.Array, most: jax.Array, valid: jax.Array, m: int) -> jax.Array:
    """1, and NaN for a row without a solution: a divisor.

    XLA computes a cheap (r,) value again for each of its uses, however many minima and comparisons are behind
    it; a value that ends in a division it keeps.
    """
    slack = 4 * m * jnp.finfo(k.dtype).eps
    return jnp.where(valid & (k >= -slack) & (k <= most + slack), jnp.ones_like(k), jnp.nan)


def _share(left: jax.Array, right: jax.Array, k: jax.Array) -> jax.Array:
    """Where between the sums ``left`` >= k >= ``right`` the sum is k."""
    fall = left - right
    return jnp.where(fall > 0, jnp.clip((left - k) / jnp.where(fall > 0, fall, 1), 0, 1), 0)


def _bisect(breaks: list[jax.Array], total: Callable[[jax.Array], jax.Array], k: jax.Array) -> jax.Array:
    """Last of the ascending ``breaks`` where the falling ``total`` is still at least k (inf where k = 0).

    Elementwise: of the list, each comparison keeps for every row the half in which that row's answer is.
    """
    low = jnp.full_like(k, -jnp.inf)
    size = 2 ** len(breaks).bit_length() - 1
    breaks = breaks + [jnp.full_like(k, jnp.inf)] * (size - len(breaks))
    while breaks:
        half = len(breaks) // 2
        enough = total(breaks[half]) >= k
        low = jnp.where(enough, breaks[half], low)
        breaks = [jnp.where(enough, b, a) for a, b in zip(breaks[:half], breaks[half + 1 :], strict=True)]
    return low


def _sort(values: list[jax.Array]) -> list[jax.Array]:
    """Ascending values at every row, by a network of minima and maxima."""
    values = list(values)
    for i, j in _comparators(len(values)):
        values[i], values[j] = jnp.minimum(values[i], values[j]), jnp.maximum(values[i], values[j])
    return values


def _comparators(n: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort of n values: Knuth, Art of Computer Programming 3, algorithm 5.2.2M."""
    sorted_run = 1
    while sorted_run < n:
        distance = sorted_run
        while distance:
            for start in range(distance % sorted_run, n - distance, 2 * distance):
                for i in range(start, min(start + distance, n - distance)):
                    if i // (2 * sorted_run) == (i + distance) // (2 * sorted_run):
                        yield i, i + distance
            distance //= 2
        sorted_run *= 2


def _sum(values: list[jax.Array]) -> jax.Array:
    """Sum by halves: short chains of additions, small rounding error."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else _sum(values[:half]) + _sum(values[half:])
