"""A start for weighted queues: which nodes serve which classes, searched for on whole classes.

Shares of a node and reads of classes are not convex together: a strict share is slow, and a node that serves one
class alone is fast, so the objective has a valley for every way to divide the nodes, and descending from a balanced
start ends in a shallow one (twice the best objective for two classes on twelve nodes). But it depends on the reads of
whole classes only (``model``), so the valleys are looked at with one row per class and k: random divisions and changes
of the best, each descended in reads with the best shares for them. Files are then placed so that their reads add up to
those of the best.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning import limits, placement
from ecjax.planning.classes.model import (
    ClassModel,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    latencies_at,
    of_rows_by_kind,
    other_work,
    tolls,
)
from ecjax.planning.classes.relief import Start, largest_ratio, relieved
from ecjax.planning.classes.scheduling import Goal
from ecjax.planning.classes.together import Call, alone
from ecjax.planning.classes.weights import least_weights, on_simplex, weigh
from ecjax.planning.descent import Stopping, descend
from ecjax.planning.problem import Problem, prepare, step_scale, usable
from ecjax.planning.projection import project_hypersimplex
from ecjax.programs import program

_TOGETHER = 24  # descents at once
_RANDOM, _CHANGES = 2, 3  # rounds of random divisions, and of changes of the best
_BLENDS = (1.0, 0.8, 0.6, 0.4, 0.2)  # of a division with the balanced reads, the first that overloads no node
_MOST_LOAD = 0.97
_STOPPING = Stopping(eps=1e-5, max_iterations=150)
_GOLDEN = 0.6180339887498949  # its multiples spread evenly


class _Valley(NamedTuple):
    """Where a descent ended."""

    value: float  # s
    reads: jax.Array  # (A, m), a row per class and k


def search_start(
    model: ClassModel,
    balanced: Start,
    importance: tuple[float, ...],
    theta: float,
    seed: int,
    call: Call = alone,
) -> Start:
    """A placement whose reads are those of the best division of the nodes.

    The balanced start where limits forbid it, or where it overloads a node and the balanced start does not.

    Args:
        model: of weighted queues.
        balanced: a stable start.
        importance: (K,) C_k.
        theta: s per dollar of mean cost per file.
        seed: of the divisions.
        call: runs the descents.
    """
    problem, rng = model.problem, np.random.default_rng(seed)
    of_file = np.asarray(model.kind_class)[np.asarray(model.kind_of_file)]
    pairs = np.stack([of_file, np.asarray(problem.files.k)])
    rows, of_row = np.unique(pairs, axis=1, return_inverse=True)
    of_row = of_row.reshape(-1)
    whole = replace(
        prepare(problem.nodes, problem.files, of_row, rows.shape[1]),
        surcharge=problem.surcharge,
        reading=problem.reading,
    )
    classes = class_model(whole, of_file, model.classes, model.queue)
    stored = np.asarray(_mean(balanced.stored, of_row, problem, rows.shape[1]))
    descents = _Descents(classes, stored, _goal(classes, importance, theta), call)
    start = _mean(balanced.probabilities, of_row, problem, rows.shape[1])
    best = _divided(descents, start, rng)
    start_point = _placed(problem, best.reads, of_row, theta, rng)
    if not limits.keeps(problem, start_point.stored):
        return balanced
    alike = np.zeros(problem.rows, int), np.ones((1, problem.nodes.count))
    point = relieved(problem, start_point, *alike)
    # few files may not add up to the reads of their class: nodes they overload need not come down one row at a time
    stable = largest_ratio(problem, point, *alike) < 1 or largest_ratio(problem, balanced, *alike) >= 1
    return point if stable else balanced


def _mean(values: jax.Array, of_row: np.ndarray, problem: Problem, count: int) -> jax.Array:
    """Row values (R, m) averaged over the files of each class and k, weighted by reads: (A, m)."""
    by_file = (
        np.asarray(values, float)
        if problem.row is None
        else np.asarray(values, float)[np.asarray(problem.row)]
    )
    share = np.maximum(np.asarray(problem.share), 1e-12)
    total = np.stack([np.bincount(of_row, share * column, count) for column in by_file.T], axis=1)
    return jnp.asarray(total / np.bincount(of_row, share, count)[:, None])


def _goal(model: ClassModel, importance: tuple[float, ...], theta: float) -> Goal:
    """The objective over whole classes."""
    storing, reading = tolls(model, theta)
    # a chunk is paid for where it is read: cold ones are placed later
    return Goal(
        jnp.asarray(importance, float) * model.share,
        jnp.full(model.classes, jnp.inf),
        jnp.zeros_like(storing),
        storing + reading,
        jnp.ones(model.problem.rows, bool),
    )


class _Descents:
    """Descents in reads of whole classes, the best shares for them followed."""

    def __init__(self, model: ClassModel, stored: np.ndarray, goal: Goal, call: Call) -> None:
        self.model, self.goal, self._call = model, goal, call
        self.other = other_work(model, jnp.asarray(stored))

    def divided(self, member: np.ndarray, balanced: jax.Array) -> list[jax.Array]:
        """Reads (A, m) by as many divisions, the first blend of each that overloads no node; without those that all do.

        Args:
            member: (``_TOGETHER``, A, m), speed of a node that serves a row, as part of the fastest one's; else 0.
            balanced: (A, m) reads.
        """
        reads, fine = self._call(_DIVIDE, self.model, self.other, balanced, jnp.asarray(member))
        return [reads[i] for i in np.flatnonzero(np.asarray(fine))]

    def __call__(self, starts: list[jax.Array]) -> list[_Valley]:
        """Where descents from at most ``_TOGETHER`` starts end."""
        padded = starts + [starts[-1]] * (_TOGETHER - len(starts))
        value, reads = self._call(_DESCEND, self.model, self.goal, self.other, jnp.stack(padded))
        return [_Valley(float(value[i]), reads[i]) for i in range(len(starts))]


def _divide(
    model: ClassModel, other: jax.Array, balanced: jax.Array, member: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Reads (A, m) of a division, as near to it as no node is overloaded, and whether there are any."""
    problem = model.problem
    alone = project_hypersimplex(problem.nodes.count * member, problem.k)
    share = jnp.asarray(np.array(_BLENDS))[:, None, None]
    blended = share * alone[None] + (1 - share) * balanced[None]
    load = jax.vmap(lambda reads: class_work(model, kind_reads(model, reads), other)[0].sum(axis=0))(blended)
    fine = jnp.max(load, axis=1) < _MOST_LOAD
    return blended[jnp.argmax(fine)], jnp.any(fine)


