"""One step of a descent on probabilities as one kernel: slopes, projection and the sums that judge it, in one pass.

Of r files and m nodes it reads and writes r m numbers once, beside three numbers of each file. Files lie along the last
axis, so that neighbouring threads read neighbouring numbers, and the nodes of a file are registers of one thread.

Pallas compiles it by Triton, which JAX means to give up: ``choosing`` asks first whether that is still there.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from ecjax.planning.fused.columns import project_columns

_BLOCK, _BLOCKS = 128, 8  # files side by side, and one block after the other in a program
TILE = _BLOCK * _BLOCKS  # files are padded to a multiple of it
_WARPS = 4


class Weights(NamedTuple):
    """What a step needs of every file, arrays (P,)."""

    share: jax.Array  # of all reads; 0 for padding
    scale: jax.Array  # of steps
    k: jax.Array


class Surrogate(NamedTuple):
    """The concave price of chunks: price_j log(beta p + 1)/log(beta)."""

    price: jax.Array  # (m,) s
    beta: float


class Moved(NamedTuple):
    """A trial point, and what changed."""

    point: jax.Array  # (m, P)
    reads: jax.Array  # (m,) change of the share of reads that a node serves
    surrogate: jax.Array  # () the concave price at the trial, s
    ahead: jax.Array  # () what its tangent promises, s
    length: jax.Array  # () sum of move^2/scale


def moved(
    point: jax.Array,
    weights: Weights,
    slope: jax.Array,
    step: jax.Array,
    surrogate: Surrogate | None,
    upper: jax.Array | None,
    interpret: bool | None = None,
) -> Moved:
    """The projection of a step along the slope share_i slope_j + that of the surrogate.

    Args:
        point: (m, P) probabilities; m up to ``choosing.MOST_NODES``, P a multiple of ``TILE``.
        weights: of the files.
        slope: (m,) s, of the smooth part by the share of reads that a node serves.
        step: () length of the step.
        surrogate: the concave part; None for none.
        upper: (m, P) bool, nodes that may be used; None for all.
        interpret: run without compiling a kernel, on any device and slowly; default: where JAX's device is a processor.
    """
    if interpret is None:
        interpret = jax.default_backend() == "cpu"
    nodes, files = point.shape
    dtype = point.dtype
    programs = files // TILE
    price = jnp.zeros_like(slope) if surrogate is None else surrogate.price / math.log(surrogate.beta)
    wide, row = pl.BlockSpec((nodes, TILE), lambda i: (0, i)), pl.BlockSpec((TILE,), lambda i: (i,))
    node, one = pl.BlockSpec((nodes,), lambda i: (0,)), pl.BlockSpec((1,), lambda i: (i,))
    single = pl.BlockSpec((1,), lambda i: (0,))
    limits = () if upper is None else (upper,)
    sums = jax.ShapeDtypeStruct((programs,), dtype)
    call = pl.pallas_call(
        partial(_kernel, None if surrogate is None else surrogate.beta, upper is not None),
        grid=(programs,),
        in_specs=[wide, *[wide for _ in limits], row, row, row, node, node, single],
        out_specs=[wide, pl.BlockSpec((nodes, 1), lambda i: (0, i)), one, one, one],
        out_shape=[
            jax.ShapeDtypeStruct(point.shape, dtype),
            jax.ShapeDtypeStruct((nodes, programs), dtype),
            sums,
            sums,
            sums,
        ],
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=_WARPS, num_stages=1),
    )
    trial, *parts = call(
        point, *limits, *weights, *(values.astype(dtype) for values in (slope, price, step[None]))
    )
    # float32 sums of a tile, added in float64
    reads, cost, ahead, length = (jnp.sum(part.astype(jnp.result_type(float)), axis=-1) for part in parts)
    return Moved(trial, reads, cost, ahead, length)


def _kernel(beta: float | None, limited: bool, *refs) -> None:
    """Of one tile; references as the specs of ``moved`` list them."""
    point_ref, others = refs[0], refs[2:] if limited else refs[1:]
    upper_ref = refs[1] if limited else None
    share_ref, scale_ref, k_ref, slope_ref, price_ref, step_ref = others[:6]
    trial_ref, reads_ref, cost_ref, ahead_ref, length_ref = others[6:]
    nodes, dtype = range(point_ref.shape[0]), trial_ref.dtype
    step = step_ref[0]
    slope, price = [slope_ref[j] for j in nodes], [price_ref[j] for j in nodes]

    def block(index, sums):
        reads, cost, ahead, length = sums
        files = pl.ds(index * _BLOCK, _BLOCK)
        share, scale, k = share_ref[files], scale_ref[files], k_ref[files]
        old = [point_ref[j, files] for j in nodes]
        upper = None if upper_ref is None else [upper_ref[j, files].astype(dtype) for j in nodes]
        tangent = [0 * share if beta is None else price[j] / (old[j] + 1 / beta) for j in nodes]
        new = project_columns(
            [old[j] - step * scale * (share * slope[j] + tangent[j]) for j in nodes], upper, k
        )
        served = []
        for j in nodes:
            trial_ref[j, files] = new[j]
            move = new[j] - old[j]
            served.append(reads[j] + share * move)
            length = length + move * move / scale
            if beta is not None:
                ahead = ahead + tangent[j] * move
                cost = cost + price[j] * jnp.log(1 + beta * new[j])
        return tuple(served), cost, ahead, length

    zero = jnp.zeros((_BLOCK,), dtype)
    reads, *sums = lax.fori_loop(0, _BLOCKS, block, (tuple(zero for _ in nodes), zero, zero, zero))
    for j in nodes:
        reads_ref[j, 0] = jnp.sum(reads[j])
    for ref, values in zip((cost_ref, ahead_ref, length_ref), sums, strict=True):
        ref[0] = jnp.sum(values)
