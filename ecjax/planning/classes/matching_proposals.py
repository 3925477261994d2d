"""What every row of a block would do if it alone moved: a matching of its pairs to the nodes.

A pair is the probability with which a read of the row uses a node, and whether the node keeps a chunk of the row.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from optax.assignment import hungarian_algorithm

from ecjax.planning.classes.model import (
    ClassModel,
    class_waits,
    class_work,
    excess,
    kind_delays,
)
from ecjax.planning.classes.scheduling import Goal
from ecjax.planning.problem import Problem

# What a row gains less than this share of the objective by moving is rounding: it stays where it is.
LEAST_GAIN = 1e-12
# Elements of the arrays (rows of a block, pairs, kinds, nodes) that are worked on at a time.
_ELEMENTS = 4_000_000


class Nodes(NamedTuple):
    """What of the rows the nodes see."""

    reads: jax.Array  # (C, m) P
    other: jax.Array  # (3, K, m) work beside the reads
    chunks: jax.Array  # (m,) files with a chunk at the node


class Rows(NamedTuple):
    """B rows of a block."""

    probabilities: jax.Array  # (B, m)
    stored: jax.Array  # (B, m) bool
    mix: jax.Array  # (B, C)
    writes: jax.Array | None  # (B, 3, K, m) load, A_2 and A_3 of a class's writes at nodes that keep a chunk
    storing: jax.Array  # (B, m) s
    reading: jax.Array  # (B, m) s
    usable: jax.Array  # (B, m) bool
    chunks: jax.Array  # (B,) files of the row
    movable: jax.Array  # (B,) bool

    def charge(self, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
        """What a change of the pairs, (B, m) each, adds to what storage and reads cost at every node: (B, m) s."""
        return self.storing * stored + self.reading * probabilities


class Proposals(NamedTuple):
    """What every row would do."""

    probabilities: jax.Array  # (B, m)
    stored: jax.Array  # (B, m) bool
    gain: jax.Array  # (B,) fall of the objective if no other row moved, s; 0 where the row stays


def of_rows(model: ClassModel, goal: Goal, index: jax.Array, placement: tuple[jax.Array, jax.Array]) -> Rows:
    """The rows of a block.

    Args:
        model: with ``mix``.
        goal: the objective in force.
        index: (B,) the rows; R where there is none.
        placement: probabilities (R, m) and what is stored (R, m).
    """
    problem = model.problem
    row = jnp.minimum(index, problem.rows - 1)
    assert model.mix is not None
    writes = None
    if problem.writes is not None:
        each = jnp.einsum("npj,pB->Bnj", problem.nodes.service, problem.writes[:, row], precision="highest")
        member = model.row_class[row][:, None] == jnp.arange(model.classes, dtype=jnp.int32)[None]
        writes = jnp.where(member[:, None, :, None], each[:, :, None], 0.0)
    shape = (len(index), problem.nodes.count)
    return Rows(
        probabilities=placement[0][row],
        stored=placement[1][row],
        mix=model.mix[:, row].T,
        writes=writes,
        storing=goal.storing[row],
        reading=goal.reading[row],
        usable=jnp.ones(shape, bool) if problem.allowed is None else problem.allowed[row],
        chunks=problem.price_chunks[row],
        movable=goal.movable[row] & (index < problem.rows),
    )


def node_costs(
    model: ClassModel, price: jax.Array, reads: jax.Array, other: jax.Array, weights: jax.Array, z: jax.Array
) -> jax.Array:
    """sum_k price_k L_k by nodes, without the terms in z alone: (m,) s; infinite where a class is not stable."""
    wait = class_waits(model, class_work(model, reads, other), weights)
    late = reads * excess(model, kind_delays(model, wait, weights), z)
    each = (price / model.share)[model.kind_class]
    counted = jnp.where(each[:, None] > 0, each[:, None] * late, 0.0)
    stable = jnp.all(jnp.isfinite(wait.mean), axis=0)
    return jnp.where(stable, jnp.sum(counted, axis=0), jnp.inf)


def changes(rows: Rows, probabilities: jax.Array, stored: jax.Array) -> tuple[jax.Array, jax.Array | None]:
    """Changes of P, (B, C, m), and of other work, (B, 3, K, m), by changes of the pairs of every row, (B, m) each."""
    reads = rows.mix[:, :, None] * probabilities[:, None]
    return reads, None if rows.writes is None else rows.writes * stored[:, None, None]


def pair_costs(
    model: ClassModel, price: jax.Array, rows: Rows, nodes: Nodes, weights: jax.Array, z: jax.Array
) -> jax.Array:
    """The whole change of the objective by putting pair u of a row on node v: (B, m, m), [row, u, v], s.

    Its own reads, what they and the writes delay all other files of all classes at v, and what storage and reads cost.
    The paper's weights, (14), leave out the delay of the others, so that matchings by them can raise the objective.
    0 for leaving a pair where it is.
    """
    start = node_costs(model, price, nodes.reads, nodes.other, weights, z)

    def alone(reads: jax.Array, other: jax.Array | None) -> jax.Array:
        after = nodes.other if other is None else nodes.other + other
        return node_costs(model, price, nodes.reads + reads, after, weights, z) - start

    def of_pair(probability: jax.Array, stored: jax.Array) -> jax.Array:
        # nodes do not see each other: the pair is tried on all of them at once
        more = probability[:, None] - rows.probabilities
        chunks = stored[:, None].astype(more.dtype) - rows.stored.astype(more.dtype)
        return jax.vmap(alone)(*changes(rows, more, chunks)) + rows.charge(more, chunks)

    pairs = rows.probabilities.T, rows.stored.T
    several = rows.mix.size * pairs[0].shape[0] ** 2 <= _ELEMENTS
    tried = jax.vmap(of_pair)(*pairs) if several else lax.map(lambda pair: of_pair(*pair), pairs)
    return jnp.moveaxis(tried, 0, 1)


def propose(
    model: ClassModel,
    price: jax.Array,
    rows: Rows,
    nodes: Nodes,
    weights: jax.Array,
    z: jax.Array,
    worth: jax.Array,
) -> Proposals:
    """The best permutation of every row's pairs at this state of the nodes.

    Chunks do not go where they may not be, to full nodes, or from other sites to empty nodes of full ones; a
    permutation that still crowds a site is left out. Rows stay where moving is worth nothing.

    Args:
        model: with ``mix``.
        price: (K,) what a second of L_k counts.
        rows: a block.
        nodes: what the nodes see of all rows.
        weights: (K, m), of weighted queues.
        z: (K,) s.
        worth: what there is to gain at most, s.
    """
    stays = jnp.eye(model.problem.nodes.count, dtype=bool)[None]
    # what costs more than all there is to gain is no part of a gain
    prohibitive = 2 * worth
    cost = pair_costs(model, price, rows, nodes, weights, z)
    cost = jnp.where(_open(model.problem, rows, nodes) & (cost < prohibitive), cost, prohibitive)
    cost = jnp.where(stays, 0.0, cost)
    least = LEAST_GAIN * worth
    # between two matchings that are as good the one that leaves more where it is
    pair, node = jax.vmap(hungarian_algorithm)(jnp.where(stays, -least, cost))
    pair_of = jnp.zeros_like(pair).at[jnp.arange(len(pair))[:, None], node].set(pair)
    gain = -jnp.sum(jnp.take_along_axis(cost, pair_of[:, None], axis=1)[:, 0], axis=1)
    probabilities, stored = (
        jnp.take_along_axis(pairs, pair_of, axis=1) for pairs in (rows.probabilities, rows.stored)
    )
    moves = rows.movable & (gain > least)
    if model.problem.per_site is not None:
        crowd = jnp.maximum(_of_sites(model.problem, rows.stored), model.problem.per_site)
        moves = moves & jnp.all(_of_sites(model.problem, stored) <= crowd, axis=1)
    return Proposals(
        jnp.where(moves[:, None], probabilities, rows.probabilities),
        jnp.where(moves[:, None], stored, rows.stored),
        jnp.where(moves, gain, 0.0),
    )


def _open(problem: Problem, rows: Rows, nodes: Nodes) -> jax.Array:
    """Where a row's pair u may be tried on node v: (B, m, m) bool, [row, u, v]."""
    chunk = rows.stored[:, :, None]
    closed = chunk & ~rows.usable[:, None]
    arrives = chunk & ~rows.stored[:, None]
    if problem.capacity is not None:
        full = nodes.chunks[None] + rows.chunks[:, None] > problem.capacity[None]
        closed = closed | (arrives & full[:, None])
    if problem.per_site is not None:
        full = _of_sites(problem, rows.stored) >= problem.per_site
        closed = closed | (arrives & full[:, None] & ~_together(problem)[None])
    return ~closed


def _together(problem: Problem) -> jax.Array:
    """Whether two nodes are at one site: (m, m) bool."""
    assert problem.site is not None
    return problem.site[:, None] == problem.site[None]


def _of_sites(problem: Problem, stored: jax.Array) -> jax.Array:
    """Chunks of every row at the site of every node: (B, m) int."""
    return jnp.matmul(stored.astype(jnp.int32), _together(problem).astype(jnp.int32))
