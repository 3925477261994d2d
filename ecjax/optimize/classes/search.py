"""A start for weighted queues: which nodes serve which classes, searched for on whole classes.

Shares of a node and reads of classes are not convex together: a strict share is slow, and a node that serves one
class alone is fast, so the objective has a valley for every way to divide the nodes, and descending from a balanced
start ends in a shallow one (twice the best objective for two classes on twelve nodes). But it depends on the reads of
whole classes only (``model``), so the valleys are looked at with one row per class and k: random divisions and changes
of single nodes, each descended in shares and reads. Files are then placed so that their reads add up to the best.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.optimize import limits, placement
from ecjax.optimize.classes.model import (
    ClassModel,
    class_model,
    class_work,
    even_weights,
    kind_reads,
    other_work,
    tolls,
)
from ecjax.optimize.classes.relief import Start, relieved
from ecjax.optimize.classes.scheduling import Fixed, Goal, schedule
from ecjax.optimize.classes.weights import weigh
from ecjax.optimize.problem import Problem, prepare, usable
from ecjax.optimize.projection import project_hypersimplex

_RANDOM = 24  # random divisions
_CHANGES = 48  # changes of single nodes
_BLENDS = (1.0, 0.8, 0.6, 0.4, 0.2)  # of a division with the balanced reads, the first that overloads no node
_MOST_LOAD = 0.97
_ROUNDS, _SETTLED = 12, 1e-3
_GOLDEN = 0.6180339887498949  # its multiples spread evenly


class _Valley(NamedTuple):
    """Where a descent ended."""

    value: float  # s
    reads: jax.Array  # (A, m), a row per class and k


def search_start(
    model: ClassModel, balanced: Start, importance: tuple[float, ...], theta: float, seed: int
) -> Start:
    """A placement whose reads are those of the best division of the nodes; the balanced start if limits forbid it.

    Args:
        model: of weighted queues.
        balanced: a stable start.
        importance: (K,) C_k.
        theta: s per dollar of mean cost per file.
        seed: of the divisions.
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
    descend = _Descent(
        classes, np.asarray(_mean(balanced.stored, of_row, problem, rows.shape[1])), importance, theta
    )
    start = _mean(balanced.probabilities, of_row, problem, rows.shape[1])
    best = _divided(descend, start, rng)
    found = _placed(problem, best.reads, of_row, theta, rng)
    if any(violation.times for violation in limits.violations(problem, np.asarray(found.stored)).values()):
        return balanced
    alike = np.zeros(problem.rows, int), np.ones((1, problem.nodes.count))
    return relieved(problem, found, *alike)


def _mean(values: jax.Array, of_row: np.ndarray, problem: Problem, count: int) -> jax.Array:
    """Row values (R, m) averaged over the files of each class and k, weighted by reads: (A, m)."""
    own = (
        np.asarray(values, float)
        if problem.row is None
        else np.asarray(values, float)[np.asarray(problem.row)]
    )
    share = np.maximum(np.asarray(problem.share), 1e-12)
    total = np.stack([np.bincount(of_row, share * column, count) for column in own.T], axis=1)
    return jnp.asarray(total / np.bincount(of_row, share, count)[:, None])


