"""The planning problem in the form that every method works on: per placement row, with its sums taken once."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.model import Evaluation, Files, Nodes
from ecjax.programs import program
from ecjax.queueing import Delay, latency_bound, latency_bound_at, shared_z, waiting

# Files that are hardly ever read would get unboundedly long steps.
_LEAST_SHARE = 1e-3


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Problem:
    """Nodes and files, with the files gathered into R placement rows (a group of files, or one file).

    Node waits depend on the plan only through sum_i lambda_i pi_ij B_i^p, p = 0..3, whatever the mixture of chunk
    sizes, because every service moment is a polynomial in the chunk size B.

    What follows ``price_bytes`` are constraints and charges of real storage, each None where there is none.
    """

    nodes: Nodes
    files: Files
    row: jax.Array | None  # (r,) placement row of each file; None where row i is file i
    k: jax.Array  # (R,)
    floor: jax.Array  # (R,) least code length, k + min_extra_chunks
    share: jax.Array  # (r,) rate / total rate
    row_share: jax.Array  # (R,) sum of the shares of the row's files
    reads: jax.Array  # (4, R) sum over the row's files of rate B^p: B^p / s
    writes: jax.Array | None  # (4, R) the same for writes; None where nothing is written
    price_chunks: jax.Array  # (R,) files in the row: chunks that one placed chunk stands for
    price_bytes: jax.Array  # (R,) B, sum over the row's files of the stored chunk size
    surcharge: jax.Array | None = (
        None  # (r, m) dollars per period for keeping a chunk, beyond its price; >= 0
    )
    reading: jax.Array | None = (
        None  # (r, m) dollars per period if every read of the file used the node; >= 0
    )
    allowed: jax.Array | None = None  # (R, m) bool, nodes that may hold a chunk of the row
    site: jax.Array | None = None  # (m,) int32, failure domain of each node
    capacity: jax.Array | None = None  # (m,) chunks that a node can hold
    per_site: int | None = field(default=None, metadata={"static": True})  # most chunks of a row per site

    @property
    def rows(self) -> int:
        """Number of placement rows R."""
        return self.k.shape[-1]


def prepare(nodes: Nodes, files: Files, row: ArrayLike | None = None, rows: int | None = None) -> Problem:
    """Gather files into placement rows.

    Args:
        nodes: m nodes.
        files: r files.
        row: (r,) row of each file where files are grouped; the files of a row share k.
        rows: number of rows R, with ``row``.
    """
    index = None if row is None else np.asarray(row, np.int32)
    # on the host: JAX compiles each of a dozen operations anew for every number of files
    host = jax.tree.map(np.asarray, files)

    def gather(values: np.ndarray) -> np.ndarray:
        if index is None:
            return values
        total = np.zeros(rows or 0, values.dtype)
        np.add.at(total, index, values)
        return total

    def largest(values: np.ndarray) -> np.ndarray:
        if index is None:
            return values
        top = np.full(rows or 0, -np.inf, values.dtype)
        np.maximum.at(top, index, values)
        return top

    def sums(rate: np.ndarray, size: np.ndarray) -> jax.Array:
        powers = (np.ones_like(size), size, size * size, size * size * size)
        return jax.device_put(np.stack([gather(rate * power) for power in powers]))

    total = host.rate.sum()
    share = files.rate / (total if total > 0 else 1.0)  # where all reads are small ones none is left
    return Problem(
        nodes=nodes,
        files=files,
        row=None if index is None else jax.device_put(index),
        k=jax.device_put(largest(host.k)),
        floor=jax.device_put(largest(host.k + host.min_extra_chunks)),
        share=share,
        row_share=jax.device_put(gather(np.asarray(share))),
        reads=sums(host.rate, host.chunk_bytes),
        writes=sums(host.write_rate, host.write_bytes) if np.any(host.write_rate > 0) else None,
        price_chunks=jax.device_put(gather(np.ones_like(host.rate))),
        price_bytes=jax.device_put(gather(host.stored_chunk_bytes)),
    )


def scaled(problem: Problem, rate_scale: ArrayLike, size_scale: ArrayLike) -> Problem:
    """The same problem with all rates and all file sizes multiplied."""
    rate, size = jnp.asarray(rate_scale), jnp.asarray(size_scale)
    powers = (rate * jnp.stack([jnp.ones_like(size), size, size**2, size**3]))[:, None]
    files = problem.files
    return replace(
        problem,
        files=replace(
            files,
            chunk_bytes=files.chunk_bytes * size,
            stored_chunk_bytes=files.stored_chunk_bytes * size,
            rate=files.rate * rate,
            write_rate=files.write_rate * rate,
            whole_chunk_bytes=None if files.whole_chunk_bytes is None else files.whole_chunk_bytes * size,
        ),
        reads=problem.reads * powers,
        writes=None if problem.writes is None else problem.writes * powers,
        price_bytes=problem.price_bytes * size,
        surcharge=None if problem.surcharge is None else problem.surcharge * size,
        reading=None if problem.reading is None else problem.reading * (rate * size),
    )


@program
def prices(problem: Problem) -> jax.Array:
    """Cost of one chunk of every file of a row on every node: (R, m) dollars per period."""
    nodes = problem.nodes
    plain = (
        problem.price_chunks[:, None] * nodes.cost_per_chunk[None, :]
        + problem.price_bytes[:, None] * nodes.cost_per_byte[None, :]
    )
    if problem.surcharge is None:
        return plain
    return plain + of_rows(problem, problem.surcharge)


def reading_prices(problem: Problem) -> jax.Array | None:
    """Cost of the reads of a row if all used the node: (R, m) dollars per period; None where reads cost nothing."""
    return None if problem.reading is None else of_rows(problem, problem.reading)


def usable(problem: Problem) -> jax.Array:
    """Nodes that may hold a chunk of a row: (R, m) bool."""
    if problem.allowed is None:
        return jnp.ones((problem.rows, problem.nodes.count), bool)
    return problem.allowed


def step_scale(problem: Problem) -> jax.Array:
    """What steps of a descent on probabilities are multiplied by: the inverse share of each row's reads, (R, 1)."""
    return 1.0 / jnp.maximum(problem.row_share, _LEAST_SHARE / problem.rows)[:, None]


