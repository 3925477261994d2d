"""The plans to replay, each with the tables it was made for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax import optimize
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.problem import arrays as inputs
from ecjax.problem.classes import file_classes
from ecjax.problem.earlier_plan import plan_arrays, plan_weights
from ecjax.problem.identity import Identity, identity
from ecjax.studies.optimize.inputs import fingerprint_of, input_tables
from ecjax.studies.optimize.study import planned
from ecjax.studies.replay.options import ReplayOptions
from ecjax.tables.folder import location
from ecjax.tables.read import read_input
from ecjax.tables.results import find_run, find_runs

# queues that plans are made for, and what they are replayed under unless something else is asked for
PLAN_QUEUES = {"fcfs": "fcfs", "priority": "priority", "weighted": "partitioned"}


@dataclass(frozen=True)
class PlanCase:
    """A placement with its read probabilities, for nodes and files.

    Attributes:
        run: row of the ``runs`` dataset that it comes from; without a plan, the few values that stand for it.
        nodes: checked table.
        files: checked table.
        names: ids.
        problem: of the bound, before any scaling.
        probabilities: (R, m).
        stored: (R, m) bool.
        per_node: chunks of a file that each of its nodes keeps and serves together.
        size_scaling: how service grows with the chunk size.
        queue: that the plan was made for, one of PLAN_QUEUES.
        weights: (K, m) shares of the classes at every node, of a plan made for weighted queues; else None.
    """

    run: dict[str, Any]
    nodes: pa.Table
    files: pa.Table
    names: Identity
    problem: optimize.Problem
    probabilities: np.ndarray
    stored: np.ndarray
    per_node: int
    size_scaling: str
    queue: str = "fcfs"
    weights: np.ndarray | None = None

    @property
    def input_id(self) -> str:
        """Name of the tables."""
        return str(self.run["input_id"])


def plan_cases(options: ReplayOptions) -> list[PlanCase]:
    """The plans that are asked for; those of ``planning`` are made first where no plan is given.

    Raises:
        UserError: no plan fits, or something in the tables is wrong.
    """
    if options.plan == "none":
        return [_without_plan(options)]
    if options.plan is None:
        options.planning.out = options.out
        runs = planned(checked(options.planning))
        for run in runs[runs["error"].notna()].itertuples():
            log.warning("planning: method=%s theta=%g is not replayed: %s", run.method, run.theta, run.error)
        rows = runs[runs["error"].isna()].astype(object)
        return list(_of_runs(location(options.out), rows.where(rows.notna(), None).to_dict("records")))
    folder = location(options.plan)
    if not folder.is_dir():
        raise UserError(f"plan={options.plan}: no such folder")
    if options.plan_run == "all" or (options.plan_run is None and options.plan_where is not None):
        rows = find_runs(folder, options.plan_where)
    else:
        rows = [find_run(folder, options.plan_run, options.plan_where)]
    return list(_of_runs(folder, rows))


def _of_runs(folder: Path, runs: list[dict[str, Any]]) -> Iterator[PlanCase]:
    @lru_cache(maxsize=4)
    def tables(input_id: str) -> tuple[pa.Table, pa.Table]:
        nodes, files = (folder / "inputs" / name / f"{input_id}.parquet" for name in ("nodes", "files"))
        return read_input(nodes, "nodes"), read_input(files, "files")

    for run in runs:
        made = json.loads(run["params"])
        per_node, scaling = made.get("max_chunks_per_node", 1), made.get("size_scaling", "proportional")
        nodes, files = tables(run["input_id"])
        names = identity(nodes, files, per_node)
        probabilities, stored, known = plan_arrays(folder, run["run_id"], names)
        if not known.all():
            row = int(np.argmin(known))
            raise UserError(f"plan={folder}: run {run['run_id']} has no placement of row {row} of its files")
        queue, weights = run["queue"] or "fcfs", None
        if queue not in PLAN_QUEUES:
            raise UserError(
                f"plan={folder}: run {run['run_id']}: column queue: found {queue!r}; allowed: {', '.join(PLAN_QUEUES)}"
            )
        if queue == "weighted":
            weights = plan_weights(folder, run["run_id"], names, file_classes(names, files).names)
            if weights is None:
                raise UserError(
                    f"plan={folder}: run {run['run_id']} was made for queue=weighted and has no class_weights; "
                    "allowed: a plan written with them"
                )
        problem = _problem(nodes, files, names, per_node, scaling)
        yield PlanCase(
            run, nodes, files, names, problem, probabilities, stored, per_node, scaling, queue, weights
        )


def _problem(
    nodes: pa.Table, files: pa.Table, names: Identity, per_node: int, scaling: str
) -> optimize.Problem:
    arrays = inputs.nodes_arrays(nodes, scaling), inputs.files_arrays(files)
    if per_node > 1:
        arrays = inputs.several_per_node(*arrays, per_node)
    return optimize.prepare(*arrays, names.rows.of_file, names.rows.count)


def _without_plan(options: ReplayOptions) -> PlanCase:
    """Chunks on the files' current nodes, on all nodes where they have none; every chunk read alike."""
    nodes, files = input_tables(checked(options.planning))
    inputs.check_together(nodes, files)
    names = identity(nodes, files)
    problem = _problem(nodes, files, names, 1, options.planning.size_scaling)
    stored = np.ones((names.rows.count, len(names.nodes)), bool)
    if "nodes" in files.column_names:
        row_of = np.arange(len(files)) if names.rows.of_file is None else names.rows.of_file
        for file, placed in enumerate(files["nodes"].combine_chunks()):
            if not placed.is_valid:
                continue
            where = inputs.index_in(pa.chunked_array([placed.values]), names.nodes)
            if np.any(where < 0):
                raise UserError(f"files: column nodes, row {file}: found a node that the nodes table lacks")
            stored[row_of[file]] = False
            stored[row_of[file], where] = True
    k = np.asarray(problem.k)
    short = np.flatnonzero(stored.sum(axis=1) < k)
    if short.size:
        row = int(short[0])
        raise UserError(
            f"files: column nodes, placement row {row}: found {stored[row].sum()} nodes; allowed: at least the "
            f"{k[row]:g} that a read takes"
        )
    probabilities = stored * (k / stored.sum(axis=1))[:, None]
    run = {
        "run_id": None,
        "method": "none",
        "theta": None,
        "rate_scale": 1.0,
        "size_scale": 1.0,
        "cost": None,
    }
    run["input_id"] = fingerprint_of(nodes, files)
    return PlanCase(
        run, nodes, files, names, problem, probabilities, stored, 1, options.planning.size_scaling
    )
