"""Algorithm JLCM as published (Fig. 3 and 4 of the paper), and the three oblivious baselines of its Fig. 9.

minimise over pi:  L(pi) + theta/r sum_ij V_ij 1(pi_ij > 0),
L(pi) = min_z z + sum_ij (lambda_i/lambda_hat) pi_ij/2 [(E_ij - z) + sqrt((E_ij - z)^2 + Var_ij)],
on {sum_j pi_ij = k_i, 0 <= pi_ij <= 1}, every node load below 1. The indicator is replaced by the concave
log(beta pi + 1)/log(beta), beta > 1, which is majorised by its tangent (equation 21).

Mended slips: the gradient step has a minus sign; the stopping test is on the relative change of latency + theta *
surrogate, which is what descends (Theorem 2), not on the printed B; z enters once, as in Lemma 2.

Beyond the print, and stated because results depend on it: the start is perturbed, because alike nodes otherwise keep
alike probabilities for ever and every file ends up on whole sites; steps are scaled by the inverse rate of each file;
and after the descent, placement fixed, the probabilities are optimised once more over all chunks that the durability
floor makes necessary (a convex problem: those chunks are paid for, so reads may use them).

Real storage: every projection keeps to the allowed nodes, surcharges are part of the prices, and what reads cost on the
network is linear in pi and descends with the surrogate. Limits per site and node are not planned for: the placement is
repaired before the last descent (``limits``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.model import Evaluation
from ecjax.planning import limits, placement
from ecjax.planning.descent import Descent, Stopping, descend
from ecjax.planning.floor import with_floor_and_writes
from ecjax.planning.problem import Problem, evaluate, node_work, prices, reading_prices, step_scale, usable
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.slopes import latency_slopes


@dataclass(frozen=True)
class Jlcm:
    """Settings of the published method.

    Attributes:
        beta: sharpness of the log surrogate, > 1. Large values follow the indicator closely and stop at the first
            support they reach; small ones see the price of a chunk before it is emptied.
        stopping: when a descent ends, and whether tangent and probabilities are updated in one loop.
    """

    beta: float = 10.0
    stopping: Stopping = Stopping()


class Solution(NamedTuple):
    """A plan with its evaluation; leading batch axes under vmap."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool
    evaluation: Evaluation
    iterations: jax.Array
    converged: jax.Array
    history: (
        jax.Array
    )  # (max_iterations + 1,) latency + theta * (surrogate + reads) cost; nan beyond the last


