"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

import itertools
import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax import optimize, precision
from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.optimize import BatchSettings, Lanes, Plans
from ecjax.report import plans as figures
from ecjax.status import Status
from ecjax.studies import builtin, inputs, plan_tables
from ecjax.studies.checked_options import checked
from ecjax.studies.given_plan import read_plan
from ecjax.studies.options_optimize import OptimizeOptions
from ecjax.studies.plan_runs import Item, Study, run_row, why_unstable
from ecjax.tables.checks import check
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.ids import id_types
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id

MOST_CLASSES = 6  # more would not fit in a line of the printed table


def optimize_study(options: OptimizeOptions, console: Console) -> int:
    """Run the study; returns the exit code (0, or 1 where some runs found no stable plan).

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    options = checked(options)
    precision.use_compilation_cache()
    nodes, files = input_tables(options)
    inputs.check_together(nodes, files)
    names = plan_tables.identity(nodes, files)
    problem = optimize.prepare(
        inputs.nodes_arrays(nodes, options.size_scaling),
        inputs.files_arrays(files),
        names.rows.of_file,
        names.rows.count,
    )
    given, parameters = None, _parameters(options)
    if options.start == "plan":
        given, parameters["plan_run"] = read_plan(options, names)
    input_id = fingerprint_of(nodes, files)
    grid = [
        Item(method, theta, rate, size)
        for rate, size, theta, method in itertools.product(
            options.rate_scale, options.size_scale, options.theta, options.method
        )
    ]
    run_ids = {
        item: run_id("optimize", parameters | asdict(item), input_id, options.seed, options.dtype)
        for item in grid
    }
    study = Study(options, parameters, problem, names, input_id, run_ids)
    with ResultStore(options.out, id_types(nodes, files), options.write) as store:
        done = store.finished(run_ids.values()) if options.resume else set()
        missing = [item for item in grid if run_ids[item] not in done]
        if done:
            log.info("%d of %d runs are finished in %s", len(grid) - len(missing), len(grid), options.out)
        with progress("planning", len(missing)) as advance:
            for lanes, items in _batches(grid, missing, problem, options):
                plans = optimize.solve(problem, _lanes(lanes, options, problem), _settings(options), given)
                rows, tables = _tables(plans, lanes, items, study)
                if len(items) == len(grid) and all(row["error"] for row in rows):
                    # a study with no stable plan at all is the user's mistake; single runs of a sweep become rows
                    raise UserError(_easiest(plans, lanes, items, rows))
                store.write_input("nodes", input_id, nodes)
                store.write_input("files", input_id, files)
                store.commit(rows, tables)
                advance(len(items))
    runs = read_results(options.out, "runs").set_index("run_id").loc[list(run_ids.values())].reset_index()
    _print(runs, console, options)
    _warn(runs, console)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def input_tables(options: OptimizeOptions) -> tuple[pa.Table, pa.Table]:
    """The checked tables, overrides applied: what the plan is computed from."""
    if options.nodes is None:
        nodes = read_input(builtin.nodes(options.cluster), "nodes")
    else:
        nodes = read_input(options.nodes, "nodes")
    overrides = {name: getattr(options, name) for name in ("k", "min_extra_chunks")}
    overrides = {name: value for name, value in overrides.items() if value is not None}
    files = builtin.files(options.cluster) if options.files is None else options.files
    files = read_input(files, "files", constants=overrides)
    if "min_extra_chunks" not in files.column_names:
        files = check(files.append_column("min_extra_chunks", pa.array(np.zeros(len(files), int))), "files")
    for name, what in (("n", "code lengths"), ("nodes", "the placement")):
        if name in files.column_names:
            log.info("files: %s is given and left aside; optimize chooses %s", name, what)
    if "capacity_chunks" in nodes.column_names:
        log.warning("nodes: capacity_chunks is given and not kept to: a plan may put more chunks on a node")
    return nodes, files


def fingerprint_of(nodes: pa.Table, files: pa.Table) -> str:
    """Name of both inputs together."""
    return run_id(
        "inputs", {"nodes": fingerprint(nodes, "nodes"), "files": fingerprint(files, "files")}, "", None, ""
    )


def _settings(options: OptimizeOptions) -> BatchSettings:
    return BatchSettings(
        methods=tuple(name for name in optimize.METHODS if name in options.method),
        start="uniform" if options.start == "plan" else options.start,
        settings=optimize.settings(options.beta, options.eps, options.max_iterations, options.loop),
        dtype=options.dtype,
        seed=options.seed,
    )


def _parameters(options: OptimizeOptions) -> dict[str, Any]:
    """What changes a result apart from the inputs, the item, the seed and the number type."""
    names = ("theta_per", "size_scaling", "start", "loop", "beta", "eps", "max_iterations")
    return {name: getattr(options, name) for name in names}


def _batches(grid: list[Item], missing: list[Item], problem, options: OptimizeOptions):
    """(lanes, items) of every batch: as many lanes as memory allows and the whole grid would fill.

    The number of lanes does not depend on what is already finished, so that a resumed job runs the same program.
    """
    memory = options.memory_bytes or 0.5 * psutil.virtual_memory().available
    all_lanes = list(dict.fromkeys(item.lane for item in grid))
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
    rows, kept = [], []
    for item in items:
        lane = lanes.index(item.lane)
        plan = jax.tree.map(lambda leaf, lane=lane: np.asarray(leaf[lane]), plans.by_method[item.method])
        error = None
        if np.isfinite(plan.evaluation.objective):
            kept.append((study.run_ids[item], plan))
        else:
            error = why_unstable(item, plan, plans.start_load[lane], study)
        rows.append(run_row(item, plan, error, study, times))
    return rows, plan_tables.datasets(kept, np.asarray(study.problem.files.k), study.names)


def _easiest(plans: Plans, lanes, items: list[Item], rows: list[dict[str, Any]]) -> str:
    """What is wrong with the run whose largest load is least."""
    lane = int(np.argmin(np.asarray(plans.start_load).max(axis=1)))
    return next(row["error"] for item, row in zip(items, rows, strict=True) if item.lane == lanes[lane])


def _print(runs, console: Console, options: OptimizeOptions) -> None:
    runs = runs.fillna({"mean_n_by_class": "{}"})
    several, failed = runs["method"].nunique() > 1, (runs["status"] != str(Status.OK)).any()
    swept = [name for name in ("rate_scale", "size_scale") if runs[name].nunique() > 1]
    classes = list(json.loads(max(runs["mean_n_by_class"], key=len)))
    table = Table(
        title=f"optimize: {len(runs)} runs in {options.out}", box=box.SIMPLE_HEAD, title_justify="left"
    )
    lengths = f"mean n of\n{'/'.join(classes)}" if len(classes) <= MOST_CLASSES else "mean n"
    headings = [
        "theta\ns/$",
        "latency\nbound s",
        "cost\n$/file",
        "objective\ns",
        lengths,
        "iterations",
        "seconds",
    ]
    for heading in [*(["method"] if several else []), *swept, *headings, *(["status"] if failed else [])]:
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    for run in runs.itertuples():
        by_class = json.loads(run.mean_n_by_class).values()
        cells = [
            f"{run.theta:g}",
            f"{run.latency_s:.4g}",
            f"{run.cost / run.files:.4g}",
            f"{run.objective:.5g}",
        ]
        cells.append(
            "/".join(f"{n:.3g}" for n in by_class) if len(classes) <= MOST_CLASSES else f"{run.mean_n:.3g}"
        )
        cells += [f"{run.iterations}", f"{run.solve_s:.2g}"]
        table.add_row(
            *([run.method] if several else []),
            *(f"{getattr(run, name):g}" for name in swept),
            *cells,
            *([run.status] if failed else []),
        )
    console.print(table)


def _warn(runs, console: Console) -> None:
    for message, count in Counter(runs["error"].dropna()).items():
        console.print(f"{count} runs without a stable plan: {message}", style="red", highlight=False)
    bare = runs[runs["files_without_redundancy"] > 0]
    if len(bare):
        console.print(
            f"warning: {len(bare)} of {len(runs)} plans keep some files without redundancy (n = k): "
            "the loss of any node loses them. min_extra_chunks=2 sets a durability floor.",
            style="yellow",
            highlight=False,
        )
