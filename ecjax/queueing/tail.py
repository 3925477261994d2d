"""A latency that can be promised: a bound on the tail that holds whatever the dependence between the nodes.

    Pr(T_i > x) <= min(1, sum_j pi_ij Pr(T_ij > x))

by the union over the nodes that are read; inverted, it bounds every quantile. Node tails are those of M/G/1 by
Pollaczek-Khinchine with every part (residual services, service, connection) rounded up to its lattice, the tail taken
at the lattice point below x, and the answer at the next of 768 points: each step errs upwards. Transforms are exact
to about 1e-7 of probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from ecjax.queueing.estimate import LEVELS
from ecjax.queueing.lattice import transform
from ecjax.queueing.service_law import Stalls
from ecjax.queueing.sojourn_law import ServedLaw, after_wait, common_points, served_law
from ecjax.queueing.wait_law import WaitLaw, wait_law
from ecjax.queueing.workload import Workload, node_arrivals, size_position

# The wait is a sum of up to 1 / (1 - rho) parts, each rounded up: a finer lattice than the estimate needs.
_WAIT_POINTS = 16384
_SERVICE_POINTS = 4096
_POINTS = 768
_BATCH = 64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TailBound:
    """Upper bounds on quantiles of the latency, s; infinite where a node that may be read is not stable."""

    quantiles: jax.Array  # (Q,) over all requests
    group_quantiles: jax.Array  # (G, Q); nan where nothing is read
    file_quantiles: jax.Array  # (r, Q)


def tail_bound(
    probabilities: ArrayLike,
    workload: Workload,
    levels: Sequence[float] = LEVELS,
    groups: ArrayLike | None = None,
    group_count: int = 0,
) -> TailBound:
    """Promised quantiles of the latency of every file, of groups of files, and of all requests.

    It is a bound for the tabulated service laws and Poisson arrivals, with two exceptions that are approximate as in
    ``estimate_latency``: of background work only moments are known, and of more than 16 chunk sizes the waits see
    those of their ranges (each file's own chunks are then rounded up to a computed size). It has no useful
    derivatives.

    Args:
        probabilities: pi, (r, m), rows sum to the k of their file.
        workload: files and nodes.
        levels: probabilities of the quantiles, in (0, 1).
        groups: group of each file, (r,), whole numbers below ``group_count``.
        group_count: G.
    """
    marginals = jnp.asarray(probabilities, float)
    arriving, arriving_bytes = node_arrivals(workload, marginals)
    reach = None if workload.channels is None else workload.service
    wait = wait_law(
        arriving, arriving_bytes, workload.work, workload.background, _WAIT_POINTS, upper=True, served=reach
    )
    served = served_law(workload.sizes, workload.service, workload.connect, wait, _SERVICE_POINTS, upper=True)
    index, part = size_position(workload)
    index = index + (part > 0).astype(index.dtype)
    sizes = workload.sizes.shape[0]
    reads = workload.rate[:, None] * marginals
    points = common_points(wait, served, jax.ops.segment_sum(reads, index, sizes), _POINTS)
    by_size = replace(served, stalls=None)
    tails = lax.map(lambda of_size: _node_tails(wait, served.stalls, *of_size), (by_size, points))

    def of_file(arguments):
        marginal, place = arguments
        # 0 at a node that is not read, be it stable or not
        return jnp.minimum(jnp.sum(marginal[:, None] * tails[place], axis=0), 1)

    def of_levels(arguments):
        tail = of_file(arguments)
        return _first(points[arguments[1]], tail, levels), tail

    file_quantiles, by_file = lax.map(of_levels, (marginals, index), batch_size=_BATCH)
    merged = jnp.sort(points.ravel())

    def of_share(rates):
        total = rates.sum()
        share = rates / jnp.where(total > 0, total, 1)
        by_size = jax.ops.segment_sum(share[:, None] * by_file, index, sizes)
        weight = jax.ops.segment_sum(share, index, sizes)

        def at(own_points, tail, weight):
            place = jnp.searchsorted(own_points, merged, side="right") - 1
            return jnp.where(place < 0, weight, tail[jnp.maximum(place, 0)])

        law = jnp.sum(jax.vmap(at)(points, by_size, weight), axis=0)
        return jnp.where(total > 0, _first(merged, law, levels), jnp.nan)

    every = of_share(workload.rate)
    if groups is None:
        by_group = jnp.zeros((0, len(levels)))
    else:
        member = jnp.asarray(groups)[None, :] == jnp.arange(group_count)[:, None]
        by_group = lax.map(of_share, jnp.where(member, workload.rate[None], 0))
    return TailBound(every, by_group, file_quantiles)


def _node_tails(wait: WaitLaw, stalls: Stalls | None, served: ServedLaw, x: jax.Array) -> jax.Array:
    """Upper bounds on Pr(T > x) of one chunk size, (m, X)."""
    later = after_wait(transform(wait.mass), served.coarse, wait.mass.shape[-1])

    def reached(sums, step, x=x):
        # a point that is on the lattice but for rounding counts as the one below
        index = jnp.floor(x / step * (1 - 1e-12)).astype(jnp.int32)
        return jnp.where(index < 0, 0, sums[jnp.clip(index, 0, sums.shape[0] - 1)])

    def of_service(sums, step, stalls):
        alone = reached(sums, step)
        if stalls is None:
            return alone
        shifted = jax.vmap(lambda time: reached(sums, step, x - time))(stalls.time)
        return (1 - jnp.sum(stalls.probability)) * alone + stalls.probability @ shifted

    at_once = wait.idle[:, None] * jax.vmap(of_service)(served.sums, served.step, stalls)
    value = at_once + jax.vmap(reached)(later, wait.step)
    return jnp.where(wait.stable[:, None], jnp.clip(1 - value, 0, 1), 1.0)


def _first(x: jax.Array, tail: jax.Array, levels: Sequence[float]) -> jax.Array:
    """First points where a falling tail is at most 1 - level, (Q,); inf where there is none."""
    small = tail[None, :] <= 1 - jnp.asarray(levels, float)[:, None]
    return jnp.where(small.any(axis=1), x[jnp.argmax(small, axis=1)], jnp.inf)
