r"""Euclidean projection on the capped simplex {0 <= p <= u, sum p = k}: for bounds 0 and 1, a hypersimplex.

The projection is p_j(tau) = clip(y_j - tau / w_j, 0, u_j) with the tau for which the row sums to k: a sum that is
piecewise linear and falls in tau: at one breakpoint a coordinate leaves u_j, at another it reaches 0. So
the breakpoints around the solution (``segments``) give it exactly, by interpolation. Interpolating p, not tau, gives
the right sum at any scale of y.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.planning.segments import Coordinates, columns, segment_searched, segment_unrolled
from ecjax.programs import program

UNROLL_NODES = 32  # above this many nodes rows are searched in a loop instead; the program stays small
# so they are of fewer nodes, where they are few: it takes half as long again, but a third of the seconds to compile
_UNROLL_ALWAYS, _FEW = 16, 200_000  # nodes; rows times nodes


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
        reason = "y (times weights) is not finite"
    elif not (np.isfinite(scale).all() and (scale > 0).all()):
        reason = "weights must be finite and above 0"
    elif not ((upper >= 0) & (upper <= 1)).all():
        reason = "mask must be within [0, 1]"
    else:
        reason = f"k = {total:g} is not within [0, sum of mask = {float(upper.sum()):g}]"
    raise ValueError(f"project_hypersimplex: row {row}: {reason}")


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


@jax.custom_batching.custom_vmap
def _solve(y: jax.Array, k: jax.Array, u: jax.Array | None, w: jax.Array | None) -> jax.Array:
    """The projection itself, without derivatives; arguments as ``_project``."""
    rows = Coordinates.of(y, u, w)
    if y.shape[1] <= (UNROLL_NODES if y.size > _FEW else _UNROLL_ALWAYS):
        low, high, share = segment_unrolled(columns(y, u, w), k)
    else:
        low, high, share = segment_searched(rows, k)
    left, right = rows.at(low[:, None]), rows.at(high[:, None])
    return jnp.clip(left + share[:, None] * (right - left), 0, rows.upper)


_compiled = program(_solve)


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