def published(
    problem: Problem, theta: jax.Array, start: jax.Array, settings: Jlcm, by_kernel: bool = False
) -> Solution:
    """Plan by Algorithm JLCM.

    Args:
        problem: nodes and files.
        theta: s per dollar of mean cost per file.
        start: (R, m) probabilities, projected on the allowed nodes; every node load below 1.
        settings: surrogate and stopping.
        by_kernel: steps of the descents by the kernel of ``fused``, for a problem that suits it.
    """
    per_dollar = theta / problem.files.count
    price = per_dollar * prices(problem)
    by_reading = reading_prices(problem)
    toll = None if by_reading is None else per_dollar * by_reading
    beta = settings.beta
    log_beta = math.log(beta)

    def cost(probabilities: jax.Array) -> tuple[jax.Array, jax.Array]:
        value = jnp.sum(price * jnp.log1p(beta * probabilities)) / log_beta
        slope = price / ((probabilities + 1 / beta) * log_beta)
        return (value, slope) if toll is None else (value + jnp.sum(toll * probabilities), slope + toll)

    def latency(probabilities: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slopes = latency_slopes(problem, probabilities, occupied(probabilities, beta), z)
        if slopes.by_stored is None:
            return slopes.value, slopes.z, slopes.by_probability
        by_surrogate = slopes.by_stored / ((probabilities + 1 / beta) * math.log1p(beta))
        return slopes.value, slopes.z, slopes.by_probability + by_surrogate

    if by_kernel:
        from ecjax.planning.fused import descent as fused
        from ecjax.planning.fused.kernel import Surrogate

        surrogate = Surrogate(price[0], beta)
        z = jnp.zeros((), start.dtype)
        first = fused.descend(problem, surrogate, problem.allowed, start, z, settings.stopping)
    else:
        first = _descend(problem, latency, cost, usable(problem), start, settings.stopping)
    hot = placement.support(first.point)
    if problem.writes is None:
        stored = placement.with_floor(problem, hot)
    else:
        stored = with_floor_and_writes(problem, first.point, hot)
    if limits.limited(problem):
        # a row may have lost chunks that reads use, and be left with fewer than k of them
        stored = hot = limits.within_limits(problem, first.point, stored)
    final = _schedule(problem, first, hot, stored, toll, settings.stopping, by_kernel)
    return Solution(
        probabilities=final.point,
        stored=stored,
        evaluation=evaluate(problem, final.point, stored, theta),
        iterations=first.iterations + final.iterations,
        converged=first.converged & final.converged,
        history=first.history,
    )


def occupied(probabilities: jax.Array, beta: float) -> jax.Array:
    """How far the surrogate sees a chunk at each node, 0 to 1; writes load nodes in this proportion."""
    return jnp.log1p(beta * probabilities) / math.log1p(beta)


def surrogate_load(problem: Problem, probabilities: jax.Array, settings: Jlcm) -> jax.Array:
    """Node loads as the descent sees them, (m,)."""
    return node_work(problem, probabilities, occupied(probabilities, settings.beta))[0]


def balanced(problem: Problem, start: jax.Array, settings: Jlcm) -> jax.Array:
    """Probabilities with the largest node load brought down as far as a descent gets: (R, m).

    A start for systems that a uniform spread overloads. Minimises the 16-norm of the loads.
    """
    return _relieved(
        problem, start, usable(problem), lambda point: surrogate_load(problem, point, settings), True
    )


def _relieved(
    problem: Problem,
    start: jax.Array,
    mask: jax.Array,
    load_of: Callable[[jax.Array], jax.Array],
    needed: jax.Array | bool,
) -> jax.Array:
    """``start`` with the 16-norm of its node loads brought down, on the chunks of ``mask``; as it is if not needed."""

    def norm(probabilities: jax.Array) -> jax.Array:
        load = load_of(probabilities)
        peak = jax.lax.stop_gradient(jnp.max(load))
        return peak * jnp.sum((load / peak) ** 16) ** (1 / 16)

    def largest(probabilities: jax.Array, aux: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        value, gradient = jax.value_and_grad(norm)(probabilities)
        # outside the domain a descent ends where it starts
        return jnp.where(needed, value, jnp.inf), aux, gradient

    stopping = Stopping(eps=1e-5, max_iterations=300)
    return _descend(problem, largest, None, mask, start, stopping, jnp.zeros((), start.dtype)).point


def _schedule(
    problem: Problem,
    first: Descent,
    hot: jax.Array,
    stored: jax.Array,
    toll: jax.Array | None,
    stopping: Stopping,
    by_kernel: bool,
) -> Descent:
    """Best probabilities for a fixed placement, from where the first descent ended, cut to its hot chunks."""
    point, z = first.point, first.aux
    mask = stored.astype(point.dtype)

    def load(probabilities: jax.Array) -> jax.Array:
        return node_work(problem, probabilities, mask)[0]

    def latency(probabilities: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slopes = latency_slopes(problem, probabilities, mask, z)
        return slopes.value, slopes.z, slopes.by_probability

    def reads(probabilities: jax.Array) -> tuple[jax.Array, jax.Array]:
        assert toll is not None
        return jnp.sum(toll * probabilities), toll

    start = project_hypersimplex(point, problem.k, mask=hot)
    if problem.writes is not None or limits.limited(problem):
        # writes load a chunk in full, the surrogate saw less, and a repair moved chunks: reads may have to leave first
        start = _relieved(problem, start, stored, load, jnp.any(load(start) >= 1))
    if by_kernel:
        from ecjax.planning.fused import descent as fused

        return fused.descend(problem, None, stored, start, z, stopping)
    return _descend(problem, latency, None if toll is None else reads, stored, start, stopping, z)


def _descend(problem, latency, cost, mask, start, stopping, z=None) -> Descent:
    def project(probabilities: jax.Array) -> jax.Array:
        return project_hypersimplex(probabilities, problem.k, mask=mask)

    guess = jnp.zeros((), start.dtype) if z is None else z
    return descend(latency, cost, project, start, guess, step_scale(problem), stopping)


def oblivious_load_balancing(problem: Problem, plan: Solution) -> tuple[jax.Array, jax.Array]:
    """Chunks where JLCM put them, reads proportional to service rates, capped at 1: probabilities and stored."""
    return placement.proportional(problem, plan.stored), plan.stored


def random_placement(problem: Problem, plan: Solution, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Code lengths as JLCM chose them, on random nodes; every chunk read alike (k / n): probabilities and stored.

    The allowed nodes and the limit per site are kept to, the capacities of nodes are not.
    """
    lengths = plan.stored.sum(axis=-1, dtype=jnp.int32)
    stored = placement.random_nodes(problem, key, lengths)
    return placement.even(problem, stored), stored


def maximum_code(problem: Problem) -> tuple[jax.Array, jax.Array]:
    """A chunk of every file on every allowed node, every chunk read alike (k / n): probabilities and stored.

    Of a site with a limit the cheapest nodes; the capacities of nodes are not kept to.
    """
    stored = usable(problem)
    if problem.per_site is not None:
        stored = stored & placement.first_of_sites(problem, placement.chunk_prices(problem))
    return placement.even(problem, stored), stored
