"""What the latency of reads is estimated from: files with their rates and chunk sizes, nodes with their laws."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.errors import UserError
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.service_law import ServiceLaw

MOST_SIZES = 16
_ONE_SIZE = 1e-6  # deviation of sizes from their mean that is none


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Workload:
    """Poisson reads of r files from m nodes; build it with ``Workload.of``."""

    rate: jax.Array  # (r,) 1/s
    chunk_bytes: jax.Array  # (r,) B, what a read takes from each of its nodes
    sizes: jax.Array  # (C,) B, rising: chunk sizes whose laws are computed
    service: ServiceLaw  # m nodes
    connect: Delay | None  # (m,) s, s^2
    background: jax.Array | None  # (3, m) load, A_2 (s), A_3 (s^2) of other work
    channels: jax.Array | None  # (m,) requests served at once; None: one
    most: int = field(metadata={"static": True})  # largest k
    exact: bool = field(metadata={"static": True})  # every chunk size is one of ``sizes``
    # chunk rates, 1/s, and sizes, B, (b, m), of what comes to the nodes where the files are a sample of those read
    arrivals: tuple[jax.Array, jax.Array] | None = None
    # (2, m, m): what writes, a part of ``background``, bring to two nodes at once, see ``dependence.with_writes``
    common_writes: jax.Array | None = None

    @classmethod
    def of(
        cls,
        rates: ArrayLike,
        chunk_bytes: ArrayLike,
        k: ArrayLike,
        service: ServiceLaw,
        connect: tuple[ArrayLike, ArrayLike] | None = None,
        background: ArrayLike | None = None,
        channels: ArrayLike | None = None,
    ) -> "Workload":
        """Gather what ``estimate_latency`` and ``tail_bound`` need; made on the host, once.

        Up to 16 different chunk sizes are taken as they are; of more, 16 in even ratios are computed, files between two
        of them are interpolated, and the waits are those of sizes in 8 ranges, each taken as two sizes that keep its
        rate and the first two moments of B.

        Args:
            rates: reads of each file, 1/s, (r,) or a scalar.
            chunk_bytes: B, (r,) or a scalar.
            k: nodes of one read, a whole number >= 1, (r,) or a scalar; only the largest counts, what a row of the
                probabilities sums to is the k of its file.
            service: laws of the service times.
            connect: mean (s) and variance (s^2) of the connection delay, scalars or (m,); its law is taken as gamma, a
                constant where the variance is 0.
            background: load, A_2 (s) and A_3 (s^2) of other work at the nodes, (3, m), as brought to one server as
                fast as all channels of a node.
            channels: requests that each node serves at once, (m,), >= 1; None: one.

        Raises:
            UserError: entries that are negative, infinite, or of shapes that do not fit; a chunk that takes no time.
        """
        nodes = service.nodes
        largest = (
            max((np.ndim(value) and len(np.atleast_1d(value))) for value in (rates, chunk_bytes, k)) or 1
        )
        rate = _checked("rates", rates, (largest,), 0.0)
        size = _checked("chunk_bytes", chunk_bytes, (largest,), 0.0)
        chunks = _checked("k", k, (largest,), 1.0)
        if not np.all(chunks == np.round(chunks)) or chunks.max() > nodes:
            row = int(np.flatnonzero((chunks != np.round(chunks)) | (chunks > nodes))[0])
            raise UserError(
                f"workload: k[{row}] is {chunks[row]:g}, it must be whole and at most {nodes} nodes"
            )
        if not rate.sum() > 0:
            raise UserError("workload: rates are all 0, at least one file must be read")
        delay = None
        if connect is not None:
            mean = _checked("mean of connect", connect[0], (nodes,), 0.0)
            variance = _checked("variance of connect", connect[1], (nodes,), 0.0)
            delay = Delay(jnp.asarray(mean), jnp.asarray(variance))
        other = (
            None if background is None else jnp.asarray(_checked("background", background, (3, nodes), 0.0))
        )
        several = None if channels is None else jnp.asarray(_checked("channels", channels, (nodes,), 1.0))
        shortest = np.asarray(service.moments(np.full((1, 1), size.min()))[0])[0]
        if not (shortest > 0).all():
            node = int(np.flatnonzero(~(shortest > 0))[0])
            raise UserError(
                f"workload: a chunk of {size.min():g} bytes takes no time at node {node}, it must take some"
            )
        distinct = np.unique(size)
        exact = len(distinct) <= MOST_SIZES
        knots = distinct if exact else _ladder(distinct[0], distinct[-1])
        return cls(
            jax.device_put(rate),
            jax.device_put(size),
            jax.device_put(knots),
            service,
            delay,
            other,
            several,
            most=int(chunks.max()),
            exact=exact,
        )

    @property
    def work(self) -> ServiceLaw:
        """Laws of the work that chunks bring: of their service on one server as fast as all channels of the node."""
        return self.service if self.channels is None else self.service.slowed(1 / self.channels)

    @property
    def files(self) -> int:
        """Number of files r."""
        return self.rate.shape[-1]


def size_position(load: Workload) -> tuple[jax.Array, jax.Array]:
    """Index of the size at or below each file's chunks, (r,), and how far they are on the way to the next, (r,)."""
    count = load.sizes.shape[0]
    index = jnp.clip(jnp.searchsorted(load.sizes, load.chunk_bytes, side="right") - 1, 0, count - 1)
    if load.exact:
        return index, jnp.zeros_like(load.chunk_bytes)
    index = jnp.minimum(index, count - 2)
    low, high = load.sizes[index], load.sizes[index + 1]
    return index, jnp.clip((load.chunk_bytes - low) / (high - low), 0, 1)


