"""Rows of bound and estimate for the groups that latencies are reported of."""

from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError
from ecjax.predict.trace_estimates import TraceEstimate
from ecjax.simulation.laws import Laws
from ecjax.units import count_text
from ecjax.validation import theory
from ecjax.validation.arrivals import arrivals_estimate, arrivals_statistics
from ecjax.validation.halves import Halves
from ecjax.validation.latencies import Statistics, listed, unknown


class Predictions(NamedTuple):
    """What the first half says of the second, as far as it can be had."""

    statistics: dict[str, Statistics]  # estimated and bound, of mean rates; trace_estimated, of the arrivals
    trace: TraceEstimate | None  # of the arrivals as they came


def predictions(halves: Halves, laws: Laws, notices: list[str]) -> Predictions:
    """Estimates and bound.

    Args:
        halves: the log.
        laws: entry j is that of reads at node j, entry m + j that of writes.
        notices: sentences are added.
    """
    span, nodes = halves.span_s[0], halves.nodes
    reads = halves.reads()
    if span <= 0 or not reads.file.size:
        why = "arrive at one time" if span <= 0 else "have no reads"
        notices.append(f"The requests of the first half {why}: there is no estimate and no bound.")
        return Predictions({}, None)
    law, sizes = halves.law[: halves.cut], halves.accesses.bytes[: halves.cut]
    write = law >= nodes
    sums = [theory.work_sums(laws, law[mask], sizes[mask], span, nodes) for mask in (~write, write)]
    of_class, of_file, of_node, count = halves.groups.first
    estimated = unknown(count)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.stack([np.bincount(reads.node, reads.bytes**p, nodes) for p in range(4)], axis=1)
        delay = theory.node_delays(laws, powers / powers[:, :1], sums[0] + sums[1])
    estimated.mean[of_node:] = np.diagonal(delay.mean)
    estimated.deviation[of_node:] = np.sqrt(np.diagonal(delay.variance))
    full = np.flatnonzero((sums[0] + sums[1])[0] >= 1)
    if full.size:
        names = halves.accesses.node_ids.to_pylist()
        notices.append(
            f"{count_text(full.size, 'node is', 'nodes are')} loaded to 1 or more in the first half "
            f"({listed(names, full)}): delays there, and "
            "bounds of files on them, are infinite, and there is no estimate under its arrivals."
        )
    rows = theory.dispatch(reads, span, nodes, halves.files)
    if rows is None:
        notices.append(
            "Some reads take several chunks from one node: there is no bound, and estimates of nodes only."
        )
        return Predictions({"estimated": estimated}, None)
    place = np.full(halves.files + 1, -1)  # the last: of rows that are no file's
    place[halves.reported] = of_file + np.arange(len(halves.reported))
    row_place = place[rows.file]
    bound = unknown(count)
    of_row = theory.bounds(rows, laws, sums[0] + sums[1])
    for group in (np.zeros(len(of_row), int), of_class + rows.group, row_place):
        _weighted(bound.mean, group, rows.rates, of_row)
    try:
        load = theory.workload(rows, laws, sums[1])
        estimate, promised = theory.estimates(rows, load, of_file - of_class)
    except UserError as error:
        notices.append(f"There is no estimate but of nodes: {error}.")
        return Predictions({"estimated": estimated, "bound": bound}, None)
    _weighted(estimated.mean, row_place, rows.rates, np.asarray(estimate.file_mean))
    estimated.mean[of_class:of_file], estimated.mean[0] = estimate.group_mean, estimate.mean
    # quantiles of a file whose reads differ in number or size of chunks are not known
    single = np.flatnonzero((row_place >= 0) & (np.bincount(row_place + 1)[row_place + 1] == 1))
    for target, source in ((estimated, estimate), (bound, promised)):
        target.quantiles[row_place[single]] = np.asarray(source.file_quantiles)[single]
        target.quantiles[of_class:of_file] = source.group_quantiles
        target.quantiles[0] = source.quantiles
    result = {"estimated": estimated, "bound": bound}
    if full.size:
        return Predictions(result, None)
    trace = arrivals_estimate(halves, laws, rows, load)
    result["trace_estimated"] = arrivals_statistics(trace, halves, rows, single)
    return Predictions(result, trace)


def _weighted(target: np.ndarray, group: np.ndarray, weights: np.ndarray, values: np.ndarray) -> None:
    """Write the weighted mean of the values of each group (-1: none) to its place."""
    used = group >= 0
    total = np.bincount(group[used], weights[used], len(target))
    sums = np.bincount(group[used], (weights * values)[used], len(target))
    read = total > 0
    target[read] = sums[read] / total[read]
