"""Random planning problems at a stated load, for the benchmarks of the certified method."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ecjax.model import Files, Nodes
from ecjax.planning import Problem, prepare

CHUNK_BYTES = 8e6
FASTEST_BYTES_PER_S = 200e6
SPREAD = 10.0  # of the speeds of nodes
CODES = (6, 7, 6, 4)  # k, drawn
SIZES_SIGMA = 0.8  # of the logarithms of chunk sizes, where files have sizes of their own
COSTS = (1.0, 5.0)  # dollars per chunk


def random_problem(count: int, nodes: int, load: float, mixed_sizes: bool, seed: int) -> Problem:
    """Files with lognormal rates on nodes whose speeds spread tenfold and whose chunks cost 1 to 5 dollars.

    Service times have gamma-like moments with coefficients of variation 0.3 to 1.2 and scale with the chunk size.

    Args:
        count: files r.
        nodes: nodes m.
        load: the least possible largest node load, see ``least_largest_load``.
        mixed_sizes: chunks uniform in half of ``CHUNK_BYTES`` to all of it; otherwise all alike.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng(seed)
    mean = np.exp(rng.uniform(0, np.log(SPREAD), nodes)) / FASTEST_BYTES_PER_S
    square = rng.uniform(0.3, 1.2, nodes) ** 2
    service = np.zeros((3, 4, nodes))
    service[0, 1] = mean
    service[1, 2] = mean**2 * (1 + square)
    service[2, 3] = mean**3 * (1 + square) * (1 + 2 * square)
    k = rng.choice(CODES, count).astype(float)
    size = np.full(count, CHUNK_BYTES) * (rng.uniform(0.5, 1, count) if mixed_sizes else 1.0)
    rate = rng.lognormal(0, 1, count)
    rate *= load / least_largest_load(mean, k, rate * size)
    cost = rng.uniform(*COSTS, nodes)
    nothing = np.zeros(nodes)
    return prepare(
        Nodes(
            service=jnp.asarray(service),
            connect_mean=jnp.full(nodes, 1e-3),
            connect_variance=jnp.full(nodes, 1e-6),
            background=jnp.zeros((3, nodes)),
            cost_per_chunk=jnp.asarray(cost),
            cost_per_byte=jnp.asarray(nothing),
        ),
        Files(
            chunk_bytes=jnp.asarray(size),
            stored_chunk_bytes=jnp.asarray(size),
            k=jnp.asarray(k),
            min_extra_chunks=jnp.zeros(count),
            rate=jnp.asarray(rate),
            write_rate=jnp.zeros(count),
        ),
    )


def least_largest_load(mean: np.ndarray, k: np.ndarray, traffic: np.ndarray) -> float:
    """The least that the load of the busiest node can be, over all ways to spread the reads.

    Of the reads of file i any s nodes can take at most min(k_i, s) chunks, so that the others take the rest:

        max over s of  sum_i b_i (k_i - min(k_i, s)) / sum over the m - s slowest nodes of 1 / mean_j.

    These are all the conditions there are, as the node loads that files can make are the base of a polymatroid.

    Args:
        mean: (m,) s/B, service time of a byte.
        k: (r,) chunks that a read takes, at most m.
        traffic: (r,) B/s, b_i, rate times chunk size.
    """
    slowest_first = np.cumsum(1 / np.sort(mean)[::-1])
    rest = [float(traffic @ np.maximum(k - others, 0)) for others in range(len(mean))]
    return max(work / slowest_first[len(mean) - 1 - others] for others, work in enumerate(rest))


def with_sizes(problem: Problem, sizes: int, k: tuple[int, ...], load: float, seed: int) -> Problem:
    """The problem with lognormal chunk sizes, as logs have them, at a load.

    Args:
        problem: without groups and constraints.
        sizes: chunk sizes that there are; as many as files or more: each has its own.
        k: drawn.
        load: the least possible largest node load.
        seed: of what is drawn.
    """
    rng = np.random.default_rng(seed)
    count = len(problem.files.rate)
    drawn = CHUNK_BYTES * rng.lognormal(0, SIZES_SIGMA, min(sizes, count))
    size = drawn if sizes >= count else rng.choice(drawn, count)
    width, rate = rng.choice(k, count).astype(float), np.asarray(problem.files.rate)
    rate = rate * load / least_largest_load(np.asarray(problem.nodes.service[0, 1]), width, rate * size)
    chunk, least, often = map(jnp.asarray, (size, width, rate))
    files = replace(problem.files, chunk_bytes=chunk, stored_chunk_bytes=chunk, k=least, rate=often)
    return prepare(problem.nodes, files)


def changed(problem: Problem, part: float, factor: float, seed: int) -> Problem:
    """The problem with the rates of some files multiplied by between 1 / factor and factor.

    Args:
        problem: without groups and constraints.
        part: of the files that change, drawn at random.
        factor: above 1.
        seed: of what is drawn.
    """
    rng = np.random.default_rng(seed)
    rate = np.array(problem.files.rate)
    some = rng.choice(len(rate), max(1, round(part * len(rate))), replace=False)
    rate[some] *= np.exp(rng.uniform(-np.log(factor), np.log(factor), len(some)))
    return prepare(problem.nodes, replace(problem.files, rate=jnp.asarray(rate)))
