"""Nodes that serve first come, first served, and requests whose nodes do not depend on the state: Lindley recursions.

With begin and finish of service, X the service time, t the arrival and F_j the time at which node j is free::

    begin = max(t, F_j),   finish = F_j = begin + X

Under strict partition every class has a server of its own at each node, slower by its weight there. A node with several
channels serves with whichever is free first.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, subset, tally
from ecjax.simulation.completion import connection, through_link
from ecjax.streams import streams

SAMPLED, ROUND_ROBIN = 0, 1  # how the nodes of a request are chosen


@njit(inline="always")
def soonest(free, node):
    """The server of a node that is free first."""
    first = 0
    for server in range(1, free.shape[1]):
        if free[node, server] < free[node, first]:
            first = server
    return first


@njit()
def replay_block(system, counts, times, files, first, seed, choice, slowness, free, turn):
    """Replay one block of requests.

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        choice: SAMPLED or ROUND_ROBIN.
        slowness: (m, Q) service times of queue class q are multiplied by this; Q = 1: one queue for all.
        free: (m, S) s, when each server is free: one per class, or, with Q = 1, one per channel, infinite where a node
            has fewer; carried from block to block.
        turn: (R,) int64, whose turn it is in each row, under ROUND_ROBIN; carried.
    """
    table, samples = system.laws.table, system.laws.samples
    connect, need, chunk_bytes, extra_s = system.connect, system.need, system.chunk_bytes, system.extra_s
    link_s, groups, queues, rows = system.link_s, system.group, system.queue, system.row
    starts, entry_node, entry_law = system.start, system.node, system.law
    units, entry_chunks = system.units, system.chunks
    sums, bins, batches, busy = counts.sums, counts.bins, counts.batches, counts.busy
    file_bins = counts.file_bins
    segments, began, paths, per_request = counts.segment, counts.began, counts.paths, counts.per_request[0]
    nodes, classes = connect.shape[1], counts.classes[0]
    widest = 1
    for row in range(starts.size - 1):
        widest = max(widest, starts[row + 1] - starts[row])
    order, selection, ready = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest)
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    dispatch_key = streams.key(seed, streams.DISPATCH)
    partitioned = slowness.shape[1] > 1
    for b in range(times.size):
        time, file, request = times[b], files[b], first + b
        row, group = rows[file], groups[file]
        begin, end = starts[row], starts[row + 1]
        count = need[file]
        if count == end - begin:
            for i in range(count):
                selection[i] = begin + i
        elif choice == ROUND_ROBIN:
            for i in range(count):
                selection[i] = begin + (turn[row] + i) % (end - begin)
            turn[row] = (turn[row] + count) % (end - begin)
        else:
            count = subset.draw(units, begin, end, order, selection, streams.stream(dispatch_key, request))
        batch = tally.batch_of(request, per_request)
        segment = segments[batch]
        if np.isnan(began[batch]):
            began[batch] = time
        queue = queues[file] if partitioned else 0
        size, link = chunk_bytes[file], link_s[file]
        last = 0.0
        for i in range(count):
            entry = selection[i]
            node = entry_node[entry]
            counter = request * nodes + node
            work = laws.service(
                table,
                samples,
                entry_law[entry],
                size,
                entry_chunks[entry],
                streams.stream(service_key, counter),
            )
            server = queue if partitioned else soonest(free, node)
            finish = max(time, free[node, server]) + work * slowness[node, queue]
            free[node, server] = finish
            busy[segment, node] += work
            if group >= 0:
                tally.count(sums, bins, batches, segment, batch, classes + node, finish - time)
            ready[i] = finish - time + connection(connect, node, streams.stream(connect_key, counter))
            last = max(last, ready[i])
        if link > 0.0:
            last = through_link(ready, count, count, link)
        last += extra_s[file]
        if paths.size:
            paths[request] = last
        if group >= 0:
            tally.count(sums, bins, batches, segment, batch, group, last)
            tally.count_file(sums, file_bins, segment, classes + nodes, file, last)