def node_arrivals(load: Workload, probabilities: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Chunk rates, 1/s, and chunk sizes, B, of what comes to each node: each (b, m)."""
    if load.arrivals is not None:
        return load.arrivals
    return access_arrivals(load, load.rate[:, None] * probabilities)


def access_arrivals(load: Workload, accesses: jax.Array) -> tuple[jax.Array, jax.Array]:
    """As ``node_arrivals``, of chunk accesses at these rates, 1/s, (r, m), with the chunk sizes of the files."""
    index, _ = size_position(load)
    if load.exact:
        rates = _by_size(accesses, index, load.sizes.shape[0])
        return rates, jnp.broadcast_to(load.sizes[:, None], rates.shape)
    ranges = MOST_SIZES // 2
    group = jnp.minimum(index // 2, ranges - 1)
    size = load.chunk_bytes[:, None]
    rates, bytes_, square = (_by_size(accesses * size**p, group, ranges) for p in range(3))
    read = rates > 0
    safe = jnp.where(read, rates, 1)
    lowest = load.sizes[::2][:, None]
    mean = jnp.where(read, bytes_ / safe, lowest)
    variance = jnp.where(read, square / safe - mean**2, 0)
    # a range with one size, be it 0: the derivative of the root must not be infinite
    variance = jnp.maximum(variance, (_ONE_SIZE * jnp.maximum(mean, _ONE_SIZE)) ** 2)
    spread, above = jnp.sqrt(variance), mean - lowest
    # few large files among many small ones: two equally frequent sizes would reach below the range, and below 0
    few = (spread > above) & (above > _ONE_SIZE * mean)
    above = jnp.where(few, above, spread)
    share = above**2 / (variance + above**2)
    return (
        jnp.concatenate([rates * (1 - share), rates * share]),
        jnp.concatenate([mean - above, mean + variance / above]),
    )


def _by_size(values: jax.Array, index: jax.Array, count: int) -> jax.Array:
    return jax.ops.segment_sum(values, index, num_segments=count)


def _ladder(low: float, high: float) -> np.ndarray:
    knots = np.geomspace(max(low, high * 1e-9), high, MOST_SIZES)
    knots[0] = low
    return knots


def _checked(name: str, values: ArrayLike, shape: tuple[int, ...], least: float) -> np.ndarray:
    array = np.asarray(values, float)
    try:
        full = np.broadcast_to(array, shape)
    except ValueError:
        raise UserError(f"workload: {name} has shape {array.shape}, it must be {shape} or a scalar") from None
    wrong = np.argwhere(~(np.isfinite(full) & (full >= least)))
    if len(wrong):
        place = ", ".join(str(axis) for axis in wrong[0])
        raise UserError(
            f"workload: {name}[{place}] is {full[tuple(wrong[0])]}, it must be finite and >= {least:g}"
        )
    return full
