"""Rows of bound and estimate for the groups that latencies are reported of."""

import numpy as np

from ecjax.replay.laws import Laws
from ecjax.studies import validation_latencies, validation_theory
from ecjax.studies.validation_halves import Halves
from ecjax.studies.validation_latencies import Statistics, listed
from ecjax.studies.validation_theory import Estimator


def theory(
    halves: Halves, laws: Laws, estimator: Estimator | None, notices: list[str]
) -> dict[str, Statistics]:
    """Statistics of "estimated" and "bound", as far as they can be had.

    Args:
        halves: the log.
        laws: entry j is that of reads at node j, entry m + j that of writes.
        estimator: predicts latencies; without it only nodes have estimates.
        notices: sentences are added.
    """
    span, nodes = halves.span_s[0], halves.nodes
    reads = halves.reads()
    if span <= 0 or not reads.file.size:
        why = "arrive at one time" if span <= 0 else "have no reads"
        notices.append(f"The requests of the first half {why}: there is no estimate and no bound.")
        return {}
    law, sizes = halves.law[: halves.cut], halves.accesses.bytes[: halves.cut]
    write = law >= nodes
    sums = [
        validation_theory.work_sums(laws, law[chosen], sizes[chosen], span, nodes)
        for chosen in (~write, write)
    ]
    of_class, of_file, of_node, count = halves.groups.first
    estimated = validation_latencies.unknown(count)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.stack([np.bincount(reads.node, reads.bytes**p, nodes) for p in range(4)], axis=1)
        delay = validation_theory.node_delays(laws, powers / powers[:, :1], sums[0] + sums[1])
    estimated.mean[of_node:] = np.diagonal(delay.mean)
    estimated.deviation[of_node:] = np.sqrt(np.diagonal(delay.variance))
    full = np.flatnonzero((sums[0] + sums[1])[0] >= 1)
    if full.size:
        names = halves.accesses.node_ids.to_pylist()
        notices.append(
            f"{full.size} nodes are loaded to 1 or more in the first half ({listed(names, full)}): their delays, and "
            "bounds of files on them, are infinite."
        )
    rows = validation_theory.dispatch(reads, span, nodes, halves.files)
    if rows is None:
        notices.append(
            "Some reads take several chunks from one node: there is no bound, and estimates of nodes only."
        )
        return {"estimated": estimated}
    place = np.full(halves.files + 1, -1)
    place[halves.reported] = of_file + np.arange(len(halves.reported))
    bound = validation_latencies.unknown(count)
    of_row = validation_theory.bounds(rows, laws, sums[0] + sums[1])
    for target, value in ((bound.mean, of_row),):
        for group in (np.zeros(len(value), int), of_class + rows.group, place[rows.file]):
            _weighted(target, group, rows.rates, value)
    if estimator is not None:
        own = estimator(rows, laws, sums[1], len(halves.groups.classes))
        _weighted(estimated.mean, place[rows.file], rows.rates, own.row_mean)
        alone = np.bincount(rows.file[rows.file >= 0], minlength=halves.files)[rows.file] == 1
        single = np.flatnonzero(alone & (rows.file >= 0))
        estimated.quantiles[place[rows.file[single]]] = own.row_quantiles[single]
        estimated.mean[of_class:of_file] = own.class_mean
        estimated.quantiles[of_class:of_file] = own.class_quantiles
        estimated.mean[0], estimated.quantiles[0] = own.mean, own.quantiles
    return {"estimated": estimated, "bound": bound}


def _weighted(target: np.ndarray, group: np.ndarray, weights: np.ndarray, values: np.ndarray) -> None:
    """Write the weighted mean of the values of each group (-1: none) to its place."""
    used = group >= 0
    total = np.bincount(group[used], weights[used], len(target))
    sums = np.bincount(group[used], (weights * values)[used], len(target))
    here = total > 0
    target[here] = sums[here] / total[here]
