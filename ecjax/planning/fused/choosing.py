"""Whether the published method's steps are made by the kernel; where not, nothing of it is imported."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.descent import Stopping
from ecjax.planning.problem import Problem
from ecjax.planning.projection import project_hypersimplex

MOST_NODES = 32  # more of them do not fit into a thread's registers
# Rows times nodes below which the launches of a step take longer than what they compute.
_LEAST = 1_000_000
_NEAR = 1e-4  # as far from the plain projection as float32 is


def suits(problem: Problem, stopping: Stopping) -> bool:
    """Whether steps can, and should, be made by the kernel: arrays that are no tracers, on a GPU that runs it."""
    files = problem.files
    sizes = (np.asarray(values) for values in (files.chunk_bytes, files.stored_chunk_bytes))
    return (
        stopping.merged
        and problem.row is None
        and problem.writes is None
        and problem.surcharge is None
        and problem.reading is None
        and problem.nodes.count <= MOST_NODES
        and problem.rows * problem.nodes.count >= _LEAST
        and all(len(values) > 0 and (values == values[0]).all() for values in sizes)
        and _runs()
    )


@cache
def _runs() -> bool:
    """Whether JAX's device runs the kernel, and gets right what the plain projection gets."""
    if jax.default_backend() != "gpu":
        return False
    try:
        from ecjax.planning.fused.kernel import TILE, Surrogate, Weights, moved
    except ImportError:  # a JAX without this compiler of kernels
        return False
    random, nodes, step, beta = np.random.default_rng(0), 5, 0.3, 10.0
    price, slope = random.uniform(1, 2, (2, nodes))
    share, k = random.uniform(0, 1, TILE), random.integers(1, nodes, TILE)
    start = np.tile(k / nodes, (nodes, 1))
    target = start - step * (share * slope[:, None] + price[:, None] / np.log(beta) / (start + 1 / beta))
    expected = np.asarray(project_hypersimplex(target.T, k)).T
    served = ((expected - start) * share).sum(axis=1)
    for dtype in (np.float32, np.float64):
        weights = Weights(*(jnp.asarray(values, dtype) for values in (share, np.ones(TILE), k)))
        try:
            trial = moved(
                jnp.asarray(start, dtype),
                weights,
                jnp.asarray(slope),
                jnp.asarray(step),
                Surrogate(jnp.asarray(price), beta),
                None,
            )
        except Exception:  # a compiler or a device that has no such kernels
            return False
        if not np.allclose(trial.point, expected, rtol=0, atol=_NEAR):
            return False
        if not np.allclose(trial.reads, served, rtol=_NEAR, atol=_NEAR):
            return False
    return True
