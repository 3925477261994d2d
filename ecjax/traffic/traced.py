"""Mean and quantiles of latencies under the arrivals of a log in JAX: differentiable by the plan, batched by ``vmap``.

The path, the constants and the laws are those of ``paths`` and ``latency_laws``, in one branch, without the exact laws
of steady queues; derivatives go through all of them. Rates are scaled as a faster clock scales them. Plans on fewer
nodes have probabilities of 0 at the others.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.queueing.monotone import interpolate
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.latency_laws import Seen, latency_laws, law_means, readers
from ecjax.traffic.node_work import LEAST_C, MOST_MET
from ecjax.traffic.two_moments import Constants, workload_path_traced


class TracedLog(NamedTuple):
    """Reads of a log, and those of them that latencies are taken of."""

    width_s: jax.Array  # (B,) s
    unit_s: jax.Array  # () s, width of the bins that reads are in: what they resolve
    bin: jax.Array  # (P,) int32
    file: jax.Array  # (P,) int32
    reads: jax.Array  # (P,)
    sample: jax.Array  # (S,) int32, pairs of bin and file whose latency counts
    weight: jax.Array  # (S,) reads that each stands for


def traced_log(reads: BinnedReads, most: int = 256) -> TracedLog:
    """Counts of a log, with a sample of its reads that is stratified in time.

    Args:
        reads: of bins, or of pieces of blocks of constant rates (``paths``).
        most: size of the sample.
    """
    passed = np.cumsum(reads.reads)
    count = min(most, len(passed))
    sample = np.searchsorted(passed, (np.arange(count) + 0.5) / count * passed[-1])
    return TracedLog(
        jnp.asarray(reads.width_s),
        jnp.asarray(reads.width_s.min()),
        jnp.asarray(reads.bin, jnp.int32),
        jnp.asarray(reads.file, jnp.int32),
        jnp.asarray(reads.reads),
        jnp.asarray(sample, jnp.int32),
        jnp.full(count, passed[-1] / count),
    )


def traced_latency(
    probabilities: jax.Array,
    log: TracedLog,
    workload: Workload,
    points: jax.Array,
    rate_scale: jax.Array | float = 1.0,
    levels: tuple[float, ...] = (0.99,),
    counted: bool = True,
    most_steps: int = 16,
) -> tuple[jax.Array, jax.Array]:
    """Mean, (), and quantiles, (Q,), of the latency of reads, s.

    Args:
        probabilities: pi, (r, m).
        log: reads of the r files.
        workload: chunk sizes, services, channels, connection delays, and other work at constant rates; rates do not
            count.
        points: s, (P,), where laws are taken (``latency_laws.grid``).
        rate_scale: rates are so many times those of the log.
        levels: of the quantiles, static.
        counted: whether reads are counts as they came (raw), or rates of blocks (denoised), static.
        most_steps: of the recursion in a bin, static.
    """
    width, unit = log.width_s / rate_scale, log.unit_s / rate_scale
    first, second, third = workload.work.moments(workload.chunk_bytes[:, None])
    bins = width.shape[0]

    def by_bin(values: jax.Array) -> jax.Array:
        return jax.ops.segment_sum(log.reads[:, None] * values[log.file], log.bin, num_segments=bins)

    nodes = probabilities.shape[1]
    other = jnp.zeros((3, nodes)) if workload.background is None else workload.background
    work = by_bin(probabilities * first) + width[:, None] * other[0][None, :]
    square = by_bin((probabilities * first) ** 2)
    total = jax.ops.segment_sum(log.reads, log.file, num_segments=probabilities.shape[0])
    length = width.sum()
    sums = [
        total @ (probabilities * each) + length * more
        for each, more in ((second, other[1]), (third, other[2]))
    ]
    every = work.sum(axis=0)
    busy = every > 0
    c_0 = jnp.where(busy, sums[0] / (2 * jnp.where(busy, every, 1)), first.mean(axis=0))
    q = jnp.where(busy, 2 * sums[1] / (3 * jnp.where(busy, sums[0], 1)), 2 * c_0)
    c, itself = c_0, jnp.zeros(nodes)
    if counted:
        safe = jnp.where(busy, every, 1)
        shared = jnp.minimum(square.sum(axis=0) / safe, 2 * c_0)
        met = jnp.sum((work**2 - square) / width[:, None], axis=0) / safe
        tau = c_0 / (1 - jnp.clip(met, 0, MOST_MET)) ** 2
        c = jnp.maximum(c_0 - shared * tau / (unit + tau) / 2, LEAST_C * c_0)
        itself = shared * tau / (unit + 2 * tau)
    path = workload_path_traced(work, width, Constants(c, q), most_steps)
    at = log.bin[log.sample]
    mean, variance, late = (jnp.asarray(each)[at] for each in path[:3])
    share = jnp.maximum(1 - itself[None, :] / mean, 0)
    kinds = readers(points, probabilities, workload)
    variance = jnp.maximum(variance - (q * itself)[None, :], variance * share)
    seen = Seen(mean * share, variance, late * share)
    laws = latency_laws(points, seen, log.file[log.sample], kinds, workload.most)
    law = log.weight @ laws / log.weight.sum()
    scores = -jnp.log(jnp.maximum(1 - law, 1e-15))
    quantiles = jnp.exp(interpolate(-jnp.log1p(-jnp.asarray(levels)), scores, jnp.log(points)))
    return law_means(points, law), quantiles
