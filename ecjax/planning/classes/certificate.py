"""How much better the reads of a class could be spread: a lower bound by prices of the nodes.

For fixed placement, weights, z and reads of the other classes, the objective in force depends on class k, of one chunk
size, through its reads x_j = P_kj at every node and through tolls:

    F(pi) = sum_j Phi_j(x_j) + sum_i tolls_i . pi_i + constant,   x_j = sum_{i of class k} (lambda_i/lambda_hat) pi_ij,
    Phi_j(x) = sum_l (c_l + mu_l) / share_l sum_{c of class l} P_cj excess_cj,   mu_l the multiplier of L_l's limit.

With the prices y_j = Phi_j'(x_j) at the plan, for every spread of the reads

    F >= sum_j min_x [Phi_j(x) - y_j x] + sum_i min_pi (share_i y + tolls_i) . pi + constant.

The last minimum is over the chunks of row i, its k cheapest. Where Phi_j is convex the first is taken at the plan's own
x_j, and what the plan is above the bound is its Frank-Wolfe gap. Elsewhere it is searched for on a grid.

What is convex, for x >= 0 and any z (G the excess, E and V mean and variance of the delay):

- x G = [x (E - z) + |(x (E - z), x sqrt(V))|] / 2 is convex where x E and x sqrt(V) are, because (d + |(d, s)|) / 2 is
  convex and rises with d and with s >= 0.
- M/G/1, so every class of weighted queues (proved): with A_n = a_n + b_n x and 1 - rho = i - b_1 x, all >= 0, the wait
  W = A_2 / 2(1 - rho) is convex, >= 0 and rising, and so is x W. x sqrt(V) = |(x sqrt(v), x sqrt(A_3 / 3(1 - rho)),
  x W)|, v the variance of the service, is the norm of convex functions >= 0: x sqrt(A_3) is convex (its second
  derivative is b_3 (1 - b_3 x / 4 A_3) / sqrt(A_3)), rises, and is multiplied by (1 - rho)^-1/2, which does both too.
- Own part of the last class under priority (proved): with a and B of the classes before it, constants here,
  V[W] = [A_3 / 3a^2 + A_2 B / 2a^3] / b + W^2, of the same form.
- Own part of a class under priority that others follow: NOT convex in general. Their residual work L leaves
  V[W] = ... + (C^2 - L^2) / 4a^2b^2, which falls in x where the others nearly fill the node: with long accesses of
  theirs, short ones of its own and z well above E, x G is concave.
- Parts of other classes that count under priority: NOT convex in general. Their deviation is like sqrt(A_3) where the
  third moments are large.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ecjax.planning.classes.model import (
    ClassModel,
    class_waits,
    class_work,
    excess,
    kind_delays,
    kind_reads,
    latencies_at,
    of_rows_by_kind,
)
from ecjax.planning.classes.scheduling import Fixed, Goal
from ecjax.programs import program

_POINTS = 512  # of a grid
_POINTS_MANY_KINDS = 64  # where one evaluation takes as long as thousands of files
_ZOOMS = 3  # grids, each around the best point of the one before
_BATCH = 2**18  # numbers per evaluation of a part of a grid
_INSIDE = 1 - 1e-6  # of what is left of a node, so that grids end inside the stable domain


class Gaps(NamedTuple):
    """How far a plan may be above the best spread of reads, relative to the objective in force."""

    by_class: jax.Array  # (K,) the other classes as they are; nan where a class has several chunk sizes
    joint: jax.Array  # () all classes at once; nan under priority, and where one of ``by_class`` is


@partial(program, quick=True)
def scheduling_gap(
    model: ClassModel,
    goal: Goal,
    fixed: Fixed,
    probabilities: jax.Array,
    z: jax.Array,
    multiplier: jax.Array,
) -> Gaps:
    """Bound from above how much a better spread of the movable rows could lower the objective in force.

    (objective - lower bound) / objective, at most 1, with tolls and at the given z, for fixed placement and weights.
    For weighted queues the bound is proved; under priority it is as good as the grid on which each node's part is
    searched (see above), and exact where that part is convex. With limits the bound is that of the Lagrangian, right
    for any multipliers >= 0: it holds for spreads that keep every limit, or break it no further than the plan.

    Args:
        model: the model.
        goal: the objective in force; rows that are not movable keep their reads.
        fixed: placement and weights.
        probabilities: (R, m) the plan, every class stable.
        z: (K,) s.
        multiplier: (K,) of the limits, >= 0.
    """
    reads = kind_reads(model, probabilities)
    latency, pull = jax.vjp(lambda p: latencies_at(model, p, fixed.other, fixed.weights, z), reads)
    limited = jnp.isfinite(goal.limit)
    multiplier = jnp.where(limited, multiplier, 0.0)
    counted = goal.coefficient + multiplier
    by_kind = pull(counted)[0]

    slope = of_rows_by_kind(model, by_kind) + goal.reading
    cheapest = _cheapest(jnp.where(fixed.stored, slope, jnp.inf), model.problem.k)
    by_row = jnp.where(goal.movable, jnp.sum(slope * probabilities, axis=1) - cheapest, 0.0)
    classes = jnp.arange(model.classes, dtype=jnp.int32)[:, None]
    membership = (model.row_class[None] == classes).astype(by_row.dtype)
    above = jnp.matmul(membership, jnp.maximum(by_row, 0.0), precision="highest")
    room = jnp.where(fixed.stored & goal.movable[:, None], model.problem.row_share[:, None], 0.0)
    room = jnp.matmul(membership, room, precision="highest")

    of_class = model.kind_class[None] == classes
    kind = jnp.argmax(of_class, axis=1)
    one_size = jnp.sum(of_class, axis=1) == 1
    if model.queue == "priority":
        movable = jnp.where(goal.movable[:, None], model.problem.row_share[:, None] * probabilities, 0.0)
        least = reads[kind] - jnp.matmul(membership, movable, precision="highest")
        part = partial(_bent, model, fixed, reads, z, counted, by_kind)

        def bent(arguments):
            kind, least, room, useful = arguments
            return jax.lax.cond(useful, part, lambda *_: jnp.zeros(()), kind, least, room)

        useful = one_size & jnp.any(room > 0, axis=1)
        above = above + jax.lax.map(bent, (kind, least, room, useful))

    slack = jnp.where(limited, jnp.maximum(jnp.where(limited, goal.limit, 0.0) - latency, 0.0), 0.0)
    unused = multiplier * slack
    # limits on classes that are not touched say nothing about this one
    above = above + (unused if model.queue == "weighted" else jnp.sum(unused))
    gaps = jnp.where(one_size, above / goal.value(latency, probabilities, fixed.stored), jnp.nan)
    together = model.queue == "weighted" or model.classes == 1
    joint = jnp.sum(gaps) if together else jnp.full((), jnp.nan, gaps.dtype)
    # no objective is below 0, whatever the prices say of a plan far from its best
    return Gaps(jnp.minimum(gaps, 1.0), jnp.minimum(joint, 1.0))


def _cheapest(cost: jax.Array, k: jax.Array) -> jax.Array:
    """Least cost of k chunks of every row: (R,), for costs (R, m), infinite where there is no chunk."""
    ranked = jnp.sort(cost, axis=1)
    part = jnp.clip(k[:, None] - jnp.arange(cost.shape[1], dtype=k.dtype)[None], 0, 1)
    return jnp.sum(jnp.where(part > 0, part * ranked, 0.0), axis=1)


def _bent(
    model: ClassModel,
    fixed: Fixed,
    reads: jax.Array,
    z: jax.Array,
    counted: jax.Array,
    by_kind: jax.Array,
    kind: jax.Array,
    least: jax.Array,
    room: jax.Array,
) -> jax.Array:
    """What Phi_j(x) - y_j x is above its minimum over x at the plan, over all nodes: (); 0 where Phi is convex.

    Args:
        model: the model.
        fixed: placement and weights.
        reads: P, (C, m).
        z: (K,) s.
        counted: (K,) c + mu.
        by_kind: (C, m) derivatives, y in the row of the kind.
        kind: () the only one of its class.
        least: (m,) reads of rows that do not move.
        room: (m,) reads that the others can add.
    """
    plan, price = reads[kind], by_kind[kind]
    # what is left of a node bounds the reads too
    nodes, size = model.problem.nodes, model.kind_bytes[kind]
    load = jnp.sum(class_work(model, reads, fixed.other)[0], axis=0)
    powers = size ** jnp.arange(4.0)
    per_read = jnp.sum(model.problem.files.rate) * jnp.sum(nodes.service[0] * powers[:, None], axis=0)
    spare = (1 - load) / jnp.where(per_read > 0, per_read, 1.0)
    most = jnp.where(per_read > 0, plan + _INSIDE * spare, jnp.inf)
    low, high = jnp.minimum(least, plan), jnp.maximum(jnp.minimum(least + room, most), plan)
    per_class = jnp.where(counted > 0, counted, 0.0) / model.share

    def priced(x: jax.Array) -> jax.Array:
        trial = reads.at[kind].set(x)
        wait = class_waits(model, class_work(model, trial, fixed.other), fixed.weights)
        late = trial * excess(model, kind_delays(model, wait, fixed.weights), z)
        return jnp.matmul(per_class[model.kind_class], late, precision="highest") - price * x

    points = _POINTS if model.mix is not None else _POINTS_MANY_KINDS
    batch = max(1, min(points, _BATCH // reads.size))
    steps = jnp.linspace(-1.0, 1.0, points)[:, None]
    at_plan = priced(plan)

    def zoom(_, carry):
        centre, width, best, value = carry
        grid = jnp.clip(centre[None] + width[None] * steps, low[None], high[None])
        values = jax.lax.map(priced, grid, batch_size=batch)
        where = jnp.argmin(values, axis=0)[None]
        least = jnp.take_along_axis(values, where, axis=0)[0]
        best = jnp.where(least < value, jnp.take_along_axis(grid, where, axis=0)[0], best)
        return best, width * (2.0 / (points - 1)), best, jnp.minimum(least, value)

    start = (0.5 * (low + high), 0.5 * (high - low), plan, at_plan)
    lowest = jax.lax.fori_loop(0, _ZOOMS, zoom, start)[3]
    return jnp.sum(at_plan - lowest)
