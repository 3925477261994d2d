"""``ecjax replay``: what plans and dispatch policies deliver, beside their estimate and their bound."""

import itertools
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import ecjax
from ecjax import optimize, precision
from ecjax.console import log, progress
from ecjax.replay import arrivals, tally
from ecjax.replay.run import STATIC, Outcome, Policy, Queue, replay
from ecjax.replay.summary import summarise
from ecjax.replay.system import System
from ecjax.errors import UserError
from ecjax.report import replay as figures
from ecjax.status import Status
from ecjax.studies import replay_summary, replay_tables
from ecjax.studies.options_replay import ReplayOptions
from ecjax.studies.plan_runs import overload
from ecjax.studies.replay_inputs import Inputs, read_inputs
from ecjax.studies.replay_log import replay_log
from ecjax.studies.replay_options import checked
from ecjax.studies.replay_plans import PlanCase, plan_cases
from ecjax.studies.replay_predictions import mean_bound, predictions
from ecjax.studies.replay_system import Classes, build, classes, loads, overfull_class, problem_of, spread
from ecjax.studies.replay_tables import Latencies, histograms, replayed
from ecjax.studies.service_laws import law_name, service_laws
from ecjax.tables.ids import id_types
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore, run_id

_MOST_FILE_BINS = 20_000  # files whose quantiles are kept: 20 kB each
JOB = "replay"


