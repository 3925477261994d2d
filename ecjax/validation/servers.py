"""Whether the nodes of a log are what a prediction takes them for: one server each, first come, first served."""

from dataclasses import dataclass

import numpy as np

from ecjax.tables.requests import Accesses
from ecjax.units import count_text
from ecjax.validation.halves import Halves
from ecjax.validation.latencies import listed, seconds
from ecjax.validation.replay import queue

_NOTABLE = 0.01  # share of services, or of the mean latency, that speaks against one server per node


@dataclass(frozen=True)
class Overlaps:
    """Services that begin before another one on the same node has ended.

    Attributes:
        share: (m,) of the services of each node; 0 for a node without any.
        most: (m,) int64, services at a time.
    """

    share: np.ndarray
    most: np.ndarray


def overlaps(accesses: Accesses, tolerance_s: float) -> Overlaps:
    """Overlapping services of a log that has their begin; accesses without times are left out.

    Args:
        accesses: with ``start`` and ``finish``.
        tolerance_s: s, overlaps that are not longer do not count: the step of the clock.
    """
    assert accesses.start is not None and accesses.finish is not None
    nodes = len(accesses.node_ids)
    share, most = np.zeros(nodes), np.zeros(nodes, np.int64)
    timed = np.flatnonzero(~np.isnan(accesses.start) & ~np.isnan(accesses.finish))
    order = timed[np.lexsort((accesses.start[timed], accesses.node[timed]))]
    counts = np.bincount(accesses.node[order], minlength=nodes)
    for node, places in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        if not places.size:
            continue
        start, finish = accesses.start[places], accesses.finish[places]
        busy_until = np.maximum.accumulate(finish)[:-1]
        share[node] = np.count_nonzero(start[1:] < busy_until - tolerance_s) / len(places)
        ended = np.searchsorted(np.sort(finish), start + tolerance_s, side="right")
        # a service shorter than the tolerance has ended before it began
        most[node] = max(1, int((np.arange(1, len(places) + 1) - ended).max()))
    return Overlaps(share, most)


def fcfs_finishes(accesses: Accesses) -> np.ndarray:
    """Finish times (a,) s that the log's own service times have in first-come first-served queues.

    Where the nodes are such, they are the log's own. An access with a finish alone counts as served since it came and
    those before it at its node had ended, by the log; one without a finish counts as no work.
    """
    assert accesses.start is not None and accesses.finish is not None
    finish = np.empty(len(accesses.node))
    work = accesses.finish - accesses.start
    unknown = np.isnan(accesses.start)
    if unknown.any():
        work[unknown] = np.maximum(accesses.finish - _free_in_log(accesses), 0.0)[unknown]
    work = np.nan_to_num(work)
    queue(accesses.arrival, accesses.node, work, np.full(len(accesses.node_ids), -np.inf), finish)
    return finish


def _free_in_log(accesses: Accesses) -> np.ndarray:
    """When each access (a,) has come and all before it at its node have ended, by the log, s."""
    assert accesses.finish is not None
    free = accesses.arrival.copy()
    counts = np.bincount(accesses.node, minlength=len(accesses.node_ids))
    for places in np.split(np.argsort(accesses.node, kind="stable"), np.cumsum(counts)[:-1]):
        # fmax passes over finishes that are missing
        ended = np.fmax.accumulate(np.append(-np.inf, accesses.finish[places]))
        free[places] = np.maximum(free[places], ended[: len(places)])
    return free


def check_nodes(halves: Halves, observed_mean: float, notices: list[str]) -> float | None:
    """Notices where the nodes are not such servers, as far as begin of service is in the log.

    Args:
        halves: the log.
        observed_mean: s, mean latency that was observed in the second half.
        notices: sentences are added.

    Returns:
        Largest difference, s, of the log's finish times from ``fcfs_finishes``; None without begin of service.
    """
    log, accesses = halves.log, halves.accesses
    if accesses.start is None or accesses.finish is None or np.isnan(accesses.start).all():
        return None
    names = accesses.node_ids.to_pylist()
    tolerance = max(log.clock_resolution_s, 1e-9 * float(log.arrival[-1]))
    overlapping = overlaps(accesses, tolerance)
    several = np.flatnonzero(overlapping.share > _NOTABLE)
    if several.size:
        several = several[np.argsort(-overlapping.share[several], kind="stable")]
        worst = several[0]
        notices.append(
            f"{count_text(several.size, 'node serves', 'nodes serve')} several accesses at a time "
            f"({listed(names, several)}; at {names[worst]} "
            f"{100 * overlapping.share[worst]:.0f} % of services begin before another has ended, up to "
            f"{overlapping.most[worst]} at a time): the prediction, one server per node, does not hold for them."
        )
    finish = fcfs_finishes(accesses)
    values, group = halves.by_group(finish[halves.late])
    mean = float(values[0][group[0] >= 0].mean())
    finished = ~np.isnan(accesses.finish)
    difference = float(np.abs(finish - accesses.finish)[finished].max())
    if observed_mean > 0 and abs(mean / observed_mean - 1) > _NOTABLE:
        notices.append(
            "The log's own service times in first-come first-served queues with one server give a mean latency "
            f"{100 * (mean / observed_mean - 1):+.1f} % off, and finish times up to {seconds(difference)} off: nodes "
            "serve otherwise, and the prediction inherits that."
        )
    return difference
