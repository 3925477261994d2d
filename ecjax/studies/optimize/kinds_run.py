"""Runs of files with small reads: shares and spread of read kinds on the placement of a plan, and their rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.model import Evaluation
from ecjax.planning import Problem, Solution
from ecjax.planning.problem import EVALUATE
from ecjax.planning.read_kinds import KindModel, KindPlan, plan_kinds
from ecjax.planning.read_kinds.bound import lower_bound
from ecjax.planning.read_kinds.everywhere import MOST_ENTRIES, AnyPlacementTerm
from ecjax.planning.read_kinds.model import small_work
from ecjax.predict.kind_latencies import (
    KindEstimates,
    SmallBounds,
    kind_estimates,
    small_bounds,
    small_shared_z,
)
from ecjax.predict.node_loads import node_loads
from ecjax.predict.plan_estimates import within_bound
from ecjax.predict.workload import node_laws
from ecjax.problem.arrays import code_k
from ecjax.problem.identity import Identity
from ecjax.problem.small_reads import ChunkReads
from ecjax.studies.optimize import rows
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case, laws_of
from ecjax.studies.optimize.kinds_spread import Placed, at_all_nodes, spread_in_turn
from ecjax.studies.optimize.options import OptimizeOptions

_GAP, _FULL_GAP = 1e-3, 5e-3  # that a bound is searched to, without and with full reads


class KindRun(NamedTuple):
    """A plan with its read kinds.

    Attributes:
        plan: with its evaluation over full and small reads.
        problem: full reads, with the small ones as other work of the nodes.
        columns: of ``runs``.
        data: (R, K) nodes of the data chunks, -1 after the last.
        reads: the small reads.
        degraded: (T, N) x.
        bounds: of each small read.
        small_chunks: (m,) 1/s, chunks that nodes serve for small reads.
    """

    plan: Solution
    problem: Problem
    columns: dict[str, Any]
    data: np.ndarray
    reads: ChunkReads
    degraded: np.ndarray
    bounds: SmallBounds
    small_chunks: np.ndarray


def with_read_kinds(options: OptimizeOptions, case: Case, item: Item, plan: Solution) -> KindRun:
    """The best shares and spread of read kinds that are found on a plan's placement.

    Args:
        options: checked.
        case: whose files have small reads.
        item: the run.
        plan: made for files with the work of small reads counted as that of full ones, without a lane axis.
    """
    assert case.small is not None
    lane = case.lane(item.lane)
    problem, stored = case.problem_of(lane), np.asarray(plan.stored)
    probabilities = np.asarray(plan.probabilities)
    traffic = case.small.scaled(lane.rate_scale, lane.size_scale)
    data, reads, model, chosen = spread_in_turn(
        options, case, problem, traffic, Placed(stored, probabilities)
    )
    chosen = direct = _by_true_sizes(model, chosen, lane.theta)
    if options.read_kinds != "direct" and chosen.degraded.any():
        direct = _by_true_sizes(model, plan_kinds(model, at_all_nodes(model, chosen.full), 0.0), lane.theta)
        chosen = min(chosen, direct, key=lambda each: each.latency)
    problem, full, evaluated = _beside_small(model, chosen, lane.theta)
    bounds = small_bounds(model, chosen.loads, chosen.degraded)
    evaluation = _together(evaluated, problem, chosen, reads, bounds, lane.theta)
    final = plan._replace(probabilities=jnp.asarray(full), evaluation=evaluation)
    share = chosen.degraded.sum(axis=1) / reads.reads.k
    rate = reads.reads.rate
    columns: dict[str, Any] = {
        "small_latency_s": float(rate @ bounds.mean / rate.sum()),
        "small_degraded_share": float(rate @ share / rate.sum()),
        "direct_latency_s": direct.latency if np.isfinite(direct.latency) else None,
    }
    if np.isfinite(chosen.latency):
        columns |= _proofs(options, case, item, model, chosen, evaluation)
        if options.estimate:
            service = node_laws(laws_of(options, case, lane), problem.nodes.count)
            each = kind_estimates(case.problem_of(lane), full, stored, model, chosen.degraded, service)
            columns |= _estimates(each, columns["small_degraded_share"])
            if columns["estimated_mean_s"] is not None:
                bound = float(evaluation.latency)
                columns["estimated_mean_s"] = within_bound(columns["estimated_mean_s"], bound)
    chunks = chosen.loads.direct.sum(axis=0) + chosen.loads.joined.sum(axis=0)
    return KindRun(final, problem, columns, data, reads, chosen.degraded, bounds, np.asarray(chunks))


def _beside_small(model: KindModel, plan: KindPlan, theta: float) -> tuple[Problem, np.ndarray, Evaluation]:
    """Full reads with the small ones as other work of the nodes: the problem, their probabilities (R, m), and figures.

    Args:
        model: full and small reads.
        plan: of both.
        theta: s per dollar of mean cost per file.
    """
    nodes, beside = model.problem.nodes, small_work(model, plan.degraded)
    loaded = replace(nodes, background=nodes.background + jnp.asarray(beside))
    problem, full = replace(model.problem, nodes=loaded), at_all_nodes(model, plan.full)
    evaluated = EVALUATE(problem, jnp.asarray(full), jnp.asarray(model.stored), jnp.asarray(theta))
    return problem, full, evaluated


def _by_true_sizes(model: KindModel, plan: KindPlan, theta: float) -> KindPlan:
    """A plan with its latency and z by the sizes of all chunks: the search knows means where there are many sizes."""
    if model.exact or not np.isfinite(plan.latency):
        return plan
    evaluated = _beside_small(model, plan, theta)[2]
    small, z = small_shared_z(model, plan.loads, plan.degraded)
    full_rate, rate = np.asarray(model.moments.rates).tolist()
    latency = (full_rate * float(evaluated.latency_shared_z) + (rate - full_rate) * small) / rate
    return replace(plan, latency=latency, z=(float(evaluated.z), z))


def _together(
    evaluated: Evaluation,
    problem: Problem,
    plan: KindPlan,
    reads: ChunkReads,
    bounds: SmallBounds,
    theta: float,
) -> Evaluation:
    """The evaluation of full and small reads together."""
    rate = np.asarray(problem.files.rate)
    small = np.bincount(reads.file, reads.rate, len(rate))
    of_small = np.bincount(reads.file, reads.rate * bounds.mean[reads.of], len(rate))
    read = rate > 0
    full = np.where(read, rate * np.where(read, np.asarray(evaluated.file_latency), 0.0), 0.0)
    every = rate + small
    by_file = np.where(every > 0, (full + of_small) / np.where(every > 0, every, 1.0), np.nan)
    # a file that is never read has the bound of its full reads
    by_file = np.where(every > 0, by_file, np.asarray(evaluated.file_latency))
    return replace(
        evaluated,
        objective=jnp.asarray(plan.latency + theta * float(evaluated.cost) / problem.files.count),
        latency=jnp.asarray((full.sum() + of_small.sum()) / every.sum()),
        latency_shared_z=jnp.asarray(plan.latency),
        z=jnp.asarray(plan.z[0]),
        file_latency=jnp.asarray(by_file),
    )


def _proofs(
    options: OptimizeOptions, case: Case, item: Item, model: KindModel, plan: KindPlan, evaluation: Evaluation
) -> dict[str, Any]:
    """Lower bounds: of every choice of read kinds on this placement, and of every plan."""
    if item.way.method != "certified" or options.read_kinds != "best":
        return {}
    lane, columns = case.lane(item.lane), dict[str, Any]()
    close = max(options.gap, _FULL_GAP if model.full_rate.any() else _GAP)
    least = lower_bound(model, plan, close)
    if least is not None:
        columns["scheduling_gap"] = (plan.latency - least) / least
    problem = case.problem_of(lane)
    if least is None:
        return columns
    scheduling = columns["scheduling_gap"]
    objective = float(evaluation.objective)
    if options.fixed_groups and _all_listed(case.files["nodes"]):
        # nothing but the reads is left to choose
        bound: float | None = least + objective - plan.latency
    else:
        term = AnyPlacementTerm(model, problem, lane.theta)
        bound = lower_bound(model, plan, close, objective, term) if term.entries <= MOST_ENTRIES else None
    if bound is not None:
        gap = (objective - bound) / abs(bound)
        # what holds for all plans holds for those on this placement; with a cost the gaps are not of the same
        free = objective == plan.latency
        columns |= {
            "lower_bound": bound,
            "gap": gap,
            "scheduling_gap": min(scheduling, gap) if free else scheduling,
        }
    return columns


def _all_listed(nodes: pa.ChunkedArray) -> bool:
    """Whether the nodes of all files are listed; an empty list says as little as none."""
    return pc.min(pc.fill_null(pc.list_value_length(nodes), 0)).as_py() > 0


def _estimates(estimate: KindEstimates, share: float) -> dict[str, float | None]:
    """Columns of what a plan is estimated to deliver, so many small reads degraded; null where that is not finite."""
    _, direct, degraded = estimate.kind_mean
    small = (1 - share) * np.nan_to_num(direct) + share * np.nan_to_num(degraded)
    values = {
        "estimated_mean_s": estimate.mean,
        "estimated_p99_s": float(estimate.quantiles[2]),
        "small_estimated_mean_s": float(small),
    }
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def read_kinds(run_id: str, run: KindRun, case: Case) -> pa.Table:
    """Rows of ``read_kinds``: for every small read and kind that it has, one per node that this kind uses."""
    small, names = run.reads.reads, case.names
    share = run.degraded.sum(axis=1) / small.k
    left = np.where(share < 1 - 1e-12, 1 - share, 0.0)
    # rows of direct reads say which chunks those of several are of: they have them even where all are degraded
    direct, number = np.nonzero((small.nodes >= 0) & ((left > 0) | (small.width > 1))[:, None])
    coded, place = np.nonzero((run.degraded > 1e-12) & (share > 1e-12)[:, None])
    which = np.concatenate([direct, coded])
    kind = np.repeat(["direct", "degraded"], [len(direct), len(coded)])
    shares = np.concatenate([left[direct], share[coded]])
    node = np.concatenate([small.nodes[direct, number], small.others[coded, place]])
    probability = np.concatenate([np.ones(len(direct)), run.degraded[coded, place] / share[coded]])
    latency = np.concatenate([run.bounds.direct[direct], run.bounds.degraded[coded]])
    order = np.lexsort([kind == "degraded", which])
    row = small.row[which]
    columns = {
        "run_id": pa.repeat(pa.scalar(run_id, pa.string()), len(which)),
        "file_id": names.rows.file.take(pa.array(row)),
        "data_chunk": small.chunk[which],
        "chunk_node_id": names.nodes.take(pa.array(small.node[which])),
        "width": small.width[which],
        "bytes": small.size[which],
        "rate_per_s": small.rate[which],
        "kind": pa.array(kind.tolist(), pa.string()),
        "share": shares,
        "latency_s": latency,
        "node_id": names.nodes.take(pa.array(node)),
        "probability": np.minimum(probability, 1.0),
    }
    if names.rows.group is not None:
        columns["group"] = names.rows.group.take(pa.array(row))
    return pa.table(columns).take(pa.array(order))


def kind_datasets(case: Case, runs: list[tuple[str, KindRun]]) -> dict[str, Iterator[pa.Table]]:
    """The datasets of runs with small reads, by name of the dataset.

    Args:
        case: what they plan for.
        runs: with their ids.
    """
    k, names = code_k(case.files), case.names
    groups = (rows.group_plans(run_id, run.plan, k, _read_share(run), names) for run_id, run in runs)
    return {
        "group_plans": (table for table in groups if table is not None),
        "placements": (_placements(run_id, run, names) for run_id, run in runs),
        "file_plans": (rows.file_plans(run_id, run.plan, k, names) for run_id, run in runs),
        "history": (rows.history(run_id, run.plan) for run_id, run in runs if run.plan.history.size > 1),
        "read_kinds": (read_kinds(run_id, run, case) for run_id, run in runs),
        "node_loads": (_node_loads(run_id, run, names) for run_id, run in runs),
    }


def _read_share(run: KindRun) -> np.ndarray:
    """Share of each file in all full and small reads, (r,)."""
    rate = np.asarray(run.problem.files.rate)
    every = rate + np.bincount(run.reads.file, run.reads.rate, len(rate))
    return every / every.sum()


def _placements(run_id: str, run: KindRun, names: Identity) -> pa.Table:
    """Placements with the numbers of data chunks."""
    table = rows.placements(run_id, run.plan, names)
    row, node = np.nonzero(np.asarray(run.plan.stored))
    number = np.full(run.plan.stored.shape, -1)
    where, chunk = np.nonzero(run.data >= 0)
    number[where, run.data[where, chunk]] = chunk
    numbers = number[row, node]
    return table.append_column("data_chunk", pa.array(numbers, pa.int64(), mask=numbers < 0))


def _node_loads(run_id: str, run: KindRun, names: Identity) -> pa.Table:
    """Loads with the chunks of small reads among those that are read."""
    probabilities = np.asarray(run.plan.probabilities)
    table = node_loads(run_id, run.problem, probabilities, np.asarray(run.plan.stored), names)
    chunks = np.asarray(run.problem.reads)[0] @ probabilities + run.small_chunks
    place = table.column_names.index("read_share")
    return table.set_column(place, "read_share", pa.array(chunks / chunks.sum()))
