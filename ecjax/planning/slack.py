"""How much of a plan's latency bound is the bound's own slack.

Plans minimise the bound with one z for all files, because only its minimisation separates by file. Two figures say what
that costs: the same plan bounded with one z per file (never more, and what a user reads as latency), and the plan
*polished*: its placement kept, its probabilities descended on the bound with one z per file,

    L(pi) = sum_i (lambda_i/lambda_hat) min_z { z + sum_j pi_ij/2 [(E_ij - z) + sqrt((E_ij - z)^2 + V_ij)] }.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.planning.descent import Stopping, descend
from ecjax.planning.problem import Problem, chunk_delay, evaluate, node_work, of_files, of_rows, step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.slopes import dot, inverse_root
from ecjax.queueing import Delay, waiting
from ecjax.queueing.minimise import minimiser, single

STOPPING = Stopping(eps=1e-7)


class OwnSlopes(NamedTuple):
    """Latency bound with one z per file, and its derivatives."""

    value: jax.Array  # () s; infinite where a node is unstable
    z: jax.Array  # (r,) s; of no meaning for files with k = 1
    by_probability: jax.Array  # (R, m) s


class Slack(NamedTuple):
    """A plan's latency by three bounds, each at most the one before; leading batch axes under vmap."""

    latency_shared_z: jax.Array  # () s, one z for all files
    latency: jax.Array  # () s, one z per file
    latency_polished: jax.Array  # () s, one z per file, probabilities descended on that bound
    probabilities: jax.Array  # (R, m) of the polished plan
    iterations: jax.Array
    converged: jax.Array


def own_slopes(problem: Problem, probabilities: jax.Array, stored: jax.Array, start: jax.Array) -> OwnSlopes:
    """Latency bound with one z per file, and its derivatives at those z (the envelope theorem).

    Args:
        problem: the problem.
        probabilities: (R, m).
        stored: (R, m) share of a chunk at each node, which writes load.
        start: (r,) z to start the searches for z from, s.
    """
    work = node_work(problem, probabilities, stored)
    wait, pull = jax.vjp(lambda sums: waiting(sums[0], sums[1], sums[2]), work)
    delay = chunk_delay(problem, wait)
    by_row = of_files(problem, probabilities)
    share = problem.share[:, None]
    z = jax.vmap(minimiser)(by_row, delay.mean, delay.variance, start)
    # k = 1 takes z to minus infinity, where a chunk counts with its mean delay
    alone = single(jnp.sum(by_row, axis=-1))[:, None]
    d = delay.mean - z[:, None]
    inverse = inverse_root(d, delay.variance)
    excess = jnp.where(alone, delay.mean, 0.5 * (d + (d * d + delay.variance) * inverse))
    late = jnp.where(alone, 1.0, 0.5 * (1 + d * inverse))
    value = dot(problem.share, jnp.where(alone[:, 0], 0.0, z) + jnp.sum(by_row * excess, axis=-1))
    by_wait = Delay(
        dot(problem.share, by_row * late), dot(problem.share, by_row * jnp.where(alone, 0.0, 0.25 * inverse))
    )
    by_sums = jnp.sum(problem.nodes.work * pull(by_wait)[0][:, None, :], axis=0)
    stable = jnp.all(work[0] < 1)
    return OwnSlopes(
        value=jnp.where(stable, value, jnp.inf),
        z=z,
        by_probability=of_rows(problem, share * excess) + dot(problem.reads.T, by_sums),
    )


def polish(
    problem: Problem, probabilities: jax.Array, stored: jax.Array, stopping: Stopping = STOPPING
) -> Slack:
    """Descend a plan's probabilities on the bound with one z per file; the placement stays.

    The descent is local (the bound is not convex in the probabilities) and only ever falls: the polished latency is at
    most that of the plan. A plan with an overloaded node comes back as it is, with infinite latencies.

    Args:
        problem: the problem.
        probabilities: (R, m) of the plan; rows sum to k, zero where nothing is stored.
        stored: (R, m) bool.
        stopping: when the descent ends.
    """
    mask = stored.astype(probabilities.dtype)

    def latency(point: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slopes = own_slopes(problem, point, mask, z)
        return slopes.value, slopes.z, slopes.by_probability

    def project(point: jax.Array) -> jax.Array:
        return project_hypersimplex(point, problem.k, mask=mask)

    guess = jnp.zeros_like(problem.share)
    final = descend(latency, None, project, probabilities, guess, step_scale(problem), stopping)
    shared, before = _latencies(problem, probabilities, stored)
    after = _latencies(problem, final.point, stored)[1]
    better = after < before
    return Slack(
        latency_shared_z=shared,
        latency=before,
        latency_polished=jnp.where(better, after, before),
        probabilities=jnp.where(better, final.point, probabilities),
        iterations=final.iterations,
        converged=final.converged,
    )


def _latencies(problem: Problem, probabilities: jax.Array, stored: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Latency with one z for all files, and with one z per file, s."""
    evaluation = evaluate(problem, probabilities, stored, jnp.zeros((), probabilities.dtype))
    # the latency of reads does not show an overloaded node that only writes reach
    overloaded = jnp.isinf(evaluation.latency_shared_z)
    return evaluation.latency_shared_z, jnp.where(overloaded, jnp.inf, evaluation.latency)