@dataclass(frozen=True)
class Item:
    """One replay: a plan, a policy, queues, a service law, scalings."""

    plan: int
    policy: str
    queue: str
    service: str
    rate_scale: float
    size_scale: float


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
    given = [read_inputs(options, case) for case in cases]
    grid = [
        Item(*values)
        for values in itertools.product(
            range(len(cases)),
            options.policy,
            options.queue,
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
        with progress(
            "replaying requests", len(missing) * options.replications * options.requests
        ) as advance:
            for item in missing:
                case = cases[item.plan]
                row, tables = _replay(run_ids[item], item, case, given[item.plan], options, advance)
                store.write_input("nodes", case.input_id, case.nodes)
                store.write_input("files", case.input_id, case.files)
                store.commit([row], tables)
    chosen = list(dict.fromkeys(run_ids.values()))
    runs = read_results(options.out, "runs").set_index("run_id").loc[chosen].reset_index()
    replay_summary.show(runs, console, options)
    figures.draw(Path(options.out), runs, options.figures, console)
    return 0 if all(Status(status).finished for status in runs["status"]) else 1


def _replay(
    name: str, item: Item, case: PlanCase, given: Inputs, options: ReplayOptions, advance: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Row of ``runs`` and the other datasets of one replay."""
    began = time.perf_counter()
    ranks = classes(case)
    scale = item.rate_scale * case.run["rate_scale"], item.size_scale * case.run["size_scale"]
    laws = given.log_laws
    if item.service != "empirical" or laws is None:
        laws = service_laws(
            case.nodes, case.problem.files, item.service, case.size_scaling, scale[1], options.pareto_ratio
        )
    problem = problem_of(case, laws, *scale)
    probabilities = spread(case, item.policy, problem)
    load = loads(case, problem, probabilities)
    static = item.policy in STATIC
    row = _row(name, item, case, options, law_name(laws)) | (
        {"max_load": float(load.max())} if static else {}
    )
    if static and load.max() >= 1:
        background = np.asarray(problem.nodes.background[0])
        error = overload(load, background, scale[0], case.names.nodes, f"with policy={item.policy}")
        advance(options.replications * options.requests)
        return row | {"status": str(Status.UNSTABLE), "error": error}, {}
    weights = _weights(options, ranks.names)
    if static and item.queue == "partitioned":
        full = overfull_class(case, problem, probabilities, ranks, weights)
        if full is not None:
            advance(options.replications * options.requests)
            return row | {"status": str(Status.UNSTABLE), "error": full}, {}
    system, rates = build(case, laws, probabilities, problem, options)
    predicted = predictions(case, problem, laws, probabilities, ranks, item, options)
    policy = _policy(item, options, case, problem)
    queue = Queue(item.queue, weights)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, options.replications)) as pool:
        outcomes = list(
            pool.map(
                lambda seed: _one(system, rates, seed, policy, queue, ranks, given, options, case, advance),
                range(options.seed, options.seed + options.replications),
            )
        )
    found = summarise([o.tally for o in outcomes], [o.span for o in outcomes])
    nodes = len(case.nodes)
    tables = []
    for group in ("all", "class", "node", "file"):
        sources: list[Latencies] = [replayed(found, group, ranks, nodes), *predicted.get(group, [])]
        tables += [replay_tables.rows(name, group, source, case, ranks) for source in sources]
    assert found.all is not None
    complete = all(o.complete for o in outcomes)
    row |= {
        "status": str(Status.OK if complete and found.stationary else Status.NOT_STATIONARY),
        "requests": int(found.all.count[0]),
        "warm_up_share": found.warm_up,
        "mean_s": float(found.all.mean[0]),
        "ci_s": float(found.all.half_width[0]),
        "p50_s": float(found.all.quantiles[0, 0]),
        "p99_s": float(found.all.quantiles[0, 2]),
        "max_utilisation": float(found.utilisation.max()),
        "solve_s": time.perf_counter() - began,
    }
    for source in predicted.get("all", []):
        if source.source == "bound":
            row["latency_s"] = float(source.mean[0])
            if source.quantiles is not None:
                row["promised_p99_s"] = float(source.quantiles[0, 2])
        if source.source == "estimated" and source.quantiles is not None:
            row |= {
                "estimated_mean_s": float(source.mean[0]),
                "estimated_p99_s": float(source.quantiles[0, 2]),
            }
    return row, {"latencies": tables, "latency_bins": histograms(name, found, ranks)}


def _one(
    system: System,
    rates: np.ndarray,
    seed: int,
    policy: Policy,
    queue: Queue,
    ranks: Classes,
    given: Inputs,
    options: ReplayOptions,
    case: PlanCase,
    advance: Any,
) -> Outcome:
    """One replication."""
    reads = case.problem.files.count
    if given.times is not None:
        assert given.files is not None
        number = len(given.times)
        blocks = arrivals.given(given.times, given.files)
        duration = float(given.times[-1])
    else:
        number = options.requests
        blocks = arrivals.poisson(rates[:reads], number, seed, given.factors, given.bursts)
        duration = number / float(rates[:reads].sum())
    if len(rates) > reads:
        others = arrivals.poisson(rates[reads:], 1 << 62, seed + (1 << 32))
        more = rates[reads:].sum() * duration
        number += int(more + 6 * np.sqrt(more) + 1)
        blocks = arrivals.merged(blocks, ((t, f + reads) for t, f in others), 1 << 62)
    counts = tally.empty(number, len(ranks.names), system.nodes, reads, reads <= _MOST_FILE_BINS)
    return replay(system, blocks, counts, seed, policy, queue, given.outages, advance)


def _policy(item: Item, options: ReplayOptions, case: PlanCase, problem: optimize.Problem) -> Policy:
    delay = options.hedge_delay_s
    if delay is None and item.policy == "hedged":
        delay = mean_bound(case, problem)
    return Policy(
        item.policy, options.probes, options.cancel, np.inf if delay is None else delay, options.hedges
    )


def _weights(options: ReplayOptions, names: list[str]) -> tuple[float, ...]:
    if options.weights and len(options.weights) != len(names):
        raise UserError(
            f"weights: found {len(options.weights)} numbers; allowed: one per service class: {', '.join(names)}"
        )
    return tuple(options.weights) if options.weights else (1 / len(names),) * len(names)


def _run_id(item: Item, case: PlanCase, given: Inputs, options: ReplayOptions) -> str:
    names = (
        *("probes", "cancel", "hedge_delay_s", "hedges", "weights", "pareto_ratio", "arrivals"),
        *("burst_factor", "burst_share", "burst_mean_s", "decode_s_per_byte", "client_bandwidth_bytes_per_s"),
        *("requests", "replications", "estimate", "earlier_bounds"),
    )
    parameters = {name: getattr(options, name) for name in names} | asdict(item)
    del parameters["plan"]
    parameters |= {"plan_run": case.run["run_id"], "inputs": given.fingerprints}
    return run_id(JOB, parameters, case.input_id, options.seed, "float64")


def _row(name: str, item: Item, case: PlanCase, options: ReplayOptions, law: str) -> dict[str, Any]:
    return {
        "run_id": name,
        "job": JOB,
        "method": case.run["method"],
        "theta": case.run["theta"],
        "cost": case.run["cost"],
        "plan_run": case.run["run_id"],
        "policy": item.policy,
        "queue": item.queue,
        "service": law,
        "arrivals": options.arrivals,
        "replications": options.replications,
        "files": len(case.files),
        "nodes": len(case.nodes),
        "input_id": case.input_id,
        "rate_scale": item.rate_scale * case.run["rate_scale"],
        "size_scale": item.size_scale * case.run["size_scale"],
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": options.seed,
        "params": json.dumps(asdict(item) | {"requests": options.requests}, sort_keys=True),
    }
