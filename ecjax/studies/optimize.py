"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

import itertools
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
from rich.console import Console

from ecjax import optimize, precision
from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.optimize import BatchSettings, Lanes, Plans, scaled
from ecjax.report import plans as figures
from ecjax.studies import builtin, inputs, plan_summary, plan_tables, scenario_tables
from ecjax.studies.checked_options import checked
from ecjax.studies.class_options import METHODS, deadlines, importances, shares
from ecjax.studies.class_rates import with_class_rates
from ecjax.studies.class_runs import Starts, class_run
from ecjax.studies.code_lengths import given_lengths
from ecjax.studies.constraints import constrained
from ecjax.studies.feasibility import check_feasible
from ecjax.studies.file_classes import check_classes
from ecjax.studies.given_plan import read_plan
from ecjax.studies.options_optimize import OptimizeOptions
from ecjax.studies.outcome import exit_code, runs_of
from ecjax.studies.plan_examination import examined
from ecjax.studies.plan_objective import for_objective
from ecjax.studies.plan_runs import Item, Study, run_row, why_unstable
from ecjax.tables.checks import check
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.ids import id_types
from ecjax.tables.read import read_input
from ecjax.tables.store import ResultStore, run_id


def optimize_study(options: OptimizeOptions, console: Console) -> int:
    """Run the study; returns the exit code (0, or 1 where some runs found no stable plan).

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    runs = planned(options)
    plan_summary.show(runs, console, options)
    figures.draw(Path(options.out), runs, options.figures, console)
    return exit_code(runs)


def planned(options: OptimizeOptions) -> pd.DataFrame:
    """Plan what is not yet planned in ``out``; returns the rows of the ``runs`` dataset in the order of the sweep.

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    precision.use_compilation_cache()
    overrides = itertools.product(
        options.k or [None], options.d or [None], options.class_rate_scale or [None]
    )
    studies = [_study(options, *values) for values in overrides]
    grids = [list(study.run_ids) for study in studies]
    run_ids = [run for study in studies for run in study.run_ids.values()]
    ids = id_types(*(table for study in studies for table in (study.nodes, study.files)))
    with ResultStore(options.out, ids, options.write) as store:
        done = store.finished(run_ids) if options.resume else set()
        if done:
            log.info("%d of %d runs are finished in %s", len(done), len(run_ids), options.out)
        with progress("planning", len(run_ids) - len(done)) as advance:
            for study, grid in zip(studies, grids, strict=True):
                missing = [item for item in grid if study.run_ids[item] not in done]
                for items, rows, tables, easiest in _batches_of(study, grid, missing):
                    if len(items) == len(run_ids) and easiest:
                        # a study with no stable plan at all is the user's mistake; single runs become rows
                        raise UserError(easiest)
                    store.write_input("nodes", study.input_id, study.nodes)
                    store.write_input("files", study.input_id, study.files)
                    store.commit(rows, tables)
                    advance(len(items))
    return runs_of(options.out, run_ids)


def _batches_of(study: Study, grid: list[Item], missing: list[Item]):
    """(items, rows, datasets, what is wrong with the easiest run) of every batch that is to be planned."""
    options = study.options
    plain = [item for item in missing if item.queue == "fcfs"]
    for lanes, items in _batches(
        [item for item in grid if item.queue == "fcfs"], plain, study.problem, options
    ):
        given = None if study.given is None else (study.given.probabilities, study.given.stored)
        fresh = _lanes(lanes, options, study.problem)
        plans = optimize.solve(study.problem, fresh, _settings(options), given)
        rows, tables = _tables(plans, lanes, items, study)
        if given is not None and options.compare_cold_start:
            _add_cold_start(rows, items, lanes, optimize.solve(study.problem, fresh, _settings(options)))
        failed = all(row["error"] for row in rows)
        yield items, rows, tables, _easiest(plans, lanes, items, rows) if failed else None
    starts = Starts(study)
    for item in missing:
        if item.queue != "fcfs":
            row, tables = class_run(item, study, starts)
            yield [item], [row], tables, row["error"]


