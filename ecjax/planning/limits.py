"""Limits per site and node: a placement repaired to keep them where that is simple, and what still breaks them.

The published method plans for neither. What it leaves is repaired greedily, and not every placement can be: moving one
chunk at a time stops where only a chain of moves would help. ``violations`` says what is left.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ecjax.planning.placement import chunk_prices, code_lengths, first_of_sites, ranks, support
from ecjax.planning.problem import Problem, reading_prices


class Violation(NamedTuple):
    """How often a constraint is broken, and where first: a placement row, or for the capacity a node; -1 if never."""

    times: int
    first: int


def limited(problem: Problem) -> bool:
    """Whether sites or nodes have limits."""
    return problem.per_site is not None or problem.capacity is not None


def within_limits(problem: Problem, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
    """A placement with its limits kept as far as a greedy repair gets: (R, m) bool.

    Of the chunks of a row on a crowded site the most read ones stay; the cheapest allowed nodes elsewhere make up for
    the durability floor. Then rows, the least read first, move chunks from overfull nodes to the cheapest nodes with
    room, or drop them where the floor does not need them. Cheapest to keep a chunk on and read it at every access.

    Args:
        problem: the problem.
        probabilities: (R, m), of the reads.
        stored: (R, m) bool, on allowed nodes.
    """
    if problem.per_site is not None:
        stored = _within_sites(problem, probabilities, stored)
    if problem.capacity is not None:
        stored = _within_capacity(problem, stored)
    return stored


def _within_sites(problem: Problem, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
    hot = stored & support(probabilities)
    order = jnp.where(hot, -1 - probabilities, jnp.where(stored, -1.0, _costs(problem)))
    fits = first_of_sites(problem, order)
    return ranks(jnp.where(fits, order, jnp.inf)) < code_lengths(problem, hot & fits)[:, None]


def _within_capacity(problem: Problem, stored: jax.Array) -> jax.Array:
    assert problem.capacity is not None
    chunks = problem.price_chunks

    def repair(room: jax.Array, some: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        current, cost, each, floor = some
        allowed = current & (room >= 0)
        length = jnp.maximum(floor, allowed.sum(dtype=jnp.int32))
        order = jnp.where(current | (room < each), jnp.inf, cost)
        order = jnp.where(allowed, -1.0, order)
        if problem.per_site is not None:
            order = jnp.where(_first_of_sites(problem, order), order, jnp.inf)
        enough = jnp.sum(order < jnp.inf, dtype=jnp.int32) >= length
        placed = jnp.where(enough, ranks(order) < length, current)
        return room + (current.astype(room.dtype) - placed.astype(room.dtype)) * each, placed

    room = problem.capacity - jnp.matmul(chunks, stored.astype(chunks.dtype), precision="highest")
    turn = jnp.argsort(problem.row_share)
    rows = (stored, _costs(problem), chunks, problem.floor.astype(jnp.int32))
    repaired = lax.scan(repair, room, tuple(values[turn] for values in rows))[1]
    return jnp.zeros_like(stored).at[turn].set(repaired)


def _costs(problem: Problem) -> jax.Array:
    """What a chunk costs that a row is left to read from, infinite where it is not allowed: (R, m) dollars."""
    keeping, reading = chunk_prices(problem), reading_prices(problem)
    return keeping if reading is None else keeping + reading


def _first_of_sites(problem: Problem, order: jax.Array) -> jax.Array:
    """``first_of_sites`` of one row, (m,), all pairs of nodes at once."""
    site, rank = problem.site, ranks(order)
    assert site is not None and problem.per_site is not None
    before = (site[None] == site[:, None]) & (rank[None] < rank[:, None])
    return before.sum(axis=1, dtype=jnp.int32) < problem.per_site


def violations(problem: Problem, stored: np.ndarray) -> dict[str, Violation]:
    """How often a placement breaks each constraint, on the host.

    Args:
        problem: the problem.
        stored: (R, m) bool.

    Returns:
        By constraint, those that the problem has: ``floor`` (rows with fewer chunks than their floor), ``allowed``
        (chunks where they may not be), ``per_site`` (rows with a crowded site) and ``capacity`` (overfull nodes).
    """
    placement = np.asarray(stored, bool)
    by_constraint = {"floor": _broken(placement.sum(axis=1) < np.asarray(problem.floor))}
    if problem.allowed is not None:
        by_constraint["allowed"] = _broken((placement & ~np.asarray(problem.allowed)).sum(axis=1))
    if problem.per_site is not None:
        by_constraint["per_site"] = _broken(most_at_a_site(problem, placement) > problem.per_site)
    if problem.capacity is not None:
        by_constraint["capacity"] = _broken(
            np.asarray(problem.price_chunks) @ placement > np.asarray(problem.capacity)
        )
    return by_constraint


def keeps(problem: Problem, stored: np.ndarray | jax.Array) -> bool:
    """Whether a placement breaks no constraint.

    Args:
        problem: the problem.
        stored: (R, m) bool.
    """
    return not any(violation.times for violation in violations(problem, np.asarray(stored)).values())


def most_at_a_site(problem: Problem, stored: np.ndarray) -> np.ndarray:
    """Chunks that each row has at the site where it has most, (R,), on the host.

    Args:
        problem: with sites.
        stored: (R, m) bool.
    """
    most = np.zeros(len(stored), np.int64)
    site = np.asarray(problem.site)
    for each in np.unique(site):
        most = np.maximum(most, stored[:, site == each].sum(axis=1))
    return most


def _broken(times: np.ndarray) -> Violation:
    where = np.flatnonzero(times)
    return Violation(int(times.sum()), int(where[0]) if where.size else -1)
