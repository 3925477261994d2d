"""One replay: replications of it at a time, and its rows."""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from ecjax import precision, programs
from ecjax.console import log
from ecjax.engine import Worker
from ecjax.options import identifying
from ecjax.predict.latencies import Latencies
from ecjax.predict.plan_estimates import within_bound
from ecjax.problem.service_laws import law_name
from ecjax.simulation.run import Outcome
from ecjax.simulation.summary import Summary, summarise
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.replay import rows
from ecjax.studies.replay.inputs import Case, queues_of, slow_of
from ecjax.studies.replay.operating_point import (
    Point,
    at_mean_rates,
    operating_point,
    weights_of,
    why_unstable,
)
from ecjax.studies.replay.options import BY_WEIGHT, ReplayOptions
from ecjax.studies.replay.predictions import predictions
from ecjax.studies.replay.services import services
from ecjax.studies.replay.simulation import Simulation, simulation
from ecjax.studies.replay.tables import TABLES
from ecjax.studies.replay.trace_predictions import trace_predictions
from ecjax.studies.spine.batches import Solved
from ecjax.studies.spine.run import Run
from ecjax.tables.nulls import or_none
from ecjax.tables.store import Tables
from ecjax.units import time_text

_P50, _P99 = 0, 2  # places among the quantiles
_NO_READS = "no read was replayed: rates and the factors of rates= are 0; allowed: above 0 at some time"
_NO_DELAY = (
    "hedge_delay_s: its default, the bound on the mean latency of the plan, is infinite at rate_scale={:g}: reads as "
    "planned overload a node; allowed: a number of seconds, or lower rates"
)


@dataclass(frozen=True)
class Item:
    """One replay."""

    run: Run
    point: Point


def items_of(case: Case, options: ReplayOptions) -> list[Item]:
    """The replays of a case: policies, queues, service laws, rates, sizes; the last fastest."""
    points = itertools.product(
        options.policy,
        queues_of(options, case.plan),
        options.service or [],
        options.rate_scale,
        options.size_scale,
        slow_of(options, case.plan),
    )
    return [_item(case, Point(*point), options) for point in points]


def _item(case: Case, point: Point, options: ReplayOptions) -> Item:
    plan, shares = case.plan, point.queue in BY_WEIGHT
    parameters = identifying(options) | asdict(point)
    if point.slow is None:  # run ids are those of before there were slow nodes
        del parameters["slow"]
    parameters |= {"plan_run": plan.run.run_id, "inputs": case.fingerprints}
    if case.reading:
        parameters["reading"] = case.reading
    if plan.run.run_id is None and plan.size_scaling != "proportional":  # else it is the plan's
        parameters["size_scaling"] = plan.size_scaling
    parameters["weights"] = weights_of(options, plan).tolist() if shares else None
    columns: dict[str, Any] = {
        "plan_run": plan.run.run_id,
        "method": plan.run.method,
        "theta": plan.run.theta,
        "cost_dollars_per_period": plan.run.cost_dollars_per_period,
        "moving_dollars": plan.run.moving_dollars,
        "importance": plan.run.importance,
        "class_rate_scale": plan.run.class_rate_scale,
        "policy": point.policy,
        "queue": point.queue,
        "service": point.service,
        "arrivals": options.arrivals,
        # a log comes as often as it does, whatever the plan's rates were multiplied by
        "rate_scale": point.rate_scale * (1.0 if options.arrivals == "trace" else plan.run.rate_scale),
        "size_scale": point.size_scale * plan.run.size_scale,
        "slow": None if point.slow is None else json.dumps(point.slow),
        "file_count": len(plan.files),
        "node_count": len(plan.nodes),
        "replications": options.replications,
    }
    remarks = {} if case.log is None else {"log": case.log}
    return Item(Run(TABLES.job, parameters, plan.run.input_id, options.seed, columns, remarks), point)


def solve(options: ReplayOptions, case: Case, items: dict[str, Item], worker: Worker) -> Solved:
    """Row of ``runs`` and the other datasets of one replay.

    Args:
        options: of the study.
        case: plan, arrivals and outages.
        items: the replay, by run id.
        worker: where its replications run.

    Raises:
        UserError: a node has no such service law, or earlier bounds do not know such nodes or files.
    """
    programs.use_compilation_cache()
    [(name, item)] = items.items()
    with Stopwatch() as stopwatch:
        row, datasets = _solve(options, case, name, item, worker, stopwatch)
    return [row | {"solve_s": stopwatch.own_s}], datasets


