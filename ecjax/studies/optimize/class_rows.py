"""Result tables of plans with queues by class."""

import json

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.planning import Solution
from ecjax.planning.classes.alternate import ClassPlan
from ecjax.planning.classes.model import ClassModel, class_work, kind_reads, other_work
from ecjax.problem.classes import Classes
from ecjax.problem.identity import Identity
from ecjax.queueing.minimise import single
from ecjax.studies.optimize import rows as plan_rows


def class_columns(
    model: ClassModel, plan: ClassPlan, solution: Solution, classes: Classes, names: Identity
) -> dict[str, np.ndarray]:
    """Columns (K,) of ``class_plans`` that the plan tells.

    Args:
        model: the model.
        plan: the plan.
        solution: the same with one z per file.
        classes: of the files.
        names: ids.
    """
    problem, count = model.problem, len(classes.names)
    share, number = np.asarray(problem.share), classes.of_file
    read = share > 0
    by_file = np.where(read, np.where(read, solution.evaluation.file_latency, 0.0) * share, 0.0)
    files = np.bincount(number, minlength=count)
    work = class_work(model, kind_reads(model, plan.probabilities), other_work(model, plan.stored))
    load = np.asarray(work[0])
    parts = np.asarray(plan.weights) if model.queue == "weighted" else np.ones_like(load)
    z = np.where(np.asarray(single(jnp.asarray(model.mean_k))), np.nan, np.asarray(plan.z))
    return {
        "file_count": files,
        "rate_per_s": np.bincount(number, np.asarray(problem.files.rate), count),
        "latency_s": np.bincount(number, by_file, count) / np.asarray(model.share),
        "latency_shared_z_s": np.asarray(plan.latency),
        "z_s": z,
        "scheduling_gap": plan.gaps,
        "max_load": np.max(load / parts, axis=1),
        "cost_dollars_per_period": np.bincount(number, np.asarray(solution.evaluation.file_cost), count),
        "mean_n": np.bincount(number, plan_rows.code_lengths(solution, names), count) / files,
    }


def class_plans(run_id: str, columns: dict[str, np.ndarray], classes: Classes) -> pa.Table:
    """One row per class.

    Args:
        run_id: run.
        columns: (K,) each, infinite or nan where there is nothing to say.
        classes: of the files.
    """
    table: dict[str, list[str] | pa.Array] = {
        "run_id": [run_id] * len(classes.names),
        "service_class": classes.names,
    }
    for name, array in columns.items():
        table[name] = pa.array(array, mask=~np.isfinite(array) if array.dtype.kind == "f" else None)
    return pa.table(table)


def file_plans(run_id: str, plan: Solution, k: np.ndarray, ids: Identity, classes: Classes) -> pa.Table:
    """One row per file, with its service class."""
    plain = plan_rows.file_plans(run_id, plan, k, ids)
    names = pa.DictionaryArray.from_arrays(pa.array(classes.of_file), pa.array(classes.names))
    return plain.append_column("service_class", names.cast(pa.string()))


def class_weights(run_id: str, weights: np.ndarray, classes: Classes, names: Identity) -> pa.Table:
    """One row per class and node."""
    number, node = (index.ravel() for index in np.indices(weights.shape))
    return pa.table(
        {
            "run_id": [run_id] * weights.size,
            "service_class": [classes.names[i] for i in number],
            "node_id": names.nodes.take(pa.array(node)),
            "weight": weights.ravel(),
        }
    )


def history(run_id: str, plan: ClassPlan, classes: Classes) -> pa.Table:
    """One row per step of the alternation."""
    steps = plan.steps
    return pa.table(
        {
            "run_id": [run_id] * len(steps),
            "iteration": [step.iteration for step in steps],
            "step": [step.name for step in steps],
            "service_class": pa.array(
                [None if step.in_force is None else classes.names[step.in_force] for step in steps],
                pa.string(),
            ),
            "objective": pa.array([step.objective for step in steps], pa.float64()),
            "class_latency_s": [_by_class(classes, step.latency) for step in steps],
            "gap": pa.array([step.gap for step in steps], pa.float64()),
        }
    )


def _by_class(classes: Classes, latency: np.ndarray) -> str:
    """Latencies of the classes as JSON, which has no infinite numbers."""
    values = [value if np.isfinite(value) else None for value in latency.tolist()]
    return json.dumps(dict(zip(classes.names, values, strict=True)))
