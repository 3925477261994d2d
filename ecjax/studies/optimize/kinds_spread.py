"""Where data chunks are and how reads spread, in turn: each is chosen for what the other has come to."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.planning import Problem
from ecjax.planning.problem import NODE_WORK
from ecjax.planning.read_kinds import KindModel, KindPlan, plan_kinds
from ecjax.planning.read_kinds.data_nodes import OtherWork, moved, with_hot_chunks_apart
from ecjax.planning.read_kinds.node_lists import at_nodes
from ecjax.problem.small_reads import (
    ChunkReads,
    SmallTraffic,
    chunk_reads,
    chunk_work,
    data_chunks,
    with_listed_nodes,
)
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.options import OptimizeOptions

_MOST_TURNS, _WORTH_A_TURN = 12, 1e-3  # of placing data chunks and spreading reads; relative gain
_FULL_WAITS = (
    0.5  # of a chunk of a full read against one of a small read: the last of k is what is waited for
)


class Placed(NamedTuple):
    """A placement, and how full reads use it: (R, m) bool, (R, m) probabilities."""

    stored: np.ndarray
    probabilities: np.ndarray


class Spread(NamedTuple):
    """Nodes of the data chunks, (R, K), -1 after the last, the small reads there, and the kinds and spread of all."""

    data: np.ndarray
    reads: ChunkReads
    model: KindModel
    plan: KindPlan


def spread_in_turn(
    options: OptimizeOptions, case: Case, problem: Problem, traffic: SmallTraffic, placed: Placed
) -> Spread:
    """Nodes of the data chunks and the spread of reads, in turn: each for what the other has come to.

    Args:
        options: checked.
        case: whose files have small reads.
        problem: scaled.
        traffic: small reads, scaled.
        placed: where chunks are, and full reads to start from.
    """
    stored, probabilities = placed
    names, service = case.names, np.asarray(problem.nodes.service)
    m = problem.nodes.count
    data = data_chunks(stored, probabilities, names.rows, case.files)
    work = chunk_work(traffic, names.rows, data.shape[1])
    beside = np.asarray(NODE_WORK(problem, jnp.asarray(probabilities), jnp.asarray(stored, float)))
    data = with_hot_chunks_apart(data, stored, work, service, OtherWork(beside, np.zeros(m)))
    fixed = np.zeros(len(data), bool)
    if options.fixed_groups:
        data, fixed = with_listed_nodes(data, names.rows, case.files, names.nodes)
    share = 0.0 if options.read_kinds == "direct" else None

    def on(nodes: np.ndarray, full: np.ndarray) -> Spread:
        reads = chunk_reads(traffic, names.rows, nodes, stored)
        model = KindModel(problem, stored, reads.reads)
        return Spread(nodes, reads, model, plan_kinds(model, full, share))

    best = on(data, probabilities)
    for _ in range(_MOST_TURNS):
        full = at_all_nodes(best.model, best.plan.full)
        sums = np.asarray(NODE_WORK(problem, jnp.asarray(full), jnp.asarray(stored, float)))
        other = OtherWork(sums, _FULL_WAITS * np.asarray(best.plan.loads.full).sum(axis=0))
        nodes = moved(best.data, stored, work, service, other, ~fixed)
        if np.array_equal(nodes, best.data):
            break
        last, best = best, on(nodes, full)
        if not best.plan.latency < (1 - _WORTH_A_TURN) * last.plan.latency:
            best = min(last, best, key=lambda each: each.plan.latency)
            break
    return best


def at_all_nodes(model: KindModel, full: np.ndarray) -> np.ndarray:
    """Probabilities (R, m) of those at the nodes with chunks, (R, N)."""
    return np.clip(at_nodes(model.full_nodes, full, model.problem.nodes.count), 0.0, 1.0)
