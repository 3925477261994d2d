"""Projected descent on a smooth function plus a concave one, by majorising the concave one with its tangent.

One driver for every descent of the package: it knows nothing of files, prices or sweeps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jax import lax

from ecjax.queueing.minimise import sums

# (point, aux) -> (value, aux, gradient)
Smooth: TypeAlias = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]

Tangent: TypeAlias = tuple[jax.Array, jax.Array]  # offset and slope: offset + <slope, point>

# A step never changes by more than this factor, so that one odd curvature estimate does no harm.
_STEP_CHANGE = 5.0
_BACKTRACK = 0.3
FIRST_MOVE = 0.1  # mean change of a coordinate by the first step
# Steps are cut after a rejection and grow back slowly: a single small change says little.
WINDOW = 8
FAR = 1e9  # in units of the typical slope: a step this long ends in a vertex


@dataclass(frozen=True)
class Stopping:
    """When a descent ends.

    Attributes:
        eps: the descent ends when its objective changed relatively by no more than this over ``WINDOW`` iterations,
            and, with a concave part, when no feasible point promises to first order a relative gain above the root of
            this (near the edge of the domain steps are so short that little change means little).
        max_iterations: limit; each iteration evaluates the smooth part once.
        merged: take a new tangent at every accepted step instead of after each inner convergence.
    """

    eps: float = 1e-4
    max_iterations: int = 1000
    merged: bool = True


class Descent(NamedTuple):
    """Result of ``descend``; leading batch axes under vmap."""

    point: jax.Array
    value: jax.Array  # smooth part + concave part
    aux: jax.Array  # what the smooth part carried (its inner minimiser)
    iterations: jax.Array
    converged: jax.Array
    history: jax.Array  # (max_iterations + 1,) value after each iteration, never rising; nan beyond the last


class Trial(NamedTuple):
    """What a step came to; numbers (), and where it was made from.

    Attributes:
        smooth: the smooth part at the trial.
        before: the smooth part where the step began.
        ahead: what the slope of the smooth part promised.
        ahead_extra: what the slope of the concave part promised.
        length: sum of move^2/scale.
        curvature: sum of move times the change of the smooth part's gradient.
    """

    smooth: jax.Array
    before: jax.Array
    ahead: jax.Array
    ahead_extra: jax.Array
    length: jax.Array
    curvature: jax.Array


def accepted(trial: Trial, step: jax.Array) -> jax.Array:
    """Whether the objective falls by what the quadratic model of a step of this length promises.

    The concave part only helps: steps are judged, and their length chosen, by the smooth part and the tangent.
    """
    promised = trial.ahead + trial.length / (2 * step)
    falls = trial.smooth + trial.ahead_extra <= trial.before
    return (trial.smooth <= trial.before + promised) & falls


def next_step(trial: Trial, step: jax.Array, taken: jax.Array) -> jax.Array:
    """Length of the step after one of length ``step`` that was taken or not."""
    bent = trial.curvature > 0
    spectral = jnp.where(bent, trial.length / jnp.where(bent, trial.curvature, 1), jnp.inf)
    spectral = jnp.clip(spectral, step / _STEP_CHANGE, step * _STEP_CHANGE)
    return jnp.where(taken, spectral, step * _BACKTRACK)


def steady(
    history: jax.Array, iteration: jax.Array, value: jax.Array, eps: float, since: jax.Array | None = None
) -> jax.Array:
    """Whether the value changed little over the last ``WINDOW`` iterations, or is no number.

    Args:
        history: values of the iterations before.
        iteration: of ``value``.
        value: the last one.
        eps: relative change that is little.
        since: iterations since the function changed; default: all.
    """
    earlier = history[jnp.maximum(iteration - WINDOW, 0)]
    long_enough = (iteration if since is None else since) >= WINDOW
    return (long_enough & (earlier - value <= eps * jnp.abs(value))) | ~jnp.isfinite(value)


class _State(NamedTuple):
    point: jax.Array
    aux: jax.Array
    value: jax.Array  # of the model: smooth + concave part, or smooth part + tangent of the concave one
    extra: jax.Array  # the concave part, or its tangent, in the value
    slope: jax.Array
    tangent: Tangent | None  # where the model has one
    step: jax.Array
    iteration: jax.Array
    since: jax.Array  # iterations since the tangent was last taken
    reference: jax.Array  # objective when the tangent was last taken
    finished: jax.Array
    history: jax.Array


def descend(
    smooth: Smooth,
    concave: Callable[[jax.Array], tuple[jax.Array, jax.Array]] | None,
    project: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    aux: jax.Array,
    scale: jax.Array,
    stopping: Stopping,
) -> Descent:
    """Minimise smooth + concave over the set that ``project`` maps on.

    Spectral (Barzilai-Borwein) steps in the metric 1/scale, shortened until the objective falls by what its quadratic
    model promises; an infinite value (outside the domain) shortens the step too. With one loop (``merged``) the
    gradient of the concave part at every point is that of its tangent there; nested, the tangent stays until the
    descent on smooth part + tangent, which is above the objective and touches it, has converged.

    Args:
        smooth: (point, aux) -> (value, aux, gradient).
        concave: point -> (value, slope), or None.
        project: Euclidean projection, for any positive ``scale`` that is constant where it mixes coordinates.
        start: feasible point with a finite value.
        aux: first value of what ``smooth`` carries.
        scale: preconditioner, broadcastable to ``point``.
        stopping: when to end.

    References:
        Fig. 3 and 4 of the JLCM paper, with the sign of the gradient step and the stopping test mended; Birgin,
        Martinez and Raydan, Nonmonotone spectral projected gradient methods, SIAM J. Optim. 10 (2000), here monotone.
    """
    direction = optax.sgd(1.0)
    optimizer_state = direction.init(start)
    dtype = start.dtype
    tiny = jnp.finfo(dtype).tiny
    nested = concave is not None and not stopping.merged

    def tangent_at(point: jax.Array) -> Tangent:
        assert concave is not None
        value, slope = concave(point)
        return value - jnp.sum(slope * point), slope

    def concave_at(point: jax.Array, tangent: Tangent | None) -> tuple[jax.Array, jax.Array]:
        """The model of the concave part: itself, or its tangent."""
        if concave is None:
            return jnp.zeros((), dtype), jnp.zeros_like(point)
        if tangent is None:
            return concave(point)
        return tangent[0] + jnp.sum(tangent[1] * point), tangent[1]

    def stationary(point: jax.Array, slope: jax.Array, value: jax.Array) -> jax.Array:
        """Whether the best vertex of the set promises next to nothing to first order (the Frank-Wolfe gap)."""
        vertex = project(point - FAR / jnp.maximum(jnp.mean(jnp.abs(slope)), tiny) * slope)
        return jnp.sum(slope * (point - vertex)) <= math.sqrt(stopping.eps) * jnp.abs(value)

    def unfinished(state: _State) -> jax.Array:
        return ~state.finished & (state.iteration < stopping.max_iterations)

    def iterate(state: _State) -> _State:
        # the first pass only evaluates the start (its step is 0): a separate evaluation would compile all twice
        first = state.iteration < 0
        updates, _ = direction.update(scale * state.slope, optimizer_state)
        trial = project(optax.apply_updates(state.point, state.step * updates))
        smooth_value, aux, gradient = smooth(trial, state.aux)
        extra, extra_slope = concave_at(trial, state.tangent)
        _, old_extra_slope = concave_at(state.point, state.tangent)
        value, slope = smooth_value + extra, gradient + extra_slope
        move = trial - state.point
        old_smooth, old_gradient = state.value - state.extra, state.slope - old_extra_slope
        ahead, ahead_extra, length, curvature, size = sums(
            old_gradient * move,
            old_extra_slope * move,
            move * move / scale,
            move * (gradient - old_gradient),
            jnp.abs(scale * slope),
        )
        moved = Trial(smooth_value, old_smooth, ahead, ahead_extra, length, curvature)
        taken = first | accepted(moved, jnp.where(first, 1, state.step))
        step = next_step(moved, state.step, taken)
        typical = size / start.size
        step = jnp.where(first, FIRST_MOVE / jnp.where(typical > 0, typical, 1), step)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(taken, new, old)

        point, aux = choose(trial, state.point), choose(aux, state.aux)
        value, slope = choose(jnp.minimum(value, state.value), state.value), choose(slope, state.slope)
        extra = choose(extra, state.extra)
        iteration, since = state.iteration + 1, state.since + 1
        settled = steady(state.history, iteration, value, stopping.eps, since)
        tangent, reference, finished = state.tangent, state.reference, settled
        if tangent is not None:
            new = tangent_at(point)
            touching = value + new[0] - tangent[0] + jnp.sum((new[1] - tangent[1]) * point)
            # rounding aside it cannot be higher
            touching = jnp.minimum(touching, value)
            finished = settled & (
                (reference - touching <= stopping.eps * jnp.abs(touching)) | ~jnp.isfinite(touching)
            )
            slope = jnp.where(settled, slope + new[1] - tangent[1], slope)
            tangent = jax.tree.map(lambda a, b: jnp.where(settled, a, b), new, tangent)
            extra = jnp.where(settled, extra + touching - value, extra)
            value = jnp.where(settled, touching, value)
            reference = jnp.where(settled, touching, reference)
            since = jnp.where(settled, 0, since)
        if concave is not None:
            finished = finished & lax.cond(
                finished & jnp.isfinite(value), stationary, lambda *_: True, point, slope, value
            )
        return _State(
            point=point,
            aux=aux,
            value=value,
            extra=extra,
            slope=slope,
            tangent=tangent,
            step=step,
            iteration=iteration,
            since=since,
            reference=reference,
            finished=finished,
            history=state.history.at[iteration].set(value),
        )

    infinity = jnp.full((), jnp.inf, dtype)
    before = jnp.full((), -1, jnp.int32)
    state = lax.while_loop(
        unfinished,
        iterate,
        _State(
            point=start,
            aux=aux,
            value=infinity,
            extra=jnp.zeros((), dtype),
            slope=jnp.zeros_like(start),
            tangent=tangent_at(start) if nested else None,
            step=jnp.zeros((), dtype),
            iteration=before,
            since=before,
            reference=infinity,
            finished=jnp.zeros((), bool),
            history=jnp.full((stopping.max_iterations + 1,), jnp.nan, dtype),
        ),
    )
    converged = state.finished & jnp.isfinite(state.value)
    return Descent(state.point, state.value, state.aux, state.iteration, converged, state.history)
