"""Shares of the nodes that weighted queues give their classes: a convex problem per node.

For fixed reads and z the objective is a sum over nodes and classes of convex functions of one share each (Lemma 3 of
the differentiated-latency paper, with the right moments): a Newton step is a small quadratic problem on the simplex,
solved by its one multiplier. z follows the shares; the problem is convex in both together.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.planning.classes.model import ClassModel, class_work, latencies_at, state
from ecjax.programs import program

# A class is never loaded above 98 % of its share where the node has room for that, and always has a hundredth of an
# equal part of what no class needs: latencies stay finite for a class that nobody minds (C_k = 0), and a class
# without reads at a node can come back to it.
_ROOM = 0.02
_LEAST = 0.01
_MOST_STEPS = 40
_BISECTIONS = 60
_SETTLED = 1e-9
_SHORTEST = 1e-4  # part of a step that is tried


class Weighed(NamedTuple):
    """Result of ``weigh``."""

    weights: jax.Array  # (K, m), each node's sum to 1
    latency: jax.Array  # (K,) s
    z: jax.Array  # (K,) s


def least_weights(load: jax.Array) -> jax.Array:
    """The least share of every class at every node, (K, m), above its load (K, m)."""
    busy = jnp.sum(load, axis=0, keepdims=True)
    spare = jnp.maximum(1 - busy, 0)
    room = jnp.minimum(_ROOM, 0.5 * spare / jnp.where(busy > 0, busy, 1))
    return load * (1 + room) + _LEAST * spare / load.shape[0]


def on_simplex(point: jax.Array, bend: jax.Array, least: jax.Array) -> jax.Array:
    """The shares w >= least, of sum 1 per node, nearest to a point: min sum_k bend_k (w_k - point_k)^2, all (K, m).

    w_k = max(least_k, point_k - nu / bend_k), and nu by bisection.
    """
    low = jnp.min(bend * (point - 1 - jnp.abs(point)), axis=0, keepdims=True)
    high = jnp.max(bend * (point - least), axis=0, keepdims=True)

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        total = jnp.sum(jnp.maximum(least, point - middle / bend), axis=0, keepdims=True)
        return jnp.where(total > 1, middle, low), jnp.where(total > 1, high, middle)

    nu = jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))[1]
    shares = jnp.maximum(least, point - nu / bend)
    missing = 1 - jnp.sum(shares, axis=0, keepdims=True)
    above = shares - least
    return shares + missing * above / jnp.maximum(jnp.sum(above, axis=0, keepdims=True), 1e-300)


@program
def weigh(
    model: ClassModel,
    coefficient: jax.Array,
    limit: jax.Array,
    reads: jax.Array,
    other: jax.Array,
    start: jax.Array,
    z: jax.Array,
) -> Weighed:
    """Shares of least sum_k coefficient_k L_k that break no limit on L_k that the start keeps; it never rises.

    Args:
        model: the model, of weighted queues.
        coefficient: (K,).
        limit: (K,) s, infinite where there is none.
        reads: P, (C, m).
        other: (3, K, m) work beside the reads.
        start: (K, m) shares; every class stable.
        z: (K,) to start the searches for z from, s.
    """
    load = class_work(model, reads, other)[0]
    least = jnp.minimum(least_weights(load), start)
    before = state(model, reads, other, start, z)
    most = jnp.maximum(limit, before.latency)

    def value(latency: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(coefficient > 0, coefficient * latency, 0.0))

    def slope(weights: jax.Array, z: jax.Array) -> jax.Array:
        return jax.grad(lambda w: jnp.sum(coefficient * latencies_at(model, reads, other, w, z)))(weights)

    def step(carry):
        weights, current, _, count = carry
        ones = jnp.ones_like(weights)
        # classes and nodes do not touch each other for fixed z: the second derivative is its own diagonal
        first, second = jax.jvp(lambda w: slope(w, current.z), (weights,), (ones,))
        bend = jnp.maximum(second, 1e-9 * jnp.max(jnp.abs(first)) + 1e-30)
        target = on_simplex(weights - first / bend, bend, least)
        # where next to nothing is promised, rounding would send the line search to its end
        settled = jnp.sum(first * (weights - target)) <= _SETTLED * value(current.latency)

        def tried(share: jax.Array):
            trial = weights + share * (target - weights)
            return trial, state(model, reads, other, trial, current.z)

        def bad(share: jax.Array) -> jax.Array:
            _, candidate = tried(share)
            return ~(
                (value(candidate.latency) <= value(current.latency)) & jnp.all(candidate.latency <= most)
            )

        # whether to go on is carried: vmap asks in the condition and again in the body, and where rounding makes the
        # two answers differ such a loop never ends
        share = jax.lax.while_loop(
            lambda carry: (carry[0] > _SHORTEST) & carry[1],
            lambda carry: (0.5 * carry[0], bad(0.5 * carry[0])),
            (jnp.ones(()), ~settled & bad(jnp.ones(()))),
        )[0]
        trial, candidate = tried(share)
        better = (value(candidate.latency) < value(current.latency)) & jnp.all(candidate.latency <= most)
        fall = value(current.latency) - value(candidate.latency)
        converged = settled | ~better | (fall <= _SETTLED * value(current.latency))
        current = jax.tree.map(lambda new, old: jnp.where(better, new, old), candidate, current)
        return jnp.where(better, trial, weights), current, converged, count + 1

    weights, current, _, _ = jax.lax.while_loop(
        lambda carry: ~carry[2] & (carry[3] < _MOST_STEPS),
        step,
        (start, before, jnp.zeros((), bool), jnp.zeros((), jnp.int32)),
    )
    return Weighed(weights, current.latency, current.z)
