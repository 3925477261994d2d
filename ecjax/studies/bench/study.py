"""``ecjax bench``: run the cases one after the other, each in a fresh process, and keep their rows."""

import time
from dataclasses import asdict

import psutil
from rich.console import Console

from ecjax.console import OutputMode, conclude, log, output_mode, say
from ecjax.options import checked
from ecjax.progress import progress
from ecjax.studies.bench.cases import CASES
from ecjax.studies.bench.fresh import ProcessFailed, run_fresh
from ecjax.studies.bench.machine import cores, describe
from ecjax.studies.bench.measured import Measured, bench_table, run_row
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.recommend import case_sentence, recommend
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Settings
from ecjax.studies.bench.summary import show
from ecjax.studies.bench.tables import TABLES
from ecjax.studies.spine.as_json import print_json
from ecjax.studies.spine.study import runs_of, say_charts
from ecjax.tables.folder import location
from ecjax.tables.recommendation import write_recommendation
from ecjax.tables.sources import sources_text
from ecjax.tables.store import ResultStore, check_out


def bench_study(options: BenchOptions, console: Console) -> int:
    """Run the study; returns the exit code: 0, or 1 where a case failed. A target that is missed is no failure.

    Each case is a run; measuring it again on the same machine with the same versions replaces its rows.

    Raises:
        UserError: something the user gave is wrong; nothing was run.
    """
    options = checked(options)
    check_out(options.out, TABLES)
    settings = Settings(options.repeats, options.quick, options.seed, options.trace)
    machine = describe()
    _warn_if_busy(cores())
    failed, measured_cases = 0, []
    with ResultStore(options.out, TABLES, {}, sources=sources_text(vars(options))) as store:
        cases = options.cases or []
        for place, name in enumerate(cases, 1):
            log.info("%s: %s", name, CASES[name])
            with progress(f"timing {name} ({place} of {len(cases)})", None):
                measured = _measure(name, settings)
            run = run_row(measured, settings, machine)
            measured_cases.append((run["run_id"], measured))
            store.commit([run], {"bench": bench_table(run["run_id"], measured, cores())})
            if measured.error is None:
                title = f"{name}: {'small sizes' if settings.quick else CASES[name]}"
                show(title, measured.rows, console)
                if len(cases) > 1 and (sentence := case_sentence(run["run_id"], measured, cores())):
                    say(console, sentence)
            else:
                failed += 1
                say(console, f"{name}: failed: {measured.error}", "red")
    say(console, f"tables: {options.out}")
    recommendation = recommend(measured_cases, cores())
    if recommendation is not None:
        conclude(console, recommendation.sentence)
        write_recommendation(location(options.out), recommendation)
    say_charts(options.out)
    code = 1 if failed else 0
    if output_mode() is OutputMode.JSON:
        runs = runs_of(options.out, [run_id for run_id, _ in measured_cases])
        print_json(TABLES, options.out, runs, recommendation, code)
    return code


def _measure(name: str, settings: Settings) -> Measured:
    began = time.perf_counter()
    try:
        result = run_fresh("ecjax.studies.bench.run:run_case", {"name": name, "settings": asdict(settings)})
    except ProcessFailed as error:
        return Measured(name, [], time.perf_counter() - began, None, str(error))
    rows = [Row(**row) for row in result["rows"]]
    return Measured(name, rows, time.perf_counter() - began, result["device"], None)


def _warn_if_busy(cores: int) -> None:
    """Times taken beside other work are too long, and a reader of the table should know."""
    load = psutil.getloadavg()[0]
    if load > cores / 2:
        log.warning("the machine is busy (load %.1f on %d cores): times will be too long", load, cores)
