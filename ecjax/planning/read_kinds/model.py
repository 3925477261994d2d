"""Reads narrower than k on a placement: what nodes have to do, and the bound on the mean latency of all reads.

A small read takes bytes of one data chunk, or of several (``width``). It is direct (from the nodes that keep them) or
degraded (decoded from the same bytes of k chunks of the file: of one chunk's reads k others, of wider ones any). Kinds
are drawn apart from the state of the queues, so that arrivals at nodes stay Poisson. With w the share of the reads of a
chunk that are degraded and x_j their probability of using node j, sum_j x_j = w k and 0 <= x_j <= w; the bound on the
mean of the degraded ones is that of Lemma 2 of the JLCM paper, the mean of the direct ones is exact (1 - w times the
sojourn at the node)::

    (1 - w) E_d + min_z [w z + sum_j x_j/2 ((E_j - z) + sqrt((E_j - z)^2 + V_j))]

Direct reads of several chunks wait for the last of them. Their bound is the same sum with x_j = 1 - w at their nodes;
they share z with the degraded ones, and both are called joined here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.problem import Problem
from ecjax.planning.read_kinds.node_lists import padded_nodes
from ecjax.planning.read_kinds.sizes import few_sizes, moments_of, powers_of
from ecjax.queueing import Delay, shared_z, waiting

_RARE = 1e-9  # share of reads that z of a kind is taken from where there is none
_LEAST = 1e-300  # rates are divided by this where they are 0


Array: TypeAlias = jax.Array | np.ndarray  # whichever computes


class SmallReads(NamedTuple):
    """Small reads of the same chunks each, T of them: those of a placement row that take the same bytes are one.

    Attributes:
        row: (T,) placement row.
        chunk: (T,) number of the first data chunk, from 0.
        nodes: (T, W) nodes that keep the data chunks, -1 after the last.
        others: (T, N) nodes that a degraded read may use, -1 after the last: of the row's other chunks; of all where
            the read is of several.
        k: (T,) chunks that a degraded read takes.
        rate: (T,) 1/s.
        size: (T,) B, bytes that each chunk of a read has.
    """

    row: np.ndarray
    chunk: np.ndarray
    nodes: np.ndarray
    others: np.ndarray
    k: np.ndarray
    rate: np.ndarray
    size: np.ndarray

    @property
    def number(self) -> int:
        """Number of small reads T."""
        return len(self.rate)

    @property
    def node(self) -> np.ndarray:
        """Node of the first chunk, (T,)."""
        return self.nodes[:, 0]

    @property
    def width(self) -> np.ndarray:
        """Data chunks of a direct read, (T,)."""
        return np.sum(self.nodes >= 0, axis=1)


class Loads(NamedTuple):
    """Chunks that nodes serve, 1/s, by kind and size: (F, m) full, (S, m) direct alone, (S, m) joined; joined reads.

    Sizes are a few that stand for all; work is exact by what the true ones are beyond these.
    """

    full: Array
    direct: Array
    joined: Array
    joined_rate: Array  # () 1/s
    beyond: Array  # (4, m) sums of rate B^p of all chunks, p = 0..3, less those of the sizes that stand for them, B^p/s


class PricedChunks(NamedTuple):
    """Kinds and sizes of chunks that have prices at the nodes, C columns: full, direct alone, then joined ones.

    Attributes:
        full: columns of the F sizes of full reads.
        direct: columns of direct chunks alone, of the S sizes of small reads.
        joined: of joined ones.
        exact: whether these sizes are all that there are.
    """

    full: slice
    direct: slice
    joined: slice
    exact: bool

    @property
    def number(self) -> int:
        """Number of columns C."""
        return self.joined.stop


class Moments(NamedTuple):
    """What the latency of reads depends on besides loads; m nodes.

    Attributes:
        full: (F, 3, m) raw moments of the service of a chunk of a full read, s, s^2, s^3.
        small: (S, 3, m) the same of a small one.
        service: (3, 4, m) these moments as polynomials in the size.
        connect: (2, m) mean and variance of the connection delay.
        beside: (3, m) load, A_2, A_3 of other work.
        even: (S, m) chunks of a joined read that may be any, spread evenly.
        rates: (2,) 1/s, full reads and all reads.
    """

    full: jax.Array
    small: jax.Array
    service: jax.Array
    connect: jax.Array
    beside: jax.Array
    even: jax.Array
    rates: jax.Array


@dataclass(frozen=True, eq=False)
class KindModel:
    """Full and small reads on a placement.

    Attributes:
        problem: scaled, with the full reads; files may have none.
        stored: (R, m) bool.
        small: the small reads.
    """

    problem: Problem
    stored: np.ndarray
    small: SmallReads

    @cached_property
    def full_nodes(self) -> np.ndarray:
        """Nodes that keep a row's chunks, (R, N), -1 after the last."""
        return padded_nodes(self.stored)

    @cached_property
    def full_k(self) -> np.ndarray:
        """Chunks that a full read takes, (R,)."""
        return np.rint(np.asarray(self.problem.k)).astype(np.int64)

    @cached_property
    def _full_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        files = self.problem.files
        return few_sizes(np.asarray(files.chunk_bytes), np.asarray(files.rate))

    @cached_property
    def _small_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        return few_sizes(self.small.size, self.small.rate)

    @property
    def full_sizes(self) -> np.ndarray:
        """Chunk sizes of full reads, (F,) B."""
        return self._full_sizes[0]

    @property
    def small_sizes(self) -> np.ndarray:
        """Sizes of small reads, (S,) B."""
        return self._small_sizes[0]

    @property
    def small_class(self) -> np.ndarray:
        """Which of ``small_sizes`` a small read has, (T,)."""
        return self._small_sizes[1]

    @cached_property
    def full_rate(self) -> np.ndarray:
        """Full reads of a row by chunk size, (R, F) 1/s."""
        rates = np.zeros((self.problem.rows, len(self.full_sizes)))
        np.add.at(rates, (self._row, self._full_sizes[1]), np.asarray(self.problem.files.rate))
        return rates

    @cached_property
    def full_beyond(self) -> np.ndarray:
        """Sums of rate B^p of a row's full reads, less those of the sizes that stand for theirs, (R, 4)."""
        files, (sizes, of) = self.problem.files, self._full_sizes
        apart = powers_of(np.asarray(files.chunk_bytes)) - powers_of(sizes[of])
        sums = np.zeros((self.problem.rows, 4))
        np.add.at(sums, self._row, np.asarray(files.rate)[:, None] * apart)
        return sums

    @cached_property
    def small_beyond(self) -> np.ndarray:
        """B^p of each small read, less that of the size that stands for its own, (T, 4)."""
        return powers_of(self.small.size) - powers_of(self.small_sizes[self.small_class])

    @property
    def _row(self) -> np.ndarray:
        """Placement row of each file, (r,)."""
        row = self.problem.row
        return np.arange(self.problem.files.count) if row is None else np.asarray(row)

    @cached_property
    def priced(self) -> PricedChunks:
        """What chunks have prices in the lower bound."""
        full, small = len(self.full_sizes), len(self.small_sizes)
        edges = full + small, full + 2 * small
        return PricedChunks(slice(0, full), slice(full, edges[0]), slice(*edges), self.exact)

    @cached_property
    def exact(self) -> bool:
        """Whether the sizes of full and of small reads are all that there are."""
        (sizes, of), files = self._full_sizes, self.problem.files
        pairs = (
            (sizes[of], np.asarray(files.chunk_bytes), np.asarray(files.rate)),
            (self.small_sizes[self.small_class], self.small.size, self.small.rate),
        )
        return all(np.array_equal(few[rate > 0], size[rate > 0]) for few, size, rate in pairs)

    @cached_property
    def moments(self) -> Moments:
        """What latencies depend on besides loads."""
        nodes = self.problem.nodes
        beside = np.asarray(nodes.background)
        if self.problem.writes is not None:
            written = np.asarray(self.problem.writes) @ self.stored
            beside = beside + np.sum(np.asarray(nodes.service) * written[None], axis=1)
        full, small = float(self.full_rate.sum()), float(self.small.rate.sum())
        evenly = self.loads(np.zeros(self.full_nodes.shape), self.evenly(1.0))
        # per read that can be a joined one: not all can
        even = evenly.joined / np.maximum(evenly.joined_rate, _LEAST)
        return Moments(
            jnp.asarray(moments_of(nodes.service, self.full_sizes)),
            jnp.asarray(moments_of(nodes.service, self.small_sizes)),
            jnp.asarray(nodes.service),
            jnp.stack([nodes.connect_mean, nodes.connect_variance]),
            jnp.asarray(beside),
            jnp.asarray(even),
            jnp.asarray([full, full + small]),
        )

    def evenly(self, share: float) -> np.ndarray:
        """X of small reads of which a share is degraded, where it can be, and takes other chunks alike, (T, N)."""
        there, k = self.small.others >= 0, self.small.k
        count = there.sum(axis=1)
        return share * there * np.where(count >= k, k / np.maximum(count, 1), 0.0)[:, None]

    def loads(self, full: np.ndarray, degraded: np.ndarray) -> Loads:
        """Loads of a spread.

        Args:
            full: (R, N) probability that a full read uses each of ``full_nodes``.
            degraded: (T, N) x, probability that a small read is degraded and uses each of ``small.others``.
        """
        small, m = self.small, self.problem.nodes.count
        share = degraded.sum(axis=1) / small.k
        alone = small.width == 1
        left = small.rate * (1 - share)
        classes = len(self.small_sizes)
        by_full = [
            _added(self.full_nodes, full * self.full_rate[:, each, None], m)
            for each in range(len(self.full_sizes))
        ]
        direct, joined = np.zeros((classes, m)), np.zeros((classes, m))
        for each in range(classes):
            part = self.small_class == each
            direct[each] = np.bincount(small.node[part & alone], left[part & alone], m)
            joined[each] = _added(small.others[part], degraded[part] * small.rate[part, None], m)
            joined[each] += _added(small.nodes[part & ~alone], left[part & ~alone, None], m)
        joined_rate = np.asarray(small.rate @ share + left[~alone].sum())
        beyond = np.zeros((4, m))
        if not self.exact:
            beyond = _sums(self.full_nodes, full, self.full_beyond, m)
            beyond = beyond + _small_sums(small, degraded, self.small_beyond, m)
        return Loads(np.array(by_full), direct, joined, joined_rate, beyond)


