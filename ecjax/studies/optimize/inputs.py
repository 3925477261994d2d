"""What ``ecjax optimize`` plans for: tables and options at a point of the sweep, made into a problem."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax import planning
from ecjax.console import log, say_once
from ecjax.durability.codes import Code, code_of
from ecjax.errors import Infeasible, UserError
from ecjax.planning import Lanes, Problem
from ecjax.planning.trace.data import check_form
from ecjax.problem import builtin
from ecjax.problem.arrays import (
    check_together,
    files_arrays,
    refuse_channels,
    several_per_node,
)
from ecjax.problem.class_rates import with_class_rates
from ecjax.problem.classes import check_classes
from ecjax.problem.constraints import constrained
from ecjax.problem.described_nodes import read_nodes
from ecjax.problem.earlier_plan import read_plan
from ecjax.problem.feasibility import check_feasible
from ecjax.problem.identity import Identity, identity
from ecjax.problem.lengths import with_lengths
from ecjax.problem.service_laws import mean_chunk_bytes
from ecjax.problem.small_reads import check_listed_orders, small_traffic
from ecjax.studies.optimize.arrivals import (
    LoggedArrivals,
    logged_arrivals,
    tables_of_analysis,
    with_logged_rates,
)
from ecjax.studies.optimize.case import Case, Lane, nodes_of
from ecjax.studies.optimize.class_rules import deadlines, shares
from ecjax.studies.optimize.floors import Judged, with_floors
from ecjax.studies.optimize.options import OptimizeOptions, bounded
from ecjax.studies.optimize.plan_rules import SMALL_READS_ONLY
from ecjax.studies.optimize.scenario_rows import failures
from ecjax.studies.optimize.what_if import scenarios_of
from ecjax.studies.spine.log_options import at_peak, shrinking
from ecjax.tables.checks import check
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.folder import location, public
from ecjax.tables.read import read_input
from ecjax.tables.run_ids import run_id


@dataclass(frozen=True, eq=False)
class Tables:
    """The checked tables at one k, d and scaling of the classes' rates; fields are those of ``Case``, but ``like``."""

    nodes: pa.Table
    files: pa.Table
    names: Identity
    k: int | None
    d: int | None
    class_rate_scale: str | None
    arrivals: LoggedArrivals | None = None
    what_if: str | None = None
    error: str | None = None
    code: str | None = None
    floors: Sequence[Judged] = ()
    like: tuple[pa.Table, np.ndarray] | None = None  # nodes as they are, and the row of each of these in them


def read_tables(options: OptimizeOptions) -> Iterator[Tables]:
    """The tables of a study at every k, d, class_rate_scale, as they are and in every what_if; the last fastest.

    Args:
        options: checked.

    Raises:
        UserError: something in the tables is wrong.
    """
    options = tables_of_analysis(options)
    arrivals = None
    sweeps: list[list] = [_codes(options), options.d or [None], options.class_rate_scale or [None]]
    for (code, k), d, class_rates in itertools.product(*sweeps):
        as_they_are, all_files = input_tables(options, k, d, code)
        for scenario, nodes, files, like in scenarios_of(as_they_are, all_files, options.what_if):
            floors: list[Judged] = []
            error = None
            if options.judges_durability:
                try:
                    files, floors = with_floors(options, nodes, files)
                except UserError as reason:
                    if scenario is None and code is None:
                        raise
                    error = str(reason)
            point = scenario or (None if code is None else code.name)
            error = error or _error_of(
                point, partial(check_together, nodes, files, options.max_chunks_per_node)
            )
            names = identity(nodes, files, options.max_chunks_per_node)
            if options.trace is not None:
                arrivals = arrivals or logged_arrivals(options, names.files)
                window_s = options.window_s if at_peak(options) else None
                files = with_logged_rates(files, arrivals, window_s, shrinking(options))
            rates_text = None
            if class_rates is not None:
                files, rates_text = with_class_rates(files, names, class_rates)
            name = None if code is None else code.name
            alike = None if scenario is None else (as_they_are, like)
            yield Tables(
                nodes, files, names, k, d, rates_text, arrivals, scenario, error, name, floors, alike
            )


def _codes(options: OptimizeOptions) -> list[tuple[Code | None, int | None]]:
    """Codes that all files have, each with its k; or k's alone, or nothing: files have k's of their own."""
    if options.codes is None:
        return [(None, k) for k in options.k or ()] or [(None, None)]
    codes = [code for name in options.codes if (code := code_of(name)) is not None]
    return [(code, code.k) for code in codes]


