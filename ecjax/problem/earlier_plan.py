"""A plan of an earlier run as probabilities for the files and nodes at hand."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem.arrays import index_in
from ecjax.problem.identity import Identity
from ecjax.tables.committed import batch_of
from ecjax.tables.folder import location
from ecjax.tables.results import find_run, read_run

_SUM = 1e-6  # by which the weights of a node may miss 1


class EarlierPlan(NamedTuple):
    """An earlier plan on the rows and nodes at hand."""

    probabilities: jax.Array  # (R, m), zero for rows that it does not know
    stored: jax.Array  # (R, m) bool
    run_id: str


def read_plan(out: str, plan_run: str | None, plan_where: str | None, names: Identity) -> EarlierPlan:
    """The chosen run's plan.

    Rows that the run does not know are zero, which projects to uniform.

    Args:
        out: folder of its results.
        plan_run: which run, by run id.
        plan_where: which run, as "theta=0.1,method=certified".
        names: ids of the rows and nodes at hand.

    Raises:
        UserError: no or several runs fit, or the run shares no placement row or no node with the inputs.
    """
    folder = location(out)
    if not folder.is_dir():
        raise UserError(f"plan={out}: no such folder")
    run = find_run(folder, plan_run, plan_where)
    probabilities, stored, planned = plan_arrays(folder, run["run_id"], names)
    if not planned.any():
        raise UserError(
            f"plan={out}: run {run['run_id']} shares no file or no node with the inputs; allowed: "
            "the nodes= and files= that it was made with, or some of them"
        )
    if not planned.all():
        log.info(
            "plan: %d of %d rows are not in run %s and are placed anew",
            (~planned).sum(),
            len(planned),
            run["run_id"],
        )
    return EarlierPlan(jnp.asarray(probabilities), jnp.asarray(stored), run["run_id"])


def plan_arrays(folder: Path, run_id: str, names: Identity) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The placements of a run: probabilities (R, m), stored (R, m) bool, and the rows (R,) that the run knows."""
    table = read_run(folder, "placements", run_id)
    probabilities = np.zeros((names.rows.count, len(names.nodes)))
    stored = np.zeros(probabilities.shape, bool)
    planned = np.zeros(names.rows.count, bool)
    node = index_in(table["node_id"], names.nodes)
    for column, ids in (("file_id", names.rows.file), ("group", names.rows.group)):
        if ids is None:
            continue
        row = index_in(table[column], ids)
        there = (row >= 0) & (node >= 0)
        probabilities[row[there], node[there]] = table["probability"].to_numpy()[there]
        stored[row[there], node[there]] = True
        planned[row[there]] = True
    return probabilities, stored, planned


def plan_weights(folder: Path, run_id: str, names: Identity, class_names: list[str]) -> np.ndarray | None:
    """The shares that the nodes give to service classes in a run, (K, m); None where the run has none.

    Args:
        folder: of the results.
        run_id: a committed run.
        names: ids of the nodes, in the order of the result.
        class_names: (K,) service classes, in the order of the result.

    Raises:
        UserError: the dataset ``class_weights`` of the run lacks a class at a node, has it twice or has an unknown one,
            or weights are not positive or do not sum to 1 at a node.
    """
    if not (folder / "class_weights" / f"{batch_of(folder, run_id)}.parquet").exists():
        return None
    table = read_run(folder, "class_weights", run_id)
    if not len(table):
        return None
    where = f"plan={folder}: class_weights of run {run_id}"
    number = index_in(table["service_class"], pa.array(class_names))
    node = index_in(table["node_id"], names.nodes)
    weight = table["weight"].to_numpy()
    right = {"service_class": number >= 0, "node_id": node >= 0, "weight": (weight > 0) & (weight < np.inf)}
    allowed = {
        "service_class": f"the classes of its files: {', '.join(class_names)}",
        "node_id": "the nodes of its inputs",
        "weight": "a positive number",
    }
    for column, each in right.items():
        if not each.all():
            row = int(np.argmin(each))
            raise UserError(
                f"{where}: column {column}, row {row}: found {table[column][row].as_py()!r}; allowed: {allowed[column]}"
            )
    count = np.zeros((len(class_names), len(names.nodes)), np.int64)
    np.add.at(count, (number, node), 1)
    if np.any(count != 1):
        k, j = np.argwhere(count != 1)[0]
        raise UserError(
            f"{where}: found {count[k, j]} rows of class {class_names[k]} at node {names.nodes[j].as_py()}; allowed: "
            "one for every class and node"
        )
    weights = np.zeros(count.shape)
    weights[number, node] = weight
    total = weights.sum(axis=0)
    off = np.abs(total - 1) > _SUM
    if off.any():
        j = int(np.argmax(off))
        raise UserError(
            f"{where}: the weights of node {names.nodes[j].as_py()} sum to {total[j]:.9g}; allowed: weights of every "
            "node that sum to 1"
        )
    return weights
