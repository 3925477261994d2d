"""Where the cold chunks go that a durability floor asks for, when writes load every chunk.

Without writes a cold chunk costs its price alone (``placement.with_floor``). A write loads the node of every chunk, so
that the cold chunks of all files on the cheapest nodes would fill those with writes, and more than fill them.
"""

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.planning.placement import code_lengths, ranks
from ecjax.planning.problem import Problem, node_work, prices, usable

# Rows are placed in so many rounds, each at the node loads that those before it leave.
_ROUNDS = 64
_FULL = 0.95  # load that the writes of a cold chunk may bring a node to, while others have room


def with_floor_and_writes(problem: Problem, probabilities: jax.Array, hot: jax.Array) -> jax.Array:
    """Hot chunks and the cheapest cold ones on nodes that have room, else on the least loaded: (R, m) bool.

    Args:
        problem: the problem, with writes; ``floor`` is at most m, and at most the number of allowed nodes.
        probabilities: (R, m), of the reads.
        hot: (R, m) bool, chunks that reads use.
    """
    assert problem.writes is not None
    rows, count = hot.shape
    size = -(-rows // _ROUNDS)
    padding = -rows % size
    service = problem.nodes.work

    def rounds(values: jax.Array) -> jax.Array:
        padded = jnp.pad(values, ((0, padding), *((0, 0),) * (values.ndim - 1)))
        return padded.reshape(-1, size, *values.shape[1:])

    def place(load: jax.Array, some: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        hot, may, price, length, writes = some
        added = jnp.matmul(writes, service[0], precision="highest")
        filled = load[None] + added
        cost = jnp.where(filled < _FULL, price, most * (1 + filled))
        cost = jnp.where(may, cost, jnp.inf)
        stored = ranks(jnp.where(hot, -1.0, cost)) < length[:, None]
        return load + jnp.sum(jnp.where(stored & ~hot, added, 0.0), axis=0), stored

    cost = prices(problem)
    most = jnp.max(cost) + 1
    load = node_work(problem, probabilities, hot.astype(probabilities.dtype))[0]
    lengths = code_lengths(problem, hot)
    each = tuple(map(rounds, (hot, usable(problem), cost, lengths, problem.writes.T)))
    return lax.scan(place, load, each)[1].reshape(-1, count)[:rows]
