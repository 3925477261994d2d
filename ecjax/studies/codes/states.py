"""States of a cluster, and what is read in each of them: full reads of every class, and small ones."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.planning import Problem
from ecjax.planning.rescheduling import nearest
from ecjax.predict.plan_estimates import Kinds, kinds_of
from ecjax.simulation.laws import Laws
from ecjax.studies.codes.layouts import Layout
from ecjax.studies.codes.plans import CodePlan
from ecjax.studies.codes.traffic import SmallRates, Traffic, beside

STATES = ("healthy", "down", "slow", "repairing")
DEGRADED = 32  # kinds of small reads that stand for all whose chunk is away
TOGETHER = 16  # nodes of one kind of reads of one chunk: estimates are fast where each is of few nodes


class State(NamedTuple):
    """A cluster in some state, and what is read there: full reads by class, and small ones."""

    problem: Problem
    laws: Laws
    full: list[Kinds]
    small: list[Kinds]


class Idle(NamedTuple):
    """A cluster where nothing is wrong.

    Attributes:
        problem: of full reads
        laws: of its nodes
        repair: (3, m) load, A_2, A_3 of every node while a disk is repaired
        busiest: node that most is read from
        small: reads of one chunk
    """

    problem: Problem
    laws: Laws
    repair: np.ndarray
    busiest: int
    small: SmallRates


def states(layout: Layout, traffic: Traffic, plan: CodePlan, idle: Idle) -> Iterable[tuple[str, State]]:
    """The states of ``STATES`` in which all files can be read."""
    problem, laws = idle.problem, idle.laws
    full = _by_class(problem, plan.probabilities, layout)
    direct, sizes = direct_reads(problem, plan, idle.small), idle.small.sizes.tolist()
    small = [joined(list(map(_direct, direct.sum(axis=1), sizes)))]
    healthy = State(problem, laws, full, small)
    yield "healthy", healthy
    at = np.arange(problem.nodes.count) == idle.busiest
    down = at if traffic.site is None else traffic.site == traffic.site[idle.busiest]
    survivors = plan.stored & ~down
    if np.all(survivors.sum(axis=1) >= layout.k):
        moved = np.asarray(nearest(problem, jnp.asarray(plan.probabilities), jnp.asarray(survivors)))
        left = [joined(list(map(_direct, np.where(down, 0.0, direct.sum(axis=1)), sizes)))]
        away = direct[:, :, down].sum(axis=2)
        left.append(
            joined([_degraded(moved, rate, layout, size) for rate, size in zip(away, sizes, strict=True)])
        )
        yield "down", State(problem, laws, _by_class(problem, moved, layout), left)
    factor = np.where(down, traffic.slow, 1.0)
    service = problem.nodes.service * jnp.asarray(factor[None] ** np.arange(1, 4)[:, None])[:, None]
    slowed = replace(problem, nodes=replace(problem.nodes, service=service))
    yield "slow", State(slowed, laws.slowed(factor), full, small)
    yield "repairing", healthy._replace(problem=beside(problem, idle.repair))


def direct_reads(problem: Problem, plan: CodePlan, small: SmallRates) -> np.ndarray:
    """Small reads of every file at the nodes with its data, by size, (S, r, m) 1/s."""
    return (small.rate / np.asarray(problem.k))[:, :, None] * plan.data


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


def _degraded(moved: np.ndarray, rate: np.ndarray, layout: Layout, size: float) -> Kinds:
    """Small reads whose chunk is away: so many other chunks each."""
    some = rate > 0
    width = layout.degraded
    probabilities = moved * (width / layout.k)[:, None]
    return Kinds(probabilities[some], rate[some], np.full(some.sum(), size), width[some].astype(float))


def joined(parts: Sequence[Kinds]) -> Kinds:
    """All kinds, one after the other."""
    return Kinds(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def drawn(kinds: Kinds) -> Kinds:
    """Few in steps of equal rate."""
    total = kinds.rate.sum()
    if len(kinds.rate) <= DEGRADED:
        return kinds
    steps = np.searchsorted(np.cumsum(kinds.rate) / total, (np.arange(DEGRADED) + 0.5) / DEGRADED)
    few = Kinds(*(each[np.minimum(steps, len(kinds.rate) - 1)] for each in kinds))
    return few._replace(rate=np.full(DEGRADED, total / DEGRADED))
