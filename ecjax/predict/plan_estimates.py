"""Estimated mean and quantiles of the latency of all reads of a plan, at the price of some hundred files.

Files that are read alike (probabilities, chunk size, k) count as one with the sum of their rates. Of plans with more
kinds of files a sample stands for all: drawn with probabilities that go with the rates, and weighted so that every node
has the load that the whole plan gives it, as far as positive weights can (calibration weights; Deville and Sarndal
1992). What waits there are is computed from all of them.
"""

from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.sparse import csr_array

from ecjax import planning
from ecjax.errors import UserError
from ecjax.planning.problem import NODE_WORK
from ecjax.predict.common_writes import problem_writes
from ecjax.predict.workload import ESTIMATE, connection_of, node_laws, present
from ecjax.queueing.condense import LEAST_SPREAD, Condensed, condense, is_condensed
from ecjax.queueing.estimate import LEVELS
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.workload import MOST_SIZES, Workload, node_arrivals
from ecjax.simulation.laws import Laws

MOST_KINDS = 1024
# few sizes of arrays are few programs to compile; the larger ones have rows for what a sample of kinds lacks
_ROWS = (128, MOST_KINDS, 2 * MOST_KINDS, 4 * MOST_KINDS)
_ROUNDS = 20
_NEAR = 1e-9  # of the largest load: as good as equal
_BEGUN: set[Any] = set()  # structures and shapes that this process has begun to compile for


class Kinds(NamedTuple):
    """Files of a kind, b of them."""

    probabilities: np.ndarray  # (b, m)
    rate: np.ndarray  # (b,) 1/s, of all files of the kind
    chunk_bytes: np.ndarray  # (b,) B
    k: np.ndarray  # (b,) chunks that a read takes


class PlanEstimate(NamedTuple):
    """Latency of all reads of a plan under Poisson arrivals, s."""

    mean: float
    p99: float


def within_bound(mean: float, bound: float) -> float:
    """An estimated mean, s, no larger than its bound.

    Of reads of one chunk the bound is exact, and the lattices of the estimate may end a little above it.
    """
    return min(mean, bound)


def plan_estimate(
    problem: planning.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    stored: np.ndarray,
    moved: np.ndarray | None = None,
) -> PlanEstimate:
    """Estimated latency of all reads, first come, first served; infinite where a node is not stable.

    Args:
        problem: scaled.
        laws: of the m nodes.
        probabilities: (R, m) of the placement rows.
        stored: (R, m) bool, chunks that writes load.
        moved: (r,) 1/s, rates of reads to estimate for instead, near those of the problem, of files that have one
            there; a sample of many kinds of files stays the same, so that differences are those of the rates.
    """
    nodes = problem.nodes
    holds = jnp.asarray(stored, float)
    beside = NODE_WORK(problem, jnp.zeros_like(holds), holds)
    service = node_laws(laws, nodes.count)
    connect = (nodes.connect_mean, nodes.connect_variance)
    common_writes = problem_writes(problem, stored, service)
    kinds = kinds_of(problem, probabilities)
    drawn_by = kinds.rate
    if moved is not None:
        kinds = kinds_of(problem, probabilities, moved)
    return kinds_estimate(kinds, service, connect, beside, nodes.channels, common_writes, drawn_by)


def kinds_estimate(
    kinds: Kinds,
    service: ServiceLaw,
    connect: tuple[ArrayLike, ArrayLike] | None = None,
    beside: ArrayLike | None = None,
    channels: ArrayLike | None = None,
    common_writes: jax.Array | None = None,
    drawn_by: np.ndarray | None = None,
) -> PlanEstimate:
    """Estimated latency of the reads of some kinds of files, first come, first served.

    Args:
        kinds: in the order of what they read, of which a sample of many is drawn.
        service: laws of the m nodes.
        connect: mean (s) and variance (s^2) of the connection delay, (m,); None: there is none.
        beside: load, A_2 (s) and A_3 (s^2) of other work, (3, m); None: there is none.
        channels: requests that each node serves at once, (m,); None: one.
        common_writes: what writes, a part of the other work, bring to two nodes at once, (2, m, m); None: nothing.
        drawn_by: (b,) 1/s, by which a sample is drawn; None: the rates of the kinds.
    """
    reads, load, condensed = _inputs(kinds, service, connect, beside, channels, common_writes, drawn_by)
    estimate = ESTIMATE(reads, load, condensed=condensed)
    return PlanEstimate(float(estimate.mean), float(estimate.quantiles[LEVELS.index(0.99)]))


