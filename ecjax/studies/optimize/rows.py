"""Rows of plans: of ``runs``, and the tables of placements, files, groups and history."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.planning import Problem, Solution, of_files
from ecjax.predict.node_loads import node_loads
from ecjax.problem.arrays import code_k
from ecjax.problem.classes import in_class_order
from ecjax.problem.earlier_plan import EarlierPlan
from ecjax.problem.feasibility import broken
from ecjax.problem.identity import Identity
from ecjax.status import Status
from ecjax.studies.optimize.batches import Item
from ecjax.studies.optimize.case import Case, Lane


def plan_columns(
    plan: Solution,
    case: Case,
    lane: Lane,
    lower_bound: float | None = None,
    nearby_bound: float | None = None,
) -> dict[str, Any]:
    """Columns of ``runs`` that a stable plan tells.

    Args:
        plan: without a lane axis.
        case: what it plans for.
        lane: of the run.
        lower_bound: s, what no plan of the problem can be below; None where there is none.
        nearby_bound: s, the same of plans near this one.
    """
    evaluation, names, stored = plan.evaluation, case.names, np.asarray(plan.stored)
    errors = broken(case.problem, stored, case.nodes, names.rows)
    status = Status.INFEASIBLE if errors else Status.OK if plan.converged else Status.NOT_CONVERGED
    n = code_lengths(plan, names)
    objective = float(evaluation.objective)
    row = {
        "status": str(status),
        "error": "; ".join(errors) or None,
        "iterations": int(plan.iterations),
        "objective": objective,
        "latency_s": float(evaluation.latency),
        "latency_shared_z_s": float(evaluation.latency_shared_z),
        "z_s": float(evaluation.z),
        "cost_dollars_per_period": float(evaluation.cost),
        "max_load": float(evaluation.load.max()),
        "mean_n": float(n.mean()),
        "mean_n_by_class": json.dumps(mean_by_class(n, names.classes)),
        "files_without_redundancy": int(np.sum(n <= code_k(case.files))),
    }
    if lower_bound is not None and np.isfinite(lower_bound):
        row["lower_bound"] = lower_bound
        if not errors:  # a plan that breaks a constraint may be below what all others are above
            row["gap"] = (objective - lower_bound) / abs(lower_bound)
    if nearby_bound is not None and np.isfinite(nearby_bound) and not errors:
        row["gap_nearby"] = (objective - nearby_bound) / abs(nearby_bound)
    if case.earlier is not None:
        row["moved_chunks"] = names.per_node * moved_chunks(case.problem, case.earlier, stored)
    if case.problem.surcharge is not None:
        row["moving_dollars"] = moving_dollars(case.problem_of(lane), stored)
    return row


def estimate_columns(mean: float, p99: float) -> dict[str, float | None]:
    """Columns of ``runs`` with what a plan is estimated to deliver, s; null where that is not finite."""
    columns = {"estimated_mean_s": float(mean), "estimated_p99_s": float(p99)}
    return {name: value if np.isfinite(value) else None for name, value in columns.items()}


def moved_chunks(problem: Problem, earlier: EarlierPlan, stored: np.ndarray) -> int:
    """Chunks on nodes where the earlier plan had none, of files that it knew."""
    before = np.asarray(earlier.stored)
    moved = stored & ~before & before.any(axis=1, keepdims=True)
    return int(np.asarray(problem.price_chunks) @ moved.sum(axis=1))


def moving_dollars(problem: Problem, stored: np.ndarray) -> float:
    """What it costs, once, to put chunks where files have none now; of a scaled problem."""
    chunks = np.asarray(of_files(problem, jnp.asarray(stored, float)))
    return float(np.sum(np.asarray(problem.surcharge) * chunks))


def mean_by_class(n: np.ndarray, classes: pa.DictionaryArray) -> dict[str, float]:
    """Mean code length of the files of each class, in class order."""
    index = classes.indices.to_numpy()
    total = np.bincount(index, weights=n, minlength=len(classes.dictionary))
    mean = total / np.bincount(index, minlength=len(classes.dictionary))
    names = classes.dictionary.to_pylist()
    return {str(names[place]): float(mean[place]) for place in in_class_order(classes)}


def _repeat(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def placements(run_id: str, plan: Solution, names: Identity) -> pa.Table:
    """One row per placement row and node with a chunk."""
    row, node = np.nonzero(np.asarray(plan.stored))
    columns = {
        "run_id": _repeat(run_id, len(row)),
        "file_id": names.rows.file.take(pa.array(row)),
        "node_id": names.nodes.take(pa.array(node)),
        "probability": np.asarray(plan.probabilities)[row, node],
        "chunks": np.full(len(row), names.per_node),
    }
    if names.rows.group is not None:
        columns["group"] = names.rows.group.take(pa.array(row))
    return pa.table(columns)


def code_lengths(plan: Solution, names: Identity) -> np.ndarray:
    """N of every file, (r,)."""
    n = names.per_node * np.asarray(plan.stored).sum(axis=1)
    return n if names.rows.of_file is None else n[names.rows.of_file]


def file_plans(run_id: str, plan: Solution, k: np.ndarray, names: Identity) -> pa.Table:
    """One row per file."""
    return pa.table(
        {
            "run_id": _repeat(run_id, len(k)),
            "file_id": names.files,
            "n": code_lengths(plan, names).astype(np.int64),
            "k": k.astype(np.int64),
            "latency_s": np.asarray(plan.evaluation.file_latency),
            "cost_dollars_per_period": np.asarray(plan.evaluation.file_cost),
        }
    )


def group_plans(
    run_id: str, plan: Solution, k: np.ndarray, share: np.ndarray, names: Identity
) -> pa.Table | None:
    """One row per group, for whoever places its chunks; None where no file is in a group.

    Args:
        run_id: run.
        plan: its plan.
        k: (r,) of the files.
        share: (r,) of the read rate.
        names: ids.
    """
    group, row = names.rows.group, names.rows.of_file
    if group is None or row is None:
        return None
    count = len(group) - group.null_count  # groups come first
    probabilities = np.asarray(plan.probabilities)[:count]
    stored = np.asarray(plan.stored)[:count]
    nodes, shares = [], []
    for share_of_node, chunk_at_node in zip(probabilities, stored, strict=True):
        used = np.flatnonzero(chunk_at_node)
        used = used[np.argsort(-share_of_node[used], kind="stable")]
        ids = names.nodes.take(pa.array(used))
        nodes.append(ids.to_pylist())
        shares.append(json.dumps(dict(zip(map(str, nodes[-1]), share_of_node[used].tolist(), strict=True))))

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(row, values, names.rows.count)[:count]

    first = np.full(names.rows.count, -1)
    first[row[::-1]] = np.arange(len(row))[::-1]
    read, latency = total(share), np.asarray(plan.evaluation.file_latency)
    weighted = total(np.where(share > 0, share * np.where(share > 0, latency, 0.0), 0.0))
    return pa.table(
        {
            "run_id": _repeat(run_id, count),
            "group": group.slice(0, count),
            "file_count": total(np.ones(len(row))).astype(np.int64),
            "k": k[first[:count]].astype(np.int64),
            "n": names.per_node * stored.sum(axis=1).astype(np.int64),
            "nodes": pa.array(nodes, pa.list_(names.nodes.type)),
            "read_shares": shares,
            "latency_s": pa.array(weighted / np.where(read > 0, read, 1.0), mask=read <= 0),
            "cost_dollars_per_period": total(np.asarray(plan.evaluation.file_cost)),
        }
    )


def history(run_id: str, plan: Solution) -> pa.Table:
    """One row per iteration of the descent."""
    values = np.asarray(plan.history)
    values = values[~np.isnan(values)]
    return pa.table(
        {
            "run_id": _repeat(run_id, len(values)),
            "iteration": np.arange(len(values)),
            "objective": values,
        }
    )


def datasets(case: Case, plans: Sequence[tuple[Item, Solution]]) -> dict[str, Iterator[pa.Table]]:
    """The datasets of a batch, built run by run as they are written: a million files times thetas are gigabytes.

    Args:
        case: what the runs plan for.
        plans: every run with its plan, without a lane axis.
    """
    k, share, names = code_k(case.files), np.asarray(case.problem.share), case.names
    named = [(item.run.run_id, plan) for item, plan in plans]
    groups = (group_plans(run, plan, k, share, names) for run, plan in named)
    return {
        "group_plans": (table for table in groups if table is not None),
        "placements": (placements(run, plan, names) for run, plan in named),
        "file_plans": (file_plans(run, plan, k, names) for run, plan in named),
        "history": (history(run, plan) for run, plan in named if plan.history.size > 1),
        "node_loads": (
            node_loads(
                item.run.run_id,
                case.problem_of(case.lane(item.lane)),
                np.asarray(plan.probabilities),
                np.asarray(plan.stored),
                names,
            )
            for item, plan in plans
        ),
    }
