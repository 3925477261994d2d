"""Placement by matching (section IV-A of the differentiated-latency paper), many rows at a time.

The probabilities of a row are permuted over the nodes, together with its chunks, for given z; which node gets which is
an assignment problem, because for fixed z the objective is a sum over nodes. Row by row that is a descent, and a slow
one: rows are taken in blocks. All rows of a block are matched at the same state of the nodes; the objective is then
found exactly for the first one, two, ... of them, in the order of what they promised, and the best of these prefixes
is taken, if any lowers the objective. What every row alone would do, too many together would regret.

Limits on latencies enter what rows are matched by with multipliers: once they are reached, a matching by the objective
alone would propose nothing but what they forbid.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ecjax.planning.classes.matching_kinds import fewer_kinds
from ecjax.planning.classes.matching_proposals import (
    LEAST_GAIN,
    Nodes,
    Proposals,
    Rows,
    changes,
    node_costs,
    of_rows,
    propose,
)
from ecjax.planning.classes.model import ClassModel, class_work, kind_reads, latencies_at, stable
from ecjax.planning.classes.scheduling import Fixed, Goal
from ecjax.programs import program

_LEAST_BLOCK, _LARGEST_BLOCK = 16, 64  # rows
_SECTIONS = 16  # of a pass, each checked with all kinds
# Limits keep so much off what they are, relative, that sums in another order still find them kept.
_ROUNDING = 1e-10
# A limit counts so much more in the next block if it alone kept moves from being made, and so much less if not.
_DEARER, _CHEAPER = 2.0, 0.8


class Placed(NamedTuple):
    """Result of ``place``."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool
    moved: jax.Array  # () int, rows that changed
    value: jax.Array  # () s, objective at the given z


class _Point(NamedTuple):
    """A placement and what it is worth."""

    probabilities: jax.Array  # (R, m)
    stored: jax.Array  # (R, m) bool
    other: jax.Array  # (3, K, m) work beside the reads
    value: jax.Array  # () s
    latency: jax.Array  # (K,) s
    multiplier: jax.Array  # (K,)


class _State(NamedTuple):
    """What the blocks of a section hand on."""

    nodes: Nodes
    charge: jax.Array  # () s, what storage and reads cost
    value: jax.Array  # () s
    latency: jax.Array  # (K,) s
    multiplier: jax.Array  # (K,) what a second of latency counts beside the objective, for its limit