def begin_compiling(problem: planning.Problem, laws: Laws) -> Thread | None:
    """Trace and compile in a thread, while plans are made, what the estimates of these plans most likely need.

    Shapes of plans follow from the problem where it has few nodes, and not more placements than are expected. Otherwise
    the program is made when the first estimate needs it.

    Args:
        problem: scaled.
        laws: of the m nodes.

    Returns:
        To be joined before an estimate, which would compile the same; None where the shapes are not known, or where
        this process has begun with them before.
    """
    nodes = problem.nodes
    if is_condensed(nodes.count):
        return None
    files = problem.files
    each = np.stack([np.asarray(part, float) for part in (files.k, files.chunk_bytes, files.rate)])
    each = each[:, each[2] > 0]
    (k, size), of_file = np.unique(each[:2], axis=1, return_inverse=True)
    rate = np.bincount(of_file.ravel(), each[2], len(k))
    # of nodes that are not condensed, plans of any fewer have the same shapes
    reached = np.maximum(k, min(LEAST_SPREAD, nodes.count))[:, None]
    probabilities = np.where(np.arange(nodes.count) < reached, k[:, None] / reached, 0.0)
    connect = (nodes.connect_mean, nodes.connect_variance)
    # that there is other work counts, not how much
    other_work = problem.writes is not None or present(nodes.background) is not None
    beside = jnp.full((3, nodes.count), 1e-6) if other_work else None
    common_writes = None if problem.writes is None else jnp.zeros((2, nodes.count, nodes.count))
    kinds = Kinds(probabilities, rate, size, k)
    # what is wrong with them is told by the estimate itself
    with suppress(UserError):
        reads, load, condensed = _inputs(
            kinds, node_laws(laws, nodes.count), connect, beside, nodes.channels, common_writes
        )
        leaves, structure = jax.tree.flatten((reads, load, condensed))
        shapes = structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        if shapes not in _BEGUN:
            _BEGUN.add(shapes)
            thread = Thread(target=_estimated, args=(reads, load, condensed))
            thread.start()
            return thread
    return None


def _estimated(reads: jax.Array, load: Workload, condensed: Condensed) -> None:
    # the estimates that follow fail alike, and tell it
    with suppress(Exception):
        ESTIMATE(reads, load, condensed=condensed)


def _inputs(
    kinds: Kinds,
    service: ServiceLaw,
    connect: tuple[ArrayLike, ArrayLike] | None,
    beside: ArrayLike | None,
    channels: ArrayLike | None,
    common_writes: jax.Array | None,
    drawn_by: np.ndarray | None = None,
) -> tuple[jax.Array, Workload, Condensed]:
    """What ``ESTIMATE`` takes."""
    few = padded(calibrated(kinds, service, drawn_by=drawn_by))
    delay = None if connect is None else connection_of(*connect)
    other = None if beside is None else present(beside)
    load = Workload.of(few.rate, few.chunk_bytes, few.k, service, delay, other, channels)
    load = replace(load, common_writes=common_writes)
    if len(kinds.rate) > MOST_KINDS:
        load = replace(load, arrivals=arrivals_of(kinds, service))
    reads = jnp.asarray(few.probabilities)
    return reads, load, condense(reads, load)


def kinds_of(problem: planning.Problem, probabilities: np.ndarray, moved: np.ndarray | None = None) -> Kinds:
    """The files that are read, those that are read alike as one, in the order of what they read.

    Args:
        problem: whose rates say which files are read.
        probabilities: (R, m) of the placement rows.
        moved: (r,) 1/s, rates of the same files instead; None: those of the problem.
    """
    rows = np.asarray(probabilities, float)
    files = problem.files
    rate, size, k = (np.asarray(each, float) for each in (files.rate, files.chunk_bytes, files.k))
    row = np.arange(len(rate)) if problem.row is None else np.asarray(problem.row)
    # equal rows have equal sums, and others almost surely not
    draw = np.random.default_rng(0).uniform(0.5, 1.5, rows.shape[1])
    key = np.stack([k, size, (rows @ draw)[row]])
    order = np.lexsort(key[::-1])
    order = order[rate[order] > 0]
    new = np.ones(len(order), bool)
    new[1:] = np.any(np.diff(key[:, order], axis=1) != 0, axis=0)
    first = order[new]
    counted = rate if moved is None else moved
    return Kinds(
        rows[row[first]], np.add.reduceat(counted[order], np.flatnonzero(new)), size[first], k[first]
    )


