"""Latencies of full and small reads on a placement by kind: bounds with one z per file or chunk, and estimates."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.planning.problem import Problem
from ecjax.planning.read_kinds.model import KindModel, Loads, node_work
from ecjax.planning.read_kinds.node_lists import at_nodes
from ecjax.planning.read_kinds.sizes import powers_of
from ecjax.predict.common_writes import problem_writes
from ecjax.predict.plan_estimates import Kinds, arrivals_of, calibrated_sample, kinds_of, padded
from ecjax.predict.workload import ESTIMATE
from ecjax.programs import program
from ecjax.queueing import Delay, latency_bound, shared_z, waiting
from ecjax.queueing.condense import condense
from ecjax.queueing.service_law import ServiceLaw
from ecjax.queueing.workload import Workload

KINDS = ("full", "direct", "degraded")
_TOGETHER = 16  # nodes of one kind of reads of one chunk: estimates are fast where each is of few nodes
_BOUND, _SHARED = program(latency_bound), program(shared_z)


class SmallBounds(NamedTuple):
    """Bounds on the mean of T small reads, s: direct (exact where they are of one chunk), degraded (nan where none is),
    and both together.
    """

    direct: np.ndarray
    degraded: np.ndarray
    mean: np.ndarray


class KindEstimates(NamedTuple):
    """Expected mean and quantiles (p50, p90, p99, p999) of all reads, and by kind as in ``KINDS``, s; nan: no reads."""

    mean: float
    quantiles: np.ndarray
    kind_mean: np.ndarray
    kind_quantiles: np.ndarray


def small_bounds(model: KindModel, loads: Loads, degraded: np.ndarray) -> SmallBounds:
    """Bounds of each small read with a z of its own.

    Args:
        model: the small reads.
        loads: of the nodes.
        degraded: (T, N) x.
    """
    small, sojourn = model.small, _sojourns(model, loads)
    direct, alone = sojourn(small.node)[0], small.width == 1
    if not alone.all():
        several = np.where(alone[:, None] | (small.nodes < 0), 0.0, 1.0)
        last = _BOUND(jnp.asarray(several), Delay(*map(jnp.asarray, sojourn(small.nodes))))
        direct = np.where(alone, direct, np.asarray(last))
    share = degraded.sum(axis=1) / small.k
    some = share > 1e-12
    spread = np.where(some[:, None], degraded / np.where(some, share, 1.0)[:, None], 0.0)
    if small.others.shape[1]:
        coded = np.asarray(_BOUND(jnp.asarray(spread), Delay(*map(jnp.asarray, sojourn(small.others)))))
    else:
        coded = np.full(small.number, np.nan)
    coded = np.where(some, coded, np.nan)
    mean = (1 - share) * direct + np.where(some, share * np.where(some, coded, 0.0), 0.0)
    return SmallBounds(direct, coded, mean)


def small_shared_z(model: KindModel, loads: Loads, degraded: np.ndarray) -> tuple[float, float]:
    """Bound on the mean of all small reads, s, with one z for the joined ones, and that z, s: by their true sizes.

    Args:
        model: the small reads.
        loads: of the nodes, all of them stable.
        degraded: (T, N) x.
    """
    small, sojourn = model.small, _sojourns(model, loads)
    share, alone = degraded.sum(axis=1) / small.k, small.width == 1
    left = small.rate * (1 - share)
    total, z = float(left[alone] @ sojourn(small.node)[0][alone]), -np.inf
    joined_rate = float(small.rate @ share + left[~alone].sum())
    if joined_rate > 0:
        several = (small.nodes >= 0) & ~alone[:, None]
        chunks = np.concatenate([degraded * small.rate[:, None], several * left[:, None]], axis=1)
        delays = (
            np.concatenate(pair, axis=1)
            for pair in zip(*map(sojourn, (small.others, small.nodes)), strict=True)
        )
        mean, best = _SHARED(jnp.asarray(chunks / joined_rate), *map(jnp.asarray, delays))
        total, z = total + joined_rate * float(mean), float(best)
    return total / float(small.rate.sum()), z


def _sojourns(model: KindModel, loads: Loads) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Mean (s) and variance (s^2) of the time that chunks of small reads spend at nodes (T, ...), by their sizes."""
    nodes = model.problem.nodes
    wait = waiting(*np.asarray(node_work(Loads(*map(jnp.asarray, loads)), model.moments)))
    powers = powers_of(model.small.size)
    first, second = (np.asarray(nodes.service)[order] for order in (0, 1))

    def sojourn(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, two = (np.einsum("tp,pt...->t...", powers, each[:, at]) for each in (first, second))
        mean = one + np.asarray(nodes.connect_mean)[at] + np.asarray(wait.mean)[at]
        variance = np.maximum(two - one**2, 0.0) + np.asarray(nodes.connect_variance)[at]
        return mean, variance + np.asarray(wait.variance)[at]

    return sojourn


def kind_estimates(
    problem: Problem,
    probabilities: np.ndarray,
    stored: np.ndarray,
    model: KindModel,
    degraded: np.ndarray,
    service: ServiceLaw,
) -> KindEstimates:
    """Expected latencies under Poisson arrivals, first come, first served; infinite where a node is not stable.

    Args:
        problem: of the full reads.
        probabilities: (R, m) of these.
        stored: (R, m) bool, chunks that writes load.
        model: full and small reads.
        degraded: (T, N) x.
        service: laws of the m nodes.
    """
    nodes = problem.nodes
    parts = [
        _full(problem, probabilities),
        _direct(model, degraded),
        _direct_of_several(model, degraded),
        _degraded(model, degraded),
    ]
    group = np.repeat([0, 1, 1, 2], [len(each.rate) for each in parts])
    every = Kinds(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    drawn, rate = calibrated_sample(every, service)
    few = padded(Kinds(*(each[drawn] for each in every))._replace(rate=rate))
    group = np.append(group[drawn], np.full(len(few.rate) - len(drawn), 2))
    connect = nodes.connect_mean, nodes.connect_variance
    beside: ArrayLike = model.moments.beside
    load = Workload.of(few.rate, few.chunk_bytes, few.k, service, connect, beside)
    load = replace(load, common_writes=problem_writes(problem, stored, service))
    if len(every.rate) > len(drawn):
        load = replace(load, arrivals=arrivals_of(every, service))
    reads = jnp.asarray(few.probabilities)
    estimate = ESTIMATE(
        reads, load, groups=jnp.asarray(group), group_count=3, condensed=condense(reads, load)
    )
    there = np.bincount(group, few.rate, 3) > 0
    kind_mean = np.where(there, np.asarray(estimate.group_mean), np.nan)
    kind_quantiles = np.where(there[:, None], np.asarray(estimate.group_quantiles), np.nan)
    return KindEstimates(float(estimate.mean), np.asarray(estimate.quantiles), kind_mean, kind_quantiles)


def _full(problem: Problem, probabilities: np.ndarray) -> Kinds:
    if not np.asarray(problem.files.rate).any():
        empty = np.zeros(0)
        return Kinds(np.zeros((0, problem.nodes.count)), empty, empty, empty)
    return kinds_of(problem, probabilities)


def _left(model: KindModel, degraded: np.ndarray) -> np.ndarray:
    """Rates of the small reads that are direct, (T,) 1/s."""
    return np.maximum(model.small.rate * (1 - degraded.sum(axis=1) / model.small.k), 0.0)


def _direct(model: KindModel, degraded: np.ndarray) -> Kinds:
    """Direct reads of one chunk, of few kinds by size and the nodes they use, as it matters not whose they are."""
    small, m = model.small, model.problem.nodes.count
    left, alone = _left(model, degraded), small.width == 1
    sizes, of = np.unique(small.size, return_inverse=True)
    by_node = np.zeros((len(sizes), m))
    np.add.at(by_node, (of[alone], small.node[alone]), left[alone])
    part = np.arange(m) // _TOGETHER
    reads = np.where(part == np.arange(part[-1] + 1)[:, None, None], by_node[None], 0.0)
    size = np.broadcast_to(sizes, reads.shape[:2]).ravel()
    reads = reads.reshape(-1, m)
    total = reads.sum(axis=1)
    some = total > 0
    return Kinds(reads[some] / total[some, None], total[some], size[some], np.ones(some.sum()))


def _direct_of_several(model: KindModel, degraded: np.ndarray) -> Kinds:
    """Direct reads of several chunks, which wait for all of them."""
    small, left = model.small, _left(model, degraded)
    some = (small.width > 1) & (left > 0)
    return Kinds(
        at_nodes(small.nodes[some], 1.0, model.problem.nodes.count),
        left[some],
        small.size[some],
        small.width[some].astype(float),
    )


def _degraded(model: KindModel, degraded: np.ndarray) -> Kinds:
    small = model.small
    share = degraded.sum(axis=1) / small.k
    some = share > 1e-12
    reads = at_nodes(small.others[some], degraded[some] / share[some, None], model.problem.nodes.count)
    return Kinds(
        np.clip(reads, 0.0, 1.0),
        small.rate[some] * share[some],
        small.size[some],
        small.k[some].astype(float),
    )
