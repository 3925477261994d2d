"""Latencies under the arrivals that are replayed, without a replay: those of a log, or rates that vary."""

from typing import Any

import numpy as np

from ecjax.predict.latencies import Latencies
from ecjax.predict.log_remarks import remarks, seen_of
from ecjax.predict.logged import (
    MOST_RATES,
    Logged,
    ServedPlan,
    changes,
    logged_estimate,
    logged_queues,
    most_read,
    time_of_reads,
    varying_estimate,
    varying_queues,
)
from ecjax.predict.queues_left import undrained
from ecjax.predict.read_samples import Groups
from ecjax.predict.trace_estimates import TraceEstimate
from ecjax.studies.replay.inputs import Case
from ecjax.studies.replay.logged_reads import LoggedReads
from ecjax.studies.replay.operating_point import OperatingPoint, Point
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.predictions import PREDICTABLE
from ecjax.studies.spine.trace_columns import remark_column, trace_columns
from ecjax.units import count_text

SOURCE = "trace_estimated"


def trace_predictions(
    case: Case, at: OperatingPoint, point: Point, options: ReplayOptions
) -> tuple[dict[str, Latencies], dict[str, Any]]:
    """Latencies by kind of group, and columns of ``runs``; empty where rates are constant, or queues by class.

    Args:
        case: the arrivals.
        at: plan, laws and rates.
        point: for the scaling of the log's times.
        options: of the study; without ``estimate`` there are no latencies, and only queues that do not drain are said.
    """
    varies = case.factors is not None and options.arrivals == "poisson"
    if at.plan.per_node > 1 or not (varies or case.reads is not None):
        return {}, {}
    if at.policy not in PREDICTABLE or at.queue.name != "fcfs":
        return {}, {}
    plan = ServedPlan(at.problem, at.laws, at.probabilities, at.plan.stored)
    names = at.plan.names.nodes.to_pylist()
    rate, classes = np.asarray(at.problem.files.rate), at.plan.classes
    groups = Groups(classes.of_file, len(classes.names), most_read(rate))
    if case.reads is not None:
        as_logged = _logged(case.reads)
        logged = as_logged.faster(point.rate_scale)
        length = float(logged.times_s[-1])
        if not options.estimate:
            return {}, remark_column(undrained(logged_queues(plan, logged), length, names))
        estimate = logged_estimate(plan, logged, groups)
        words = remarks(estimate, seen_of(as_logged).faster(point.rate_scale), names)
    else:
        assert case.factors is not None
        length, ending = time_of_reads(rate, case.factors, options.requests), "the replay"
        times = len(changes(case.factors, length)) - 1
        read = int(np.count_nonzero(rate))
        if times * read > MOST_RATES:
            return {}, remark_column([_too_many(read, times)])
        if not options.estimate:
            queues = varying_queues(plan, case.factors, length)
            return {}, remark_column(undrained(queues, length, names, ending))
        estimate = varying_estimate(plan, case.factors, length, groups)
        words = undrained(estimate.queues, length, names, ending)
    words += _left_out(groups, rate)
    return _latencies(estimate, groups, len(rate)), trace_columns(estimate, words)


def _too_many(files: int, times: int) -> str:
    """Why rates that vary have no estimate."""
    return (
        "No latencies are estimated under the rates as they vary, and queues that do not drain are not told: "
        f"{count_text(files, 'file')} and {count_text(times, 'time')} between changes are more than {MOST_RATES:,} "
        "rates."
    )


def _left_out(groups: Groups, rate: np.ndarray) -> list[str]:
    """That not all files have figures of their own, where that is so."""
    read, named = int(np.count_nonzero(rate > 0)), len(groups.files)
    if named == read:
        return []
    return [
        f"Of {count_text(read, 'file')} the {named:,} most read have estimates of their own (dataset latencies); all "
        "count in those of classes and of all reads."
    ]


def _logged(reads: LoggedReads) -> Logged:
    """Reads, and writes where they come as the log has them, in order of arrival."""
    if reads.writes is None:
        return Logged(reads.times, reads.files, tick_s=reads.tick_s)
    times, files = (
        np.concatenate(both)
        for both in ((reads.times, reads.writes.times), (reads.files, reads.writes.files))
    )
    order = np.argsort(times, kind="stable")
    return Logged(times[order], files[order], order >= len(reads.times), reads.tick_s)


def _latencies(estimate: TraceEstimate, groups: Groups, files: int) -> dict[str, Latencies]:
    """Without half widths: the interval of a mean is one of its logarithm, and has columns of its own in ``runs``."""
    first = 1 + groups.classes
    mean, quantiles = np.full(files, np.nan), np.full((files, estimate.quantiles.shape[1]), np.nan)
    mean[groups.files], quantiles[groups.files] = estimate.mean[first:], estimate.quantiles[first:]
    return {
        "all": Latencies(SOURCE, estimate.mean[:1], estimate.quantiles[:1]),
        "class": Latencies(SOURCE, estimate.mean[1:first], estimate.quantiles[1:first]),
        "file": Latencies(SOURCE, mean, quantiles),
    }