def arrivals_of(kinds: Kinds, service: ServiceLaw) -> tuple[jax.Array, jax.Array]:
    """Chunk rates, 1/s, and sizes, B, of what all kinds bring to the nodes, each (b, m): see ``Workload``."""
    sizes, index = np.unique(kinds.chunk_bytes, return_inverse=True)
    if len(sizes) > MOST_SIZES:
        every = Workload.of(kinds.rate, kinds.chunk_bytes, kinds.k, service)
        return node_arrivals(every, jnp.asarray(kinds.probabilities))
    by_size = csr_array((kinds.rate, (index, np.arange(len(index)))), (len(sizes), len(index)))
    rates = by_size @ kinds.probabilities
    return jnp.asarray(rates), jnp.asarray(np.broadcast_to(sizes[:, None], rates.shape))


def calibrated(
    kinds: Kinds, service: ServiceLaw, most: int = MOST_KINDS, drawn_by: np.ndarray | None = None
) -> Kinds:
    """At most so many kinds, with the load of all of them at every node; ``drawn_by`` as for the sample."""
    if len(kinds.rate) <= most:
        return kinds
    drawn, rate = calibrated_sample(kinds, service, most, drawn_by)
    return Kinds(*(each[drawn] for each in kinds))._replace(rate=rate)


def calibrated_sample(
    kinds: Kinds, service: ServiceLaw, most: int = MOST_KINDS, drawn_by: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Which kinds stand for all, at most so many, and the rate of each, 1/s, that keeps the load of every node.

    Args:
        kinds: b of them.
        service: laws of the nodes.
        most: kinds.
        drawn_by: (b,) 1/s, rates that the probabilities of being drawn go with; None: those of the kinds.
    """
    if len(kinds.rate) <= most:
        return np.arange(len(kinds.rate)), kinds.rate
    by = kinds.rate if drawn_by is None else drawn_by
    share = np.cumsum(by) / by.sum()
    drawn = np.searchsorted(share, (np.arange(most) + 0.5) / most)
    # means are affine in the size: those of two are one program to compile, those of all one for each number of them
    largest = float(kinds.chunk_bytes.max(initial=1.0))
    none, most_bytes = np.asarray(service.moments(np.array([[0.0], [largest]]))[0])
    mean = none + np.outer(kinds.chunk_bytes / largest, most_bytes - none)
    work = mean * kinds.probabilities
    target = kinds.rate @ work
    each = by.sum() / most * (kinds.rate[drawn] / by[drawn])
    rate, apart = each.copy(), np.inf
    # few rounds of the linear method keep all weights above a tenth
    for _ in range(_ROUNDS):
        missing = target - rate @ work[drawn]
        before, apart = apart, np.abs(missing).max()
        if apart <= _NEAR * target.max() or apart > 0.99 * before:
            break
        columns = work[drawn] * rate[:, None]
        gram = work[drawn].T @ columns
        # nodes that nothing reads, and loads that follow from others, have no price of their own
        gram.flat[:: len(gram) + 1] += 1e-12 * gram.trace()
        prices = np.linalg.solve(gram, missing)
        rate = np.maximum(rate + columns @ prices, 0.1 * each)
    return drawn, rate


def padded(kinds: Kinds) -> Kinds:
    """As many rows as one of ``_ROWS``, or beyond them a multiple of ``MOST_KINDS``, the last of them not read."""
    beyond = -(-len(kinds.rate) // MOST_KINDS) * MOST_KINDS
    count = next((rows for rows in _ROWS if rows >= len(kinds.rate)), beyond)
    place = np.minimum(np.arange(count), len(kinds.rate) - 1)
    full = Kinds(*(each[place] for each in kinds))
    full.rate[len(kinds.rate) :] = 0.0
    return full
