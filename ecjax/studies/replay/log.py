"""``ecjax replay LOG``: the second half of a log predicted from its first half, and how far off that is."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow.compute as pc
from rich.console import Console

from ecjax import programs
from ecjax.console import say
from ecjax.display import without_secrets
from ecjax.engine import Engine, Worker
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.rows import with_run_id
from ecjax.studies.replay.tables import AS_LOGGED, TABLES
from ecjax.studies.spine.batches import Batch, Solved
from ecjax.studies.spine.logs import LATER, log_reading, open_reading
from ecjax.studies.spine.printed import number, print_table
from ecjax.studies.spine.run import Run
from ecjax.studies.spine.study import Work
from ecjax.studies.spine.trace_columns import trace_columns
from ecjax.tables.ids import id_types
from ecjax.tables.requests import TraceRequests, requests
from ecjax.tables.results import read_run
from ecjax.units import Unit, fitting_unit
from ecjax.validation.validate import Validation, validate

# options of which there is nothing to say beside a prediction, besides those of every log
READ_WITH_LOGS = (
    *("plan", "plan_run", "plan_where", "service", "replications", "seed", "arrivals"),
    *("out", "engine", "resume", "write", "figures"),
)
_QUANTILES = ("p50_s", "p90_s", "p99_s", "p999_s")


class Item(NamedTuple):
    """One prediction."""

    run: Run
    family: str  # of the service laws


def log_work(options: ReplayOptions, engine: Engine) -> Work:
    """Predictions from a log, one per family of service laws.

    Raises:
        UserError: the log cannot be read.
    """
    reading = log_reading(options, whole=True)  # all that nodes did makes what is observed
    trace = open_reading(reading)
    parameters: dict[str, Any] = {"replications": options.replications, "sort": reading.options["sort"]}
    parameters |= {"columns": dict(reading.options["columns"] or {})}
    parameters |= {"extent_bytes": reading.options["extent_bytes"]}
    parameters |= {name: reading.options[name] for name in LATER if name in reading.options}
    columns: dict[str, Any] = {"policy": AS_LOGGED, "queue": "fcfs", "arrivals": "trace"}
    columns |= {"replications": options.replications}
    items = {}
    for family in options.service or []:
        run = Run(
            TABLES.job,
            parameters | {"family": family},
            trace.fingerprint,
            options.seed,
            columns | {"service": family},
            {"log": reading.path},
        )
        items[run.run_id] = Item(run, family)

    def batches(finished: set[str]) -> list[Batch]:
        missing = {name: item for name, item in items.items() if name not in finished}
        log = requests(trace) if missing else None
        return [Batch(log, {name: item}) for name, item in missing.items()]

    return Work(
        list(items),
        batches,
        partial(_solve, options),
        id_types(trace.schema.empty_table()),
        "validating",
        at_once=1,
    )


def _solve(options: ReplayOptions, log: TraceRequests, items: dict[str, Item], worker: Worker) -> Solved:
    programs.use_compilation_cache()
    [(name, item)] = items.items()
    with Stopwatch(of_process=True) as stopwatch:
        validation = validate(log, item.family, options.seed, options.replications)
    if not len(validation.table):
        raise UserError(
            f"trace={options.trace}: {validation.text}; plan=FOLDER replays its arrivals on a plan"
        )
    row = item.run.row() | _results(validation, options.replications) | {"solve_s": stopwatch.own_s}
    tables = {"latencies": validation.table, "latency_bins": validation.bins}
    if validation.loads is not None:
        tables["node_loads"] = validation.loads
    return [row], {dataset: with_run_id(name, table) for dataset, table in tables.items()}


def _results(validation: Validation, replications: int) -> dict[str, Any]:
    """Status and results of a row of ``runs``."""
    rows = validation.table.filter(pc.equal(validation.table["group"], "all")).to_pylist()
    of = {row["source"]: row for row in rows}
    row: dict[str, Any] = {
        "status": str(Status.OK if validation.predicted else Status.FAILED),
        "error": None if validation.predicted else validation.text,
        "prediction": validation.text if validation.predicted else None,
        "notices": json.dumps(validation.notices),
    }
    if "observed" in of:
        row |= {"observed_mean_s": of["observed"]["mean_s"], "observed_p99_s": of["observed"]["p99_s"]}
    if "replayed" in of:
        replayed = of["replayed"]
        row |= {name: replayed[name] for name in ("mean_s", "ci_s", "p50_s", "p99_s")}
        row["requests"] = replications * replayed["requests"]  # every replication is of the same reads
    if "estimated" in of:
        row |= {"estimated_mean_s": of["estimated"]["mean_s"], "estimated_p99_s": of["estimated"]["p99_s"]}
    if validation.trace is not None:
        row |= trace_columns(validation.trace, ())
    if "bound" in of:
        row["latency_s"] = of["bound"]["mean_s"]
    return row


def show_log(runs: pd.DataFrame, console: Console, options: ReplayOptions) -> None:
    """Print the predictions, of one the recommendation speaks, then what else there is to say."""
    rows = runs.to_dict("records")
    for run in rows:
        several = f"service={run['service']}: " if len(runs) > 1 else ""
        failed = pd.notna(run["error"])
        if pd.notna(run["error"]) or pd.notna(run["prediction"]):
            say(console, several + run["error" if failed else "prediction"], "red" if failed else "")
    for run in rows:
        if pd.isna(run["notices"]):
            continue
        if options.write is None or "latencies" in options.write:
            _show_latencies(run, console, options)
        for notice in dict.fromkeys(json.loads(run["notices"])):
            say(console, f"- {notice}")


def _show_latencies(run: dict[Any, Any], console: Console, options: ReplayOptions) -> None:
    latencies = read_run(options.out, "latencies", run["run_id"]).to_pandas()
    latencies = latencies[latencies["group"] == "all"]
    unit = fitting_unit(*(latencies[name] for name in ("mean_s", *_QUANTILES)))
    shown = ("mean", "p50", "p90", "p99", "p99.9")
    print_table(
        console,
        f"second half of {Path(without_secrets(str(options.trace))).name}, service={run['service']}: {options.out}",
        ("source", "reads", *(f"{name} {unit.name}" for name in shown)),
        [_cells(row, unit) for row in latencies.to_dict("records")],
        words=("source",),
        least=("reads", f"p50 {unit.name}", f"p90 {unit.name}"),
        dataset="latencies",
    )


def _cells(row: dict[Any, Any], unit: Unit) -> list[str]:
    mean = unit.interval(row["mean_s"], None if row["source"] == "observed" else row["ci_s"])
    cells = [row["source"], number(row["requests"], ".0f"), mean]
    return cells + [unit.cell(row[name]) for name in _QUANTILES]
