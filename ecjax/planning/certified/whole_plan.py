"""The evaluation of plans in which all reads of a file use the same k nodes: by those nodes, not by all.

Of a file on a few of a thousand nodes, nothing that it costs or waits for depends on the others.
"""

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.model import Evaluation
from ecjax.planning.certified.places import Places, places_of
from ecjax.planning.problem import (
    Problem,
    chunk_delay,
    evaluation_of,
    latency_of_delays,
    of_files,
    work_of_sums,
)
from ecjax.programs import program
from ecjax.queueing import latency_bound, shared_z, waiting


def _evaluate(problem: Problem, places: Places, price: jax.Array, one_size: bool) -> Evaluation:
    """As ``problem.evaluate`` does; a row reads from all of its hot nodes with probability 1."""
    nodes, files, m = problem.nodes, problem.files, problem.nodes.count

    def summed(amounts: jax.Array, at: jax.Array) -> jax.Array:
        """Sums (4, m) of amounts (4, R) over the rows that have a node."""
        each = jnp.broadcast_to(amounts[:, :, None], (*amounts.shape, at.shape[1]))
        return jnp.zeros((amounts.shape[0], m + 1), amounts.dtype).at[:, at].add(each)[:, :m]

    of_reads = summed(problem.reads, places.hot)
    sums = of_reads
    if problem.writes is not None:
        sums = sums + summed(problem.writes, places.stored)
    work = work_of_sums(problem, sums)
    hot, stored = (of_files(problem, at) for at in places)
    reads, keeps = (at < m for at in (hot, stored))
    hot, stored = jnp.minimum(hot, m - 1), jnp.minimum(stored, m - 1)
    wait = waiting(work[0], work[1], work[2])
    delay, by_file = chunk_delay(problem, wait, hot), reads.astype(problem.share.dtype)
    if one_size:
        # files that wait alike at a node count as one there
        total_rate = jnp.sum(files.rate)
        read = of_reads[0] / jnp.where(total_rate > 0, total_rate, 1.0)
        at_nodes = chunk_delay(problem, wait, jnp.arange(m)[None])
        least, z = shared_z(read, at_nodes.mean[0], at_nodes.variance[0])
        shared = jnp.where(jnp.all(work[0] < 1), least, jnp.inf), z
    else:
        shared = latency_of_delays(problem, by_file, delay, work[0])
    file_latency = latency_bound(by_file, delay)

    def total(values: jax.Array, used: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(used, values, 0.0), axis=-1)

    file_cost = total(nodes.cost_per_chunk[stored], keeps)
    file_cost = file_cost + files.stored_chunk_bytes * total(nodes.cost_per_byte[stored], keeps)
    if problem.surcharge is not None:
        file_cost = file_cost + total(jnp.take_along_axis(problem.surcharge, stored, axis=1), keeps)
    if problem.reading is not None:
        file_cost = file_cost + total(jnp.take_along_axis(problem.reading, hot, axis=1), reads)
    return evaluation_of(problem, shared, file_latency, file_cost, work[0], price)


_EVALUATE = program(_evaluate, static_argnums=3)


def evaluate_whole(problem: Problem, kinds: np.ndarray, price: float) -> Evaluation:
    """Objective, bounds, cost and loads of whole choices; limits on sites and nodes are not looked at.

    Args:
        problem: the problem.
        kinds: (R, m) int8: 2 where reads go, on k nodes, 1 a cold chunk, 0 none.
        price: theta, s per dollar of mean cost per file.
    """
    size = np.asarray(problem.files.chunk_bytes)
    return _EVALUATE(problem, places_of(kinds), jnp.asarray(price), bool(np.all(size == size[0])))