_DIVIDE = program(jax.vmap(_divide, (None, None, None, 0)), quick=True)


def _descend(
    model: ClassModel, goal: Goal, other: jax.Array, start: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Objective, s, and reads (A, m) where a descent ends."""
    stored = jnp.ones_like(start)
    unlimited = jnp.full(model.classes, jnp.inf)

    def smooth(reads: jax.Array, aux: jax.Array):
        by_kind = kind_reads(model, reads)
        work = class_work(model, by_kind, other)
        # from the last shares, as far as they stay above the loads
        least = least_weights(work[0])
        overloaded = jnp.any(jnp.sum(work[0], axis=0) >= _MOST_LOAD)
        near = jnp.where(
            overloaded, even_weights(model, work), on_simplex(aux[:, 1:], jnp.ones_like(least), least)
        )
        shares = weigh(model, goal.coefficient, unlimited, by_kind, other, near, aux[:, 0])
        _, pull = jax.vjp(lambda p: latencies_at(model, p, other, shares.weights, shares.z), by_kind)
        slope = of_rows_by_kind(model, pull(goal.coefficient)[0]) + goal.reading
        value = jnp.where(overloaded, jnp.inf, goal.value(shares.latency, reads, stored))
        return value, jnp.concatenate([shares.z[:, None], shares.weights], axis=1), slope

    def project(point: jax.Array) -> jax.Array:
        return project_hypersimplex(point, model.problem.k)

    shares = even_weights(model, class_work(model, kind_reads(model, start), other))
    aux = jnp.concatenate([jnp.zeros((model.classes, 1)), shares], axis=1)
    descent = descend(smooth, None, project, start, aux, step_scale(model.problem), _STOPPING)
    return descent.value, descent.point


_DESCEND = program(jax.vmap(_descend, (None, None, None, 0)), quick=True)


def _divided(descents: _Descents, balanced: jax.Array, rng: np.random.Generator) -> _Valley:
    """The best of the balanced reads, random divisions of the nodes, and changes of the best."""
    model = descents.model
    problem = model.problem
    count, nodes = model.classes, problem.nodes.count
    of_row = np.asarray(model.row_class)
    speed = 1 / np.asarray(
        problem.nodes.service[0, 0] + problem.nodes.service[0, 1] * model.kind_bytes.mean()
    )
    demand = np.asarray(model.share * model.mean_k)

    def best_of(owners: list[np.ndarray]) -> _Valley:
        owns = np.array(owners)[:, None] == of_row[:, None]
        starts = descents.divided(owns * (speed / speed.max()), balanced)
        valleys = descents(starts) if starts else [_Valley(np.inf, balanced)]
        return min(valleys, key=lambda valley: valley.value)

    def random_owner() -> np.ndarray:
        weight = demand ** rng.uniform(0, 1.5)
        return rng.choice(count, nodes, p=weight / weight.sum())

    def changed(owner: np.ndarray) -> np.ndarray:
        """A few nodes for other classes, or exchanged."""
        trial = owner.copy()
        for _ in range(rng.integers(1, 4)):
            one, other = rng.permutation(nodes)[:2]
            if rng.random() < 0.5:
                trial[one] = (trial[one] + rng.integers(1, count)) % count
            else:
                trial[one], trial[other] = trial[other], trial[one]
        return trial

    best = descents([balanced])[0]
    if count == 1 or nodes == 1:
        return best
    for turn in range(_RANDOM + _CHANGES):
        if turn < _RANDOM:
            owners = [random_owner() for _ in range(_TOGETHER)]
        else:
            # who reads most at a node owns it
            whole = np.asarray(best.reads)
            by_class = np.stack([whole[of_row == number].sum(axis=0) for number in range(count)])
            owners = [changed(np.argmax(by_class * demand[:, None], axis=0)) for _ in range(_TOGETHER)]
        best = min(best, best_of(owners), key=lambda valley: valley.value)
    return best


def _placed(
    problem: Problem, reads: jax.Array, of_row: np.ndarray, theta: float, rng: np.random.Generator
) -> Start:
    """Chunks and reads of every row that add up to the reads of its class and k, (A, m)."""
    if problem.row is None:
        of = of_row
    else:
        of = np.zeros(problem.rows, int)
        of[np.asarray(problem.row)] = of_row
    row_reads = np.asarray(reads)[of]
    # systematic sampling: exactly k nodes each, and over the rows of a class every node as often as it should be
    turn = np.modf(rng.random() + np.arange(problem.rows) * _GOLDEN)[0]
    ends = np.round(np.cumsum(row_reads, axis=1), 9) + turn[:, None]
    ends[:, -1] = np.round(row_reads.sum(axis=1)) + turn
    hot = np.diff(np.floor(ends), axis=1, prepend=0.0) >= 1
    prices = np.asarray(placement.chunk_prices(problem))
    finite = np.where(np.isfinite(prices), prices, 0.0)
    cheap = prices / max(float(finite.max()), 1e-300)
    chance = rng.random(hot.shape)
    # further chunks where they can take reads, or where they cost least
    order = cheap + 0.01 * chance if theta > 0 else np.where(row_reads > 0.01, chance - 2, cheap + chance)
    order = np.where(hot & np.asarray(usable(problem)), -3.0, np.where(np.isfinite(prices), order, np.inf))
    stored = placement.ranks(jnp.asarray(order)) < problem.floor.astype(jnp.int32)[:, None]
    if limits.limited(problem):
        stored = limits.within_limits(problem, jnp.asarray(row_reads) * stored, stored)
    spread = project_hypersimplex(jnp.asarray(hot, float), problem.k, mask=stored.astype(float))
    return Start(spread, stored)
