"""One replay: replications of it at a time, and its rows."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

import ecjax
from ecjax import optimize
from ecjax.engine import Worker
from ecjax.predict.latencies import Latencies
from ecjax.problem.overload import overload
from ecjax.problem.service_laws import law_name, service_laws
from ecjax.replay import tally
from ecjax.replay.run import STATIC, Outcome, Policy, Queue, replay
from ecjax.replay.summary import summarise
from ecjax.replay.system import System
from ecjax.status import Status
from ecjax.streams import arrivals
from ecjax.studies.replay import rows as replay_tables
from ecjax.studies.replay.inputs import Inputs
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PlanCase
from ecjax.studies.replay.points import Item
from ecjax.studies.replay.predictions import mean_bound, predictions
from ecjax.studies.replay.rows import histograms, replayed
from ecjax.studies.replay.rules import weights_of
from ecjax.studies.replay.system import Classes, build, classes, loads, overfull_class, problem_of, spread

_MOST_FILE_BINS = 5_000  # files whose quantiles are kept: 20 kB each and replication
JOB = "replay"


def run(
    name: str, item: Item, case: PlanCase, given: Inputs, options: ReplayOptions, worker: Worker
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Row of ``runs`` and the other datasets of one replay.

    Args:
        name: run id.
        item: what is replayed.
        case: its plan, with nodes and files.
        given: arrivals and outages.
        options: the rest.
        worker: where its replications run.
    """
    began = time.perf_counter()
    ranks, nodes = classes(case), len(case.nodes)
    if given.times is not None:
        case = _at_rates_of(given, case)
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
    row = run_row(name, item, case, options) | {"service": law_name(laws)}
    row |= {"max_load": float(load.max())} if static else {}
    if static and load.max() >= 1:
        background = np.asarray(problem.nodes.background[0])
        error = overload(load, background, scale[0], case.names.nodes, f"with policy={item.policy}")
        return row | {"status": str(Status.UNSTABLE), "error": error}, {}
    weights = weights_of(options, case)
    if static and item.queue == "partitioned":
        full = overfull_class(case, problem, probabilities, ranks, weights)
        if full is not None:
            return row | {"status": str(Status.UNSTABLE), "error": full}, {}
    system, rates = build(case, laws, probabilities, problem, options)
    predicted = predictions(case, problem, laws, probabilities, ranks, item, weights, options)
    policy = _policy(item, options, case, problem)
    queue = Queue(item.queue, weights)

    def advance(replications: float) -> None:
        worker.advance(replications / options.replications)

    seeds = range(options.seed, options.seed + options.replications)
    replications = [
        worker.pool.submit(
            _replication, system, rates, seed, policy, queue, ranks, given, item, options, advance
        )
        for seed in seeds
    ]
    outcomes = [replication.result() for replication in replications]
    found = summarise([o.tally for o in outcomes], [o.span for o in outcomes])
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


def _at_rates_of(given: Inputs, case: PlanCase) -> PlanCase:
    """The case with the mean rates of a trace's reads, for loads, bound and estimate."""
    assert given.times is not None and given.files is not None
    problem, span = case.problem, float(given.times[-1] - given.times[0])
    counts = np.bincount(given.files, minlength=problem.files.count)
    files = replace(problem.files, rate=jnp.asarray(counts / span))
    return replace(
        case,
        problem=optimize.prepare(problem.nodes, files, problem.row, problem.rows),
        run=case.run | {"rate_scale": 1.0},
    )


def _replication(
    system: System,
    rates: np.ndarray,
    seed: int,
    policy: Policy,
    queue: Queue,
    ranks: Classes,
    given: Inputs,
    item: Item,
    options: ReplayOptions,
    advance: Callable[[float], None],
) -> Outcome:
    """One replication; ``advance`` is called with the parts of it that are done."""
    reads = given.count
    if given.times is not None:
        assert given.files is not None
        number, times = len(given.times), given.times / item.rate_scale
        blocks = arrivals.given(times, given.files)
        duration = float(times[-1])
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
    return replay(
        system, blocks, counts, seed, policy, queue, given.outages, lambda done: advance(done / number)
    )


def _policy(item: Item, options: ReplayOptions, case: PlanCase, problem: optimize.Problem) -> Policy:
    delay = options.hedge_delay_s
    if delay is None and item.policy == "hedged":
        delay = mean_bound(case, problem)
    return Policy(
        item.policy, options.probes, options.cancel, np.inf if delay is None else delay, options.hedges
    )


def run_row(name: str, item: Item, case: PlanCase, options: ReplayOptions) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results."""
    return {
        "run_id": name,
        "job": JOB,
        "method": case.run["method"],
        "theta": case.run["theta"],
        "cost": case.run["cost"],
        "importance": case.run.get("importance"),
        "class_rate_scale": case.run.get("class_rate_scale"),
        "plan_run": case.run["run_id"],
        "policy": item.policy,
        "queue": item.queue,
        "service": item.service,
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
