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
# Steps are cut after a rejection and grow back slowly: a single small change says little.
WINDOW = 8


@dataclass(frozen=True)
class Stopping:
    """When a descent ends.

    Attributes:
        eps: the descent ends when its objective changed relatively by no more than this over ``WINDOW`` iterations.
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
    since: jax.Array  # iterations since the tangent was last taken
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
        # the first pass only evaluates the start (its step is 0): a separate evaluation would compile all twice
        first = state.iteration < 0
        now = majoriser(state.smooth, state.offset, state.tangent, state.point)
        slope = state.gradient + state.tangent
        updates, _ = direction.update(scale * slope, optimizer_state)
        trial = project(optax.apply_updates(state.point, state.step * updates))
        (smooth_value, aux_trial), gradient = value_and_grad(trial, state.aux)
        then = majoriser(smooth_value, state.offset, state.tangent, trial)
        move = trial - state.point
        length = jnp.sum(move * move / scale)
        promised = jnp.sum(slope * move) + length / jnp.where(first, 1.0, 2 * state.step)
        accepted = first | ((then <= now + promised) & (then <= now))

        curvature = jnp.sum(move * (gradient - state.gradient))
        spectral = jnp.where(curvature > 0, length / jnp.where(curvature > 0, curvature, 1.0), jnp.inf)
        spectral = jnp.clip(spectral, state.step / _STEP_CHANGE, state.step * _STEP_CHANGE)
        step = jnp.where(accepted, spectral, state.step * _BACKTRACK)
        typical = jnp.mean(jnp.abs(scale * (gradient + state.tangent)))
        step = jnp.where(first, _FIRST_MOVE / jnp.where(typical > 0, typical, 1.0), step)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(accepted, new, old)

        point, smooth_value = choose(trial, state.point), choose(smooth_value, state.smooth)
        value = choose(then, now)
        since = state.since + 1
        earlier = state.history[jnp.maximum(state.iteration + 1 - WINDOW, 0)]
        earlier_value = state.history[jnp.maximum(state.iteration, 0)]
        settled = (since >= WINDOW) & (earlier - value <= stopping.eps * jnp.abs(value))
        settled = settled | ~jnp.isfinite(value)
        offset, tangent, reference, done = state.offset, state.tangent, state.reference, settled
        if concave is not None and stopping.merged:
            offset, tangent = tangent_at(point)
        elif concave is not None:
            new_offset, new_tangent = tangent_at(point)
            offset = jnp.where(settled, new_offset, state.offset)
            tangent = jnp.where(settled, new_tangent, state.tangent)
            objective = majoriser(smooth_value, offset, tangent, point)
            still = state.reference - objective <= stopping.eps * jnp.abs(objective)
            done = settled & (still | ~jnp.isfinite(objective))
            reference = jnp.where(settled, objective, state.reference)
            since = jnp.where(settled, 0, since)
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
            since=since,
            reference=reference,
            done=done,
            # a new tangent touches at the point: what differs from the last value there is rounding
            history=state.history.at[iteration].set(
                jnp.where(first, value, jnp.minimum(value, earlier_value))
            ),
        )

    offset, tangent = tangent_at(start)
    history = jnp.full((stopping.max_iterations + 1,), jnp.nan, dtype)
    zero = jnp.zeros((), jnp.int32)
    state = lax.while_loop(
        unfinished,
        iterate,
        _State(
            point=start,
            aux=aux,
            smooth=jnp.full((), jnp.inf, dtype),
            gradient=jnp.zeros_like(start),
            tangent=tangent,
            offset=offset,
            step=jnp.zeros((), dtype),
            iteration=zero - 1,
            since=zero - 1,
            reference=jnp.full((), jnp.inf, dtype),
            done=zero > 0,
            history=history,
        ),
    )
    final = majoriser(state.smooth, state.offset, state.tangent, state.point)
    return Descent(
        state.point, final, state.aux, state.iteration, state.done & jnp.isfinite(final), state.history
    )
