"""How reads of service classes spread over the chunks that there are: one descent for every objective in force.

The objective is sum_k c_k L_k + tolls . pi, with limits L_l <= limit_l by an augmented Lagrangian: limits are written
b_l = limit_l (1 - limit_l / L_l) <= 0, which is about linear in the reads where a queue is long, and their multipliers
follow mu_l := max(0, mu_l + rho_l b_l). Whatever the queue and the order of the classes, the same compiled program
does it; z follows the probabilities (one z per class, at its best), so that the result is also the best for its z where
the problem is convex for fixed z (weighted queues, and a class under priority given the others).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.planning.classes.model import (
    ClassModel,
    class_work,
    kind_reads,
    latencies_at,
    of_rows_by_kind,
    state,
)
from ecjax.planning.descent import Descent, Stopping, descend
from ecjax.planning.problem import step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.programs import program

STOPPING = Stopping(eps=1e-6, max_iterations=100)
_ROUNDS = 12  # of multipliers
_MET = 1e-6  # how closely they meet limits
_STRENGTH = 1.0
_HARDER = 4.0
_BRINK = 0.01  # part of what a node has left that a step leaves to it at least
_HALVINGS = 20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Goal:
    """What a step descends on: sum_k coefficient_k L_k + tolls, with the latencies of some classes limited."""

    coefficient: jax.Array  # (K,)
    limit: jax.Array  # (K,) s, infinite where there is none
    storing: jax.Array  # (R, m) s, for keeping a chunk
    reading: jax.Array  # (R, m) s, for a node being used by every read of the row
    movable: jax.Array  # (R,) bool, rows that may change

    def value(self, latency: jax.Array, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
        """The objective, s; classes of coefficient 0 do not count, whatever their latency."""
        counted = jnp.where(self.coefficient > 0, self.coefficient * latency, 0.0)
        charge = self.storing * stored.astype(float) + self.reading * probabilities
        return jnp.sum(counted) + jnp.sum(charge)


class Fixed(NamedTuple):
    """What does not change during a step."""

    stored: jax.Array  # (R, m) bool
    other: jax.Array  # (3, K, m)
    weights: jax.Array  # (K, m)


class Scheduled(NamedTuple):
    """Result of ``schedule``."""

    probabilities: jax.Array  # (R, m)
    latency: jax.Array  # (K,) s
    z: jax.Array  # (K,) s
    multiplier: jax.Array  # (K,) of the limits
    iterations: jax.Array


class _Sweep(NamedTuple):
    """A descent with given multipliers, and what it leaves to the next."""

    point: jax.Array
    aux: jax.Array
    multiplier: jax.Array  # (K,)
    strength: jax.Array  # (K,) 1/s, of the penalties
    broken: jax.Array  # (K,) s
    iterations: jax.Array
    rounds: jax.Array


@partial(program, quick=True, static_argnames="stopping")
def schedule(
    model: ClassModel, goal: Goal, fixed: Fixed, start: jax.Array, z: jax.Array, stopping: Stopping = STOPPING
) -> Scheduled:
    """Spread the reads of the movable rows; the objective in force never rises and no limit that held is broken.

    A limit that the start breaks is not broken further.

    Args:
        model: the model.
        goal: the objective in force.
        fixed: placement and weights.
        start: (R, m) probabilities, on stored chunks; every class stable.
        z: (K,) to start the searches for z from, s.
        stopping: of each descent.
    """
    before = state(model, kind_reads(model, start), fixed.other, fixed.weights, z)
    limit = jnp.maximum(goal.limit, before.latency)
    limited = jnp.isfinite(goal.limit)
    target = jnp.where(limited, limit * (1 - _MET), 1.0)
    scale = jnp.maximum(goal.value(before.latency, start, fixed.stored), 1e-300)
    # gentle at first: steep penalties make long descents
    first_strength = _STRENGTH * scale / target**2
    scale_rows = step_scale(model.problem)
    most = 1 - _BRINK * (1 - _busy(model, fixed, start))

    def over(latency: jax.Array) -> jax.Array:
        """How far limits are broken, s."""
        return jnp.where(limited, target * (1 - target / latency), 0.0)

    def project(point: jax.Array) -> jax.Array:
        moved = project_hypersimplex(point, model.problem.k, mask=fixed.stored.astype(point.dtype))
        return jnp.where(goal.movable[:, None], moved, start)

    def descent(point: jax.Array, aux: jax.Array, multiplier: jax.Array, strength: jax.Array) -> Descent:
        def smooth(trial: jax.Array, aux: jax.Array):
            reads = kind_reads(model, trial)
            blended = state(model, reads, fixed.other, fixed.weights, aux)
            _, pull = jax.vjp(lambda p: latencies_at(model, p, fixed.other, fixed.weights, blended.z), reads)
            raised = jnp.maximum(multiplier + strength * over(blended.latency), 0.0)
            penalty = jnp.where(limited, (raised**2 - multiplier**2) / (2 * strength), 0.0)
            value = goal.value(blended.latency, trial, fixed.stored) + jnp.sum(penalty)
            value = jnp.where(jnp.all(_busy(model, fixed, trial) <= most), value, jnp.inf)
            pushed = jnp.where(limited, raised * (target / blended.latency) ** 2, 0.0)
            slope = of_rows_by_kind(model, pull(goal.coefficient + pushed)[0]) + goal.reading
            return value, blended.z, slope

        return descend(smooth, None, project, point, aux, scale_rows, stopping)

    def sweep(carry: _Sweep) -> _Sweep:
        blended = descent(carry.point, carry.aux, carry.multiplier, carry.strength)
        reached = state(model, kind_reads(model, blended.point), fixed.other, fixed.weights, blended.aux)
        broken = over(reached.latency)
        raised = jnp.where(limited, jnp.maximum(carry.multiplier + carry.strength * broken, 0.0), 0.0)
        slow = jnp.abs(broken) > 0.25 * jnp.abs(carry.broken)
        return _Sweep(
            blended.point,
            reached.z,
            raised,
            jnp.where(slow, _HARDER, 1.0) * carry.strength,
            broken,
            carry.iterations + blended.iterations,
            carry.rounds + 1,
        )

    def unmet(carry: _Sweep) -> jax.Array:
        # without a limit at work the first descent is the last
        off = (carry.multiplier > 0) & (jnp.abs(carry.broken) > _MET * target)
        return (carry.rounds == 0) | ((carry.rounds < _ROUNDS) & jnp.any(off))

    none = jnp.zeros_like(before.z)
    zero = jnp.zeros((), jnp.int32)
    swept = jax.lax.while_loop(
        unmet, sweep, _Sweep(start, before.z, none, first_strength, jnp.full_like(none, jnp.inf), zero, zero)
    )
    point, aux = swept.point, swept.aux

    def state_at(share: jax.Array):
        blend = jnp.where(share < 1, start + share * (point - start), point)
        blended = state(model, kind_reads(model, blend), fixed.other, fixed.weights, aux)
        better = goal.value(blended.latency, blend, fixed.stored) <= goal.value(
            before.latency, start, fixed.stored
        )
        return (
            blend,
            blended,
            better & jnp.all(blended.latency <= limit) & jnp.all(jnp.isfinite(blended.latency)),
        )

    # the multipliers leave limits broken by a hair: back towards the start, which keeps them. Whether to go on is
    # carried, as in ``weigh``
    def back(carry):
        share, count, _ = carry
        keeps = state_at(share)[2]
        further = jnp.where(count + 1 < _HALVINGS, _next_share(share), 0.0)
        return jnp.where(keeps, share, further), count + 1, keeps

    share = jax.lax.while_loop(
        lambda carry: ~carry[2] & (carry[1] < _HALVINGS),
        back,
        (jnp.ones(()), jnp.zeros((), jnp.int32), jnp.zeros((), bool)),
    )[0]
    blend, blended, fine = state_at(share)
    return Scheduled(
        jnp.where(fine, blend, start),
        jnp.where(fine, blended.latency, before.latency),
        jnp.where(fine, blended.z, before.z),
        swept.multiplier,
        swept.iterations,
    )


def _busy(model: ClassModel, fixed: Fixed, probabilities: jax.Array) -> jax.Array:
    """Loads of the nodes, (m,)."""
    return jnp.sum(class_work(model, kind_reads(model, probabilities), fixed.other)[0], axis=0)


def _next_share(share: jax.Array) -> jax.Array:
    """A little back at first (1 - 1e-7, 1 - 5e-7, ...), half of it in the end."""
    off = jnp.where(share >= 1, 1e-7, 5 * (1 - share))
    return jnp.where(off < 0.5, 1 - off, 0.5 * share)