@program
def place(
    model: ClassModel,
    goal: Goal,
    fixed: Fixed,
    probabilities: jax.Array,
    z: jax.Array,
    key: jax.Array,
) -> Placed:
    """One pass over the movable rows, in random order; the objective at these z never rises.

    A row keeps its pairs of a probability and a chunk, so that code lengths and the sums of its probabilities stay.
    No limit on a latency, a site or a node that held is broken, and none that was broken is broken further. With more
    than ``MOST_KINDS`` kinds of files (``matching_kinds``) moves are chosen with kinds merged, and sections of the pass
    that turn out not to lower the objective with all of them are undone.

    Args:
        model: the model.
        goal: the objective in force.
        fixed: placement, other work and weights before; every class stable.
        probabilities: (R, m), on stored chunks.
        z: (K,) s.
        key: of the order of the rows.
    """
    coarse = fewer_kinds(model)
    sections = 1 if coarse is model else _SECTIONS
    rows = model.problem.rows
    block = min(max(rows // _LARGEST_BLOCK, _LEAST_BLOCK), _LARGEST_BLOCK, -(-rows // sections))
    blocks = -(-rows // (block * sections))
    # rows that may not move come last, in blocks that are passed over
    order = jnp.argsort(jnp.where(goal.movable, 0.0, 1.0) + jax.random.uniform(key, (rows,)))
    padded = jnp.full(sections * blocks * block, rows, order.dtype).at[:rows].set(order)
    value, latency = _exact(model, goal, probabilities, fixed.stored, fixed.other, fixed.weights, z)
    # sums in another order are off by rounding
    limit = jnp.maximum(goal.limit, latency * (1 + _ROUNDING))

    def section(before: _Point, index: jax.Array) -> tuple[_Point, None]:
        after = _blocks(model, coarse, goal, fixed.weights, z, before, index)
        better = (after.value < before.value) & jnp.all(after.latency <= limit)
        point = jax.tree.map(lambda new, old: jnp.where(better, new, old), after, before)
        return point._replace(multiplier=after.multiplier), None

    multiplier = _first_multiplier(goal.limit, value, latency)
    start = _Point(probabilities, fixed.stored, fixed.other, value, latency, multiplier)
    end = lax.scan(section, start, padded.reshape(sections, blocks, block))[0]
    moved = jnp.any((end.probabilities != probabilities) | (end.stored != fixed.stored), axis=1)
    return Placed(end.probabilities, end.stored, jnp.sum(moved), end.value)


def _first_multiplier(limit: jax.Array, value: jax.Array, latency: jax.Array) -> jax.Array:
    """At a limit one per cent of it counts as much as one of the objective, half way off next to nothing; (K,)."""
    finite = jnp.where(jnp.isfinite(limit), limit, 1.0)
    return jnp.where(jnp.isfinite(limit), value / finite * (latency / finite) ** 4, 0.0)


def _exact(
    model: ClassModel,
    goal: Goal,
    probabilities: jax.Array,
    stored: jax.Array,
    other: jax.Array,
    weights: jax.Array,
    z: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Objective and latencies (K,) of a placement, with all kinds."""
    latency = _latencies(model, kind_reads(model, probabilities), other, weights, z)
    return goal.value(latency, probabilities, stored), latency


def _latencies(
    model: ClassModel, reads: jax.Array, other: jax.Array, weights: jax.Array, z: jax.Array
) -> jax.Array:
    """L_k at given z, infinite where a class is not stable at a node: (K,) s."""
    latency = latencies_at(model, reads, other, weights, z)
    return jnp.where(stable(model, class_work(model, reads, other), weights), latency, jnp.inf)


def _value(goal: Goal, latency: jax.Array, charge: jax.Array) -> jax.Array:
    """``goal.value`` where it is known what storage and reads cost."""
    return jnp.sum(jnp.where(goal.coefficient > 0, goal.coefficient * latency, 0.0)) + charge


def _blocks(
    model: ClassModel,
    coarse: ClassModel,
    goal: Goal,
    weights: jax.Array,
    z: jax.Array,
    before: _Point,
    index: jax.Array,
) -> _Point:
    """Take the blocks of rows ``index`` (blocks, B) one after the other."""
    reads = kind_reads(coarse, before.probabilities)
    gap, offset = jnp.zeros_like(before.other), jnp.zeros_like(before.latency)
    if coarse is not model:
        # merged kinds do the work of all kinds, and are as late, at the start
        gap = class_work(model, kind_reads(model, before.probabilities), before.other) - class_work(
            coarse, reads, before.other
        )
        offset = before.latency - _latencies(coarse, reads, before.other + gap, weights, z)
    chunks = jnp.matmul(model.problem.price_chunks, before.stored.astype(reads.dtype), precision="highest")
    start = _State(
        Nodes(reads, before.other + gap, chunks),
        before.value - _value(goal, before.latency, jnp.zeros(())),
        before.value,
        before.latency,
        before.multiplier,
    )

    def latencies(nodes: Nodes) -> jax.Array:
        return offset + _latencies(coarse, nodes.reads, nodes.other, weights, z)

    def step(state: _State, block: jax.Array) -> tuple[_State, tuple[jax.Array, jax.Array]]:
        rows = of_rows(coarse, goal, block, (before.probabilities, before.stored))

        def move() -> tuple[_State, tuple[jax.Array, jax.Array]]:
            price = jnp.where(goal.coefficient > 0, goal.coefficient, 0.0) + state.multiplier
            late = node_costs(coarse, price, state.nodes.reads, state.nodes.other, weights, z)
            worth = jnp.sum(late) + state.charge
            proposals = propose(coarse, price, rows, state.nodes, weights, z, worth)
            return _best_prefix(goal, model.problem.capacity, latencies, rows, state, proposals)

        return lax.cond(jnp.any(rows.movable), move, lambda: (state, (rows.probabilities, rows.stored)))

    end, (probabilities, stored) = lax.scan(step, start, index)
    flat = index.reshape(-1)
    after = (
        before.probabilities.at[flat].set(probabilities.reshape(len(flat), -1), mode="drop"),
        before.stored.at[flat].set(stored.reshape(len(flat), -1), mode="drop"),
    )
    other = end.nodes.other - gap
    value, latency = _exact(model, goal, *after, other, weights, z)
    return _Point(*after, other, value, latency, end.multiplier)


def _best_prefix(
    goal: Goal,
    capacity: jax.Array | None,
    latencies: Callable[[Nodes], jax.Array],
    rows: Rows,
    state: _State,
    proposals: Proposals,
) -> tuple[_State, tuple[jax.Array, jax.Array]]:
    """Take as many of the proposals, those that promise most first, as lower the objective most.

    Returns:
        The state after them, and probabilities and stored chunks (B, m) of the rows.
    """
    turn = jnp.argsort(-proposals.gain)
    more = proposals.probabilities - rows.probabilities
    chunks = proposals.stored.astype(more.dtype) - rows.stored.astype(more.dtype)
    reads, writes = changes(rows, more, chunks)

    def through(now: jax.Array, values: jax.Array) -> jax.Array:
        return now[None] + jnp.cumsum(values[turn], axis=0)

    count = len(turn)
    other = state.nodes.other
    nodes = Nodes(
        through(state.nodes.reads, reads),
        jnp.broadcast_to(other[None], (count, *other.shape)) if writes is None else through(other, writes),
        through(state.nodes.chunks, rows.chunks[:, None] * chunks),
    )
    charge = through(state.charge, jnp.sum(rows.charge(more, chunks), axis=1))
    latency = jax.vmap(latencies)(nodes)
    value = jax.vmap(partial(_value, goal))(latency, charge)
    fine = jnp.all(jnp.isfinite(latency), axis=1)
    if capacity is not None:
        fine = fine & jnp.all(nodes.chunks <= jnp.maximum(capacity, state.nodes.chunks)[None], axis=1)
    value = jnp.where(fine, value, jnp.inf)
    over = latency > jnp.maximum(goal.limit * (1 - _ROUNDING), state.latency)[None]
    lowest = jnp.argmin(value)
    hindered = over[lowest] & (value[lowest] < state.value)
    multiplier = state.multiplier * jnp.where(hindered, _DEARER, _CHEAPER)
    allowed = jnp.where(jnp.any(over, axis=1), jnp.inf, value)
    best = jnp.argmin(allowed)
    accepted = allowed[best] < state.value * (1 - LEAST_GAIN)
    following = _State(
        jax.tree.map(lambda part: part[best], nodes), charge[best], value[best], latency[best], multiplier
    )
    after = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), following, state)
    moves = accepted & jnp.zeros(count, bool).at[turn].set(jnp.arange(count) <= best)
    return after._replace(multiplier=multiplier), (
        jnp.where(moves[:, None], proposals.probabilities, rows.probabilities),
        jnp.where(moves[:, None], proposals.stored, rows.stored),
    )
