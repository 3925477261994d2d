"""The data of a planning problem as frozen pytrees; shape and unit of every field.

r files (or objects), m storage nodes, R placement rows: files of one group share a row, every other file has its own.
"""

from dataclasses import dataclass

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


def with_stalls(moments: np.ndarray, stall: np.ndarray) -> np.ndarray:
    """Moments of X + S from those of X, polynomials in the chunk size (3, 4, m), and of an independent stall S.

    Args:
        moments: E[X^n], as ``Nodes.service``.
        stall: E[S^n], s^n, (3, m).
    """
    constant = np.zeros((4, 1))
    constant[0] = 1.0
    one, two, three = moments
    return np.stack(
        [
            one + stall[0] * constant,
            two + 2 * stall[0] * one + stall[1] * constant,
            three + 3 * stall[0] * two + 3 * stall[1] * one + stall[2] * constant,
        ]
    )
