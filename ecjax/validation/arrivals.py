"""The second half of a log predicted from the first half's arrivals as they came, not from their mean rates."""

import numpy as np

from ecjax.predict.logged import Logged, bins_of, estimate_width
from ecjax.predict.read_samples import Groups
from ecjax.predict.trace_estimates import TraceEstimate, trace_estimate
from ecjax.predict.workload import node_laws
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import Laws
from ecjax.traffic.host_service import host_moments
from ecjax.traffic.node_work import Arrivals, Placed
from ecjax.validation.halves import Halves
from ecjax.validation.latencies import Statistics, unknown
from ecjax.validation.relations import size_classes
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
    log, early, cut = halves.log, slice(0, halves.half), slice(0, halves.cut)
    read, written = ~log.write[early], log.write[halves.request[cut]]
    size = np.asarray(load.chunk_bytes)
    node, bytes_of, row_of = _written_rows(
        halves.accesses.node[cut][written], halves.accesses.bytes[cut][written]
    )
    more = len(node)
    times = np.concatenate([log.arrival[early][read], halves.accesses.arrival[cut][written]])
    row = np.concatenate([rows.of_read, count + row_of])
    times = log.on_ticks(times)
    order = np.argsort(times, kind="stable")
    write = (row >= count)[order]
    placed = Placed(
        np.concatenate([rows.probabilities, np.zeros((more, nodes))]),
        np.append(size, np.full(more, size[0])),  # of what is only written, no reads
        load.service,
        np.concatenate([np.zeros((count, nodes)), np.eye(nodes)[node]]),
        np.zeros((3, nodes)),
        np.append(size, bytes_of),
        node_laws(Laws(laws.table[nodes:], laws.samples), nodes) if more else None,
    )
    service = host_moments(load.service, size)[0]
    chunks = rows.rates[:, None] * rows.probabilities
    width = estimate_width(halves.span_s[0], float(np.sum(chunks * service) / np.sum(chunks)), log.tick_s)
    logged = Logged(times[order], row[order], write, log.tick_s)
    reads, writes = bins_of(logged, count + more, nodes, width)
    of_class = np.append(rows.group, np.zeros(more, int))
    groups = Groups(of_class, int(rows.group.max()) + 1, np.arange(count))
    arrivals = Arrivals(reads, writes if more else None)
    return trace_estimate(arrivals, placed, load, groups, services_of_log=True)


def _written_rows(node: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is written as files of one chunk, W of them: one for every node and class of sizes.

    Args:
        node: of each chunk, (a,).
        size: B, (a,).

    Returns:
        Node and mean size, B, of each file, (W,), and the file of every chunk, (a,).
    """
    of_size = size_classes(size)
    classes = int(of_size.max(initial=0)) + 1
    _, first, row, chunks = np.unique(
        node * classes + of_size, return_index=True, return_inverse=True, return_counts=True
    )
    return node[first], np.bincount(row, size, len(first)) / chunks, row


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
