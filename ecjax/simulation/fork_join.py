"""Fork and join, first come, first served: all nodes of the row get an access, the first ``need`` complete it.

Requests meet in the order of their arrival at every node, so that the recursion over requests is exact, with
cancellation too. With t the arrival, F_j the time at which node j is free and X_j the service times::

    begin_j = max(t, F_j),   finish_j = begin_j + X_j
    tau = when ``need`` chunks are at the client (and through its link)
    F_j = finish_j   where finish_j <= tau, or nothing is cancelled
          tau        where begin_j < tau < finish_j: cancelled in service
          as before  where begin_j >= tau: cancelled in the queue

(The (n, k) fork-join system of Joshi, Liu and Soljanin, "On the delay-storage trade-off in content download from coded
distributed storage systems", IEEE JSAC 2014.)
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, tally
from ecjax.simulation.completion import connection, smallest, through_link
from ecjax.simulation.fcfs import soonest
from ecjax.streams import streams


@njit()
def replay_block(system, counts, times, files, first, seed, cancel, free):
    """Replay one block of requests.

    A cancelled access counts with the service that it had until then; its sojourn is not counted.

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        cancel: bool, whether a request that is complete leaves all nodes at once.
        free: (m, S) s, when each channel is free, infinite where a node has fewer; carried from block to block.
    """
    table, samples = system.laws.table, system.laws.samples
    connect, need, chunk_bytes, extra_s = system.connect, system.need, system.chunk_bytes, system.extra_s
    link_s, groups, rows, starts = system.link_s, system.group, system.row, system.start
    entry_node, entry_law, entry_chunks = system.node, system.law, system.chunks
    sums, bins, batches, busy = counts.sums, counts.bins, counts.batches, counts.busy
    file_bins = counts.file_bins
    segments, began, paths, per_request = counts.segment, counts.began, counts.paths, counts.per_request[0]
    nodes, classes = connect.shape[1], counts.classes[0]
    widest = 1
    for row in range(starts.size - 1):
        widest = max(widest, starts[row + 1] - starts[row])
    begins, ends, ready = np.empty(widest), np.empty(widest), np.empty(widest)
    servers = np.empty(widest, np.int64)
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    for b in range(times.size):
        time, file, request = times[b], files[b], first + b
        row, group = rows[file], groups[file]
        begin = starts[row]
        count = starts[row + 1] - begin
        size, link = chunk_bytes[file], link_s[file]
        for i in range(count):
            entry = begin + i
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
            servers[i] = soonest(free, node)
            begins[i] = max(time, free[node, servers[i]])
            ends[i] = begins[i] + work
            ready[i] = ends[i] + connection(connect, node, streams.stream(connect_key, counter))
        if link > 0.0:
            completion = through_link(ready, count, need[file], link)
        else:
            completion = smallest(ready, count, need[file])
        leave = completion if cancel else np.inf
        batch = tally.batch_of(request, per_request)
        segment = segments[batch]
        if np.isnan(began[batch]):
            began[batch] = time
        for i in range(count):
            node = entry_node[begin + i]
            if begins[i] < leave or ends[i] <= leave:
                until = min(ends[i], leave)
                busy[segment, node] += until - begins[i]
                free[node, servers[i]] = until
                if group >= 0 and ends[i] <= leave:
                    tally.count(sums, bins, batches, segment, batch, classes + node, ends[i] - time)
        last = completion - time + extra_s[file]
        if paths.size:
            paths[request] = last
        if group >= 0:
            tally.count(sums, bins, batches, segment, batch, group, last)
            tally.count_file(sums, file_bins, segment, classes + nodes, file, last)