def _added(nodes: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    there = nodes >= 0
    return np.bincount(nodes[there], np.broadcast_to(values, nodes.shape)[there], count)


def _sums(nodes: np.ndarray, values: np.ndarray, factors: np.ndarray, count: int) -> np.ndarray:
    """Sums at nodes (B, N) of values (B, N) or (B, 1) times each of the factors (B, 4), (4, count)."""
    return np.stack([_added(nodes, values * factor[:, None], count) for factor in factors.T])


def _small_sums(small: SmallReads, degraded: np.ndarray, factors: np.ndarray, count: int) -> np.ndarray:
    """The same over the chunks of small reads, direct and degraded, (4, count)."""
    by_rate = small.rate[:, None] * factors
    left = 1 - degraded.sum(axis=1, keepdims=True) / small.k[:, None]
    return _sums(small.nodes, left, by_rate, count) + _sums(small.others, degraded, by_rate, count)


def sojourn(moments: jax.Array, connect: jax.Array, wait: Delay) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of the time that a chunk of each size spends at each node, (C, m)."""
    first, second = moments[:, 0], moments[:, 1]
    steady = jnp.maximum(second - first**2, 0.0)
    mean, variance = connect[0] + wait.mean, connect[1] + wait.variance
    return first + mean[None], steady + variance[None]


def node_work(loads: Loads, moments: Moments) -> jax.Array:
    """Load, A_2 and A_3 of every node, (3, m)."""
    full = jnp.einsum("cm,cnm->nm", loads.full, moments.full)
    small = jnp.einsum("cm,cnm->nm", loads.direct + loads.joined, moments.small)
    return full + small + _work_of_sums(moments.service, loads.beyond) + moments.beside


def latency(loads: Loads, moments: Moments) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Bound on the mean latency of all reads, s, one z per kind, and z of full and of joined reads.

    Infinite where a node is unstable.
    """
    work = node_work(loads, moments)
    wait = waiting(work[0], work[1], work[2])
    full, small = (sojourn(each, moments.connect, wait) for each in (moments.full, moments.small))
    # 0 inf would be nan where nothing is read
    direct = jnp.sum(loads.direct * jnp.where(jnp.isfinite(small[0]), small[0], 0.0))
    whole, z_full = _kind(loads.full, moments.rates[0], full)
    # a kind that is not read has the z of one that is spread evenly
    rare = _RARE * moments.rates[1]
    joined, z_joined = _kind(loads.joined + rare * moments.even, loads.joined_rate + rare, small)
    value = (direct + whole + joined) / moments.rates[1]
    return jnp.where(jnp.all(work[0] < 1), value, jnp.inf), (z_full, z_joined)


def _kind(loads: Array, rate: Array, sojourn: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Rate times the bound on the mean of one kind with one z, and that z."""
    some = rate > 0
    minimum, z = shared_z(loads / jnp.where(some, rate, 1.0), *sojourn)
    return jnp.where(some, rate * jnp.where(some, minimum, 0.0), 0.0), z


def small_work(model: KindModel, degraded: np.ndarray) -> np.ndarray:
    """Load, A_2 and A_3 of small reads, (3, m), by their true sizes.

    Args:
        model: full and small reads.
        degraded: (T, N) x.
    """
    small, nodes = model.small, model.problem.nodes
    sums = _small_sums(small, degraded, powers_of(small.size), nodes.count)
    return np.asarray(_work_of_sums(nodes.service, sums))


def _work_of_sums(service: Array, sums: Array) -> jax.Array:
    """Load, A_2 and A_3, (3, m), of chunks whose sums of rate B^p are (4, m)."""
    return jnp.einsum("npm,pm->nm", service, sums)
