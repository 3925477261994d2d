"""Projected descent on a smooth function plus a concave one, by majorising the concave one with its tangent.

One driver for every descent of the package: it knows nothing of files, prices or sweeps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

# A step never changes by more than this factor, so that one odd curvature estimate does no harm.
_STEP_CHANGE = 5.0
_BACKTRACK = 0.3
_FIRST_MOVE = 0.1  # mean change of a coordinate by the first step
_REJECTIONS = 40  # rounding leaves nothing to gain after so many shorter steps


@dataclass(frozen=True)
class Stopping:
    """When a descent ends.

    Attributes:
        eps: relative change of the objective that counts as none.
        max_iterations: limit; each iteration evaluates the smooth part once.
        merged: take a new tangent at every accepted step instead of after each inner convergence.
    """

    eps: float = 1e-4
    max_iterations: int = 1000
    merged: bool = False


class Descent(NamedTuple):
    """Result of ``descend``; leading batch axes under vmap."""

    point: jax.Array
    value: jax.Array  # smooth part + concave part
    aux: jax.Array  # what the smooth part carried (its inner minimiser)
    iterations: jax.Array
    converged: jax.Array
    history: (
        jax.Array
    )  # (max_iterations + 1,) majoriser after each iteration, never rising; nan beyond the last


class _State(NamedTuple):
    point: jax.Array
    aux: jax.Array
    smooth: jax.Array
    gradient: jax.Array  # of the smooth part
    tangent: jax.Array  # slope of the concave part at its reference point
    offset: jax.Array  # majoriser = smooth + offset + <tangent, point>
    step: jax.Array
    iteration: jax.Array
    calm: jax.Array  # accepted steps in a row that changed next to nothing
    rejections: jax.Array
    reference: jax.Array  # objective at the last new tangent
    done: jax.Array
    history: jax.Array


def descend(
    smooth: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    concave: Callable[[jax.Array], tuple[jax.Array, jax.Array]] | None,
    project: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    aux: jax.Array,
    scale: jax.Array,
    stopping: Stopping,
) -> Descent:
    """Minimise smooth + concave over the set that ``project`` maps on.

    Spectral (Barzilai-Borwein) steps in the metric 1/scale, shortened until the majoriser falls by what its
    quadratic model promises; an infinite value (outside the domain) shortens the step too.

    Args:
        smooth: (point, aux) -> (value, aux); differentiated in ``point``.
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
    value_and_grad = jax.value_and_grad(smooth, has_aux=True)
    dtype = start.dtype

    def tangent_at(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        if concave is None:
            return jnp.zeros((), dtype), jnp.zeros_like(point)
        value, slope = concave(point)
        return value - jnp.sum(slope * point), slope

    def majoriser(
        smooth_value: jax.Array, offset: jax.Array, tangent: jax.Array, point: jax.Array
    ) -> jax.Array:
        if concave is None:
            return smooth_value
        return smooth_value + offset + jnp.sum(tangent * point)

    def unfinished(state: _State) -> jax.Array:
        return ~state.done & (state.iteration < stopping.max_iterations)

    def iterate(state: _State) -> _State:
        now = majoriser(state.smooth, state.offset, state.tangent, state.point)
        slope = state.gradient + state.tangent
        updates, _ = direction.update(scale * slope, optimizer_state)
        trial = project(optax.apply_updates(state.point, state.step * updates))
        (smooth_value, aux_trial), gradient = value_and_grad(trial, state.aux)
        then = majoriser(smooth_value, state.offset, state.tangent, trial)
        move = trial - state.point
        length = jnp.sum(move * move / scale)
        accepted = then <= now + jnp.sum(slope * move) + length / (2 * state.step)
        accepted = accepted & (then <= now)

        curvature = jnp.sum(move * (gradient - state.gradient))
        spectral = jnp.where(curvature > 0, length / jnp.where(curvature > 0, curvature, 1.0), jnp.inf)
        spectral = jnp.clip(spectral, state.step / _STEP_CHANGE, state.step * _STEP_CHANGE)
        step = jnp.where(accepted, spectral, state.step * _BACKTRACK)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(accepted, new, old)

        small = (now - then) <= stopping.eps * jnp.abs(then)
        calm = choose(jnp.where(small, state.calm + 1, 0), state.calm)
        rejections = jnp.where(accepted, 0, state.rejections + 1)
        point, smooth_value = choose(trial, state.point), choose(smooth_value, state.smooth)
        value = choose(then, now)
        stuck = rejections >= _REJECTIONS
        settled = (calm >= 2) | stuck

        if concave is None:
            offset, tangent, reference, done = state.offset, state.tangent, value, settled
        elif stopping.merged:
            offset, tangent = tangent_at(point)
            reference, done = value, (calm >= 3) | stuck
        else:
            new_offset, new_tangent = tangent_at(point)
            offset = jnp.where(settled, new_offset, state.offset)
            tangent = jnp.where(settled, new_tangent, state.tangent)
            objective = majoriser(smooth_value, offset, tangent, point)
            still = (state.reference - objective) <= stopping.eps * jnp.abs(objective)
            done = settled & still
            reference = jnp.where(settled, objective, state.reference)
            calm = jnp.where(settled, 0, calm)
            rejections = jnp.where(settled, 0, rejections)
        iteration = state.iteration + 1
        value = majoriser(smooth_value, offset, tangent, point)
        return _State(
            point=point,
            aux=choose(aux_trial, state.aux),
            smooth=smooth_value,
            gradient=choose(gradient, state.gradient),
            tangent=tangent,
            offset=offset,
            step=step,
            iteration=iteration,
            calm=calm,
            rejections=rejections,
            reference=reference,
            done=done,
            history=state.history.at[iteration].set(jnp.minimum(value, state.history[iteration - 1])),
        )

    (value, aux), gradient = value_and_grad(start, aux)
    offset, tangent = tangent_at(start)
    first = majoriser(value, offset, tangent, start)
    typical = jnp.mean(jnp.abs(scale * (gradient + tangent)))
    history = jnp.full((stopping.max_iterations + 1,), jnp.nan, dtype)
    zero = jnp.zeros((), jnp.int32)
    state = lax.while_loop(
        unfinished,
        iterate,
        _State(
            point=start,
            aux=aux,
            smooth=value,
            gradient=gradient,
            tangent=tangent,
            offset=offset,
            step=_FIRST_MOVE / jnp.where(typical > 0, typical, 1.0),
            iteration=zero,
            calm=zero,
            rejections=zero,
            reference=jnp.full_like(first, jnp.inf),
            done=~jnp.isfinite(first),
            history=history.at[0].set(first),
        ),
    )
    final = majoriser(state.smooth, state.offset, state.tangent, state.point)
    return Descent(
        state.point, final, state.aux, state.iteration, state.done & jnp.isfinite(first), state.history
    )