def _study(
    options: OptimizeOptions, k: int | None, d: int | None, class_rates: tuple[float, ...] | None
) -> Study:
    """The problem at one k, d and scaling of the classes' rates, with all that its runs have in common."""
    nodes, files = input_tables(options, k, d)
    per_node = options.max_chunks_per_node
    inputs.check_together(nodes, files, per_node)
    names = plan_tables.identity(nodes, files, per_node)
    scaled_by = None
    if class_rates is not None:
        files, scaled_by = with_class_rates(files, names, class_rates)
    arrays = inputs.nodes_arrays(nodes, options.size_scaling), inputs.files_arrays(files)
    if per_node > 1:
        arrays = inputs.several_per_node(*arrays, per_node)
    problem = optimize.prepare(*arrays, names.rows.of_file, names.rows.count)
    given, parameters = None, _parameters(options)
    if options.plan is not None:
        given = read_plan(options, names)
        parameters["plan_run"] = given.run_id
    network = None if options.network is None else read_input(options.network, "network")
    if network is not None:
        parameters["network"] = fingerprint(network, "network")
    problem = constrained(
        problem,
        nodes,
        files,
        names.rows,
        max_chunks_per_site=options.max_chunks_per_site,
        migration_dollars_per_byte=options.migration_dollars_per_byte,
        network=network,
        fixed_groups=options.fixed_groups,
        current=None if given is None else np.asarray(given.stored),
        per_node=per_node,
    )
    check_feasible(problem, nodes, files)
    if options.scenarios:
        scenario_tables.failures(nodes, options.scenarios)
    input_id = fingerprint_of(nodes, files)
    by_class = [queue for queue in options.queue if queue != "fcfs"]
    classes = check_classes(names, files, by_class[0]) if by_class else None
    if classes is not None:
        shares(options.weights, classes.names)
        deadlines(options.deadline_s, classes.names)
        check_feasible(given_lengths(problem, names, files), nodes, files)
    grid = _grid(options, None if classes is None else classes.names)
    run_ids = {
        item: run_id("optimize", parameters | asdict(item), input_id, options.seed, options.dtype)
        for item in grid
    }
    return Study(
        options, parameters, problem, names, nodes, files, given, k, d, scaled_by, input_id, run_ids, classes
    )


def _grid(options: OptimizeOptions, classes: list[str] | None) -> list[Item]:
    """All runs: methods for first come, first served, and importances of the classes for each queue by class."""
    ways: list[tuple[str, str, tuple[float, ...] | None]] = []
    for queue in options.queue:
        if queue == "fcfs":
            ways += [(method, queue, None) for method in options.method]
        else:
            assert classes is not None
            ways += [(METHODS[queue], queue, one) for one in importances(options.importance, classes)]
    return [
        Item(method, theta, rate, size, queue, importance)
        for rate, size, theta, (method, queue, importance) in itertools.product(
            options.rate_scale, options.size_scale, options.theta, ways
        )
    ]


