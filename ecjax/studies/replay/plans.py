"""The plans to replay, each with the tables it was made for."""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax import planning
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem import arrays
from ecjax.problem.classes import Classes, file_classes
from ecjax.problem.earlier_plan import plan_arrays, plan_weights
from ecjax.problem.identity import Identity, identity
from ecjax.problem.planned_kinds import PlannedKinds, planned_kinds
from ecjax.problem.small_reads import small_traffic
from ecjax.studies.optimize.inputs import Tables, fingerprint_of, input_tables, read_tables
from ecjax.studies.optimize.loads import refuse_overload, table_loads
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import planned
from ecjax.studies.replay.options import NO_PLAN, ReplayOptions
from ecjax.tables.folder import location
from ecjax.tables.read import read_input
from ecjax.tables.results import find_run, find_runs
from ecjax.validation.service import EMPIRICAL

# queues that plans are made for, and what they are replayed under unless options say otherwise
PLAN_QUEUES = {"fcfs": "fcfs", "priority": "priority", "weighted": "partitioned"}
CANCELLING = ("fork_join", "late_binding", "hedged")  # policies whose work is not known beforehand
PLANNING = "planning"  # folder under ``out`` of the plans that are made first


@dataclass(frozen=True)
class PlanRun:
    """The run that made a plan: columns of its row of ``runs``; what stands for them where there is no plan.

    Attributes:
        input_id: names the nodes and files tables.
        run_id: None where there is no plan.
        queue: that the plan was made for, one of PLAN_QUEUES.
        method: how it was planned.
        theta: s/$, latency that a dollar is worth.
        cost_dollars_per_period: $/period, storage cost of all files, with ``moving_dollars``.
        moving_dollars: $, of that what is paid once, to move chunks; None where moving costs nothing.
        importance: JSON by service class.
        class_rate_scale: JSON by service class.
        rate_scale: the files' rates were multiplied by this.
        size_scale: the files' sizes were multiplied by this.
        params: JSON of the other parameters.
    """

    input_id: str
    run_id: str | None = None
    queue: str = "fcfs"
    method: str = "none"
    theta: float | None = None
    cost_dollars_per_period: float | None = None
    moving_dollars: float | None = None
    importance: str | None = None
    class_rate_scale: str | None = None
    rate_scale: float = 1.0
    size_scale: float = 1.0
    params: str = "{}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The other parameters of the run."""
        parameters: dict[str, Any] = json.loads(self.params)
        return parameters


@dataclass(frozen=True)
class Plan:
    """A placement with its read probabilities, for m nodes and r files in R placement rows.

    Attributes:
        run: that made it.
        nodes: checked table.
        files: checked table.
        names: ids.
        problem: of the bound, before any scaling.
        probabilities: (R, m).
        stored: (R, m) bool.
        per_node: chunks of a file that each of its nodes keeps and serves together.
        size_scaling: how service grows with the chunk size.
        weights: (K, m) shares of the classes at every node, of a plan made for weighted queues; else None.
        kinds: small reads of its files, where these have some.
    """

    run: PlanRun
    nodes: pa.Table
    files: pa.Table
    names: Identity
    problem: planning.Problem
    probabilities: np.ndarray
    stored: np.ndarray
    per_node: int
    size_scaling: str
    weights: np.ndarray | None = None
    kinds: PlannedKinds | None = None

    @property
    def queue(self) -> str:
        """What it is replayed under unless options say otherwise."""
        return PLAN_QUEUES[self.run.queue]

    @cached_property
    def classes(self) -> Classes:
        """Service classes in ascending order; where files have none, a class per k, named k=..."""
        return file_classes(self.names, self.files)


def read_plans(options: ReplayOptions) -> list[Plan]:
    """The plans that options name; those of ``planning`` are made first where they name none.

    Raises:
        UserError: no plan fits, or something in the tables is wrong.
    """
    if options.plan == NO_PLAN:
        return [_without_plan(options)]
    if options.plan is None:
        planning, folder = options.planning, location(options.out) / PLANNING
        tables = list(read_tables(planning))
        _refuse_overload(options, planning, tables, planning.rate_scale, planning.size_scale)
        runs = planned(replace(planning, out=str(folder), engine=options.engine, estimate=False), tables)
        for run in runs[runs["error"].notna()].itertuples():
            log.warning("planning: method=%s theta=%g is not replayed: %s", run.method, run.theta, run.error)
        rows = runs[runs["error"].isna()].astype(object)
        return list(_of_runs(folder, rows.where(rows.notna(), None).to_dict("records")))
    folder = location(options.plan)
    if not folder.is_dir():
        raise UserError(f"plan={options.plan}: no such folder")
    if options.plan_run == "all" or (options.plan_run is None and options.plan_where is not None):
        rows = find_runs(folder, options.plan_where)
    else:
        rows = [find_run(folder, options.plan_run, options.plan_where)]
    return list(_of_runs(folder, rows))


def _refuse_overload(
    options: ReplayOptions,
    planning: OptimizeOptions,
    tables: Iterable[Tables],
    rates: Sequence[float],
    sizes: Sequence[float],
) -> None:
    """Refuse, before anything is planned or simulated, replays that overload a node whatever reads which node.

    Args:
        options: checked.
        planning: how chunks are kept.
        tables: to replay.
        rates: that rates are multiplied by beforehand.
        sizes: that file sizes are multiplied by beforehand.

    Raises:
        UserError: names the node.
    """
    # what is cancelled is less work, and work of a log or at rates that vary is not known from the tables
    unknown = options.arrivals == "trace" or options.rates is not None or EMPIRICAL in (options.service or [])
    if unknown or set(options.policy) & set(CANCELLING):
        return
    products = [
        [one * other for one, other in itertools.product(of_plans, of_replay)]
        for of_plans, of_replay in ((rates, options.rate_scale), (sizes, options.size_scale))
    ]
    refuse_overload(table_loads(planning, each, *products) for each in tables)


