"""A run of ``ecjax optimize`` as a row of the ``runs`` dataset, and why a run has no stable plan."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa

import ecjax
from ecjax.optimize import Problem, Solution
from ecjax.problem.arrays import code_k
from ecjax.problem.classes import Classes
from ecjax.problem.earlier_plan import EarlierPlan
from ecjax.problem.feasibility import broken, overload
from ecjax.problem.identity import Identity
from ecjax.status import Status
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.rows import code_lengths

Lane = tuple[float, float, float]  # theta, rate_scale, size_scale


@dataclass(frozen=True)
class Item:
    """One run: a method at one point of the grid."""

    method: str
    theta: float
    rate_scale: float
    size_scale: float
    queue: str = "fcfs"
    importance: tuple[float, ...] | None = None  # (K,) of queues by class

    @property
    def lane(self) -> Lane:
        """What makes the problem; methods of one lane share its descent."""
        return self.theta, self.rate_scale, self.size_scale


@dataclass(frozen=True, eq=False)
class Study:
    """What all runs of a study have in common."""

    options: OptimizeOptions
    parameters: dict[str, Any]  # what changes a result apart from inputs, item, seed and number type
    problem: Problem
    names: Identity
    nodes: pa.Table
    files: pa.Table
    given: EarlierPlan | None  # an earlier plan to start from
    k: int | None  # overrides that of the files
    d: int | None
    class_rate_scale: str | None  # JSON: what rates of the files were multiplied by, by class
    input_id: str
    run_ids: dict[Item, str]
    classes: Classes | None = None  # of queues by class


class Unstable(NamedTuple):
    """Why a run has no stable plan."""

    error: str
    max_load: float  # rho of the busiest node


def why_unstable(item: Item, plan: Solution, start_load: jax.Array, study: Study) -> Unstable:
    """Which node is overloaded, and what would help; ``start_load`` is that at the start of the descent, (m,)."""
    load, spread = np.asarray(start_load), "with reads spread as evenly as they go"
    if item.method != "published" or load.max() < 1:
        load, spread = np.asarray(plan.evaluation.load), f"in the plan of method={item.method}"
    background = np.asarray(study.problem.nodes.background[0])
    error = overload(load, background, item.rate_scale, study.names.nodes, spread)
    return Unstable(error, float(load.max()))


def run_row(
    item: Item,
    plan: Solution,
    unstable: Unstable | None,
    study: Study,
    times: dict[str, float],
    lower_bound: float | None = None,
) -> dict[str, Any]:
    """Row of the ``runs`` dataset.

    Args:
        item: the run.
        plan: its plan, without a lane axis.
        unstable: why it has no stable plan, or None.
        study: what it belongs to.
        times: solve_s and compile_s.
        lower_bound: s, what no plan of the problem can be below; None where none is known.
    """
    known: dict[str, Any] = {"iterations": int(plan.iterations), **times}
    known["device"] = str(jax.devices()[0].device_kind)
    row = blank_row(item, study) | known
    if unstable is not None:
        return row | {"status": str(Status.UNSTABLE), **unstable._asdict()}
    evaluation, problem, names = plan.evaluation, study.problem, study.names
    stored = np.asarray(plan.stored)
    wrong = broken(problem, stored, study.nodes, names.rows)
    status = Status.INFEASIBLE if wrong else Status.OK if plan.converged else Status.NOT_CONVERGED
    n = code_lengths(plan, names)
    objective = float(evaluation.objective)
    row |= {
        "status": str(status),
        "error": "; ".join(wrong) or None,
        "objective": objective,
        "latency_s": float(evaluation.latency),
        "latency_shared_z_s": float(evaluation.latency_shared_z),
        "z_s": float(evaluation.z) if item.queue == "fcfs" else None,
        "cost": float(evaluation.cost),
        "max_load": float(evaluation.load.max()),
        "mean_n": float(n.mean()),
        "mean_n_by_class": json.dumps(mean_by_class(n, names.classes)),
        "files_without_redundancy": int(np.sum(n <= code_k(study.files))),
    }
    if lower_bound is not None and np.isfinite(lower_bound):
        row |= {"lower_bound": lower_bound, "gap": (objective - lower_bound) / abs(lower_bound)}
    if study.given is not None:
        row["moved_chunks"] = names.per_node * moved_chunks(problem, study.given, stored)
    return row


def blank_row(item: Item, study: Study) -> dict[str, Any]:
    """What is known of a run before it is planned: its row without status and results."""
    row = {
        "run_id": study.run_ids[item],
        "job": "optimize",
        "k": study.k,
        "d": study.d,
        "class_rate_scale": study.class_rate_scale,
        "method": item.method,
        "queue": item.queue,
        "theta": item.theta,
        "theta_per": study.options.theta_per,
        "files": study.problem.files.count,
        "nodes": study.problem.nodes.count,
        "input_id": study.input_id,
        "rate_scale": item.rate_scale,
        "size_scale": item.size_scale,
        "version": ecjax.__version__,
        "seed": study.options.seed,
        "params": json.dumps(study.parameters | {"dtype": study.options.dtype}, sort_keys=True),
    }
    if item.importance is not None and study.classes is not None:
        row["importance"] = json.dumps(dict(zip(study.classes.names, item.importance, strict=True)))
    return row


def moved_chunks(problem: Problem, given: EarlierPlan, stored: np.ndarray) -> int:
    """Chunks on nodes where the given plan had none, of files that it knew."""
    before = np.asarray(given.stored)
    moved = stored & ~before & before.any(axis=1, keepdims=True)
    return int(np.asarray(problem.price_chunks) @ moved.sum(axis=1))


def mean_by_class(n: np.ndarray, classes: pa.DictionaryArray) -> dict[str, float]:
    """Mean code length of the files of each class."""
    index = classes.indices.to_numpy()
    total = np.bincount(index, weights=n, minlength=len(classes.dictionary))
    mean = total / np.bincount(index, minlength=len(classes.dictionary))
    return dict(zip(map(str, classes.dictionary.to_pylist()), mean.tolist(), strict=True))
