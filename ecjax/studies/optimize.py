"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

import itertools
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

import ecjax
from ecjax import optimize, precision
from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.optimize import BatchSettings, Lanes, Plans, Solution
from ecjax.report import plans as figures
from ecjax.status import Status
from ecjax.studies import builtin, inputs, plan_tables
from ecjax.studies.given_plan import read_plan
from ecjax.studies.options_optimize import OptimizeOptions
from ecjax.tables.checks import check
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.ids import id_types
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id

MOST_CLASSES = 6  # more would not fit in a line of the printed table


@dataclass(frozen=True)
class Item:
    """One run: a method at one point of the grid."""

    method: str
    theta: float
    rate_scale: float
    size_scale: float

    @property
    def lane(self) -> tuple[float, float, float]:
        """What makes the problem; methods of one lane share its descent."""
        return self.theta, self.rate_scale, self.size_scale


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
    given = read_plan(options, names) if options.start == "plan" else None
    input_id = fingerprint_of(nodes, files)
    grid = [
        Item(method, float(theta), float(rate), float(size))
        for rate, size, theta, method in itertools.product(
            options.rate_scale, options.size_scale, options.theta, options.method
        )
    ]
    run_ids = {item: _run_id(item, options, input_id) for item in grid}
    with ResultStore(options.out, id_types(nodes, files), options.write) as store:
        done = store.finished(run_ids.values()) if options.resume else set()
        missing = [item for item in grid if run_ids[item] not in done]
        if done:
            log.info("%d of %d runs are finished in %s", len(grid) - len(missing), len(grid), options.out)
        if missing:
            store.write_input("nodes", input_id, nodes)
            store.write_input("files", input_id, files)
        batches = _batches(grid, missing, problem, options)
        with progress("planning", len(missing)) as advance:
            for lanes, items in batches:
                plans = optimize.solve(problem, _lanes(lanes, options, problem), _settings(options), given)
                _refuse_if_all_unstable(plans, lanes, items, len(grid), names)
                solved = [(item, _one(plans, lanes, item)) for item in items]
                rows = [
                    _row(
                        item, run_ids[item], plan, plans, lanes, problem, options, input_id, names, len(items)
                    )
                    for item, plan in solved
                ]
                kept = [
                    (run_ids[item], plan)
                    for (item, plan), row in zip(solved, rows, strict=True)
                    if Status(row["status"]).finished
                ]
                k = np.asarray(problem.files.k)
                store.commit(rows, plan_tables.datasets(kept, k, names))
                advance(len(items))
    runs = read_results(options.out, "runs").set_index("run_id").loc[list(run_ids.values())].reset_index()
    _print(runs, console, options)
    _warn(runs, console)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def checked(options: OptimizeOptions) -> OptimizeOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = {name: getattr(options, name) for name in vars(options)}
    for name, least in (("theta", 0.0), ("rate_scale", None), ("size_scale", None)):
        values[name] = numbers(name, values[name], least)
    for name, allowed in (("method", optimize.METHODS), ("figures", figures.KINDS)):
        given = values[name]
        listed = [given] if isinstance(given, str) else list(given or [])
        values[name] = list(dict.fromkeys(listed))
        for value in listed:
            if value not in allowed:
                raise UserError(f"{name}: found {value!r}; allowed: {', '.join(allowed)}")
    if not values["method"]:
        raise UserError(f"method: found an empty list; allowed: {', '.join(optimize.METHODS)}")
    choices = {
        "theta_per": ("file", "total"),
        "size_scaling": ("proportional", "none"),
        "start": (*optimize.STARTS, "plan"),
        "loop": ("merged", "nested"),
        "dtype": ("float64", "float32"),
    }
    for name, allowed in choices.items():
        if values[name] not in allowed:
            raise UserError(f"{name}: found {values[name]!r}; allowed: {', '.join(allowed)}")
    if (values["start"] == "plan") != (values["plan"] is not None):
        raise UserError("start=plan and plan=FOLDER go together: give both or neither")
    limits = (("beta", 1.0), ("eps", 0.0), ("max_iterations", 0))
    for name, above in limits:
        if not values[name] > above:
            raise UserError(f"{name}: found {values[name]}; allowed: more than {above:g}")
    for name, least in (("k", 1), ("min_extra_chunks", 0)):
        if values[name] is not None and values[name] < least:
            raise UserError(f"{name}: found {values[name]}; allowed: {least} or more")
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    return OptimizeOptions(**values)


def numbers(name: str, value: Any, least: float | None) -> list[float]:
    """A list of finite numbers, each at least ``least`` (above 0 where that is None), without repeats."""
    listed = value if isinstance(value, list | tuple) else [value]
    good = all(isinstance(v, int | float) and not isinstance(v, bool) and np.isfinite(v) for v in listed)
    if not listed or not good or not all(v >= least if least is not None else v > 0 for v in listed):
        wanted = "positive" if least is None else f"at least {least:g}"
        raise UserError(f"{name}: found {value}; allowed: one number or a list of numbers, each {wanted}")
    return list(dict.fromkeys(float(v) for v in listed))


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
    if "n" in files.column_names and files["n"].null_count < len(files):
        log.info("files: n is given and left aside; optimize chooses n")
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
    chosen = {name: getattr(options, name) for name in names}
    if options.start == "plan":
        chosen |= {"plan_run": options.plan_run, "plan_where": options.plan_where}
    return chosen


