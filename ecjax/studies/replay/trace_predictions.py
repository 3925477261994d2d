"""Latencies under the arrivals that are replayed, without a replay: those of a log, or rates that vary."""

from typing import Any

import numpy as np

from ecjax.predict.latencies import Latencies
from ecjax.predict.log_remarks import remarks, seen_of
from ecjax.predict.logged import (
    Logged,
    logged_estimate,
    most_read,
    time_of_reads,
    varying_estimate,
)
from ecjax.predict.read_samples import Groups
from ecjax.predict.trace_estimates import TraceEstimate
from ecjax.studies.replay.inputs import Case
from ecjax.studies.replay.logged_reads import LoggedReads
from ecjax.studies.replay.operating_point import OperatingPoint, Point
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.predictions import PREDICTABLE
from ecjax.studies.spine.trace_columns import trace_columns

SOURCE = "trace_estimated"


def trace_predictions(
    case: Case, at: OperatingPoint, point: Point, options: ReplayOptions
) -> tuple[dict[str, Latencies], dict[str, Any]]:
    """Latencies by kind of group, and columns of ``runs``; empty where rates are constant, or queues by class.

    Args:
        case: the arrivals.
        at: plan, laws and rates.
        point: for the scaling of the log's times.
        options: of the study.
    """
    varies = case.factors is not None and options.arrivals == "poisson"
    if not options.estimate or at.plan.per_node > 1 or not (varies or case.reads is not None):
        return {}, {}
    if at.policy not in PREDICTABLE or at.queue.name != "fcfs":
        return {}, {}
    plan = (at.problem, at.laws, at.probabilities, at.plan.stored)
    rate, classes = np.asarray(at.problem.files.rate), at.plan.classes
    groups = Groups(classes.of_file, len(classes.names), most_read(rate))
    words = []
    if case.reads is not None:
        logged = _logged(case.reads).faster(point.rate_scale)
        estimate = logged_estimate(*plan, logged, groups)
        words = remarks(estimate, seen_of(logged), at.plan.names.nodes.to_pylist())
    else:
        assert case.factors is not None
        length = time_of_reads(rate, case.factors, options.requests)
        estimate = varying_estimate(*plan, case.factors, length, groups)
    return _latencies(estimate, groups, len(rate)), trace_columns(estimate, words)


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
    first = 1 + groups.classes
    mean, quantiles = np.full(files, np.nan), np.full((files, estimate.quantiles.shape[1]), np.nan)
    mean[groups.files], quantiles[groups.files] = estimate.mean[first:], estimate.quantiles[first:]
    low, high = estimate.interval(0)
    half = np.array([(high - low) / 2])
    return {
        "all": Latencies(SOURCE, estimate.mean[:1], estimate.quantiles[:1], half_width=half),
        "class": Latencies(SOURCE, estimate.mean[1:first], estimate.quantiles[1:first]),
        "file": Latencies(SOURCE, mean, quantiles),
    }
