"""``ecjax bench``: run the cases one after the other, each in a fresh process, and keep their rows."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

import ecjax
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.bench.cases import CASES
from ecjax.studies.bench.fresh import ProcessFailed, run_fresh
from ecjax.studies.bench.machine import cores, describe
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.rows import Row, Settings
from ecjax.tables.result_schemas import result_schema
from ecjax.tables.store import ResultStore, run_id

JOB = "bench"


def bench(options: BenchOptions, console: Console) -> int:
    """Run the study; returns the exit code: 0, or 1 where a case failed. A target that is missed is no failure.

    Each case is a run; measuring it again on the same machine with the same versions replaces its rows.

    Raises:
        UserError: something the user gave is wrong; nothing was run.
    """
    names = checked(options)
    settings = Settings(options.repeats, options.quick, options.seed, options.trace)
    machine = describe()
    _warn_if_busy(cores())
    failed = 0
    with ResultStore(options.out, {}) as store:
        for name in names:
            log.info("%s: %s", name, CASES[name].summary)
            began = time.perf_counter()
            rows, device, error = _measure(name, settings)
            run = _run_row(name, settings, machine, time.perf_counter() - began, device, error)
            store.commit([run], {"bench": _table(run["run_id"], name, rows, device, machine)})
            if error is None:
                _print(name, rows, settings, console)
            else:
                failed += 1
                console.print(f"{name}: failed: {error}", style="red", highlight=False)
    console.print(f"tables: {options.out}", highlight=False)
    return 1 if failed else 0


def checked(options: BenchOptions) -> list[str]:
    """Names of the cases to run.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    given = options.cases
    names = list(CASES) if given is None or given == [] else [given] if isinstance(given, str) else given
    for name in names:
        if name not in CASES:
            raise UserError(f"cases: found {name!r}; allowed: {', '.join(CASES)}")
    if options.repeats < 1:
        raise UserError(f"repeats: found {options.repeats}; allowed: 1 or more")
    if options.trace is not None and not Path(options.trace).exists():
        raise UserError(f"trace={options.trace}: no such file")
    if options.seed < 0:
        raise UserError(f"seed: found {options.seed}; allowed: 0 or more")
    return list(dict.fromkeys(names))


def _measure(name: str, settings: Settings) -> tuple[list[Row], str | None, str | None]:
    """Rows, device and error of one case."""
    arguments = {"name": name, "settings": asdict(settings)}
    try:
        found = run_fresh("ecjax.studies.bench.cases:run_case", arguments)
    except ProcessFailed as error:
        return [], None, str(error)
    return [Row(**row) for row in found["rows"]], found["device"], None


def _run_row(
    name: str,
    settings: Settings,
    machine: dict[str, Any],
    seconds: float,
    device: str | None,
    error: str | None,
) -> dict[str, Any]:
    parameters = {"case": name, "repeats": settings.repeats, "quick": settings.quick, "machine": machine}
    return {
        "run_id": run_id(JOB, parameters, "", settings.seed, ""),
        "job": JOB,
        "status": str(Status.OK if error is None else Status.FAILED),
        "error": error,
        "method": name,
        "solve_s": seconds,
        "device": device,
        "version": ecjax.__version__,
        "seed": settings.seed,
        "params": json.dumps(parameters, sort_keys=True),
    }


def _table(run: str, name: str, rows: list[Row], device: str | None, machine: dict[str, Any]) -> pa.Table:
    common = {"run_id": run, "case": name, "device": device, "cores": machine["cores"]}
    values = [common | asdict(row) | {"met": row.met} for row in rows]
    return pa.Table.from_pylist(values, schema=result_schema("bench"))


def _print(name: str, rows: list[Row], settings: Settings, console: Console) -> None:
    """One table per case, with the columns that the case fills."""
    columns = {
        "variant": [row.variant for row in rows],
        "size": [row.size for row in rows],
        "median\ns": [_number(row.median_s) for row in rows],
        "least\ns": [_number(row.min_s) for row in rows],
        "target\ns": [_number(row.target_s) for row in rows],
        "compile\ns": [_number(row.compile_s) for row in rows],
        "peak\nMB": [_megabytes(row.peak_rss_bytes) for row in rows],
        "target\nMB": [_megabytes(row.target_bytes) for row in rows],
        "objective\ns": [_number(row.objective, 6) for row in rows],
        "gap": [_number(row.gap, 2) for row in rows],
        "target\ngap": [_number(row.target_gap) for row in rows],
        "iter-\nations": ["" if row.iterations is None else str(row.iterations) for row in rows],
        "met": [{True: "yes", False: "NO", None: ""}[row.met] for row in rows],
    }
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    title = f"{name}: {'small sizes' if settings.quick else CASES[name].summary}"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
    for heading in filled:
        words = heading in ("variant", "size")
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading != "size")
    for cells in zip(*filled.values(), strict=True):
        table.add_row(*cells)
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"{row.variant}, {row.size}: {row.note}", style="dim", highlight=False)


def _warn_if_busy(cores: int) -> None:
    """Times taken beside other work are too long, and a reader of the table should know."""
    load = psutil.getloadavg()[0]
    if load > cores / 2:
        log.warning("the machine is busy (load %.1f on %d cores): times will be too long", load, cores)


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.0f}"
