"""The shared-z latency with its gradient, written out: what a descent evaluates once per iteration.

Reverse-mode differentiation of ``problem.shared_latency`` is right and ten times slower on a CPU: it sums over files
along the first axis. Here those sums are products with the vector of shares.
"""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.planning.problem import Problem, chunk_delay, node_work, of_files, of_rows
from ecjax.queueing import Delay, waiting
from ecjax.queueing.minimise import single, sums

# A Newton step this small, in deviations of the delay, is the last: the next would be about its square.
_SMALL_STEP = 1e-2
_RESOLUTION = 1e-12
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
    by_row = of_files(problem, probabilities)
    share = problem.share[:, None]
    k = jnp.sum(problem.share * problem.files.k)
    z = _minimising_z(problem, wait, k, share * by_row, delay, start)
    alone = single(k)

    d = delay.mean - z
    inverse = inverse_root(d, delay.variance)
    # k = 1 takes z to minus infinity, where a chunk counts with its mean delay
    excess = jnp.where(alone, delay.mean, 0.5 * (d + (d * d + delay.variance) * inverse))
    late = jnp.where(alone, 1.0, 0.5 * (1 + d * inverse))
    value = jnp.where(alone, 0.0, z) + dot(problem.share, jnp.sum(by_row * excess, axis=-1))
    by_wait = Delay(
        dot(problem.share, by_row * late), dot(problem.share, by_row * jnp.where(alone, 0.0, 0.25 * inverse))
    )
    by_work = pull(by_wait)[0]
    by_sums = jnp.sum(problem.nodes.work * by_work[:, None, :], axis=0)
    by_probability = of_rows(problem, share * excess) + dot(problem.reads.T, by_sums)
    stable = jnp.all(work[0] < 1)
    return Slopes(
        value=jnp.where(stable, value, jnp.inf),
        z=z,
        by_probability=by_probability,
        by_stored=None if problem.writes is None else dot(problem.writes.T, by_sums),
    )


# float32 products would otherwise be taken with ten bits on some accelerators
dot = partial(jnp.matmul, precision="highest")


def inverse_root(d: jax.Array, variance: jax.Array) -> jax.Array:
    """1/sqrt(d^2 + V), large and finite at d = V = 0.

    Neither ``rsqrt`` nor a ``where`` here: XLA on CPUs takes twice as long with either.
    """
    return 1 / jnp.sqrt(d * d + variance + math.sqrt(jnp.finfo(d.dtype).tiny))


def _minimising_z(
    problem: Problem, wait: Delay, k: jax.Array, weights: jax.Array, delay: Delay, start: jax.Array
) -> jax.Array:
    """Newton's method in the variable in which the problem of alike nodes is linear (see queueing.minimise).

    From the z of the iteration before one or two steps are enough. A step that leaves the bracket or is more than half
    of the one before is replaced by bisection: delays that hardly vary have kinks, where a step says little.
    """
    several = ~single(k)
    size = jnp.where(several, k, 2.0)
    c = (size - 2) / (2 * jnp.sqrt(size - 1))
    low, high, deviation = _bracket(problem, wait, c)
    solvable = several & jnp.isfinite(low) & jnp.isfinite(high)
    resolution = _RESOLUTION * (jnp.abs(low) + jnp.abs(high))
    small = jnp.maximum(_SMALL_STEP * deviation, resolution)

    def improve(state):
        z, low, high, last, _, steps = state
        d = delay.mean - z
        inverse = inverse_root(d, delay.variance)
        g, bend = sums(weights * (1 + d * inverse), weights * (delay.variance * inverse * inverse * inverse))
        low, high = jnp.where(g >= 2, z, low), jnp.where(g <= 2, z, high)
        share = g / (2 * size)
        room = 4 * share * (1 - share)
        step = size * room / bend * (c * jnp.sqrt(room) - (1 - 2 * share))
        length = jnp.abs(step)
        newton = (z + step >= low) & (z + step <= high) & (length <= 0.5 * last)
        converged = (newton & (length <= small)) | (high - low <= resolution)
        following = jnp.where(newton, z + step, 0.5 * (low + high))
        return following, low, high, jnp.where(newton, length, high - low), converged, steps + 1

    start = jnp.where(solvable, jnp.clip(start, low, high), start)
    state = (start, low, high, 2 * (high - low), ~solvable, jnp.zeros((), jnp.int32))
    return lax.while_loop(lambda state: ~state[4] & (state[5] < _MOST_STEPS), improve, state)[0]


def _bracket(problem: Problem, wait: Delay, c: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Ends between which z lies, and the least deviation of a chunk's delay, all s.

    The minimiser lies between the least and the largest E + c sqrt(V) (see queueing.minimise). Mean and variance rise
    with the chunk size, so that its two ends tell for all files.
    """
    size = problem.files.chunk_bytes
    ends = replace(problem.files, chunk_bytes=jnp.stack([jnp.min(size), jnp.max(size)]))
    delay = chunk_delay(replace(problem, files=ends), wait)
    deviation = jnp.sqrt(delay.variance)
    spread = c * deviation
    return (
        jnp.min(delay.mean[0] + jnp.minimum(spread[0], spread[1])),
        jnp.max(delay.mean[1] + jnp.maximum(spread[0], spread[1])),
        jnp.min(deviation[0]),
    )
