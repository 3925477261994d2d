"""``ecjax analyze``: from an access log to nodes, files and delays, ready for ``ecjax optimize``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax.engine import Engine
from ecjax.errors import UserError
from ecjax.options import checked, identifying
from ecjax.studies.analyze.figures import draw
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.recommend import recommend
from ecjax.studies.analyze.run import Item, Settings, result_types, solve
from ecjax.studies.analyze.summary import show
from ecjax.studies.analyze.tables import TABLES
from ecjax.studies.spine.batches import Batch, Driven, Rows
from ecjax.studies.spine.log_options import at_peak, shrinking
from ecjax.studies.spine.logs import log_reading, open_reading
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import Trace
from ecjax.tables.read import read_input
from ecjax.tables.recommendation import Recommendation
from ecjax.tables.result_schemas import RUNS
from ecjax.tables.results import read_arrow, read_run

_VERSION = 2  # 2: ties are spread, blocks begun and requests sampled by hashes


def analyze_study(options: AnalyzeOptions, console: Console) -> int:
    """Analyse a trace; returns the exit code: 0, or 1 where something failed that is no mistake of the user's.

    Raises:
        UserError: something the user gave is wrong; no table was written.
    """
    options = checked(options)
    if not at_peak(options):
        say_unused(options, ["window_s"], f"rate={options.rate}")
    computed: dict[
        str, pa.Table
    ] = {}  # the datasets, also those that are not written; empty where it was finished

    def present(runs: pd.DataFrame) -> Recommendation | None:
        tables = computed or _stored(options.out, runs["run_id"][0])
        show(runs, tables, console, options.out)
        if options.figures:
            draw(options.out, {name: table.to_pandas() for name, table in tables.items()}, console)
        several = read_arrow(options.out, RUNS, ["run_id"]).num_rows > 1
        return recommend(runs, tables, options, several)

    return run_study(TABLES, options, partial(_work, options, computed), present, console)


def _work(options: AnalyzeOptions, computed: dict[str, pa.Table], engine: Engine) -> Work:
    reading = log_reading(options, whole=True)
    trace = open_reading(reading)
    columns = {"format": trace.format}
    nodes = None if options.nodes is None else read_input(options.nodes, "nodes")
    catalog = None if options.catalog is None else read_input(options.catalog, "catalog")
    beside = {"nodes": nodes, "catalog": catalog}
    described = {name: fingerprint(table, name) for name, table in beside.items() if table is not None}
    run = Run(
        TABLES.job,
        # the format that was told by content, where it was not set
        reading.options | identifying(options) | described | columns,
        trace.fingerprint,
        options.seed,
        columns,
        algorithm_version=_VERSION,
    )
    settings = Settings(
        options.seed,
        options.k,
        options.reference_bytes,
        reading.row(),
        options.window_s if at_peak(options) else None,
        nodes,
        shrinking(options),
        catalog,
        frozenset(options.background or ()),
    )

    def solved(
        trace: Trace, items: dict[str, Item], engine: Engine, advance: Callable[[float], Any]
    ) -> tuple[Rows, dict[str, pa.Table]]:
        rows, datasets = solve(settings, trace, items, engine, advance)
        computed.update(datasets)
        return rows, datasets

    return Work(
        [run.run_id],
        unfinished([Batch(trace, {run.run_id: Item(run)})]),
        Driven(solved, trace.rows),
        result_types(trace, nodes),
        "reading rows",
    )


def _stored(out: str, run_id: str) -> dict[str, pa.Table]:
    """The datasets of an analysis, those that were written and have rows."""
    tables = {}
    for dataset in TABLES.names:
        try:
            table = read_run(out, dataset, run_id)
        except UserError:
            continue  # not among those written
        if table.num_rows:
            tables[dataset] = table
    return tables