def with_thetas_that_matter(options: OptimizeOptions, nodes: Iterable[pa.Table]) -> OptimizeOptions:
    """Options with the first theta alone where plans do not differ in what they cost, which is said.

    Args:
        options: checked.
        nodes: checked nodes tables of the study.
    """
    if len(options.theta or []) < 2 or any(_has_prices(options, each) for each in nodes):
        return options
    log.info("no prices in the nodes, so theta has no effect: one plan is made")
    return replace(options, theta=(options.theta or [])[:1])


def _has_prices(options: OptimizeOptions, nodes: pa.Table) -> bool:
    names = [
        name for name in ("cost_per_chunk_dollars", "cost_per_byte_dollars") if name in nodes.column_names
    ]
    charged = options.network is not None or options.migration_dollars_per_byte > 0
    return charged or any(pc.max(nodes.column(name)).as_py() for name in names)


def read_cases(options: OptimizeOptions) -> Iterator[Case]:
    """The cases of a study, as ``read_tables`` has their tables.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    for tables in read_tables(options):
        yield case_of(options, tables)


def case_of(options: OptimizeOptions, tables: Tables) -> Case:
    """The problem that tables and options make.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    _say_what_is_left_aside(options, tables.files)
    nodes, files, names, per_node = tables.nodes, tables.files, tables.names, options.max_chunks_per_node
    loads = files_arrays(files)
    arrays = nodes_of(options, nodes, mean_chunk_bytes(loads)), loads
    if per_node > 1:
        arrays = several_per_node(*arrays, per_node)
    problem = planning.prepare(*arrays, names.rows.of_file, names.rows.count)
    small = small_traffic(files, options.stripe_unit_bytes)
    if small is not None:
        refuse_beside_small_reads(options, nodes)
    earlier, parameters = None, dict[str, Any]()
    if options.plan is not None:
        earlier = read_plan(options.plan, options.plan_run, options.plan_where, names)
        parameters["plan_run"] = earlier.run_id
    network = None if options.network is None else read_input(options.network, "network")
    if network is not None:
        parameters["network"] = fingerprint(network, "network")
    if tables.code is not None:
        parameters["code"] = tables.code
    if tables.arrivals is not None:
        parameters["trace"] = tables.arrivals.fingerprint
        if tables.arrivals.reading:
            parameters["reading"] = tables.arrivals.reading
    point = tables.what_if or tables.code
    with_constraints = partial(
        constrained,
        nodes=nodes,
        files=files,
        rows=names.rows,
        max_chunks_per_site=options.max_chunks_per_site,
        migration_dollars_per_byte=options.migration_dollars_per_byte,
        network=network,
        like=tables.like,
        fixed_groups=options.fixed_groups,
        current=None if earlier is None else np.asarray(earlier.stored),
        per_node=per_node,
    )
    problem, reason = _made(point, with_constraints, problem)
    feasible = partial(
        check_feasible,
        nodes=nodes,
        files=files,
        per_node=per_node,
        max_chunks_per_site=options.max_chunks_per_site,
    )
    error = tables.error or reason or _error_of(point, partial(feasible, problem))
    if error is None and small is not None and options.fixed_groups:
        error = _error_of(point, partial(check_listed_orders, files, names.rows, small))
    if bounded(options) and tables.arrivals is not None:
        try:
            check_form(problem, *tables.arrivals.numbers)
        except ValueError as wrong:
            raise UserError(f"trace_form={options.trace_form}: found {wrong}") from None
    if options.scenarios:
        failures(nodes, options.scenarios)
    classes, fixed_lengths = None, problem
    by_class = [queue for queue in options.queue if queue != "fcfs"]
    if by_class:
        refuse_channels(nodes, f"queue={by_class[0]}", "queue=fcfs")
        classes = check_classes(names, files, by_class[0])
        shares(options.weights, classes.names)
        deadlines(options.deadline_s, classes.names)
        fixed_lengths, reason = _made(point, partial(with_lengths, names=names, files=files), problem)
        error = error or reason or _error_of(point, partial(feasible, fixed_lengths))
    places = {name: getattr(options, name) for name in ("nodes", "files", "network", "plan", "trace")}
    return Case(
        problem=problem,
        fixed_lengths=fixed_lengths,
        lanes=_lanes(options, problem.files.count),
        names=names,
        nodes=nodes,
        files=files,
        earlier=earlier,
        classes=classes,
        k=tables.k,
        d=tables.d,
        class_rate_scale=tables.class_rate_scale,
        input_id=fingerprint_of(nodes, files),
        parameters=parameters,
        places={
            name: public(location(place)) if isinstance(place, str) else place
            for name, place in places.items()
            if place is not None
        },
        arrivals=tables.arrivals,
        what_if=tables.what_if,
        error=error,
        code=tables.code,
        floors=tables.floors,
        small=small,
    )


