"""Starts that every class can live with: the largest load, relative to what it may be, brought down.

Reads are spread by descent on norms of the loads, as for first come, first served; where that is not enough, rows that
use an overloaded node have their pairs of a probability and a chunk permuted over the nodes, one row at a time, each an
assignment problem, because powers of the loads are sums over nodes.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.optimize import linear_sum_assignment

from ecjax.planning.descent import Stopping, descend
from ecjax.planning.problem import Problem, step_scale, usable
from ecjax.planning.projection import project_hypersimplex
from ecjax.programs import program

# Norms of the loads that are brought down one after the other: the last is the largest load to 0.5 % on 100 nodes.
_NORMS = (16.0, 128.0, 1024.0)
_STOPPING = Stopping(eps=1e-6, max_iterations=300)
_POWER = 16.0  # of the loads, when rows are placed
_ROUNDS = 10
_WORTH_A_ROUND = 1e-3  # relative fall of the largest load


class Start(NamedTuple):
    """A plan to improve."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool, floor chunks in every row


def relieved(problem: Problem, start: Start, row_class: np.ndarray, most: np.ndarray) -> Start:
    """The start, or where some load is not below what it may be, one whose largest such ratio is lower.

    Rows keep their code lengths; limits of sites and nodes that held still hold.

    Args:
        problem: scaled.
        start: the start.
        row_class: (R,) which class each row belongs to.
        most: (K, m) share of every node that each class may load; other work goes with the last class.
    """
    member, allowed = _members(row_class, most), jnp.asarray(most, float)
    best, ratio = start, largest_ratio(problem, start, row_class, most)
    latest = start
    for turn in range(_ROUNDS):
        if ratio < 1:
            break
        latest = Start(_spread(problem, member, allowed, *latest), latest.stored)
        after = largest_ratio(problem, latest, row_class, most)
        settled = turn > 0 and after > ratio * (1 - _WORTH_A_ROUND)
        best, ratio = (latest, after) if after < ratio else (best, ratio)
        if settled:
            break
        latest = _placed(problem, np.asarray(row_class), np.asarray(most), latest)
    return best


def largest_ratio(problem: Problem, start: Start, row_class: np.ndarray, most: np.ndarray) -> float:
    """The largest load of a class at a node, relative to what it may be; arguments as of ``relieved``."""
    return float(jnp.max(_RATIOS(problem, _members(row_class, most), jnp.asarray(most, float), *start)))


def _members(row_class: np.ndarray, most: np.ndarray) -> jax.Array:
    """Which rows belong to which class, (K, R) of 0 and 1."""
    return jnp.asarray(np.asarray(row_class)[None] == np.arange(len(most))[:, None], float)


def _ratios(
    problem: Problem, member: jax.Array, most: jax.Array, probabilities: jax.Array, stored: jax.Array
) -> jax.Array:
    """Loads of the classes, relative to what they may be, (K, m)."""
    sums = jnp.einsum("kR,pR,Rj->pkj", member, problem.reads, probabilities, precision="highest")
    if problem.writes is not None:
        chunks = stored.astype(probabilities.dtype)
        sums = sums + jnp.einsum("kR,pR,Rj->pkj", member, problem.writes, chunks, precision="highest")
    load = jnp.einsum("pj,pkj->kj", problem.nodes.service[0], sums, precision="highest")
    return load.at[-1].add(problem.nodes.background[0]) / most


_RATIOS = program(_ratios)


@partial(program, quick=True)
def _spread(
    problem: Problem, member: jax.Array, most: jax.Array, start: jax.Array, stored: jax.Array
) -> jax.Array:
    """Probabilities (R, m) on the stored chunks whose largest ratio is next to the least."""
    zero = jnp.zeros((), start.dtype)

    def project(point: jax.Array) -> jax.Array:
        return project_hypersimplex(point, problem.k, mask=stored.astype(start.dtype))

    def norm(point: jax.Array, power: jax.Array) -> jax.Array:
        ratio = _ratios(problem, member, most, point, stored)
        peak = lax.stop_gradient(jnp.max(ratio))
        return peak * jnp.sum((ratio / peak) ** power) ** (1 / power)

    def lower(point: jax.Array, power: jax.Array) -> tuple[jax.Array, None]:
        def smooth(trial: jax.Array, aux: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            value, slope = jax.value_and_grad(partial(norm, power=power))(trial)
            return value, aux, slope

        return descend(smooth, None, project, point, zero, step_scale(problem), _STOPPING).point, None

    return lax.scan(lower, start, jnp.asarray(_NORMS, start.dtype))[0]


def _placed(problem: Problem, row_class: np.ndarray, most: np.ndarray, start: Start) -> Start:
    """Permute the pairs of rows that use an overloaded node, those that load nodes most first."""
    probabilities, stored = np.array(start.probabilities), np.array(start.stored)
    first = np.asarray(problem.nodes.service[0])
    per_read = np.asarray(problem.reads).T @ first / most[row_class]
    written = np.zeros_like(per_read)
    if problem.writes is not None:
        written = np.asarray(problem.writes).T @ first / most[row_class]
    ratio = np.zeros(most.shape)
    np.add.at(ratio, row_class, per_read * probabilities + written * stored)
    ratio[-1] += np.asarray(problem.nodes.background[0]) / most[-1]
    may = np.asarray(usable(problem))
    weight = np.asarray(problem.price_chunks)
    capacity = np.full(len(first[0]), np.inf) if problem.capacity is None else np.asarray(problem.capacity)
    held = weight @ stored
    for row in np.argsort(-per_read.mean(axis=1) * np.asarray(problem.k), kind="stable"):
        k, p, s = row_class[row], probabilities[row], stored[row]
        used = per_read[row] * p + written[row] * s
        if not np.any((ratio[k] >= 1) & (used > 0)):
            continue
        peak = ratio[k].max()
        rest = ratio[k] - used
        tried = rest + p[:, None] * per_read[row] + s[:, None] * written[row]
        cost = (tried / peak) ** _POWER
        full = ~s & (held + weight[row] > capacity)
        closed = s[:, None] & (~may[row] | full)
        prohibitive = 1 + cost.sum()
        pair, node = linear_sum_assignment(np.where(closed, prohibitive, cost))
        where = np.empty_like(node)
        where[node] = pair
        stays = np.arange(len(p))
        gain = cost[stays, stays].sum() - cost[where, stays].sum()
        if closed[where, stays].any() or not gain > 1e-9 or _crowds(problem, s, s[where]):
            continue
        probabilities[row], stored[row] = p[where], s[where]
        ratio[k] = tried[where, stays]
        held += weight[row] * (s[where].astype(float) - s)
    return Start(jnp.asarray(probabilities), jnp.asarray(stored))


def _crowds(problem: Problem, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether a row would have more chunks at some site than it may, and than it had."""
    if problem.per_site is None:
        return False
    site = np.asarray(problem.site)
    count = [np.bincount(site - site.min(), placement) for placement in (after, before)]
    return bool(np.any(count[0] > np.maximum(count[1], problem.per_site)))