class _Descent:
    """Descents in shares and reads of whole classes."""

    def __init__(
        self, model: ClassModel, stored: np.ndarray, importance: tuple[float, ...], theta: float
    ) -> None:
        self.model = model
        problem = model.problem
        self.other = other_work(model, jnp.asarray(stored))
        kept, reading = tolls(model, theta)
        # a chunk is paid for where it is read: cold ones are placed later
        charge = kept + reading
        everyone = jnp.ones(problem.rows, bool)
        unlimited = jnp.full(model.classes, jnp.inf)
        self.goal = Goal(
            jnp.asarray(importance, float) * model.share, unlimited, jnp.zeros_like(charge), charge, everyone
        )
        self.stored = jnp.ones((problem.rows, problem.nodes.count), bool)

    def load(self, reads: jax.Array) -> np.ndarray:
        """Load of every node, (m,)."""
        work = class_work(self.model, kind_reads(self.model, reads), self.other)
        return np.asarray(work[0].sum(axis=0))

    def __call__(self, reads: jax.Array) -> _Valley:
        model, goal = self.model, self.goal
        shares = even_weights(model, class_work(model, kind_reads(model, reads), self.other))
        z = jnp.zeros(model.classes)
        value = np.inf
        for _ in range(_ROUNDS):
            weighed = weigh(
                model, goal.coefficient, goal.limit, kind_reads(model, reads), self.other, shares, z
            )
            shares = weighed.weights
            spread = schedule(model, goal, Fixed(self.stored, self.other, shares), reads, weighed.z)
            reads, z = spread.probabilities, spread.z
            now = float(goal.value(spread.latency, reads, self.stored))
            if not np.isfinite(now) or value - now <= _SETTLED * abs(now):
                return _Valley(min(value, now) if np.isfinite(now) else np.inf, reads)
            value = now
        return _Valley(value, reads)


def _divided(descend: _Descent, balanced: jax.Array, rng: np.random.Generator) -> _Valley:
    """The best of the balanced reads, random divisions of the nodes, and changes of single nodes of the best."""
    model = descend.model
    problem = model.problem
    count, nodes = model.classes, problem.nodes.count
    of_row = np.asarray(model.row_class)
    speed = 1 / np.asarray(
        problem.nodes.service[0, 0] + problem.nodes.service[0, 1] * model.kind_bytes.mean()
    )
    speed = speed / speed.max()
    demand = np.asarray(model.share * model.mean_k)

    def tried(owner: np.ndarray) -> _Valley:
        own = (owner[None] == of_row[:, None]) * speed[None]
        alone = project_hypersimplex(jnp.asarray(nodes * own), problem.k)
        for blend in _BLENDS:
            reads = blend * alone + (1 - blend) * balanced
            if descend.load(reads).max() < _MOST_LOAD:
                return descend(reads)
        return _Valley(np.inf, balanced)

    best, owner = descend(balanced), None
    for _ in range(_RANDOM):
        wanted = demand ** rng.uniform(0, 1.5)
        trial = rng.choice(count, nodes, p=wanted / wanted.sum())
        found = tried(trial)
        if found.value < best.value:
            best, owner = found, trial
    if owner is None:
        return best
    for node in rng.permutation(np.resize(np.arange(nodes), _CHANGES)):
        trial = owner.copy()
        trial[node] = (trial[node] + rng.integers(1, count)) % count if count > 1 else 0
        found = tried(trial)
        if found.value < best.value:
            best, owner = found, trial
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
    wanted = np.asarray(reads)[of]
    # systematic sampling: exactly k nodes each, and over the rows of a class every node as often as it should be
    turn = np.modf(rng.random() + np.arange(problem.rows) * _GOLDEN)[0]
    ends = np.round(np.cumsum(wanted, axis=1), 9) + turn[:, None]
    ends[:, -1] = np.round(wanted.sum(axis=1)) + turn
    hot = np.diff(np.floor(ends), axis=1, prepend=0.0) >= 1
    prices = np.asarray(placement.chunk_prices(problem))
    finite = np.where(np.isfinite(prices), prices, 0.0)
    cheap = prices / max(float(finite.max()), 1e-300)
    chance = rng.random(hot.shape)
    # further chunks where they can take reads, or where they cost least
    order = cheap + 0.01 * chance if theta > 0 else np.where(wanted > 0.01, chance - 2, cheap + chance)
    order = np.where(hot & np.asarray(usable(problem)), -3.0, np.where(np.isfinite(prices), order, np.inf))
    stored = placement.ranks(jnp.asarray(order)) < problem.floor.astype(jnp.int32)[:, None]
    if limits.limited(problem):
        stored = limits.within_limits(problem, jnp.asarray(wanted) * stored, stored)
    spread = project_hypersimplex(jnp.asarray(hot, float), problem.k, mask=stored.astype(float))
    return Start(spread, stored)
