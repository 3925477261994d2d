"""Requests whose accesses are known, from a trace: nodes, perhaps service times. First come, first served.

A request is complete when all its accesses are. Accesses of one request to the same node are served one after the
other, in the order given. Service times that were not recorded are drawn: the first access of a request to a node draws
what it would draw under any dispatch policy, repeat number x what chunk number x served together would (``laws``).
"""

import numba
import numpy as np

from ecjax.replay import laws, streams, tally
from ecjax.replay.completion import connection, through_link


@numba.njit(cache=True, nogil=True)
def replay_block(system, counts, times, files, first, seed, start, node, size, work, free, finishes):
    """Replay one block of requests; accesses of request b of the block are start[b], ..., start[b + 1] - 1.

    Placement rows of the system are not used; the service law of node j is entry j of its laws.

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        start: (b + 1,) int64, where the accesses of each request begin; every request has one at least.
        node: (a,) int64, node of each access.
        size: (a,) B, bytes of each access.
        work: (a,) s, service time of each access; nan: drawn. (0,): all are drawn.
        free: (m,) s, when each node is free; carried from block to block.
        finishes: (a,) s, filled with the end of service of each access.
    """
    table, samples = system.laws.table, system.laws.samples
    connect, extra_s, link_s, groups = system.connect, system.extra_s, system.link_s, system.group
    sums, bins, batches, busy = counts.sums, counts.bins, counts.batches, counts.busy
    file_bins = counts.file_bins
    segments, began, paths, per_request = counts.segment, counts.began, counts.paths, counts.per_request[0]
    nodes, classes = connect.shape[1], counts.classes[0]
    ready = np.empty(np.max(np.diff(start)) if times.size else 0)
    latest, repeats = np.full(nodes, -1), np.zeros(nodes, np.int64)  # last request at each node, its accesses
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    for b in range(times.size):
        time, file, request = times[b], files[b], first + b
        group, link = groups[file], link_s[file]
        begin = start[b]
        count = start[b + 1] - begin
        batch = tally.batch_of(request, per_request)
        segment = segments[batch]
        if np.isnan(began[batch]):
            began[batch] = time
        last = 0.0
        for i in range(count):
            access = begin + i
            own = node[access]
            counter = request * nodes + own
            service_state = streams.stream(service_key, counter)
            connect_state = streams.stream(connect_key, counter)
            if latest[own] == request:
                repeats[own] += 1
                service_state = streams.stream(streams.mixed(service_state), repeats[own])
                connect_state = streams.stream(streams.mixed(connect_state), repeats[own])
            else:
                latest[own], repeats[own] = request, 0
            taken = work[access] if work.size else np.nan
            if np.isnan(taken):
                taken = laws.service(table, samples, own, size[access], 1, service_state)
            finish = max(time, free[own]) + taken
            free[own] = finishes[access] = finish
            busy[segment, own] += taken
            if group >= 0:
                tally.count(sums, bins, batches, segment, batch, classes + own, finish - time)
            ready[i] = finish - time + connection(connect, own, connect_state)
            last = max(last, ready[i])
        if link > 0.0:
            last = through_link(ready, count, count, link)
        last += extra_s[file]
        if paths.size:
            paths[request] = last
        if group >= 0:
            tally.count(sums, bins, batches, segment, batch, group, last)
            tally.count_file(sums, file_bins, segment, classes + nodes, file, last)
