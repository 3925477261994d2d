"""How reads spread over the chunks that there are, for a given placement."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from ecjax.planning.descent import Descent, Stopping, descend
from ecjax.planning.problem import Problem, node_work, step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.slopes import latency_slopes

# Norms of the loads that are brought down one after the other: the last is the largest load to 0.5 % on 100 nodes.
_NORMS = (16.0, 128.0, 1024.0)
_RELIEF = Stopping(eps=1e-6, max_iterations=300)


def reschedule(
    problem: Problem,
    start: jax.Array,
    stored: jax.Array,
    stopping: Stopping,
    toll: jax.Array | None = None,
) -> Descent:
    """Probabilities of least latency (one z for all files), or latency + toll . probabilities, for a placement.

    Where the start overloads a node, the largest load is brought down first. The value is infinite where that did not
    bring every load below 1; the point is then the one with the lowest largest load that was found.

    Args:
        problem: the problem.
        start: (R, m) probabilities on the stored chunks.
        stored: (R, m) bool.
        stopping: when the descent ends.
        toll: (R, m) s.
    """
    mask = stored.astype(start.dtype)
    scale = step_scale(problem)
    zero = jnp.zeros((), start.dtype)

    def project(point: jax.Array) -> jax.Array:
        return project_hypersimplex(point, problem.k, mask=mask)

    def latency(point: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        slopes = latency_slopes(problem, point, mask, z)
        if toll is None:
            return slopes.value, slopes.z, slopes.by_probability
        return slopes.value + jnp.sum(toll * point), slopes.z, slopes.by_probability + toll

    def relieve(point: jax.Array, power: jax.Array) -> tuple[jax.Array, None]:
        overloaded = jnp.any(node_work(problem, point, mask)[0] >= 1)

        def norm(trial: jax.Array, aux: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            value, gradient = jax.value_and_grad(load_norm, argnums=1)(problem, trial, mask, power)
            # outside the domain a descent ends where it starts
            return jnp.where(overloaded, value, jnp.inf), aux, gradient

        return descend(norm, None, project, point, zero, scale, _RELIEF).point, None

    start = lax.scan(relieve, start, jnp.asarray(_NORMS, start.dtype))[0]
    return descend(latency, None, project, start, zero, scale, stopping)


def load_norm(problem: Problem, probabilities: jax.Array, chunks: jax.Array, power: ArrayLike) -> jax.Array:
    """A norm of the node loads; the higher the power, the nearer to the largest load."""
    load = node_work(problem, probabilities, chunks)[0]
    peak = lax.stop_gradient(jnp.max(load))
    return peak * jnp.sum((load / peak) ** power) ** (1 / power)


def nearest(problem: Problem, probabilities: jax.Array, survivors: jax.Array) -> jax.Array:
    """The probabilities nearest to the plan's that read only chunks that are left: (R, m).

    The Euclidean projection raises the probabilities of the survivors alike, up to 1, cold chunks included.
    """
    return project_hypersimplex(probabilities, problem.k, mask=survivors.astype(probabilities.dtype))
