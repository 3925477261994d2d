"""The published method's descent where all chunks have one size: all that changes from step to step is m numbers.

With one chunk size the latency bound depends on the probabilities only through q_j = sum_i share_i p_ij: it is the
bound of one file with these probabilities, and its slope is share_i times that file's. So a step reads and writes the
probabilities once (``kernel``), and everything else is done for one file.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.planning.descent import (
    FAR,
    FIRST_MOVE,
    Descent,
    Stopping,
    Trial,
    accepted,
    next_step,
    steady,
)
from ecjax.planning.fused.kernel import TILE, Moved, Surrogate, Weights, moved
from ecjax.planning.problem import Problem, step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.slopes import latency_slopes


class _State(NamedTuple):
    point: jax.Array  # (m, P)
    reads: jax.Array  # (m,) q
    slope: jax.Array  # (m,) of the latency by q
    z: jax.Array
    value: jax.Array  # latency + surrogate
    extra: jax.Array  # the surrogate in it
    step: jax.Array
    iteration: jax.Array
    finished: jax.Array
    history: jax.Array


def descend(
    problem: Problem,
    surrogate: Surrogate | None,
    mask: jax.Array | None,
    start: jax.Array,
    z: jax.Array,
    stopping: Stopping,
) -> Descent:
    """As ``descent.descend`` on the latency bound and a surrogate; of the result ``aux`` is z.

    Args:
        problem: one that ``choosing.suits``.
        surrogate: concave price of chunks, the same for all files; None for none.
        mask: (R, m) bool, nodes that may be used; None for all.
        start: (R, m) feasible probabilities with node loads below 1.
        z: s, to start the search for z from.
        stopping: when to end, in one loop.
    """
    wide = jnp.result_type(float)
    rows = start.shape[0]
    weights = weights_of(problem, start.dtype)
    files = len(weights.k)
    alone = _of_one_file(problem, wide)

    def turned(values: jax.Array) -> jax.Array:
        return jnp.pad(values.T, ((0, 0), (0, files - rows)))

    upper = None if mask is None else turned(mask)

    def stepped(point: jax.Array, slope: jax.Array, step: jax.Array, by: Weights) -> Moved:
        return moved(point, by, slope, step, surrogate, upper)

    def latency(reads: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slopes = latency_slopes(alone, reads[None], reads[None], z)
        return slopes.value, slopes.z, slopes.by_probability[0]

    def typical(point: jax.Array, slope: jax.Array, by: jax.Array) -> jax.Array:
        """Mean of the slopes of all probabilities, without sign, times ``by``."""
        total = weights.share[None] * slope[:, None].astype(point.dtype)
        if surrogate is not None:
            total = total + _tangent(surrogate, point)
        return jnp.sum(jnp.abs(total[:, :rows]) * by[None, :rows], dtype=wide) / start.size

    def stationary(state: _State) -> jax.Array:
        """Whether the best vertex of the set promises next to nothing to first order (the Frank-Wolfe gap)."""
        plain = weights._replace(scale=jnp.ones_like(weights.scale))
        size = jnp.maximum(typical(state.point, state.slope, plain.scale), jnp.finfo(wide).tiny)
        vertex = stepped(state.point, state.slope, FAR / size, plain)
        promise = -(jnp.sum(state.slope * vertex.reads) + vertex.ahead)
        return promise <= jnp.sqrt(stopping.eps) * jnp.abs(state.value)

    def iterate(state: _State) -> _State:
        trial = stepped(state.point, state.slope, state.step, weights)
        reads = state.reads + trial.reads
        smooth, z, slope = latency(reads, state.z)
        judged = Trial(
            smooth=smooth,
            before=state.value - state.extra,
            ahead=jnp.sum(state.slope * trial.reads),
            ahead_extra=trial.ahead,
            length=trial.length,
            curvature=jnp.sum((slope - state.slope) * trial.reads),
        )
        taken = accepted(judged, state.step)
        iteration = state.iteration + 1

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(taken, new, old)

        value = choose(jnp.minimum(smooth + trial.surrogate, state.value), state.value)
        following = _State(
            point=choose(trial.point, state.point),
            reads=choose(reads, state.reads),
            slope=choose(slope, state.slope),
            z=choose(z, state.z),
            value=value,
            extra=choose(trial.surrogate, state.extra),
            step=next_step(judged, state.step, taken),
            iteration=iteration,
            finished=steady(state.history, iteration, value, stopping.eps),
            history=state.history.at[iteration].set(value),
        )
        if surrogate is None:
            return following
        ended = lax.cond(
            following.finished & jnp.isfinite(value), stationary, lambda state: state.finished, following
        )
        return following._replace(finished=ended)

    point = turned(project_hypersimplex(start, problem.k, mask=mask))
    reads = jnp.sum(point * weights.share[None], axis=-1, dtype=wide)
    smooth, z, slope = latency(reads, z.astype(wide))
    extra = jnp.zeros((), wide)
    if surrogate is not None:
        each = jnp.log1p(surrogate.beta * point) / jnp.log(surrogate.beta)
        extra = jnp.sum(surrogate.price[:, None].astype(point.dtype) * each, dtype=wide)
    first = typical(point, slope, weights.scale)
    state = _State(
        point=point,
        reads=reads,
        slope=slope,
        z=z,
        value=smooth + extra,
        extra=extra,
        step=FIRST_MOVE / jnp.where(first > 0, first, 1),
        iteration=jnp.zeros((), jnp.int32),
        finished=~jnp.isfinite(smooth),
        history=jnp.full((stopping.max_iterations + 1,), jnp.nan, wide).at[0].set(smooth + extra),
    )
    state = lax.while_loop(
        lambda state: ~state.finished & (state.iteration < stopping.max_iterations), iterate, state
    )
    # whatever a kernel hands out is feasible
    end = project_hypersimplex(state.point[:, :rows].T, problem.k, mask=mask)
    return Descent(
        end,
        state.value,
        state.z.astype(start.dtype),
        state.iteration,
        state.finished & jnp.isfinite(state.value),
        state.history,
    )


def weights_of(problem: Problem, dtype: jnp.dtype) -> Weights:
    """What steps need of the files of a problem, with files that nobody reads up to whole tiles."""
    more = -problem.rows % TILE
    of_files = ((problem.share, 0.0), (step_scale(problem)[:, 0], 1.0), (problem.k, 0.0))
    return Weights(
        *(jnp.pad(values.astype(dtype), (0, more), constant_values=filler) for values, filler in of_files)
    )


def _tangent(surrogate: Surrogate, point: jax.Array) -> jax.Array:
    """Slope of the surrogate at every probability, (m, P)."""
    price = (surrogate.price / jnp.log(surrogate.beta)).astype(point.dtype)
    return price[:, None] / (point + 1 / surrogate.beta)


def _of_one_file(problem: Problem, dtype: jnp.dtype) -> Problem:
    """All reads as those of one file; its probabilities are the shares of reads that nodes serve."""
    k = jnp.sum(problem.share * problem.k, keepdims=True)
    rate = jnp.sum(problem.files.rate, keepdims=True)
    one = replace(jax.tree.map(lambda values: values[:1], problem.files), k=k, rate=rate)
    unit = jnp.ones((1,), dtype)
    alone = replace(
        problem,
        files=one,
        k=k,
        floor=k,
        share=unit,
        row_share=unit,
        reads=jnp.sum(problem.reads, axis=1, keepdims=True),
        price_chunks=unit,
        price_bytes=unit,
        allowed=None,
    )
    return jax.tree.map(
        lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, alone
    )
