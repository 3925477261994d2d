"""From probabilities to chunks: supports, durability floors, and the placements of oblivious schemes."""

import jax
import jax.numpy as jnp

from ecjax.optimize.problem import Problem, prices
from ecjax.optimize.projection import project_hypersimplex

# A probability this small is the tail of an unfinished descent: the chunk would cost in full and serve next to no read.
NEGLIGIBLE = 1e-4


def ranks(values: jax.Array) -> jax.Array:
    """Rank of every entry in its row, 0 for the smallest; ties by node order. (R, m) int."""
    order = jnp.argsort(values, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1).astype(jnp.int32)


def support(probabilities: jax.Array) -> jax.Array:
    """Nodes that a row reads from (equation 19 of the JLCM paper): (R, m) bool."""
    return probabilities > NEGLIGIBLE


def with_floor(problem: Problem, hot: jax.Array) -> jax.Array:
    """Hot chunks and the cheapest cold ones that the durability floor still asks for: (R, m) bool.

    Args:
        problem: the problem; ``floor`` is at most m.
        hot: (R, m) bool, chunks that reads use.
    """
    return ranks(jnp.where(hot, -1.0, prices(problem))) < code_lengths(problem, hot)[:, None]


def code_lengths(problem: Problem, hot: jax.Array) -> jax.Array:
    """Number of hot chunks, or the durability floor where that is more: (R,) int."""
    return jnp.maximum(problem.floor.astype(jnp.int32), hot.sum(axis=-1, dtype=jnp.int32))


def proportional(problem: Problem, stored: jax.Array) -> jax.Array:
    """Probabilities proportional to service rates among the stored chunks, capped at 1: (R, m).

    mu_j is the rate at the mean size of the chunks that are read; min(1, c mu_j) with sum k is the projection of 0 in
    the metric 1/mu_j.
    """
    service = problem.nodes.service
    rate, bytes_read = problem.reads[0], problem.reads[1]
    kept = problem.price_bytes / problem.price_chunks
    # a row that is never read has no mean size of what is read
    size = jnp.where(rate > 0, bytes_read / jnp.where(rate > 0, rate, 1.0), kept)
    mean = service[0, 0][None] + service[0, 1][None] * size[:, None]
    # nodes that take no time at all would have an infinite rate
    weights = jnp.maximum(mean, 1e-9 * jnp.max(mean))
    return project_hypersimplex(jnp.zeros_like(weights), problem.k, mask=stored, weights=weights)


def even(problem: Problem, stored: jax.Array) -> jax.Array:
    """The same probability k / n for every stored chunk (round robin, in the bound): (R, m)."""
    share = problem.k / stored.sum(axis=-1).astype(problem.k.dtype)
    return jnp.where(stored, share[:, None], 0.0)


def random_nodes(key: jax.Array, lengths: jax.Array, nodes: int) -> jax.Array:
    """``lengths`` nodes of every row, drawn uniformly without replacement: (R, m) bool."""
    draws = jax.random.uniform(key, (lengths.shape[0], nodes))
    return ranks(draws) < lengths[:, None]
