"""The data of a planning problem as frozen pytrees; shape and unit of every field.

r files (or objects), m storage nodes, R placement rows: files of one group share a row, every other file has its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Nodes:
    """Storage nodes. Raw service moments are polynomials in the chunk size B (bytes).

    m_n(B) = sum_p service[n - 1, p] B^p covers moments proportional to size (one term, p = n), independent of size
    (p = 0) and the affine shifted exponential law (all terms).
    """

    service: jax.Array  # (3, 4, m) s^n / B^p
    connect_mean: jax.Array  # (m,) s, connection delay
    connect_variance: jax.Array  # (m,) s^2
    background: jax.Array  # (3, m) sums of lambda m_n of other work: 1, s, s^2
    cost_per_chunk: jax.Array  # (m,) dollars per period
    cost_per_byte: jax.Array  # (m,) dollars per byte and period
    channels: jax.Array | None = None  # (m,) requests that a node serves at once; None: one at a time

    @property
    def count(self) -> int:
        """Number of nodes m."""
        return self.connect_mean.shape[-1]

    @property
    def work(self) -> jax.Array:
        """Moments of the work that a chunk brings: of its service on one server as fast as all channels, (3, 4, m).

        Waits and loads follow from these, sojourns add the service itself. With c channels the wait of that M/G/1
        queue is W; in M/G/c it is about C(c, c rho) / rho W, C the Erlang C probability of waiting (Lee and Longton;
        exact for exponential services), which is never more.
        """
        if self.channels is None:
            return self.service
        powers = jnp.stack([self.channels, self.channels**2, self.channels**3])
        return self.service / powers[:, None, :]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Files:
    """Files to plan. ``k`` and ``min_extra_chunks`` are integers kept in the float type."""

    chunk_bytes: jax.Array  # (r,) B, bytes that a read moves from one node
    stored_chunk_bytes: jax.Array  # (r,) B, bytes of one chunk that storage is paid for
    k: jax.Array  # (r,) chunks that rebuild the file
    min_extra_chunks: jax.Array  # (r,) durability floor: n >= k + min_extra_chunks
    rate: jax.Array  # (r,) 1/s, reads
    write_rate: jax.Array  # (r,) 1/s, writes; each loads every chunk of the file
    whole_chunk_bytes: jax.Array | None = None  # (r,) B, what a write brings each of them; None: chunk_bytes

    @property
    def write_bytes(self) -> jax.Array:
        """Bytes that a write brings to every node that keeps a chunk, (r,): where d > k reads take a part of each."""
        return self.chunk_bytes if self.whole_chunk_bytes is None else self.whole_chunk_bytes

    @property
    def count(self) -> int:
        """Number of files r."""
        return self.rate.shape[-1]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evaluation:
    """What a plan costs and how fast it is."""

    objective: jax.Array  # () s, latency_shared_z + theta * mean cost per file
    latency: jax.Array  # () s, one z per file, weighted by rates
    latency_shared_z: jax.Array  # () s
    z: jax.Array  # () s
    cost: jax.Array  # () dollars per period, all files
    file_latency: jax.Array  # (r,) s
    file_cost: jax.Array  # (r,) dollars per period
    load: jax.Array  # (m,) node loads rho


def with_stalls(moments: Iterable[Any], stall: Iterable[Any], unit: Any = 1.0) -> tuple[Any, Any, Any]:
    """Moments of X + S from those of X and of an independent stall S, arrays of NumPy or JAX.

    Args:
        moments: E[X^n], s^n; as polynomials in the chunk size their coefficients, lowest power first.
        stall: E[S^n], s^n, of shapes that go with these.
        unit: what 1 is among ``moments``: of polynomials their coefficients of 1.
    """
    one, two, three = moments
    s_1, s_2, s_3 = stall
    return (
        one + s_1 * unit,
        two + 2 * s_1 * one + s_2 * unit,
        three + 3 * s_1 * two + 3 * s_2 * one + s_3 * unit,
    )


CONSTANT = np.array(
    [[1.0], [0.0], [0.0], [0.0]]
)  # 1 as a polynomial in the chunk size, for every node: (4, 1)
