"""``ecjax analyze``: from an access log to nodes, files and delays, ready for ``ecjax optimize``."""

import json
import math
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from rich.console import Console

import ecjax
from ecjax.console import log, progress
from ecjax.engine import Failed, Lost, open_engine
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.analyze import figures, summary
from ecjax.studies.analyze.node_rows import delay_tables, node_table
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.rows import arrival_table, file_table, trace_table
from ecjax.studies.analyze.run import gather
from ecjax.tables.datasets import conform, dataset_schema
from ecjax.tables.ids import id_types
from ecjax.tables.importers import Trace, open_trace
from ecjax.tables.results import read_run
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.tables.store import ResultStore, run_id

JOB = "analyze"
_VERSION = 2  # 2: ties are spread, blocks begun and requests sampled by hashes
DATASETS = ("traces", "files", "nodes", "delays", "delay_bins", "arrivals")


def analyze(options: AnalyzeOptions, console: Console) -> int:
    """Analyse a trace; returns the exit code: 0, or 1 where something failed that is no mistake of the user's.

    Raises:
        UserError: something the user gave is wrong; no table was written.
    """
    options = checked(options)
    trace = open_trace(
        str(options.trace), options.format, options.columns, options.extent_bytes, options.sort
    )
    parameters = _parameters(options, trace)
    name = run_id(JOB, parameters, trace.fingerprint, options.seed, "float64", _VERSION)
    kinds = id_types(trace.schema.empty_table())
    with ResultStore(options.out, kinds, options.write) as store:
        if options.resume and store.finished([name]):
            log.info("the analysis of this trace is finished in %s", options.out)
            tables = _stored(options.out, name)
        else:
            begin = time.perf_counter()
            try:
                with (
                    open_engine(options.engine) as engine,
                    progress("reading rows", trace.rows) as advance,
                ):
                    statistics = gather(trace, options.seed, engine, advance)
            except (Failed, Lost) as error:
                # the statistics of a part of the trace would be those of another one
                log.error("the analysis failed: %s\n%s", error, getattr(error, "trace", ""))
                failed = {"status": str(Status.FAILED), "error": str(error)}
                store.commit([_run_row(name, parameters, trace, options.seed) | failed], {})
                return 1
            tables = result_tables(statistics, trace, options, name)
            row = _run_row(name, parameters, trace, options.seed) | _results(tables)
            store.commit([row | {"solve_s": time.perf_counter() - begin}], dict(tables))
    summary.show(tables, console, options.out)
    if options.figures:
        written = figures.draw(options.out, {key: table.to_pandas() for key, table in tables.items()})
        log.info("figures: %s", ", ".join(str(path) for path in written))
    return 0


def checked(options: AnalyzeOptions) -> AnalyzeOptions:
    """Options with plain values.

    Raises:
        UserError: an option is missing or has a value that is not allowed.
    """
    values = {name: getattr(options, name) for name in vars(options)}
    if options.trace is None:
        raise UserError("trace: missing; allowed: the path of an access log")
    for name in ("k", "extent_bytes"):
        found = values[name]
        if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 1):
            raise UserError(f"{name}: found {found}; allowed: integers >= 1")
    reference = options.reference_bytes
    if reference is not None and not (0 < reference < math.inf):
        raise UserError(f"reference_bytes: found {reference}; allowed: finite numbers > 0")
    if not 0 <= options.seed < 2**63:
        raise UserError(f"seed: found {options.seed}; allowed: integers from 0 to 2^63 - 1")
    if options.columns is not None and not isinstance(options.columns, Mapping):
        raise UserError(
            f"columns: found {options.columns!r}; allowed: a mapping like {{arrival_s: ts, file_id: key}}"
        )
    if isinstance(options.write, str):
        values["write"] = [options.write]
    unknown = [name for name in values["write"] or () if name not in (*DATASETS, "runs")]
    if unknown:
        raise UserError(
            f"write: found {', '.join(map(repr, unknown))}; allowed: {', '.join(('runs', *DATASETS))}"
        )
    return AnalyzeOptions(**values)


def result_tables(
    statistics: TraceStatistics, trace: Trace, options: AnalyzeOptions, name: str
) -> dict[str, pa.Table]:
    """The result datasets of a trace, those that it supports, in their schemas; ``name`` is the run's."""
    notices: list[str] = []
    tables = {
        "files": file_table(statistics, trace, options.k, notices),
        "arrivals": arrival_table(statistics),
    }
    nodes = node_table(statistics, options.reference_bytes, notices)
    if nodes is not None:
        tables["nodes"] = nodes
    if statistics.cells.quantity.size:
        tables["delays"], tables["delay_bins"] = delay_tables(statistics)
    tables["traces"] = trace_table(statistics, trace, notices)
    kinds = id_types(trace.schema.empty_table())
    return {key: _in_schema(key, tables[key], name, kinds) for key in DATASETS if key in tables}


def _in_schema(dataset: str, table: pa.Table, name: str, kinds: dict[str, pa.DataType]) -> pa.Table:
    runs = pa.array([name], pa.string()).take(pa.array([0] * table.num_rows, pa.int64()))
    return conform(table.add_column(0, "run_id", runs), dataset_schema(dataset, kinds))


def _parameters(options: AnalyzeOptions, trace: Trace) -> dict[str, Any]:
    """What changes the result apart from the trace and the seed."""
    return {
        "format": trace.format,
        "columns": None if options.columns is None else {str(k): v for k, v in options.columns.items()},
        "extent_bytes": options.extent_bytes,
        "k": options.k,
        "sort": options.sort,
        "reference_bytes": options.reference_bytes,
    }


def _run_row(name: str, parameters: dict[str, Any], trace: Trace, seed: int) -> dict[str, Any]:
    """What is known of a run before it is done."""
    return {
        "run_id": name,
        "job": JOB,
        "method": trace.format,
        "input_id": trace.fingerprint,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": seed,
        "params": json.dumps(parameters, sort_keys=True),
    }


def _results(tables: dict[str, pa.Table]) -> dict[str, Any]:
    """What the run's row tells of its tables."""
    nodes = tables.get("nodes")
    loads = [] if nodes is None else [load for load in nodes["load"].to_pylist() if load is not None]
    return {
        "status": str(Status.OK),
        "max_load": max(loads, default=None),
        "files": tables["files"].num_rows,
        "nodes": None if nodes is None else nodes.num_rows,
    }


def _stored(out: str, name: str) -> dict[str, pa.Table]:
    """The tables of a finished analysis, those that were written."""
    tables = {}
    for dataset in DATASETS:
        try:
            table = read_run(out, dataset, name)
        except UserError:
            continue  # not among those written
        if table.num_rows:
            tables[dataset] = table
    return tables
