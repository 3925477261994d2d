r"""Euclidean projection on the capped simplex {0 <= p <= u, sum p = k}: for bounds 0 and 1, a hypersimplex.

The projection is p_j(tau) = clip(y_j - tau / w_j, 0, u_j) with the tau for which the row sums to k: a sum that is
piecewise linear and falls in tau: at one breakpoint a coordinate leaves u_j, at another it reaches 0. So the
method is finite: sort the 2m breakpoints, bisect over them for the segment where the sum passes k, and
interpolate between the points at its ends. Interpolating p, not tau, gives the right sum at any scale of y.

With few nodes their axis is unrolled: a sorting network and about log2(2m) evaluations of the sum, all
elementwise over rows, compile to one vectorised pass without a data-dependent loop.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.queueing.minimise import by_row

UNROLL_NODES = 32  # above this many nodes rows are searched in a loop instead; the program stays small


def project_hypersimplex(
    y: ArrayLike, k: ArrayLike, mask: ArrayLike | None = None, weights: ArrayLike | None = None
) -> jax.Array:
    r"""Nearest point of {0 <= p <= u, sum_j p_j = k}: minimises 1/2 sum_j w_j (p_j - y_j)^2 in every row.

    Differentiable in all arguments. With F = {j : 0 < p_j < u_j} and U = {j : p_j = u_j > 0},

        dp_j = dy_j + (y_j - p_j) dw_j / w_j - dtau / w_j   on F,   du_j on U,   0 elsewhere,
        dtau = (sum_F (dy_j + (y_j - p_j) dw_j / w_j) + sum_U du_j - dk) / sum_F 1 / w_j.

    At kinks (and where F is empty, as for k = 0 and k = sum u) this is one of the one-sided derivatives or 0.

    Args:
        y: points, (m,) or (r, m).
        k: sums, scalar or (r,); any real number in [0, sum u] (rounding of a few ulp is forgiven).
        mask: upper bounds u, bool or floats in [0, 1], (m,) or (r, m); all 1 by default.
        weights: w > 0, (m,) or (r, m); all 1 by default.

    Returns:
        p, shaped and typed as ``y`` (integers become floats): within [0, u] exactly, with
        |sum p - k| <= 1e-12 in float64. The points k = 0, k = sum u and vertices are met exactly.

    Raises:
        ValueError: shapes that do not fit; with concrete arrays also the first row that is infeasible (k < 0,
            k > sum u) or not finite. Under a JAX transformation such a row is all NaN instead (derivative 0).

    References:
        Held, Wolfe and Crowder, Validation of subgradient optimization, Math. Programming 6 (1974), for the
        optimality conditions; Batcher, Sorting networks and their applications, AFIPS SJCC (1968).
    """
    concrete = not any(isinstance(a, jax.core.Tracer) for a in (y, k, mask, weights))
    points = jnp.asarray(y)
    if not jnp.issubdtype(points.dtype, jnp.floating):
        points = points.astype(jnp.result_type(float))
    if points.ndim not in (1, 2) or points.shape[-1] == 0:
        raise ValueError(
            f"project_hypersimplex: y has shape {points.shape}; (m,) or (r, m) with m >= 1 is needed"
        )
    shape = points.shape
    points = points.reshape(-1, shape[-1])
    sums = jnp.asarray(k).astype(points.dtype)
    if sums.shape not in ((), shape[:-1]):
        raise ValueError(
            f"project_hypersimplex: k has shape {sums.shape}; () or {shape[:-1]} is needed for y {shape}"
        )
    sums = jnp.broadcast_to(sums, points.shape[:1])
    upper = _per_node("mask", mask, shape, points.dtype)
    scale = _per_node("weights", weights, shape, points.dtype)
    result = _project(points, sums, upper, scale)
    if concrete:
        _raise_for_bad_rows(result, points, sums, upper, scale)
    return result.reshape(shape)


def _per_node(
    name: str, value: ArrayLike | None, shape: tuple[int, ...], dtype: jnp.dtype
) -> jax.Array | None:
    """``value`` as floats of shape (1, m) or (r, m)."""
    if value is None:
        return None
    array = jnp.asarray(value).astype(dtype)
    if array.shape not in (shape[-1:], shape):
        raise ValueError(
            f"project_hypersimplex: {name} has shape {array.shape}; {shape[-1:]} or {shape} is needed"
        )
    return array.reshape(-1, shape[-1])


def _raise_for_bad_rows(
    result: jax.Array, y: jax.Array, k: jax.Array, u: jax.Array | None, w: jax.Array | None
) -> None:
    bad = np.flatnonzero(np.isnan(np.asarray(result[:, 0])))
    if bad.size == 0:
        return
    row = int(bad[0])

    def of_row(array: jax.Array | None) -> np.ndarray:
        return np.ones(y.shape[1]) if array is None else np.asarray(array[row if array.shape[0] > 1 else 0])

    upper, scale, total = of_row(u), of_row(w), float(k[row])
    if not np.isfinite(of_row(y) * scale).all():
        found = "y (times weights) is not finite"
    elif not (np.isfinite(scale).all() and (scale > 0).all()):
        found = "weights must be finite and above 0"
    elif not ((upper >= 0) & (upper <= 1)).all():
        found = "mask must be within [0, 1]"
    else:
        found = f"k = {total:g} is not within [0, sum of mask = {float(upper.sum()):g}]"
    raise ValueError(f"project_hypersimplex: row {row}: {found}")


@jax.custom_jvp
def _project(y: jax.Array, k: jax.Array, u: jax.Array | None, w: jax.Array | None) -> jax.Array:
    """Rows y (r, m), sums k (r,), bounds and weights (1, m), (r, m) or None for 1; returns (r, m)."""
    return _compiled(y, k, u, w)


@_project.defjvp
def _project_jvp(primals, tangents):
    y, k, u, w = primals
    dy, dk, du, dw = tangents
    p = _project(y, k, u, w)
    upper = jnp.ones((1, 1), y.dtype) if u is None else u
    free = (p > 0) & (p < upper)
    inverse = jnp.where(free, 1.0, 0.0).astype(y.dtype) if w is None else jnp.where(free, 1 / w, 0)
    change = jnp.where(free, dy, 0)
    if w is not None:
        change = change + inverse * (y - jnp.where(free, p, y)) * dw
    full = 0 if u is None else jnp.where((p >= upper) & (upper > 0), du, 0)
    slope = jnp.sum(inverse, axis=-1)
    # no free coordinate: nothing moves with tau, and 1 avoids 0 / 0
    dtau = (jnp.sum(change + full, axis=-1) - dk) / jnp.where(slope > 0, slope, 1)
    return p, change + full - inverse * dtau[:, None]


class _Coordinates(NamedTuple):
    """Coordinates of rows: p(tau) is ``upper`` up to tau = ``leave`` and 0 from tau = ``reach`` on."""

    reach: jax.Array  # w y
    leave: jax.Array  # w (y - u)
    upper: jax.Array  # u
    weight: jax.Array  # w

    @classmethod
    def of(cls, y: jax.Array, u: jax.Array | None, w: jax.Array | None) -> "_Coordinates":
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


@jax.custom_batching.custom_vmap
def _solve(y: jax.Array, k: jax.Array, u: jax.Array | None, w: jax.Array | None) -> jax.Array:
    """The projection itself, without derivatives; arguments as ``_project``."""
    rows = _Coordinates.of(y, u, w)
    if y.shape[1] <= UNROLL_NODES:
        low, high, share = _segment_unrolled(_columns(y, u, w), k)
    else:
        low, high, share = _segment_searched(rows, k)
    left, right = rows.at(low[:, None]), rows.at(high[:, None])
    return jnp.clip(left + share[:, None] * (right - left), 0, rows.upper)


_compiled = jax.jit(_solve)


def _columns(y: jax.Array, u: jax.Array | None, w: jax.Array | None) -> list[_Coordinates]:
    """One _Coordinates of (r,) arrays per node."""

    def column(array: jax.Array | None, j: int) -> jax.Array | None:
        return None if array is None else array[:, j]

    return [_Coordinates.of(y[:, j], column(u, j), column(w, j)) for j in range(y.shape[1])]


@_solve.def_vmap
def _solve_lanes(lanes, batched, y, k, u, w):
    """Lanes of rows are rows: one long axis splits over threads better than a short one in front of it."""
    rows = y.shape[1] if batched[0] else y.shape[0]

    def flatten(array, has_lanes):
        if array is None or (not has_lanes and array.ndim == 2 and array.shape[0] == 1):
            return array  # (1, m) holds for every row of every lane
        array = array if has_lanes else array[None]
        return jnp.broadcast_to(array, (lanes, rows, *array.shape[2:])).reshape(
            lanes * rows, *array.shape[2:]
        )

    result = _solve(*(flatten(a, b) for a, b in zip((y, k, u, w), batched, strict=True)))
    return result.reshape(lanes, rows, -1), True


def _segment_unrolled(columns: list[_Coordinates], k: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
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


def _segment_searched(rows: _Coordinates, k: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As ``_segment_unrolled``, for rows (r, m) of many nodes, without sorting.

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
        low, high, left, right, done, turn = state
        fall = left - right
        falsi = low + (high - low) * jnp.clip((left - target) / jnp.where(fall > 0, fall, 1), 0, 1)
        guess = jnp.where((turn % 3 == 2) | ~(falsi < high), 0.5 * (low + high), falsi)[:, None]
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
        kept = [jnp.where(done, old, new) for old, new in zip(state[:4], following, strict=True)]
        ended = ~(early | late) | ~(following[1] > following[0])
        return *kept, done | ended, turn + 1

    start = (low, high, most, jnp.zeros_like(k), nothing | jnp.isnan(mark), jnp.zeros((), jnp.int32))
    found = lax.while_loop(lambda state: ~jnp.all(state[4]), narrow, start)
    low = jnp.where(nothing, high, found[0])
    high = jnp.where(nothing, jnp.inf, found[1])
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
