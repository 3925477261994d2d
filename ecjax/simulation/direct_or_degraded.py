"""Small reads that choose, when they arrive, between the nodes of their chunks and k that they decode from; one queue.

A node is expected to deliver after the work that waits there (Lindley's recursion knows it) and the mean of its own
connection and service. An answer of several nodes is complete with the last of k: of the k nodes that are expected
first, or of the k that keep the chunks, the last, and sqrt((k - 1) V) more, V the mean variance of their services
(Lemma 2 of the JLCM paper for alike nodes). The sooner answer is taken. Full reads use the nodes that their
probabilities draw.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, subset, tally
from ecjax.simulation.completion import connection, through_link
from ecjax.streams import streams


@njit()
def _complete(expected, places, count, entry_node, begin, size, moments):
    """When the last of ``count`` chunks is expected: s, of the entries of a row at ``places``."""
    last, spread = 0.0, 0.0
    for i in range(count):
        node = entry_node[begin + places[i]]
        one = ((moments[0, 3, node] * size + moments[0, 2, node]) * size + moments[0, 1, node]) * size
        two = ((moments[1, 3, node] * size + moments[1, 2, node]) * size + moments[1, 1, node]) * size
        one, two = one + moments[0, 0, node], two + moments[1, 0, node]
        spread += max(two - one * one, 0.0)
        last = max(last, expected[places[i]])
    return last + np.sqrt((count - 1) * spread / count)


@njit()
def replay_block(system, counts, times, files, first, seed, moments, free):
    """Replay one block of requests.

    The row of a request with ``system.either`` begins with the nodes of so many chunks, those that a degraded read
    chooses among follow; its ``need`` is that of a degraded read, and it counts as of class ``group`` where it was
    direct, ``group + 1`` where it was degraded.

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        moments: (2, 4, m) first two raw moments of services as polynomials in the chunk size.
        free: (m,) s, when each node is free; carried from block to block.
    """
    table, samples = system.laws.table, system.laws.samples
    connect, need, chunk_bytes, extra_s = system.connect, system.need, system.chunk_bytes, system.extra_s
    link_s, groups, rows, either = system.link_s, system.group, system.row, system.either
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
    expected = np.empty(widest)
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    dispatch_key = streams.key(seed, streams.DISPATCH)
    for b in range(times.size):
        time, file, request = times[b], files[b], first + b
        row, group, size = rows[file], groups[file], chunk_bytes[file]
        begin, end = starts[row], starts[row + 1]
        count, width = need[file], either[file]
        decoded = True
        if width:
            for i in range(end - begin):
                node = entry_node[begin + i]
                mean = (
                    (moments[0, 3, node] * size + moments[0, 2, node]) * size + moments[0, 1, node]
                ) * size
                shape, scale = connect[0, node], connect[1, node]
                expected[i] = max(0.0, free[node] - time) + mean + moments[0, 0, node]
                expected[i] += shape * scale if shape > 0 else scale
            decoded = False
            if count <= end - begin - width:
                # equal answers in random order, so that no node is the first of many
                subset.shuffle(order, end - begin - width, streams.stream(dispatch_key, request))
                for i in range(count):
                    selection[i] = -1
                for i in range(end - begin - width):
                    value = width + order[i]
                    for place in range(count):
                        if selection[place] < 0:
                            selection[place] = value
                            break
                        if expected[value] < expected[selection[place]]:
                            selection[place], value = value, selection[place]
                later = _complete(expected, selection, count, entry_node, begin, size, moments)
                for i in range(width):
                    order[i] = i
                decoded = later < _complete(expected, order, width, entry_node, begin, size, moments)
            if decoded:
                group += 1
            else:
                count = width
                for i in range(count):
                    selection[i] = i
            for i in range(count):
                selection[i] += begin
        elif count == end - begin:
            for i in range(count):
                selection[i] = begin + i
        else:
            count = subset.draw(units, begin, end, order, selection, streams.stream(dispatch_key, request))
        batch = tally.batch_of(request, per_request)
        segment = segments[batch]
        if np.isnan(began[batch]):
            began[batch] = time
        link = link_s[file]
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
            free[node] = max(time, free[node]) + work
            busy[segment, node] += work
            waited = free[node] - time
            if group >= 0:
                tally.count(sums, bins, batches, segment, batch, classes + node, waited)
            ready[i] = waited + connection(connect, node, streams.stream(connect_key, counter))
            last = max(last, ready[i])
        if link > 0.0:
            last = through_link(ready, count, count, link)
        if decoded:
            last += extra_s[file]
        if paths.size:
            paths[request] = last
        if group >= 0:
            tally.count(sums, bins, batches, segment, batch, group, last)
            tally.count_file(sums, file_bins, segment, classes + nodes, file, last)
