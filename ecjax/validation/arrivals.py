"""The second half of a log predicted from the first half's arrivals as they came, not from their mean rates."""

import numpy as np

from ecjax.predict.logged import Logged, bins_of, estimate_width
from ecjax.predict.read_samples import Groups
from ecjax.predict.trace_estimates import TraceEstimate, trace_estimate
from ecjax.queueing.workload import Workload
from ecjax.simulation import law_fit
from ecjax.simulation.laws import Laws
from ecjax.traffic.host_service import host_moments
from ecjax.traffic.node_work import Arrivals, Placed
from ecjax.validation.halves import Halves
from ecjax.validation.latencies import Statistics, unknown
from ecjax.validation.theory import Dispatch


def arrivals_estimate(halves: Halves, laws: Laws, rows: Dispatch, load: Workload) -> TraceEstimate:
    """Latencies under the arrivals of the first half.

    Args:
        halves: the log.
        laws: entry j is that of reads at node j, entry m + j that of writes.
        rows: reads of the first half.
        load: their chunk sizes and services.
    """
    nodes, count = halves.nodes, len(rows.rates)
    log, early = halves.log, slice(0, halves.half)
    read = ~log.write[early]
    size = np.asarray(load.chunk_bytes)
    # what is written at a node is a file of its own there, as many chunks as make its work in reads
    chunk = np.asarray(halves.accesses.node[: halves.cut])
    written = log.write[halves.request[: halves.cut]]
    amount, bytes_of = _written(laws, chunk[written], halves.accesses.bytes[: halves.cut][written], nodes)
    times = np.concatenate([log.arrival[early][read], halves.accesses.arrival[: halves.cut][written]])
    row = np.concatenate([rows.of_read, count + chunk[written]])
    times = log.on_ticks(times)
    order = np.argsort(times, kind="stable")
    write = (row >= count)[order]
    placed = Placed(
        np.concatenate([rows.probabilities, np.zeros((nodes, nodes))]),
        np.concatenate([size, bytes_of]),
        load.service,
        np.concatenate([np.zeros((count, nodes)), np.eye(nodes)]),
        np.zeros((3, nodes)),
    )
    service = host_moments(load.service, size)[0]
    chunks = rows.rates[:, None] * rows.probabilities
    width = estimate_width(halves.span_s[0], float(np.sum(chunks * service) / np.sum(chunks)), log.tick_s)
    logged = Logged(times[order], row[order], write, log.tick_s)
    reads, writes = bins_of(logged, count + nodes, nodes, width)
    scaled = writes._replace(reads=writes.reads * np.concatenate([np.ones(count), amount])[writes.file])
    groups = Groups(np.append(rows.group, np.zeros(nodes, int)), int(rows.group.max()) + 1, np.arange(count))
    arrivals = Arrivals(reads, scaled if len(scaled.reads) else None)
    return trace_estimate(arrivals, placed, load, groups, services_of_log=True)


def _written(laws: Laws, node: np.ndarray, size: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads of mean written chunks that a write at each node is as much work as, (m,), and those chunks, B, (m,)."""
    total = np.bincount(node, minlength=nodes)
    mean = np.bincount(node, size, nodes) / np.maximum(total, 1)
    mean = np.where(total > 0, mean, 1.0)
    first = law_fit.polynomials(laws, len(laws.table))[0]  # (4, l)
    powers = mean ** np.arange(4)[:, None]
    read, written = (
        np.sum(first[:, part] * powers, axis=0) for part in (slice(0, nodes), slice(nodes, None))
    )
    return (written / read if len(laws.table) > nodes else np.ones(nodes)), mean


def arrivals_statistics(
    estimate: TraceEstimate, halves: Halves, rows: Dispatch, single: np.ndarray
) -> Statistics:
    """The estimate of every group that latencies are reported of; its interval is not one of half widths.

    Args:
        estimate: of all reads, classes and rows.
        halves: the log.
        rows: of the dispatch.
        single: rows that are all the reads of a file.
    """
    of_class, of_file, _, count = halves.groups.first
    result = unknown(count)
    classes = int(rows.group.max()) + 1
    place = np.full(halves.files, -1)
    place[halves.reported] = of_file + np.arange(len(halves.reported))
    to = np.concatenate([[0], of_class + np.arange(classes), place[rows.file[single]]])
    source = np.concatenate([[0], 1 + np.arange(classes), 1 + classes + single])
    result.mean[to], result.quantiles[to] = estimate.mean[source], estimate.quantiles[source]
    return result