def _summed(values: jax.Array, row: jax.Array | None, rows: int | None) -> jax.Array:
    """File values (r, ...) summed over the files of each row (R, ...)."""
    return values if row is None else jax.ops.segment_sum(values, row, num_segments=rows)


def of_rows(problem: Problem, values: jax.Array) -> jax.Array:
    """File values (r, ...) summed over the files of each row (R, ...)."""
    return _summed(values, problem.row, problem.rows)


def of_files(problem: Problem, rows: jax.Array) -> jax.Array:
    """Row values (R, ...) repeated for every file (r, ...)."""
    return rows if problem.row is None else rows[problem.row]


def node_work(problem: Problem, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
    """Load and the sums A_2, A_3 of every node: (3, m) in 1, s, s^2.

    Args:
        problem: the problem.
        probabilities: (R, m).
        stored: (R, m) share of a chunk that the node keeps, 0 or 1 in a plan: writes load every chunk.
    """
    # "highest": float32 products would otherwise be taken with ten bits on some accelerators
    sums = jnp.matmul(problem.reads, probabilities, precision="highest")
    if problem.writes is not None:
        sums = sums + jnp.matmul(problem.writes, stored, precision="highest")
    return work_of_sums(problem, sums)


def work_of_sums(problem: Problem, sums: jax.Array) -> jax.Array:
    """Load and the sums A_2, A_3 of every node, (3, m), from the sums of rate B^p of what it gets: (4, m) B^p / s."""
    return jnp.sum(problem.nodes.work * sums[None], axis=1) + problem.nodes.background


def chunk_delay(problem: Problem, wait: Delay, at: jax.Array | None = None) -> Delay:
    """Sojourn and connection of a chunk of every file at every node, (r, m), given the waits (m,).

    Args:
        problem: the problem.
        wait: (m,).
        at: (r, K) nodes; those of each file for which alone it is wanted, (r, K).
    """
    nodes = problem.nodes
    first, second = nodes.service[0], nodes.service[1]
    size = problem.files.chunk_bytes[:, None]

    def by_file(values: jax.Array) -> jax.Array:
        return values[None] if at is None else values[at]

    mean = by_file(first[0] + wait.mean + nodes.connect_mean) + by_file(first[1]) * size
    # m_2(B) - m_1(B)^2 by powers of B, so that nothing cancels between large terms
    steady = by_file(second[0] - first[0] ** 2 + wait.variance + nodes.connect_variance)
    linear = by_file(second[1] - 2 * first[0] * first[1])
    square = by_file(second[2] - first[1] ** 2)
    variance = steady + size * (linear + size * square)
    return Delay(mean, jnp.maximum(variance, jnp.zeros_like(variance)))


def shared_latency(
    problem: Problem, probabilities: jax.Array, stored: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Latency bound with one z for all files and that z, both s; infinite where a node is unstable.

    Lemma 2 with one z, minimised over z (equation 13 of the JLCM paper with its z term as in Lemma 2).
    """
    work = node_work(problem, probabilities, stored)
    delay = chunk_delay(problem, waiting(work[0], work[1], work[2]))
    return latency_of_delays(problem, of_files(problem, probabilities), delay, work[0])


def latency_of_delays(
    problem: Problem, by_file: jax.Array, delay: Delay, load: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The same from what reads wait for.

    Args:
        problem: the problem.
        by_file: (r, K) probabilities.
        delay: (r, K) of a chunk there.
        load: (m,) of all nodes.
    """
    weights = problem.share[:, None] * by_file
    # by the envelope theorem the derivative at the minimising z is that of the minimum
    fixed = jax.lax.stop_gradient((weights, delay.mean, delay.variance))
    z = shared_z(*fixed)[1]
    value = mean_of_files(problem, latency_bound_at(z, by_file, delay))
    # an overloaded node that only writes reach would not show in the latency of reads
    stable = jnp.all(load < 1)
    return jnp.where(stable, value, jnp.full_like(value, jnp.inf)), z


def mean_of_files(problem: Problem, latency: jax.Array) -> jax.Array:
    """Mean of the latencies of the files (r,), s, over all reads."""
    # 0 inf would be nan for files that are never read
    read = problem.share > 0
    return jnp.sum(jnp.where(read, problem.share * jnp.where(read, latency, 0.0), 0.0))


def evaluate(problem: Problem, probabilities: jax.Array, stored: jax.Array, price: jax.Array) -> Evaluation:
    """Objective, bounds, cost and loads of a plan; limits on sites and nodes are not looked at.

    The cost is that of the chunks that are kept, surcharges among it, and of the reads: prices . stored + reading
    prices . probabilities.

    Args:
        problem: the problem.
        probabilities: (R, m), rows sum to k, zero where nothing is stored.
        stored: (R, m) bool.
        price: theta, s per dollar of mean cost per file.
    """
    chunks = stored.astype(probabilities.dtype)
    shared = shared_latency(problem, probabilities, chunks)
    work = node_work(problem, probabilities, chunks)
    delay = chunk_delay(problem, waiting(work[0], work[1], work[2]))
    by_row = of_files(problem, probabilities)
    file_latency = latency_bound(by_row, delay)
    nodes, files = problem.nodes, problem.files
    file_cost = of_files(problem, chunks @ nodes.cost_per_chunk) + files.stored_chunk_bytes * of_files(
        problem, chunks @ nodes.cost_per_byte
    )
    if problem.surcharge is not None:
        file_cost = file_cost + jnp.sum(problem.surcharge * of_files(problem, chunks), axis=-1)
    if problem.reading is not None:
        file_cost = file_cost + jnp.sum(problem.reading * by_row, axis=-1)
    return evaluation_of(problem, shared, file_latency, file_cost, work[0], price)


def evaluation_of(
    problem: Problem,
    shared: tuple[jax.Array, jax.Array],
    file_latency: jax.Array,
    file_cost: jax.Array,
    load: jax.Array,
    price: jax.Array,
) -> Evaluation:
    """The figures of a plan from those of its files.

    Args:
        problem: the problem.
        shared: s, latency with one z for all files, and that z.
        file_latency: (r,) s.
        file_cost: (r,) dollars per period.
        load: (m,) of the nodes.
        price: theta, s per dollar of mean cost per file.
    """
    cost = file_cost.sum()
    return Evaluation(
        objective=shared[0] + price * cost / problem.files.count,
        latency=mean_of_files(problem, file_latency),
        latency_shared_z=shared[0],
        z=shared[1],
        cost=cost,
        file_latency=file_latency,
        file_cost=file_cost,
        load=load,
    )


# One program for all that evaluate a single plan, or take its loads.
EVALUATE = program(evaluate)
NODE_WORK = program(node_work)
