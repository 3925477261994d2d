"""Reads rescheduled for an estimated latency (a quantile, the mean, or a mix) instead of its bound."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.planning.descent import Stopping, descend
from ecjax.planning.problem import Problem, of_files, step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.queueing.estimate import latency_objective
from ecjax.queueing.workload import Workload

STOPPING = Stopping(eps=1e-5, max_iterations=40)


class Mix(NamedTuple):
    """Weights of the mean and of quantiles of the latency over all reads; hashable."""

    mean: float
    levels: tuple[tuple[float, float], ...]  # (level, weight)


class Rescheduled(NamedTuple):
    """Reads of least estimated latency that was found."""

    probabilities: jax.Array  # (R, m)
    value: jax.Array  # () s, the mix
    iterations: jax.Array
    converged: jax.Array


def mixed_latency(problem: Problem, workload: Workload, probabilities: jax.Array, mix: Mix) -> jax.Array:
    """The mix of estimated latencies of a plan, s; infinite where a node that is read is overloaded.

    Args:
        problem: the problem.
        workload: its reads and nodes, with the laws of service and the work of writes.
        probabilities: (R, m).
        mix: what is asked for.
    """
    return latency_objective(of_files(problem, probabilities), workload, mix.mean, mix.levels)


def reschedule_for(
    problem: Problem,
    workload: Workload,
    probabilities: jax.Array,
    stored: jax.Array,
    mix: Mix,
    stopping: Stopping = STOPPING,
) -> Rescheduled:
    """Descend the probabilities of a plan on a mix of estimated latencies; the placement stays.

    The descent is local and only ever falls. A plan with an overloaded node comes back as it is.

    Args:
        problem: the problem.
        workload: as for ``mixed_latency``.
        probabilities: (R, m) of the plan; rows sum to k, zero where nothing is stored.
        stored: (R, m) bool.
        mix: what is asked for.
        stopping: when the descent ends.
    """
    mask = stored.astype(probabilities.dtype)

    def latency(point: jax.Array, aux: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        value, slope = jax.value_and_grad(lambda p: mixed_latency(problem, workload, p, mix))(point)
        return value, aux, jnp.where(jnp.isfinite(slope), slope, 0.0)

    def project(point: jax.Array) -> jax.Array:
        return project_hypersimplex(point, problem.k, mask=mask)

    nothing = jnp.zeros((), probabilities.dtype)
    descent = descend(latency, None, project, probabilities, nothing, step_scale(problem), stopping)
    return Rescheduled(descent.point, descent.value, descent.iterations, descent.converged)
