"""States of a cluster, and what is read in each of them: full reads of every class, and small ones."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import comb

from ecjax.planning import Problem
from ecjax.planning.rescheduling import nearest
from ecjax.predict.plan_estimates import Kinds, kinds_of
from ecjax.simulation.laws import Laws
from ecjax.studies.codes.layouts import Layout
from ecjax.studies.codes.plans import CodePlan
from ecjax.studies.codes.traffic import ChunkRates, Traffic, beside

STATES = ("healthy", "down", "slow", "repairing")
SOME = 32  # kinds that stand for all small reads of several chunks, and as many for all with a chunk that is away
TOGETHER = 16  # nodes of one kind of reads of one chunk: estimates are fast where each is of few nodes


class Small(NamedTuple):
    """Small reads: of one chunk, of several, and those that are decoded, as a chunk of theirs is away."""

    direct: Kinds
    wide: Kinds
    degraded: Kinds


class State(NamedTuple):
    """A cluster in some state, and what is read there: full reads by class, and small ones."""

    problem: Problem
    laws: Laws
    full: list[Kinds]
    small: Small
    small_by_class: list[Small]  # none where all files are one class


class Idle(NamedTuple):
    """A cluster where nothing is wrong.

    Attributes:
        problem: of full reads
        laws: of its nodes
        repair: (3, m) load, A_2, A_3 of every node while a disk is repaired; 0 where reads leave nothing for that
        busiest: node that most is read from
        small: of parts of the files
    """

    problem: Problem
    laws: Laws
    repair: np.ndarray
    busiest: int
    small: ChunkRates


def states(layout: Layout, traffic: Traffic, plan: CodePlan, idle: Idle) -> Iterable[tuple[str, State]]:
    """The states of ``STATES`` that there are, and in which all files can be read."""
    problem, laws = idle.problem, idle.laws
    full = _by_class(problem, plan.probabilities, layout)
    small = _all_small(layout, plan, plan.probabilities, idle.small, np.zeros(problem.nodes.count, bool))
    healthy = State(problem, laws, full, *small)
    yield "healthy", healthy
    at = np.arange(problem.nodes.count) == idle.busiest
    down = at if traffic.site is None else traffic.site == traffic.site[idle.busiest]
    survivors = plan.stored & ~down
    if np.all(survivors.sum(axis=1) >= layout.k):
        moved = np.asarray(nearest(problem, jnp.asarray(plan.probabilities), jnp.asarray(survivors)))
        left = _all_small(layout, plan, moved, idle.small, down)
        yield "down", State(problem, laws, _by_class(problem, moved, layout), *left)
    factor = np.where(down, traffic.slow, 1.0)
    service = problem.nodes.service * jnp.asarray(factor[None] ** np.arange(1, 4)[:, None])[:, None]
    slowed = replace(problem, nodes=replace(problem.nodes, service=service))
    yield "slow", State(slowed, laws.slowed(factor), full, *small)
    if idle.repair.any():
        yield "repairing", healthy._replace(problem=beside(problem, idle.repair))


def direct_reads(plan: CodePlan, small: ChunkRates) -> np.ndarray:
    """Chunks of small reads of every file at the nodes with its data, (r, m) 1/s."""
    return (small.rate * small.width / plan.data.sum(axis=1))[:, None] * plan.data


def by_size(reads: np.ndarray, small: ChunkRates) -> np.ndarray:
    """Sums over the files whose small reads have chunks of each size, (S, m)."""
    return np.stack([reads[small.of == index].sum(axis=0) for index in range(len(small.sizes))])


def _all_small(
    layout: Layout, plan: CodePlan, probabilities: np.ndarray, small: ChunkRates, down: np.ndarray
) -> tuple[Small, list[Small]]:
    """Small reads of all files, and of those of each class where there are several."""
    every = _small(layout, plan, probabilities, small, down)
    if layout.groups == 1:
        return every, []
    rates = (np.where(layout.group == group, small.rate, 0.0) for group in range(layout.groups))
    return every, [_small(layout, plan, probabilities, small._replace(rate=rate), down) for rate in rates]


def _small(
    layout: Layout, plan: CodePlan, probabilities: np.ndarray, small: ChunkRates, down: np.ndarray
) -> Small:
    """Small reads with some nodes down, where full reads have these probabilities."""
    data = plan.data & ~down
    left, width = data.sum(axis=1), small.width
    # chunks lie in any order, so that those one after the other are any of them
    whole = comb(left, width) / comb(layout.k, width)
    one = (width == 1)[:, None]
    chunks = np.where(one, direct_reads(plan, small) * data, 0.0)
    direct = joined(list(map(_direct, by_size(chunks, small), small.sizes.tolist())))
    share = data * (width / np.maximum(left, 1))[:, None]
    wide = Kinds(share, np.where(width > 1, small.rate * whole, 0.0), small.size, width.astype(float))
    # the others of its width that are not among what the missing chunk is decoded from are read, too
    helpers = layout.degraded
    apart = 1 - (helpers - 1) / np.maximum(layout.k - 1, 1)
    read = np.minimum(np.rint(helpers + (width - 1) * apart), layout.k)
    degraded = Kinds(
        probabilities * (read / layout.k)[:, None], small.rate * (1 - whole), small.size, read.astype(float)
    )
    return Small(direct, _read(wide), _read(degraded))


def _read(kinds: Kinds) -> Kinds:
    """Those with a rate."""
    return Kinds(*(each[kinds.rate > 0] for each in kinds))


def _by_class(problem: Problem, probabilities: np.ndarray, layout: Layout) -> list[Kinds]:
    """Full reads of the files of each class."""
    if layout.groups == 1:
        return [kinds_of(problem, probabilities)]
    rate = np.asarray(problem.files.rate)
    parts = (np.where(layout.group == group, rate, 0.0) for group in range(layout.groups))
    files = problem.files
    return [
        kinds_of(replace(problem, files=replace(files, rate=jnp.asarray(part))), probabilities)
        for part in parts
    ]


def _direct(rate: np.ndarray, size: float) -> Kinds:
    """Small reads of one chunk each, by the nodes they take it from: few kinds, as it matters not whose they are."""
    part = np.arange(len(rate)) // TOGETHER
    reads = np.where(part == np.arange(part[-1] + 1)[:, None], rate, 0.0)
    reads = reads[reads.sum(axis=1) > 0]
    total = reads.sum(axis=1)
    return Kinds(reads / total[:, None], total, np.full(len(total), size), np.ones(len(total)))


def joined(parts: Sequence[Kinds]) -> Kinds:
    """All kinds, one after the other."""
    return Kinds(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def drawn(kinds: Kinds) -> Kinds:
    """Few in steps of equal rate."""
    total = kinds.rate.sum()
    if len(kinds.rate) <= SOME:
        return kinds
    steps = np.searchsorted(np.cumsum(kinds.rate) / total, (np.arange(SOME) + 0.5) / SOME)
    few = Kinds(*(each[np.minimum(steps, len(kinds.rate) - 1)] for each in kinds))
    return few._replace(rate=np.full(SOME, total / SOME))
