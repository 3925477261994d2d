"""Dispatch to the nodes with the fewest accesses, first come, first served: the shortest queues, or of d probed.

The queue of a node is what waits or is in service there when the request arrives; an access that ends at that very
time is gone. Under Lindley's recursion (see ``fcfs``) the finish times of a node are known when a request arrives, so
its queue is a ring of the finish times to come, kept in order where several channels serve.
"""

from dataclasses import dataclass

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, subset, tally
from ecjax.simulation.completion import connection, through_link
from ecjax.simulation.fcfs import soonest
from ecjax.simulation.system import System
from ecjax.streams import streams

_PLACE_BITS = 20  # of a key (queue length, place in the random order); a row has fewer nodes than 2^20
_PLACES = (1 << _PLACE_BITS) - 1
_MOST = np.iinfo(np.int64).max


@dataclass
class Rings:
    """Finish times of the accesses at every node, carried from block to block; grow with the longest queue."""

    finishes: (
        np.ndarray
    )  # (m, capacity) s, access a of node j at [j, a % capacity], inf after the last; a power of two
    first: np.ndarray  # (m,) int64, number of the first access that may still be there
    end: np.ndarray  # (m,) int64, accesses so far
    free: np.ndarray  # (m, S) s, when each channel is free; infinite where a node has fewer

    @classmethod
    def empty(cls, free: np.ndarray) -> "Rings":
        """Idle nodes, with the channels of ``free``."""
        nodes = len(free)
        return cls(
            np.full((nodes, 64), np.inf), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), free.copy()
        )

    def grow(self) -> None:
        """Double the capacity."""
        nodes, capacity = self.finishes.shape
        numbers = self.first[:, None] + np.arange(capacity)
        rows = np.arange(nodes)[:, None]
        grown = np.full((nodes, 2 * capacity), np.inf)
        grown[rows, numbers % (2 * capacity)] = self.finishes[rows, numbers % capacity]
        self.finishes = grown


def replay_block(
    system: System,
    counts: tally.Tally,
    times: np.ndarray,
    files: np.ndarray,
    first: int,
    seed: int,
    probes: int,
    rings: Rings,
) -> None:
    """Replay one block of requests, each at the least loaded of the nodes that it probes.

    A request that needs k of the n nodes of its row looks at the first min(n, probes k) of them in a random order
    (``subset.shuffle`` of its DISPATCH stream) and takes the k that have the fewest accesses, in that order where
    they have as many.

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        probes: nodes probed per node needed, >= 1; ``system.widest`` probes all (join the shortest queues).
        rings: carried from block to block.
    """
    count = 0
    while True:
        count += _replay(
            system, counts, times[count:], files[count:], first + count, seed, probes,
            rings.finishes, rings.first, rings.end, rings.free,
        )  # fmt: skip
        if count == times.size:
            return
        rings.grow()


@njit()
def _replay(system, counts, times, files, first, seed, probes, finishes, head, tail, free):
    """Requests replayed until a ring is full or the block ends."""
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
    order, selection, ready = np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest)
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    dispatch_key = streams.key(seed, streams.DISPATCH)
    capacity = finishes.shape[1]
    wrap = capacity - 1
    for b in range(times.size):
        time, file, request = times[b], files[b], first + b
        row, group = rows[file], groups[file]
        begin, end = starts[row], starts[row + 1]
        count = need[file]
        full = False
        for entry in range(begin, end):
            node = entry_node[entry]
            oldest = head[node]
            oldest += (
                finishes[node, oldest & wrap] <= time
            )  # without a branch: none or one is the common case
            while finishes[node, oldest & wrap] <= time:
                oldest += 1
            head[node] = oldest
            full |= tail[node] - oldest == wrap
        if full:
            return b
        if count == end - begin:
            for i in range(count):
                selection[i] = begin + i
        else:
            subset.shuffle(order, end - begin, streams.stream(dispatch_key, request))
            probed = min(end - begin, probes * count)
            for i in range(count):
                selection[i] = _MOST
            for i in range(
                probed
            ):  # into the sorted least so far, without branches: they would be mispredicted
                node = entry_node[begin + order[i]]
                value = ((tail[node] - head[node]) << _PLACE_BITS) | i
                for place in range(count):
                    least = min(selection[place], value)
                    value = max(selection[place], value)
                    selection[place] = least
            for i in range(count):
                selection[i] = begin + order[selection[i] & _PLACES]
        batch = tally.batch_of(request, per_request)
        segment = segments[batch]
        if np.isnan(began[batch]):
            began[batch] = time
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
            server = soonest(free, node)
            finish = max(time, free[node, server]) + work
            free[node, server] = finish
            place = tail[node]
            while place > head[node] and finishes[node, (place - 1) & wrap] > finish:
                finishes[node, place & wrap] = finishes[node, (place - 1) & wrap]
                place -= 1
            finishes[node, place & wrap] = finish
            tail[node] += 1
            finishes[node, tail[node] & wrap] = np.inf
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
    return times.size
