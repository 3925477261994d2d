"""``ecjax replay``: what plans and dispatch policies deliver, beside their estimate and their bound."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from ecjax import precision
from ecjax.console import log, progress
from ecjax.errors import UserError
from ecjax.report import replay as figures
from ecjax.status import Status
from ecjax.studies import replay_summary
from ecjax.studies.options_replay import ReplayOptions
from ecjax.studies.outcome import exit_code, runs_of
from ecjax.studies.replay_inputs import Inputs, read_inputs
from ecjax.studies.replay_log import replay_log
from ecjax.studies.replay_options import check_queues, checked, queues_of, weights_of
from ecjax.studies.replay_plans import PlanCase, plan_cases
from ecjax.studies.replay_run import JOB, Item, run, run_row
from ecjax.tables.ids import id_types
from ecjax.tables.store import ResultStore, run_id


def replay_study(options: ReplayOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some found no stable queues).

    Raises:
        UserError: something the user gave is wrong; no replay was written.
    """
    options = checked(options)
    if options.trace is not None and options.plan is None and options.arrivals != "trace":
        return replay_log(options, console)
    precision.use_compilation_cache()
    cases = plan_cases(options)
    for case in cases:
        check_queues(options, case)
    given = [read_inputs(options, case) for case in cases]
    grid = [
        Item(*values)
        for number, case in enumerate(cases)
        for values in itertools.product(
            [number],
            options.policy,
            queues_of(options, case),
            options.service or ["auto"],
            options.rate_scale,
            options.size_scale,
        )
    ]
    run_ids = {item: _run_id(item, cases[item.plan], given[item.plan], options) for item in grid}
    ids = id_types(*(table for case in cases for table in (case.nodes, case.files)))
    with ResultStore(options.out, ids, options.write) as store:
        done = store.finished(run_ids.values()) if options.resume else set()
        if done:
            log.info("%d of %d replays are finished in %s", len(done), len(grid), options.out)
        missing = [item for item in grid if run_ids[item] not in done]
        reads = sum(given[item.plan].requests or options.requests for item in missing)
        with progress("replaying requests", options.replications * reads) as advance:
            # replications take the cores first, then replays do
            together = max(1, (os.cpu_count() or 1) // options.replications)
            pool = ThreadPoolExecutor(together)
            try:
                results = pool.map(
                    lambda item: _one(
                        run_ids[item], item, cases[item.plan], given[item.plan], options, advance
                    ),
                    missing,
                )
                for item, (row, tables) in zip(missing, results, strict=True):
                    case = cases[item.plan]
                    store.write_input("nodes", case.input_id, case.nodes)
                    store.write_input("files", case.input_id, case.files)
                    store.commit([row], tables)
            finally:
                pool.shutdown(cancel_futures=True)
    chosen = list(dict.fromkeys(run_ids.values()))
    runs = runs_of(options.out, chosen)
    replay_summary.show(runs, console, options)
    figures.draw(Path(options.out), runs, options.figures, console)
    return exit_code(runs)


def _one(
    name: str, item: Item, case: PlanCase, given: Inputs, options: ReplayOptions, advance: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Row of ``runs`` and the other datasets of one replay; one that fails is a row that says so."""
    try:
        return run(name, item, case, given, options, advance)
    except UserError:
        raise
    except Exception as error:
        log.exception("replay %s failed", name)
        text = f"{type(error).__name__}: {error}"
        return run_row(name, item, case, options) | {"status": str(Status.FAILED), "error": text}, {}


def _run_id(item: Item, case: PlanCase, given: Inputs, options: ReplayOptions) -> str:
    names = (
        *("probes", "cancel", "hedge_delay_s", "hedges", "pareto_ratio", "arrivals"),
        *("burst_factor", "burst_share", "burst_mean_s", "decode_s_per_byte", "client_bandwidth_bytes_per_s"),
        *("requests", "replications", "estimate", "earlier_bounds"),
    )
    parameters = {name: getattr(options, name) for name in names} | asdict(item)
    del parameters["plan"]
    parameters |= {"plan_run": case.run["run_id"], "inputs": given.fingerprints}
    shares = item.queue in ("partitioned", "shared")
    parameters["weights"] = weights_of(options, case).tolist() if shares else None
    return run_id(JOB, parameters, case.input_id, options.seed, "float64")