def _of_runs(folder: Path, rows: list[dict[str, Any]]) -> Iterator[Plan]:
    """Plans of finished runs in a folder.

    Args:
        folder: of the results.
        rows: of ``runs``.
    """

    @lru_cache(maxsize=4)
    def tables(input_id: str) -> tuple[pa.Table, pa.Table]:
        nodes, files = (folder / "inputs" / name / f"{input_id}.parquet" for name in ("nodes", "files"))
        if nodes.is_file() and not files.is_file():
            raise UserError(
                f"plan={folder}: found a plan of stream=true, which keeps no table of files; allowed: others"
            )
        return read_input(nodes, "nodes"), read_input(files, "files")

    names = [field.name for field in fields(PlanRun)]
    for row in rows:
        known = {name: row[name] for name in names if name in row}  # earlier results have fewer columns
        run = PlanRun(**known | {"queue": row["queue"] or "fcfs"})
        yield _of_run(folder, run, *tables(run.input_id))


def _of_run(folder: Path, run: PlanRun, nodes: pa.Table, files: pa.Table) -> Plan:
    per_node = run.parameters.get("max_chunks_per_node", 1)
    scaling = run.parameters.get("size_scaling", "proportional")
    names = identity(nodes, files, per_node)
    probabilities, stored, placed = plan_arrays(folder, str(run.run_id), names)
    if not placed.all():
        row = int(np.argmin(placed))
        raise UserError(f"plan={folder}: run {run.run_id} has no placement of row {row} of its files")
    if run.queue not in PLAN_QUEUES:
        raise UserError(
            f"plan={folder}: run {run.run_id}: column queue: found {run.queue!r}; allowed: {', '.join(PLAN_QUEUES)}"
        )
    weights = None
    if run.queue == "weighted":
        weights = plan_weights(folder, str(run.run_id), names, file_classes(names, files).names)
        if weights is None:
            raise UserError(
                f"plan={folder}: run {run.run_id} was made for queue=weighted and has no class_weights; "
                "allowed: a plan written with them"
            )
    problem = _problem(nodes, files, names, per_node, scaling)
    kinds = None
    if small_traffic(files) is not None:
        kinds = planned_kinds(folder, str(run.run_id), names, files, stored)
    return Plan(run, nodes, files, names, problem, probabilities, stored, per_node, scaling, weights, kinds)


def _problem(
    nodes: pa.Table, files: pa.Table, names: Identity, per_node: int, scaling: str
) -> planning.Problem:
    parts = arrays.nodes_arrays(nodes, scaling), arrays.files_arrays(files)
    if per_node > 1:
        parts = arrays.several_per_node(*parts, per_node)
    return planning.prepare(*parts, names.rows.of_file, names.rows.count)


def _without_plan(options: ReplayOptions) -> Plan:
    """Chunks on the files' current nodes, on all nodes where they have none; every chunk read alike."""
    nodes, files = input_tables(options.planning)
    arrays.check_together(nodes, files)
    if small_traffic(files) is not None:
        raise UserError(
            "plan=none: files have small reads (small_rate_per_s), whose kinds a plan chooses; allowed with them: plan="
            "FOLDER of an ecjax optimize"
        )
    one_each = replace(options.planning, max_chunks_per_node=1)
    tables = Tables(nodes, files, identity(nodes, files), None, None, None)
    _refuse_overload(options, one_each, [tables], [1.0], [1.0])
    names, scaling = identity(nodes, files), options.planning.size_scaling
    problem = _problem(nodes, files, names, 1, scaling)
    stored = _current_nodes(files, names)
    k = np.asarray(problem.k)
    short = np.flatnonzero(stored.sum(axis=1) < k)
    if short.size:
        row = int(short[0])
        file = row if names.rows.of_file is None else int(np.argmax(names.rows.of_file == row))
        raise UserError(
            f"files: column nodes, row {file} (file_id={files['file_id'][file]}): found {stored[row].sum()} nodes; "
            f"allowed: at least the {k[row]:g} that a read takes"
        )
    probabilities = stored * (k / stored.sum(axis=1))[:, None]
    run = PlanRun(fingerprint_of(nodes, files))
    return Plan(run, nodes, files, names, problem, probabilities, stored, 1, scaling)


def _current_nodes(files: pa.Table, names: Identity) -> np.ndarray:
    """Where the column ``nodes`` has the rows' chunks, (R, m) bool; on all nodes where it says nothing.

    Raises:
        UserError: the column names an unknown node.
    """
    stored = np.ones((names.rows.count, len(names.nodes)), bool)
    if "nodes" not in files.column_names:
        return stored
    row_of = names.rows.row_of_file
    for file, placed in enumerate(files["nodes"].combine_chunks()):
        if not placed.is_valid or not len(placed.values):
            continue
        node = arrays.index_in(pa.chunked_array([placed.values]), names.nodes)
        if np.any(node < 0):
            name = placed.values[int(np.argmax(node < 0))].as_py()
            raise UserError(
                f"files: column nodes, row {file}: found {name!r}; allowed: ids of the nodes table, as "
                f"{names.nodes[0].as_py()!r}"
            )
        stored[row_of[file]] = False
        stored[row_of[file], node] = True
    return stored
