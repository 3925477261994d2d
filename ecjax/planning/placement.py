"""From probabilities to chunks: supports, durability floors, and the placements of oblivious schemes."""

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.planning.problem import Problem, prices
from ecjax.planning.projection import project_hypersimplex

# A probability this small is the tail of an unfinished descent: the chunk would cost in full and serve next to no read.
NEGLIGIBLE = 1e-4
_OF_MEAN = 0.01  # of a row: where reads are spread over thousands of nodes, none of their probabilities is negligible


def ranks(values: jax.Array) -> jax.Array:
    """Rank of every entry in its row, 0 for the smallest; ties by node order. (R, m) int."""
    order = jnp.argsort(values, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1).astype(jnp.int32)


def support(probabilities: jax.Array) -> jax.Array:
    """Nodes that a row reads from (equation 19 of the JLCM paper): (R, m) bool, k or more where k is below 100."""
    mean = jnp.mean(probabilities, axis=-1, keepdims=True)
    return probabilities > jnp.minimum(NEGLIGIBLE, _OF_MEAN * mean)


def with_floor(problem: Problem, hot: jax.Array) -> jax.Array:
    """Hot chunks and the cheapest cold ones that the durability floor still asks for: (R, m) bool.

    Limits per site and node are left to ``limits``.

    Args:
        problem: the problem; ``floor`` is at most m, and at most the number of allowed nodes.
        hot: (R, m) bool, chunks that reads use.
    """
    return ranks(jnp.where(hot, -1.0, chunk_prices(problem))) < code_lengths(problem, hot)[:, None]


def chunk_prices(problem: Problem) -> jax.Array:
    """``prices``, infinite where a chunk is not allowed: (R, m) dollars per period."""
    cost = prices(problem)
    return cost if problem.allowed is None else jnp.where(problem.allowed, cost, jnp.inf)


def code_lengths(problem: Problem, hot: jax.Array) -> jax.Array:
    """Number of hot chunks, or the durability floor where that is more: (R,) int."""
    return jnp.maximum(problem.floor.astype(jnp.int32), hot.sum(axis=-1, dtype=jnp.int32))


def proportional(problem: Problem, stored: jax.Array) -> jax.Array:
    """Probabilities proportional to service rates among the stored chunks, capped at 1: (R, m).

    mu_j is the rate at the mean size of the chunks that are read; min(1, c mu_j) with sum k is the projection of 0 in
    the metric 1/mu_j.
    """
    service = problem.nodes.work
    rate, bytes_read = problem.reads[0], problem.reads[1]
    stored_size = problem.price_bytes / problem.price_chunks
    # a row that is never read has no mean size of what is read
    size = jnp.where(rate > 0, bytes_read / jnp.where(rate > 0, rate, 1.0), stored_size)
    mean = service[0, 0][None] + service[0, 1][None] * size[:, None]
    # nodes that take no time at all would have an infinite rate
    weights = jnp.maximum(mean, 1e-9 * jnp.max(mean))
    return project_hypersimplex(jnp.zeros_like(weights), problem.k, mask=stored, weights=weights)


def even(problem: Problem, stored: jax.Array) -> jax.Array:
    """The same probability k / n for every stored chunk (round robin, in the bound): (R, m)."""
    share = problem.k / stored.sum(axis=-1).astype(problem.k.dtype)
    return jnp.where(stored, share[:, None], 0.0)


def random_nodes(problem: Problem, key: jax.Array, lengths: jax.Array) -> jax.Array:
    """``lengths`` nodes of every row, drawn without replacement: (R, m) bool.

    Uniformly of the allowed nodes; with a limit per site in the order of the draw, full sites left out.
    """
    draws = jax.random.uniform(key, (lengths.shape[0], problem.nodes.count))
    if problem.allowed is not None:
        draws = jnp.where(problem.allowed, draws, jnp.inf)
    if problem.per_site is not None:
        draws = jnp.where(first_of_sites(problem, draws), draws, jnp.inf)
    return ranks(draws) < lengths[:, None]


def first_of_sites(problem: Problem, order: jax.Array) -> jax.Array:
    """The ``per_site`` nodes of each site that come first in every row: (rows, m) bool.

    Args:
        problem: the problem, with sites.
        order: (rows, m), the smaller the earlier; ties by node order.
    """
    site = problem.site
    assert site is not None
    rank = ranks(order)

    def count(node: jax.Array, before: jax.Array) -> jax.Array:
        together = site == lax.dynamic_index_in_dim(site, node, keepdims=False)
        earlier = lax.dynamic_slice_in_dim(rank, node, 1, axis=1) < rank
        return before + (together[None] & earlier).astype(before.dtype)

    # node by node: all pairs at once would take m times the memory
    earlier = lax.fori_loop(0, site.shape[0], count, jnp.zeros_like(rank))
    return earlier < problem.per_site
