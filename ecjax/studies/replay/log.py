"""``ecjax replay LOG``: the second half of a log predicted from its first half, and how far off that is."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

import ecjax
from ecjax import precision
from ecjax.console import log
from ecjax.engine import Worker, open_engine
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.replay.figures import kinds as figures
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
from ecjax.tables.ids import id_types
from ecjax.tables.importers import Trace, open_trace
from ecjax.tables.requests import TraceRequests, requests
from ecjax.tables.results import read_run
from ecjax.tables.store import ResultStore, run_id
from ecjax.validation.validate import Validation, validate


def replay_log(options: ReplayOptions, console: Console) -> int:
    """Validate on a log, one run per service law; returns the exit code (0, or 1 where nothing could be predicted).

    Raises:
        UserError: something the user gave is wrong; nothing was written.
    """
    precision.use_compilation_cache()
    trace = open_trace(
        str(options.trace), options.format, options.columns, options.extent_bytes, options.sort
    )
    families = {_run_id(trace, family, options): family for family in options.service or ["empirical"]}
    with (
        open_engine(options.engine) as engine,
        ResultStore(options.out, id_types(trace.schema.empty_table()), options.write) as store,
    ):
        done = store.finished(families) if options.resume else set()
        if done:
            log.info("%d of %d replays are finished in %s", len(done), len(families), options.out)
        missing = {name: family for name, family in families.items() if name not in done}
        loaded = requests(trace) if missing else None
        run_batches(
            [(loaded, {name: family}) for name, family in missing.items()],
            partial(_solve, options, trace.fingerprint),
            partial(_blank, options, trace.fingerprint),
            store,
            engine,
            resume=False,  # what is finished is not in the grid: without a rest the log is not loaded
            what="validating",
            at_once=1,
        )
    runs = runs_of(options.out, families)
    _show(runs, console, options)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _run_id(trace: Trace, family: str, options: ReplayOptions) -> str:
    parameters = {"family": family, "replications": options.replications, "sort": options.sort}
    parameters |= {"columns": dict(options.columns or {}), "extent_bytes": options.extent_bytes}
    return run_id("replay", parameters, trace.fingerprint, options.seed, "float64")


def _solve(
    options: ReplayOptions, input_id: str, loaded: TraceRequests, families: dict[str, str], worker: Worker
) -> Solved:
    precision.use_compilation_cache()
    [(name, family)] = families.items()
    began = time.perf_counter()
    found = validate(loaded, family, options.seed, options.replications)
    if not len(found.table):
        raise UserError(f"trace={options.trace}: {found.text}; plan=FOLDER replays its arrivals on a plan")
    row = _blank(options, input_id, loaded, name, family) | _results(found)
    row["solve_s"] = time.perf_counter() - began
    return [row], {"latencies": _of(name, found.table), "latency_bins": _of(name, found.bins)}


def _of(name: str, table: pa.Table) -> pa.Table:
    return table.append_column("run_id", pa.repeat(pa.scalar(name), len(table)))


def _blank(
    options: ReplayOptions, input_id: str, loaded: TraceRequests, name: str, family: str
) -> dict[str, Any]:
    """What is known of a run before it is done: a row of ``runs`` without status and results."""
    return {
        "run_id": name,
        "job": "replay",
        "policy": "as logged",
        "queue": "fcfs",
        "service": family,
        "arrivals": "trace",
        "replications": options.replications,
        "input_id": input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": options.seed,
    }


def _results(found: Validation) -> dict[str, Any]:
    """Status and results of a row of ``runs``."""
    rows = found.table.filter(pa.compute.equal(found.table["group"], "all")).to_pylist()
    of = {row["source"]: row for row in rows}
    row = {
        "status": str(Status.OK if found.predicted else Status.FAILED),
        "error": None if found.predicted else found.text,
        "params": json.dumps({"text": found.text, "notices": found.notices}),
    }
    if "observed" in of:
        row |= {"observed_mean_s": of["observed"]["mean_s"], "observed_p99_s": of["observed"]["p99_s"]}
    if "replayed" in of:
        row |= {name: of["replayed"][name] for name in ("requests", "mean_s", "ci_s", "p50_s", "p99_s")}
    if "estimated" in of:
        row |= {"estimated_mean_s": of["estimated"]["mean_s"], "estimated_p99_s": of["estimated"]["p99_s"]}
    if "bound" in of:
        row["latency_s"] = of["bound"]["mean_s"]
    return row


def _show(runs: pd.DataFrame, console: Console, options: ReplayOptions) -> None:
    """The prediction first, then what else is known."""
    for run in runs.itertuples():
        several = f"service={run.service}: " if len(runs) > 1 else ""
        failed = pd.notna(run.error)
        text = run.error if failed else json.loads(run.params)["text"]
        console.print(several + text, style="red" if failed else None, highlight=False)
    for run in runs[runs["params"].notna()].itertuples():
        table = Table(
            title=f"second half of {Path(str(options.trace)).name}, service={run.service}: {options.out}",
            box=box.SIMPLE_HEAD,
            title_justify="left",
        )
        for heading in ("source", "reads", "mean s", "p50 s", "p90 s", "p99 s", "p99.9 s"):
            table.add_column(heading, justify="left" if heading == "source" else "right")
        rows = read_run(options.out, "latencies", run.run_id).to_pandas()
        for row in rows[rows["group"] == "all"].itertuples():
            interval = f" ± {row.ci_s:.2g}" if row.source != "observed" and pd.notna(row.ci_s) else ""
            values = (row.p50_s, row.p90_s, row.p99_s, row.p999_s)
            table.add_row(
                row.source,
                "" if pd.isna(row.requests) else f"{row.requests:.0f}",
                f"{row.mean_s:.4g}{interval}",
                *("" if pd.isna(value) else f"{value:.4g}" for value in values),
            )
        if table.row_count:
            console.print(table)
        for notice in dict.fromkeys(json.loads(run.params)["notices"]):
            console.print(f"- {notice}", highlight=False)