def _solve(
    options: ReplayOptions, case: Case, name: str, item: Item, worker: Worker, stopwatch: Stopwatch
) -> tuple[dict[str, Any], Mapping[str, Tables]]:
    at = operating_point(case, item.point, options)
    steady = at_mean_rates(case, at, options)
    row = item.run.row() | {"service": law_name(at.laws)}
    # where nodes fail, others are read instead: the loads are what the replay measures
    known = at.static and case.outages is None
    if known:
        row["max_load"] = float(steady.loads.max())
    error = why_unstable(steady)
    if error is not None and case.factors is None:
        return row | {"status": str(Status.UNSTABLE), "error": error}, {}
    # too much to do for a time, as rates vary, is replayed; bounds of it there are none
    predicted = predictions(steady, options.estimate, options.earlier_bounds) if error is None else {}
    under_trace, trace_columns = trace_predictions(case, at, item.point, options)
    for kind, latencies in under_trace.items():
        predicted.setdefault(kind, []).append(latencies)
    replays = simulation(case, at, item.point, options)
    if at.policy == "hedged" and math.isinf(replays.policy.hedge_delay_s):
        error = _NO_DELAY.format(at.rate_scale)
        return row | {"status": str(Status.UNSTABLE), "error": error}, {}
    lanes = replays.lanes_on_device(options.device, options.replications)
    if lanes:
        outcomes = _outcomes_on_device(replays, lanes, options, worker)
        row["device"] = precision.device_name()
    else:
        outcomes = _outcomes(stopwatch.joined(replays.replication), options, worker)
    tallies, spans = [outcome.tally for outcome in outcomes], [outcome.span for outcome in outcomes]
    if case.outages is not None and not case.fails_before(max(spans)):
        log.warning(
            "outages=%s: none is within the %s that are replayed", options.outages, time_text(max(spans))
        )
    varying = case.reads is not None or case.factors is not None or case.changes_before(max(spans))
    summary = summarise(tallies, spans, varying)
    summary = replace(summary, utilisation=summary.utilisation / at.channels)
    if summary.all is None or not summary.all.count[0]:
        return row | {"status": str(Status.FAILED), "error": _NO_READS}, {}
    complete = error is None and all(outcome.complete for outcome in outcomes)
    if not known:
        # reads may end without the node that has more to do than it can
        complete = complete and summary.utilisation.max() <= 1
    if at.policy == "hedged":
        row["hedge_delay_s"] = or_none(replays.policy.hedge_delay_s)
        row["hedged_share"] = fmean(outcome.hedged_share for outcome in outcomes)
    if at.kinds is not None:
        direct, degraded = summary.count[len(at.plan.classes.names) : len(at.class_names)]
        row["small_degraded_share"] = float(degraded / (direct + degraded)) if direct + degraded else None
    row |= _results(summary, complete) | _predicted(predicted.get("all", [])) | trace_columns
    if error is not None:
        row["error"] = f"{error}; bound and estimate of the mean rates are missing"
    return row, {
        "latencies": rows.latencies(name, at, summary, predicted),
        "latency_bins": rows.latency_bins(name, at, summary),
        "services": services(name, at, options.seed),
        "node_loads": rows.node_loads(name, steady, summary, known),
    }


def _outcomes(
    replication: Callable[[int, Callable[[float], None]], Outcome], options: ReplayOptions, worker: Worker
) -> list[Outcome]:
    """Outcomes of all replications."""

    def advance(replications: float) -> None:
        worker.advance(replications / options.replications)

    seeds = range(options.seed, options.seed + options.replications)
    running = [worker.pool.submit(replication, seed, advance) for seed in seeds]
    return [each.result() for each in running]


def _outcomes_on_device(
    replays: Simulation, lanes: int, options: ReplayOptions, worker: Worker
) -> list[Outcome]:
    """Outcomes of all replications, so many at a time."""
    outcomes: list[Outcome] = []
    for first in range(0, options.replications, lanes):
        count = min(lanes, options.replications - first)
        seeds = range(options.seed + first, options.seed + first + count)
        outcomes += replays.replications_on_device(seeds, worker.pool)
        worker.advance(count / options.replications)
    return outcomes


def _results(summary: Summary, complete: bool) -> dict[str, Any]:
    """Columns of ``runs`` of a replay that is done."""
    reads = summary.all
    assert reads is not None
    return {
        "status": str(Status.OK if complete and summary.stationary else Status.NOT_STATIONARY),
        "requests": int(reads.count[0]),
        "warm_up_share": summary.warm_up,
        "mean_s": or_none(reads.mean[0]),
        "ci_s": or_none(reads.half_width[0]),  # too few requests for one
        "p50_s": or_none(reads.quantiles[0, _P50]),
        "p99_s": or_none(reads.quantiles[0, _P99]),
        "p99_ci_s": or_none(reads.quantile_half_width[0, _P99]),
        "max_utilisation": or_none(summary.utilisation.max()),
    }


def _predicted(sources: list[Latencies]) -> dict[str, float | None]:
    """Columns of ``runs`` of bound and estimate of all reads; None where they are infinite."""
    row: dict[str, float] = {}
    for latencies in sources:
        quantiles = latencies.quantiles
        if latencies.source == "bound":
            row["latency_s"] = float(latencies.mean[0])
            if quantiles is not None:
                row["promised_p99_s"] = float(quantiles[0, _P99])
        if latencies.source == "estimated" and quantiles is not None:
            row["estimated_mean_s"] = float(latencies.mean[0])
            row["estimated_p99_s"] = float(quantiles[0, _P99])
    if "estimated_mean_s" in row and "latency_s" in row:
        row["estimated_mean_s"] = within_bound(row["estimated_mean_s"], row["latency_s"])
    # queues that share a node may be stable where the partition that bounds them is not
    return {name: value if math.isfinite(value) else None for name, value in row.items()}
