"""What a replay reads: plans, factors of the rates, bursts, outages, and the arrivals and service times of a log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.predict.logged import interval_reads, time_of_reads
from ecjax.problem.arrays import index_in, refuse_channels
from ecjax.simulation.laws import Laws
from ecjax.simulation.run import CHANNELS, DIRECT_OR_DEGRADED, Outages
from ecjax.streams.arrivals import Bursts, Factors
from ecjax.studies.replay.logged_reads import LoggedReads, logged_laws, logged_reads
from ecjax.studies.replay.options import EVERY, LEAST_REQUESTS, POLICIES, ReplayOptions
from ecjax.studies.replay.plans import Plan, read_plans
from ecjax.studies.spine.logs import log_reading, open_reading
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import Trace
from ecjax.tables.rates import end_of_rates, ends_early
from ecjax.tables.read import read_input
from ecjax.tables.requests import requests
from ecjax.validation.service import EMPIRICAL

_WITH_SMALL_READS = ("probabilistic", DIRECT_OR_DEGRADED)


@dataclass(frozen=True)
class Case:
    """A plan with the arrivals and outages that its replays share.

    Attributes:
        plan: what is replayed.
        factors: of the rates by time.
        bursts: that come and go.
        outages: of nodes.
        reads: of a log, whose arrivals are replayed; None: arrivals are drawn.
        log_laws: service laws of the nodes from a log.
        fingerprints: of the tables, by name.
        log: path of the log, where one is read.
        reading: options that it is read with, where they were set.
    """

    plan: Plan
    factors: Factors | None = None
    bursts: Bursts | None = None
    outages: Outages | None = None
    reads: LoggedReads | None = None
    log_laws: Laws | None = None
    fingerprints: dict[str, str] = field(default_factory=dict)
    log: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)

    def fails_before(self, end_s: float) -> bool:
        """Whether a node is down at any time from 0 to some end, s."""
        return self.outages is not None and bool(
            np.any((self.outages.start < end_s) & (self.outages.end > 0))
        )

    def changes_before(self, end_s: float) -> bool:
        """Whether a node goes or comes back before a time, s."""
        if self.outages is None:
            return False
        times = np.concatenate([self.outages.start, self.outages.end])
        return bool(np.any((times > 0) & (times < end_s)))


def read_cases(options: ReplayOptions) -> list[Case]:
    """Each plan with its other inputs, which plans for the same tables have in common.

    Raises:
        UserError: no plan fits, a table is malformed or names an unknown node, file or class.
    """
    # what is malformed is said before plans are made
    paths = {"rates": options.rates, "outages": options.outages}
    tables = {name: read_input(path, name) for name, path in paths.items() if path is not None}
    plans = read_plans(options)
    reading = trace = None
    if options.arrivals == "trace" or EMPIRICAL in (options.service or []):
        reading = log_reading(options, inputs=_other_inputs(options, plans))
        trace = open_reading(reading)
        _check_services(options, trace)
    of_inputs: dict[tuple[str, str], list[Plan]] = {}
    for plan in plans:
        _check_kinds(options, plan)
        _check_queues(options, plan)
        _check_slow(options, plan)
        of_inputs.setdefault(_inputs_of(plan), []).append(plan)
    first = {inputs: _case(options, alike, tables, trace) for inputs, alike in of_inputs.items()}
    how = {} if reading is None else reading.identity()
    cases = [replace(first[_inputs_of(plan)], plan=plan, reading=how) for plan in plans]
    if "rates" in tables:
        _check_rates(options, tables["rates"], cases)
    return cases


def _inputs_of(plan: Plan) -> tuple[str, str]:
    """What plans whose cases differ in nothing else have in common."""
    return plan.run.input_id, plan.size_scaling


def _check_services(options: ReplayOptions, trace: Trace) -> None:
    """Services that follow from finishes alone need all that nodes did, not only requests of users.

    Raises:
        UserError: the log is read without the background work of its analysis.
    """
    if EMPIRICAL in (options.service or []) and trace.background and "start_s" not in trace.schema.names:
        raise UserError(
            f"service={EMPIRICAL}: found trace={options.trace} analysed with "
            f"background={','.join(sorted(trace.background))}, and without start_s; allowed: a log with start_s, or "
            "another service"
        )


def _other_inputs(options: ReplayOptions, plans: list[Plan]) -> Iterator[str | None]:
    """Tables and folders that may come from an analysis of the log."""
    places = [options.plan, options.planning.nodes, options.planning.files]
    for plan in plans:
        places += plan.run.parameters.get("inputs", {}).values()
    # nodes may be described rather than named
    yield from (place for place in places if not isinstance(place, dict))


def queues_of(options: ReplayOptions, plan: Plan) -> list[str]:
    """The queues that a plan is replayed under: those of the options, else the one that it was made for."""
    return options.queue or [plan.queue]


def slow_of(options: ReplayOptions, plan: Plan) -> list[dict[str, float] | None]:
    """The slow nodes of each replay of a plan, with their factors."""
    if not isinstance(options.slow, dict):
        return [None]
    if EVERY in options.slow:
        return [{str(name): options.slow[EVERY]} for name in plan.names.nodes.to_pylist()]
    return [options.slow]


def _check_slow(options: ReplayOptions, plan: Plan) -> None:
    names = {str(name) for name in plan.names.nodes.to_pylist()}
    for each in slow_of(options, plan):
        unknown = sorted(set(each or ()) - names)
        if unknown:
            raise UserError(
                f"slow: found {unknown[0]}, an unknown node; allowed: {EVERY}, or a node_id of the plan"
            )


def _check_kinds(options: ReplayOptions, plan: Plan) -> None:
    """Small reads go with some policies and arrivals only, and one policy with small reads only."""
    if plan.kinds is None:
        if DIRECT_OR_DEGRADED in options.policy:
            raise UserError(
                f"policy={DIRECT_OR_DEGRADED}: files have no small reads (small_rate_per_s); allowed without them: "
                + ", ".join(name for name in POLICIES if name != DIRECT_OR_DEGRADED)
            )
        return
    wrong = {
        "policy": next((name for name in options.policy if name not in _WITH_SMALL_READS), None),
        "queue": next((name for name in queues_of(options, plan) if name != "fcfs"), None),
        "arrivals": options.arrivals if options.arrivals == "trace" else None,
        "rates": options.rates,
        "outages": options.outages,
        "earlier_bounds": "true" if options.earlier_bounds else None,
    }
    allowed = {
        "policy": " or ".join(_WITH_SMALL_READS),
        "queue": "fcfs",
        "arrivals": "poisson or bursts",
        "earlier_bounds": "false",
    }
    for name, value in wrong.items():
        if value is not None:
            raise UserError(
                f"{name}={value}: the plan's files have small reads; allowed with them: {allowed.get(name, 'none')}"
            )


def _check_queues(options: ReplayOptions, plan: Plan) -> None:
    """Queues by class need classes, weights one each, and nodes with several channels other policies than some."""
    by_class = [name for name in queues_of(options, plan) if name != "fcfs"]
    _check_channels(options, plan, by_class)
    if by_class and "service_class" not in plan.files.column_names:
        raise UserError(f"queue={by_class[0]}: files have no column service_class; allowed without it: fcfs")
    names = plan.classes.names
    if options.weights and len(options.weights) != len(names):
        raise UserError(
            f"weights: found {len(options.weights)} numbers; allowed: one per service class: {', '.join(names)}"
        )


def _check_channels(options: ReplayOptions, plan: Plan, by_class: list[str]) -> None:
    if by_class:
        refuse_channels(plan.nodes, f"queue={by_class[0]}", "queue=fcfs")
    for policy in options.policy:
        if policy not in CHANNELS:
            refuse_channels(plan.nodes, f"policy={policy}", ", ".join(CHANNELS))
    if options.outages is not None:
        refuse_channels(plan.nodes, "outages", "none")
    if options.earlier_bounds:
        refuse_channels(plan.nodes, "earlier_bounds=true", "false")


def _case(
    options: ReplayOptions, plans: list[Plan], tables: Mapping[str, pa.Table], trace: Trace | None
) -> Case:
    """What replays of plans for the same tables have in common."""
    plan = plans[0]
    prints = {name: fingerprint(table, name) for name, table in tables.items()}
    factors = _factors(tables["rates"], plan) if "rates" in tables else None
    outages = _outages(tables["outages"], plan) if "outages" in tables else None
    reads = log_laws = None
    bursts = None
    if options.arrivals == "bursts":
        bursts = Bursts(options.burst_factor, options.burst_share, options.burst_mean_s)
    if trace is not None:
        prints["trace"] = trace.fingerprint
        logged = requests(trace, plan.names.files)
        if EMPIRICAL in (options.service or []):
            log_laws = logged_laws(logged, plan, str(options.trace), _drawn_sizes(options, plans))
        if options.arrivals == "trace":
            reads = logged_reads(logged, str(options.trace), plan.problem)
    log_name = None if trace is None else trace.name
    return Case(plan, factors, bursts, outages, reads, log_laws, prints, log_name)


def _drawn_sizes(options: ReplayOptions, plans: list[Plan]) -> np.ndarray:
    """Chunk sizes, B, that services are drawn for in any replay of the plans."""
    sizes = []
    for plan in plans:
        files = plan.problem.files
        of_plan = (
            [files.chunk_bytes] if plan.problem.writes is None else [files.chunk_bytes, files.write_bytes]
        )
        sizes += [plan.run.size_scale * np.asarray(part) for part in of_plan]
        if plan.kinds is not None:  # whose sizes are those of the run
            sizes.append(plan.kinds.reads.size)
    return np.outer(options.size_scale, np.concatenate(sizes)).ravel()


def _factors(table: pa.Table, plan: Plan) -> Factors:
    files_of_row: list[np.ndarray | None] = [None] * len(table)
    if "file_id" in table.column_names:
        for row, file in enumerate(_positions(table, "file_id", plan.names.files, "rates")):
            if file >= 0:
                files_of_row[row] = np.array([file])
    if "service_class" in table.column_names:
        values = plan.names.classes
        for row, number in enumerate(_positions(table, "service_class", values.dictionary, "rates")):
            if number >= 0:
                members = np.flatnonzero(values.indices.to_numpy() == number)
                file = files_of_row[row]
                files_of_row[row] = members if file is None else np.intersect1d(file, members)
    start = table["start_s"].to_numpy()
    order = np.argsort(start, kind="stable")
    return Factors(start[order], table["factor"].to_numpy()[order], [files_of_row[row] for row in order])


def _check_rates(options: ReplayOptions, table: pa.Table, cases: list[Case]) -> None:
    """Refuse factors under which reads end too early, and warn where more are replayed than a table has intervals for.

    Raises:
        UserError: reads end.
    """
    # of plans for the same tables the one with the least rates has the fewest reads at any time
    slowest = {
        case.plan.run.input_id: case for case in sorted(cases, key=lambda case: -case.plan.run.rate_scale)
    }
    end, come = end_of_rates(table), list[int]()
    for case in slowest.values():
        scale = min(options.rate_scale) * case.plan.run.rate_scale
        rate = np.asarray(case.plan.problem.files.rate) * scale
        assert case.factors is not None
        _check_reads_go_on(options, rate, case.factors)
        if end > 0:
            come.append(round(float(interval_reads(rate, case.factors, end)[1].sum())))
    fewest = min(come, default=options.requests)
    if fewest >= options.requests:
        return
    least = f" at rate_scale={min(options.rate_scale):g}" if len(options.rate_scale) > 1 else ""
    log.warning(ends_early(str(options.rates), end, fewest, options.requests, "read", least, LEAST_REQUESTS))


def _check_reads_go_on(options: ReplayOptions, rate: np.ndarray, factors: Factors) -> None:
    if np.isfinite(time_of_reads(rate, factors, options.requests)):
        return
    last = max(0.0, float(factors.start.max()))
    come = interval_reads(rate, factors, last)[1].sum() if last > 0 else 0.0
    raise UserError(
        f"rates={options.rates}: found a factor of 0 for all files that are read from {last:g} s on, when {come:.4g} "
        f"of {options.requests:,} reads are expected to have come; allowed: a last factor above 0, or fewer requests"
    )


def _outages(table: pa.Table, plan: Plan) -> Outages:
    """Intervals of each node, those that overlap joined."""
    node = _positions(table, "node_id", plan.names.nodes, "outages")
    start, end = table["start_s"].to_numpy(), table["end_s"].to_numpy()
    joined: list[list[float]] = []
    for row in np.lexsort((start, node)):
        if joined and joined[-1][0] == node[row] and start[row] <= joined[-1][2]:
            joined[-1][2] = max(joined[-1][2], end[row])
        else:
            joined.append([node[row], start[row], end[row]])
    columns = np.array(joined)
    return Outages(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2])


def _positions(table: pa.Table, name: str, ids: pa.Array, what: str) -> np.ndarray:
    """Positions of a table's ids, which must all be there; -1 where a cell is empty.

    Raises:
        UserError: an id that ``ids`` lacks.
    """
    place = index_in(table[name], ids)
    wrong = np.flatnonzero((place < 0) & pc.is_valid(table[name]).to_numpy())
    if wrong.size:
        raise UserError(
            f"{what}: column {name}, row {wrong[0]}: found {table[name][int(wrong[0])].as_py()!r}, an unknown one; "
            f"allowed: those of the plan, as {ids[0].as_py()!r}"
        )
    return place
