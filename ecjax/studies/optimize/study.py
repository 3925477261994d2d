"""``ecjax optimize``: from tables (or the built-in cluster) to plans, result tables and figures."""

import itertools
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax import optimize, precision
from ecjax.console import log
from ecjax.engine import Worker, open_engine
from ecjax.options import checked
from ecjax.problem import arrays as inputs
from ecjax.problem import builtin
from ecjax.problem.class_rates import with_class_rates
from ecjax.problem.classes import check_classes
from ecjax.problem.constraints import constrained
from ecjax.problem.earlier_plan import read_plan
from ecjax.problem.feasibility import check_feasible
from ecjax.problem.identity import identity
from ecjax.problem.lengths import given_lengths
from ecjax.studies.optimize import scenario_rows as scenario_tables
from ecjax.studies.optimize import summary
from ecjax.studies.optimize.batches import Piece, lanes_of, pieces, plan_batch, widest
from ecjax.studies.optimize.class_rules import CLASS_METHODS, deadlines, importances, shares
from ecjax.studies.optimize.class_run import class_run
from ecjax.studies.optimize.figures import plans as figures
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.run import Item, Study, blank_row
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
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
    summary.show(runs, console, options)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def planned(options: OptimizeOptions) -> pd.DataFrame:
    """Plan what is not yet planned in ``out``; returns the rows of the ``runs`` dataset in the order of the sweep.

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    precision.use_compilation_cache()
    # the certified method, and plans by class, are computed by processors
    accelerated = "fcfs" in options.queue and options.method != ["certified"]
    with ExitStack() as stack:
        # first of all: Ray starts processes, which is not safe once JAX has started threads
        engine = stack.enter_context(open_engine(options.engine, accelerated))
        overrides = itertools.product(
            options.k or [None], options.d or [None], options.class_rate_scale or [None]
        )
        studies = [_study(options, *values) for values in overrides]
        run_ids = [run for study in studies for run in study.run_ids.values()]
        ids = id_types(*(table for study in studies for table in (study.nodes, study.files)))
        store = stack.enter_context(ResultStore(options.out, ids, options.write))
        done = store.finished(run_ids) if options.resume else set()
        if done:
            log.info("%d of %d runs are finished in %s", len(done), len(run_ids), options.out)
        missing = [[item for item, run in study.run_ids.items() if run not in done] for study in studies]
        lanes = sum(len(lanes_of(study.run_ids)) for study in studies)
        grid = [
            (study, batch)
            for study, items in zip(studies, missing, strict=True)
            if items
            for batch in pieces(study, items, widest(study, lanes, engine))
        ]

        def keep(study: Study) -> None:
            store.write_input("nodes", study.input_id, study.nodes)
            store.write_input("files", study.input_id, study.files)

        run_batches(
            grid,
            _solve,
            _blank,
            store,
            engine,
            resume=False,  # what is finished is not in the grid: its lanes are divided anew
            what="planning",
            at_once=1,
            divisible=False,
            keep=keep,
            all_unstable_is_wrong=not done,
        )
    return runs_of(options.out, run_ids)


def _solve(study: Study, pieces: dict[str, Piece], worker: Worker) -> Solved:
    precision.use_compilation_cache()
    item = next(iter(pieces.values())).item
    if item.queue == "fcfs":
        return plan_batch(study, pieces)
    row, tables = class_run(item, study)
    return [row], tables


def _blank(study: Study, name: str, piece: Piece) -> dict[str, Any]:
    return blank_row(piece.item, study)


def _study(
    options: OptimizeOptions, k: int | None, d: int | None, class_rates: tuple[float, ...] | None
) -> Study:
    """The problem at one k, d and scaling of the classes' rates, with all that its runs have in common."""
    nodes, files = input_tables(options, k, d)
    per_node = options.max_chunks_per_node
    inputs.check_together(nodes, files, per_node)
    names = identity(nodes, files, per_node)
    scaled_by = None
    if class_rates is not None:
        files, scaled_by = with_class_rates(files, names, class_rates)
    arrays = inputs.nodes_arrays(nodes, options.size_scaling), inputs.files_arrays(files)
    if per_node > 1:
        arrays = inputs.several_per_node(*arrays, per_node)
    problem = optimize.prepare(*arrays, names.rows.of_file, names.rows.count)
    given, parameters = None, _parameters(options)
    if options.plan is not None:
        given = read_plan(options.plan, options.plan_run, options.plan_where, names)
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
            ways += [(CLASS_METHODS[queue], queue, one) for one in importances(options.importance, classes)]
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