def input_tables(
    options: OptimizeOptions, k: int | None = None, d: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """The checked tables, overrides applied: what the plan is computed from."""
    if options.nodes is None:
        nodes = read_input(builtin.nodes(options.cluster), "nodes")
    else:
        nodes = read_input(options.nodes, "nodes")
    overrides = {"k": k, "d": d, "min_extra_chunks": options.min_extra_chunks}
    overrides = {name: value for name, value in overrides.items() if value is not None}
    files = builtin.files(options.cluster) if options.files is None else options.files
    files = read_input(files, "files", constants=overrides)
    if "min_extra_chunks" not in files.column_names:
        files = check(files.append_column("min_extra_chunks", pa.array(np.zeros(len(files), int))), "files")
    if "n" in files.column_names and "fcfs" in options.queue:
        log.info("files: n is given and left aside; queue=fcfs chooses code lengths")
    if "nodes" in files.column_names and not options.fixed_groups and not options.migration_dollars_per_byte:
        log.info(
            "files: nodes (the current placement) is given and left aside; migration_dollars_per_byte prices moves, "
            "fixed_groups=true keeps the files where they are"
        )
    return nodes, files


def fingerprint_of(nodes: pa.Table, files: pa.Table) -> str:
    """Name of both inputs together."""
    return run_id(
        "inputs", {"nodes": fingerprint(nodes, "nodes"), "files": fingerprint(files, "files")}, "", None, ""
    )


def _settings(options: OptimizeOptions) -> BatchSettings:
    return BatchSettings(
        methods=tuple(name for name in optimize.METHODS if name in options.method),
        start=options.start if options.start in optimize.STARTS else "uniform",
        settings=optimize.settings(options.beta, options.eps, options.max_iterations, options.loop),
        dtype=options.dtype,
        seed=options.seed,
        certified=optimize.Certified(gap=options.gap, seed=options.seed),
    )


def _parameters(options: OptimizeOptions) -> dict[str, Any]:
    """What changes a result apart from the inputs, the item, the seed and the number type."""
    names = (
        *("theta_per", "size_scaling", "start", "loop", "beta", "eps", "max_iterations", "gap"),
        *("max_chunks_per_node", "max_chunks_per_site", "migration_dollars_per_byte", "fixed_groups"),
        *("scenarios", "scheduling", "robust", "robust_trials", "polish", "compare_cold_start"),
        *(("objective", "service") if options.objective != "bound" else ()),
        *(("weights", "deadline_s", "deadline_by") if options.queue != ["fcfs"] else ()),
    )
    return {name: getattr(options, name) for name in names}


def _batches(grid: list[Item], missing: list[Item], problem, options: OptimizeOptions):
    """(lanes, items) of every batch: as many lanes as memory allows and the whole grid would fill.

    The number of lanes does not depend on what is already finished, so that a resumed job runs the same program.
    """
    memory = options.memory_bytes or 0.5 * psutil.virtual_memory().available
    all_lanes = list(dict.fromkeys(item.lane for item in grid))
    if not missing:
        return
    batches = math.ceil(len(all_lanes) / optimize.lanes_per_batch(problem, memory, options.dtype))
    width = math.ceil(len(all_lanes) / batches)
    wanted = list(dict.fromkeys(item.lane for item in missing))
    for first in range(0, len(wanted), width):
        lanes = wanted[first : first + width]
        items = [item for item in missing if item.lane in lanes]
        yield lanes + [lanes[-1]] * (width - len(lanes)), items


def _lanes(lanes: list[tuple[float, float, float]], options: OptimizeOptions, problem) -> Lanes:
    theta, rate, size = np.array(lanes).T
    return Lanes(theta * (problem.files.count if options.theta_per == "total" else 1), rate, size)


def _tables(plans: Plans, lanes: list[tuple[float, float, float]], items: list[Item], study: Study):
    """Rows of the ``runs`` dataset, and the other datasets, of a batch."""
    times = {"solve_s": plans.solve_s / len(items), "compile_s": plans.compile_s / len(items)}
    rows, kept, scenarios = [], [], []
    for item in items:
        lane = lanes.index(item.lane)
        plan = jax.tree.map(lambda leaf, lane=lane: np.asarray(leaf[lane]), plans.by_method[item.method])
        error: str | None = None
        more: dict[str, Any] = {}
        if np.isfinite(plan.evaluation.objective):
            if study.options.objective != "bound":
                own = scaled(study.problem, item.rate_scale, item.size_scale)
                plan, more = for_objective(item, plan, study, own, _settings(study.options))
            plan, examination, table = examined(item, plan, study)
            more |= examination
            kept.append((study.run_ids[item], plan))
            scenarios += [table] if table is not None else []
        else:
            error = why_unstable(item, plan, plans.start_load[lane], study)
        bound = None if plans.lower_bound is None else float(plans.lower_bound[lane])
        rows.append(run_row(item, plan, error, study, times, bound) | more)
    share = np.asarray(study.problem.share)
    tables = plan_tables.datasets(kept, inputs.code_k(study.files), share, study.names)
    return rows, tables | {"scenarios": iter(scenarios)}


def _add_cold_start(rows: list[dict[str, Any]], items: list[Item], lanes, cold: Plans) -> None:
    """Objectives of the same runs without the earlier plan, where they have one."""
    for row, item in zip(rows, items, strict=True):
        objective = float(cold.by_method[item.method].evaluation.objective[lanes.index(item.lane)])
        row["cold_start_objective"] = objective if np.isfinite(objective) else None


def _easiest(plans: Plans, lanes, items: list[Item], rows: list[dict[str, Any]]) -> str:
    """What is wrong with the run whose largest load is least."""
    lane = int(np.argmin(np.asarray(plans.start_load).max(axis=1)))
    return next(row["error"] for item, row in zip(items, rows, strict=True) if item.lane == lanes[lane])