def _run_id(item: Item, options: OptimizeOptions, input_id: str) -> str:
    return run_id("optimize", _parameters(options) | asdict(item), input_id, options.seed, options.dtype)


def _batches(grid: list[Item], missing: list[Item], problem, options: OptimizeOptions):
    """(lanes, items) of every batch: as many lanes as memory allows and the whole grid would fill.

    The number of lanes does not depend on what is already finished, so that a resumed job runs the same program.
    """
    memory = options.memory_bytes or 0.5 * psutil.virtual_memory().available
    all_lanes = list(dict.fromkeys(item.lane for item in grid))
    width = min(len(all_lanes), optimize.lanes_per_batch(problem, memory, options.dtype))
    wanted = list(dict.fromkeys(item.lane for item in missing))
    for first in range(0, len(wanted), width):
        lanes = wanted[first : first + width]
        items = [item for item in missing if item.lane in lanes]
        yield lanes + [lanes[-1]] * (width - len(lanes)), items


def _lanes(lanes: list[tuple[float, float, float]], options: OptimizeOptions, problem) -> Lanes:
    theta, rate, size = np.array(lanes).T
    return Lanes(theta * (problem.files.count if options.theta_per == "total" else 1), rate, size)


def _one(plans: Plans, lanes: list[tuple[float, float, float]], item: Item) -> Solution:
    lane = lanes.index(item.lane)
    return jax.tree.map(lambda leaf: np.asarray(leaf[lane]), plans.by_method[item.method])


def _refuse_if_all_unstable(plans: Plans, lanes, items: list[Item], runs: int, names) -> None:
    """A study with no stable plan at all is the user's mistake; single lanes of a sweep become rows."""
    if len(items) < runs:
        return
    objective = np.array([plans.by_method[name].evaluation.objective for name in plans.by_method])
    if np.isfinite(objective).any():
        return
    easiest = int(np.argmin(np.asarray(plans.start_load).max(axis=1)))
    raise UserError(overload(np.asarray(plans.start_load)[easiest], lanes[easiest][1], names.nodes))


def overload(load: np.ndarray, rate_scale: float, nodes: pa.Array) -> str:
    """Which node is overloaded, and what would help."""
    worst = int(np.argmax(load))
    scale = rate_scale * 0.9 / load[worst]
    return (
        f"nodes: row {worst} (node_id={nodes[worst]}): load rho = {load[worst]:.3g} at rate_scale={rate_scale:g} with "
        f"reads spread as evenly as they go; below 1 is needed: lower the rates (rate_scale={scale:.2g} gives about "
        "0.9), add nodes, or check that service times are service, not sojourn times"
    )


def _row(item, name, plan, plans, lanes, problem, options, input_id, names, count) -> dict[str, Any]:
    evaluation = plan.evaluation
    stable = bool(np.isfinite(evaluation.objective))
    lane = lanes.index(item.lane)
    if not stable:
        status, error = (
            Status.UNSTABLE,
            overload(np.asarray(plans.start_load[lane]), item.rate_scale, names.nodes),
        )
        if item.method != "published":
            error = overload(evaluation.load, item.rate_scale, names.nodes)
    else:
        status, error = (Status.OK if plan.converged else Status.NOT_CONVERGED), None
    n = _of_files(plan, names)
    known = {
        "objective": float(evaluation.objective),
        "latency_s": float(evaluation.latency),
        "latency_shared_z_s": float(evaluation.latency_shared_z),
        "z_s": float(evaluation.z),
        "cost": float(evaluation.cost),
        "max_load": float(evaluation.load.max()),
        "mean_n": float(n.mean()),
        "mean_n_by_class": json.dumps(mean_by_class(n, names.classes)),
        "files_without_redundancy": int(np.sum(n <= np.asarray(problem.files.k))),
    }
    return {
        "run_id": name,
        "job": "optimize",
        "status": str(status),
        "error": error,
        "method": item.method,
        "theta": item.theta,
        "theta_per": options.theta_per,
        **(known if stable else {}),
        "files": problem.files.count,
        "nodes": problem.nodes.count,
        "iterations": int(plan.iterations),
        "input_id": input_id,
        "rate_scale": item.rate_scale,
        "size_scale": item.size_scale,
        "solve_s": plans.solve_s / count,
        "compile_s": plans.compile_s / count,
        "device": str(jax.devices()[0].device_kind),
        "version": ecjax.__version__,
        "seed": options.seed,
        "params": json.dumps(_parameters(options) | {"dtype": options.dtype}, sort_keys=True),
    }


def mean_by_class(n: np.ndarray, classes: pa.DictionaryArray) -> dict[str, float]:
    """Mean code length of the files of each class."""
    index = classes.indices.to_numpy()
    total = np.bincount(index, weights=n, minlength=len(classes.dictionary))
    mean = total / np.bincount(index, minlength=len(classes.dictionary))
    return dict(zip(map(str, classes.dictionary.to_pylist()), mean.tolist(), strict=True))


def _of_files(plan: Solution, names) -> np.ndarray:
    n = plan.stored.sum(axis=1)
    return n if names.rows.of_file is None else n[names.rows.of_file]


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