def refuse_beside_small_reads(options: OptimizeOptions, nodes: pa.Table) -> None:
    """Refuse what plans for files with small reads do without.

    Raises:
        UserError: names the option.
    """
    for name, only in SMALL_READS_ONLY.items():
        value = getattr(options, name)
        if value != only:
            raise UserError(
                f"{name}: found {value} with small reads (files.small_rate_per_s); allowed with them: {only}"
            )
    refuse_channels(nodes, "files.small_rate_per_s", "no small reads")


def _made(
    point: str | None, make: Callable[[Problem], Problem], problem: Problem
) -> tuple[Problem, str | None]:
    """What is made of a problem, or the problem itself and why a scenario, or a code, allows no placement.

    Raises:
        UserError: the tables as they are allow none, or something in them is wrong.
    """
    try:
        return make(problem), None
    except Infeasible as reason:
        if point is None:
            raise
        return problem, str(reason)


def _error_of(point: str | None, check: Callable[[], None]) -> str | None:
    """Why a scenario, or a code, allows no placement, which is an answer; None where it does.

    Raises:
        UserError: the tables as they are allow none.
    """
    try:
        check()
    except UserError as error:
        if point is None:
            raise
        return str(error)
    return None


def sweep(options: OptimizeOptions) -> list[Lane]:
    """Every lane; theta as it was set, per dollar of what ``theta_per`` says."""
    values = itertools.product(options.rate_scale, options.size_scale, options.theta or [])
    return [Lane(theta, rate, size) for rate, size, theta in values]


def _lanes(options: OptimizeOptions, files: int) -> Lanes:
    theta, rate, size = np.array(sweep(options)).T
    return Lanes(theta * (files if options.theta_per == "total" else 1), rate, size)


def input_tables(
    options: OptimizeOptions, k: int | None = None, d: int | None = None, code: Code | None = None
) -> tuple[pa.Table, pa.Table]:
    """The checked nodes and files tables, overrides applied: what a plan is computed from."""
    if options.nodes is None:
        nodes = read_input(builtin.nodes(options.cluster), "nodes")
        if options.files is not None:
            say_once(
                f"nodes: none are set; planned on the {len(nodes)} of the built-in cluster (nodes= sets others)"
            )
    else:
        nodes = read_nodes(options.nodes)
    least = options.min_extra_chunks
    if code is not None:
        least = max(least or 0, code.parity)
    elif options.judges_durability and options.files is None:
        least = least or 0  # what the built-in files have is a guess at a durability
    overrides = {"k": k, "d": d, "min_extra_chunks": least}
    files = read_input(
        builtin.files(options.cluster) if options.files is None else options.files,
        "files",
        constants={name: value for name, value in overrides.items() if value is not None},
    )
    if "min_extra_chunks" not in files.column_names:
        files = check(files.append_column("min_extra_chunks", pa.array(np.zeros(len(files), int))), "files")
    return nodes, files


def _say_what_is_left_aside(options: OptimizeOptions, files: pa.Table) -> None:
    if "n" in files.column_names and "fcfs" in options.queue:
        log.info("files: n is given and left aside; queue=fcfs chooses code lengths")
    if "nodes" in files.column_names and not options.fixed_groups and not options.migration_dollars_per_byte:
        log.info(
            "files: nodes (the current placement) is given and left aside; migration_dollars_per_byte prices moves, "
            "fixed_groups=true keeps the files where they are"
        )


def fingerprint_of(nodes: pa.Table, files: pa.Table) -> str:
    """Name of both tables together."""
    parts = {"nodes": fingerprint(nodes, "nodes"), "files": fingerprint(files, "files")}
    return run_id("inputs", parts, "", None, "")
