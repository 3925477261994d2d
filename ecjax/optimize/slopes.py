"""The shared-z latency with its gradient, written out: what a descent evaluates once per iteration.

Reverse-mode differentiation of ``problem.shared_latency`` is right and ten times slower on a CPU: it sums over files
along the first axis. Here those sums are products with the vector of shares.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.optimize.problem import Problem, chunk_delay, node_work, of_files
from ecjax.queueing import Delay, waiting
from ecjax.queueing.minimise import single, sums

# A step that lowers the bound relatively by less than this is the last: the next would gain about its square.
_Z_TOLERANCE = 1e-5
_MOST_STEPS = 50


class Slopes(NamedTuple):
    """Latency bound and derivatives."""

    value: jax.Array  # () s; infinite where a node is unstable
    z: jax.Array  # () s
    by_probability: jax.Array  # (R, m) s
    by_stored: jax.Array | None  # (R, m) s; None where nothing is written


def latency_slopes(problem: Problem, probabilities: jax.Array, stored: jax.Array, start: jax.Array) -> Slopes:
    """Latency bound with one z for all files, and its derivatives at that z (the envelope theorem).

    Args:
        problem: the problem.
        probabilities: (R, m).
        stored: (R, m) share of a chunk at each node, which writes load.
        start: z to start the search for z from, s.
    """
    work = node_work(problem, probabilities, stored)
    wait, pull = jax.vjp(lambda sums: waiting(sums[0], sums[1], sums[2]), work)
    delay = chunk_delay(problem, wait)
    own = of_files(problem, probabilities)
    share = problem.share[:, None]
    k = jnp.sum(problem.share * problem.files.k)
    z = _minimising_z(k, share * own, delay, start)
    alone = single(k)

    d = delay.mean - z
    inverse = _inverse_root(d, delay.variance)
    # k = 1 takes z to minus infinity, where a chunk counts with its mean delay
    excess = jnp.where(alone, delay.mean, 0.5 * (d + (d * d + delay.variance) * inverse))
    late = jnp.where(alone, 1.0, 0.5 * (1 + d * inverse))
    value = jnp.where(alone, 0.0, z) + problem.share @ jnp.sum(own * excess, axis=-1)
    by_wait = Delay(
        problem.share @ (own * late), problem.share @ (own * jnp.where(alone, 0.0, 0.25 * inverse))
    )
    by_work = pull(by_wait)[0]
    by_sums = jnp.sum(problem.nodes.service * by_work[:, None, :], axis=0)
    by_probability = _gather(problem, share * excess) + problem.reads.T @ by_sums
    stable = jnp.all(work[0] < 1)
    return Slopes(
        value=jnp.where(stable, value, jnp.inf),
        z=z,
        by_probability=by_probability,
        by_stored=None if problem.writes is None else problem.writes.T @ by_sums,
    )


def _gather(problem: Problem, of_file: jax.Array) -> jax.Array:
    """File values (r, m) summed over the files of each row (R, m)."""
    if problem.row is None:
        return of_file
    return jax.ops.segment_sum(of_file, problem.row, num_segments=problem.rows)


def _inverse_root(d: jax.Array, variance: jax.Array) -> jax.Array:
    """1/sqrt(d^2 + V), large and finite at d = V = 0.

    Neither ``rsqrt`` nor a ``where`` here: XLA on CPUs takes twice as long with either.
    """
    return 1 / jnp.sqrt(d * d + variance + math.sqrt(jnp.finfo(d.dtype).tiny))


def _minimising_z(k: jax.Array, weights: jax.Array, delay: Delay, start: jax.Array) -> jax.Array:
    """Newton's method in the variable in which the problem of alike nodes is linear (see queueing.minimise).

    From the z of the iteration before one or two steps are enough. A step across a point where the slope was already
    known to turn is replaced by bisection.
    """
    several = ~single(k)
    size = jnp.where(several, k, 2.0)
    c = (size - 2) / (2 * jnp.sqrt(size - 1))

    def improve(state):
        z, lower, upper, _, steps = state
        d = delay.mean - z
        inverse = _inverse_root(d, delay.variance)
        g, bend = sums(weights * (1 + d * inverse), weights * (delay.variance * inverse * inverse * inverse))
        lower, upper = jnp.where(g >= 2, z, lower), jnp.where(g <= 2, z, upper)
        share = g / (2 * size)
        room = 4 * share * (1 - share)
        step = size * room / bend * (c * jnp.sqrt(room) - (1 - 2 * share))
        newton = jnp.isfinite(step) & (z + step >= lower) & (z + step <= upper)
        bisected = jnp.where(jnp.isfinite(upper - lower), 0.5 * (lower + upper), z)
        following = jnp.where(newton, z + step, bisected)
        gain = bend * (following - z) ** 2 / 4
        done = gain <= _Z_TOLERANCE * (jnp.abs(following) + jnp.abs(z))
        return following, lower, upper, done, steps + 1

    infinity = jnp.full_like(k, jnp.inf)
    state = (start, -infinity, infinity, ~several, jnp.zeros((), jnp.int32))
    return lax.while_loop(lambda state: ~state[3] & (state[4] < _MOST_STEPS), improve, state)[0]
