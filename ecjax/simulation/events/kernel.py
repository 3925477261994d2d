"""The loop over events: services end, requests complete, nodes change, extra accesses are sent, requests arrive."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, subset, tally
from ecjax.simulation.completion import connection, smallest, through_link
from ecjax.simulation.events.dispatch import least_loaded, to_up_nodes
from ecjax.simulation.events.outages import give_back, lose, move
from ecjax.simulation.events.queues import advance, insert, remove
from ecjax.simulation.events.settings import (
    FORK_JOIN,
    HEDGED,
    LATE_BINDING,
    LEAST_LOADED,
    PARTITIONED,
    POWER_OF_D,
    ROUND_ROBIN,
    SHARED,
)
from ecjax.simulation.events.soonest import due_pop, due_set, set_time, soonest_leaf
from ecjax.simulation.events.state import (
    CHANGE,
    DONE,
    DOWN,
    DUE,
    FREE,
    HEDGE,
    HEDGES,
    NEEDED,
    NONE,
    SERVING,
    STATUS,
    WAITING,
)
from ecjax.streams import streams

# of events at the same time the first comes first; an access of a node that went down is moved before anything else
_FINISH, _COMPLETE, _CHANGE, _HEDGE, _ARRIVAL, _MOVE = range(6)


@njit(inner=True)
def _completion(ready, first, count, need, link, room):
    """When ``need`` of the chunks ready[first:first + count] are at the client and through its link."""
    for i in range(count):
        room[i] = ready[first + i]
    if link > 0.0:
        return through_link(room, count, need, link)
    return smallest(room, count, need)


@njit(inner=True)
def _service(table, samples, law, chunk_bytes, chunks, state):
    """As ``laws.service``, out of line."""
    return laws.service(table, samples, law, chunk_bytes, chunks, state)


@njit()
def run(system, counts, times, files, first, seed, settings, state, until):
    """Run a block of requests, and then on until a time; returns how many arrived (all, or no slot was free).

    Args:
        system: System.
        counts: Tally.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.
        seed: of the replay.
        settings: Settings.
        state: State.
        until: s; events after the last arrival happen until then.
    """
    table, samples, connect, needs = system.laws.table, system.laws.samples, system.connect, system.need
    chunk_bytes, extra_s, link_s, groups = system.chunk_bytes, system.extra_s, system.link_s, system.group
    classes_of, rows, row_start, entry_node = system.queue, system.row, system.start, system.node
    entry_law, units, entry_chunks = system.law, system.units, system.chunks
    sums, bins, batches, file_bins = counts.sums, counts.bins, counts.batches, counts.file_bins
    busy, segments, began, paths = counts.busy, counts.segment, counts.began, counts.paths
    per_request, policy, speeds = counts.per_request[0], settings.policy, settings.speeds
    probes, cancel, hedge_delay, hedges = (
        settings.probes, settings.cancel, settings.hedge_delay, settings.hedges
    )  # fmt: skip
    change_s, change_node, change_up = settings.change_s, settings.change_node, settings.change_up
    counters, shift, free, number, slot_file = (
        state.counters, state.shift, state.free, state.number, state.file
    )  # fmt: skip
    arrived, opened, begun, finished, complete = (
        state.arrival, state.opened, state.begun, state.finished, state.complete
    )  # fmt: skip
    after, before, status, ready = state.after, state.before, state.status, state.ready
    heap, heap_place, timer_after = state.heap, state.heap_place, state.timer_after
    timer_before, turn, down, load = state.timer_before, state.turn, state.down, state.load
    serving, works, tags, tree = state.serving, state.work, state.tag, state.tree
    clock, update_s, active = state.clock, state.update_s, state.active
    nodes, reported = down.size, counts.classes[0]
    queues, lanes = speeds.shape[1], serving.size // nodes
    base = nodes * queues
    late, hedged, shared = policy == LATE_BINDING, policy == HEDGED, settings.queue == SHARED
    apart = shared or settings.queue == PARTITIONED
    watched, delayed = hedged or policy == FORK_JOIN, ready.size > 0
    service_key = streams.key(seed, streams.SERVICE)
    connect_key = streams.key(seed, streams.CONNECT)
    dispatch_key = streams.key(seed, streams.DISPATCH)
    width = 1 << shift
    order, selection, room = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width)
    start_node, start_lane = np.empty(width + lanes + 1, np.int64), np.zeros(width + lanes + 1, np.int64)
    lost, moved, loser = np.empty(0, np.int64), 0, np.int64(0)  # a literal 0 would be a type of its own
    now, slot, b = -np.inf, 0, 0
    while True:
        # the next event
        if moved < lost.size:
            kind = _MOVE
        else:
            kind, now = _FINISH, tree[1]
            if counters[DUE] > 0 and complete[heap[0]] < now:
                kind, now = _COMPLETE, complete[heap[0]]
            if counters[CHANGE] < change_s.size and change_s[counters[CHANGE]] < now:
                kind, now = _CHANGE, change_s[counters[CHANGE]]
            if hedged and timer_after[0] != 0 and arrived[timer_after[0] - 1] + hedge_delay < now:
                kind, now = _HEDGE, arrived[timer_after[0] - 1] + hedge_delay
            if b < times.size:
                if times[b] < now:
                    kind, now = _ARRIVAL, times[b]
            elif now > until:
                return b
        starts = 0  # nodes (and classes) that may have something to begin
        sends = 0  # accesses to send to the entries ``chosen``
        closing = False  # the request in ``slot`` is complete now
        leaving = False  # it has no accesses left, and leaves the system
        flag = 0  # of their status

        if kind == _FINISH:
            node = soonest_leaf(tree)
            lane = 0
            for other in range(1, lanes):
                if tags[node * lanes + other] < tags[node * lanes + lane]:
                    lane = other
            server = node * lanes + lane
            access = serving[server]
            slot = (access - base) >> shift
            file = slot_file[slot]
            if shared:
                clock[node] = tags[server]
                update_s[node] = now
            serving[server] = -1
            tags[server] = np.inf
            load[node] -= 1
            start_node[0], start_lane[0], starts = node, lane, 1
            batch = tally.batch_of(number[slot], per_request)
            segment = segments[batch]
            busy[segment, node] += works[server]
            if groups[file] >= 0:
                sojourn = now - arrived[slot]
                if status[access] & HEDGE:
                    sojourn -= hedge_delay
                tally.count(sums, bins, batches, segment, batch, reported + node, sojourn)
            status[access] = DONE
            if delayed:
                drawn = streams.stream(connect_key, number[slot] * nodes + node)
                ready[(slot << shift) + finished[slot]] = now + connection(connect, node, drawn)
            finished[slot] += 1
            opened[slot] -= 1
            need = needs[file]
            if not delayed:
                if finished[slot] == need:
                    complete[slot] = now
                    closing = watched
            elif watched and finished[slot] >= need and complete[slot] > now:
                at = _completion(ready, slot << shift, finished[slot], need, link_s[file], room)
                counters[DUE] = due_set(heap, heap_place, complete, counters[DUE], slot, at)
            if watched:
                leaving = not closing and opened[slot] == 0 and complete[slot] <= now
                if delayed and heap_place[slot] >= 0:
                    leaving = False
            elif late:
                leaving = finished[slot] == need
            else:
                leaving = opened[slot] == 0
            if delayed and leaving and not watched:
                complete[slot] = _completion(ready, slot << shift, finished[slot], need, link_s[file], room)

        elif kind == _COMPLETE:
            slot = heap[0]
            counters[DUE] = due_pop(heap, heap_place, complete, counters[DUE])
            closing = True

        elif kind == _CHANGE:
            node = change_node[counters[CHANGE]]
            if change_up[counters[CHANGE]]:
                down[node] = False
                counters[DOWN] -= 1
                for lane in range(lanes):
                    start_node[lane], start_lane[lane] = node, lane
                starts = lanes
            else:
                down[node] = True
                counters[DOWN] += 1
                if shared:
                    advance(clock, update_s, active, node, now)
                lost = lose(state, system, counts, speeds, clock[node] if shared else now, node, late)
                moved, loser = 0, node
                start_node[0], start_lane[0], starts = node, 0, 1
            counters[CHANGE] += 1

        elif kind == _MOVE:
            access = lost[moved]
            moved += 1
            if late:
                starts = give_back(state, system, queues, access, start_node)
            else:
                starts = move(state, system, queues, loser, access, start_node)
            lane = classes_of[slot_file[(access - base) >> shift]] if lanes > 1 else 0
            for i in range(starts):
                start_lane[i] = lane

        elif kind == _HEDGE:
            slot = timer_after[0] - 1
            remove(timer_after, timer_before, slot + 1)
            timer_after[slot + 1] = slot + 1
            row = rows[slot_file[slot]]
            begin, end = row_start[row], row_start[row + 1]
            drawn = streams.stream(streams.mixed(streams.stream(dispatch_key, number[slot])), 1)
            subset.shuffle(order, end - begin, drawn)
            flag = HEDGE
            most = min(float(hedges), settings.hedge_budget * counters[NEEDED] - counters[HEDGES])
            for i in range(end - begin):
                place = order[i]
                if sends + 1 <= most and status[base + (slot << shift) + place] == NONE:
                    if not down[entry_node[begin + place]]:
                        selection[sends] = begin + place
                        sends += 1
            counters[HEDGES] += sends

        else:
            if counters[FREE] == 0:
                return b
            counters[FREE] -= 1
            slot = free[counters[FREE]]
            file, request = files[b], first + b
            b += 1
            row, need = rows[file], needs[file]
            begin, end = row_start[row], row_start[row + 1]
            number[slot], slot_file[slot], arrived[slot] = request, file, now
            opened[slot], begun[slot], finished[slot], complete[slot] = 0, 0, 0, np.inf
            for access in range(base + (slot << shift), base + (slot << shift) + end - begin):
                status[access] = NONE
            batch = tally.batch_of(request, per_request)
            if np.isnan(began[batch]):
                began[batch] = now
            drawn = streams.stream(dispatch_key, request)
            if late:
                lane = classes_of[file] if lanes > 1 else 0
                queue = classes_of[file] if queues > 1 else 0
                for i in range(end - begin):
                    node = entry_node[begin + i]
                    access = base + (slot << shift) + i
                    status[access] = WAITING
                    insert(after, before, node * queues + queue, access)
                    if serving[node * lanes + lane] < 0 and not down[node]:
                        start_node[starts], start_lane[starts] = node, lane
                        starts += 1
                if starts > need:  # else the order does not matter
                    subset.shuffle(order, end - begin, drawn)
                    starts = 0
                    for i in range(end - begin):
                        node = entry_node[begin + order[i]]
                        if serving[node * lanes + lane] < 0 and not down[node]:
                            start_node[starts] = node
                            starts += 1
            else:
                turned = turn[row]
                if policy == FORK_JOIN or need == end - begin:
                    sends = end - begin
                    for i in range(sends):
                        selection[i] = begin + i
                elif policy == ROUND_ROBIN:
                    sends = need
                    for i in range(sends):
                        selection[i] = begin + (turned + i) % (end - begin)
                    turn[row] = (turned + sends) % (end - begin)
                elif policy == LEAST_LOADED or policy == POWER_OF_D:
                    subset.shuffle(order, end - begin, drawn)
                    probed = min(end - begin, probes * need) if policy == POWER_OF_D else end - begin
                    sends = need
                    least_loaded(entry_node, load, begin, probed, need, order, selection)
                else:
                    sends = subset.draw(units, begin, end, order, selection, drawn)
                if counters[DOWN] > 0:
                    sends = to_up_nodes(
                        policy,
                        probes,
                        entry_node,
                        load,
                        down,
                        turned,
                        begin,
                        end,
                        need,
                        order,
                        selection,
                        sends,
                    )
            if hedged and groups[file] >= 0:
                counters[NEEDED] += need
                if need < end - begin:
                    insert(timer_after, timer_before, 0, slot + 1)

        if sends > 0:
            file = slot_file[slot]
            begin = row_start[rows[file]]
            lane = classes_of[file] if lanes > 1 else 0
            queue = classes_of[file] if queues > 1 else 0
            opened[slot] += sends
            for i in range(sends):
                node = entry_node[selection[i]]
                access = base + (slot << shift) + selection[i] - begin
                status[access] = WAITING + flag
                insert(after, before, node * queues + queue, access)
                load[node] += 1
                if serving[node * lanes + lane] < 0:
                    start_node[starts], start_lane[starts] = node, lane
                    starts += 1

        if closing:
            if hedged and timer_after[slot + 1] != slot + 1:
                remove(timer_after, timer_before, slot + 1)
                timer_after[slot + 1] = slot + 1
            if cancel and opened[slot] > 0:
                file = slot_file[slot]
                row = rows[file]
                lane = classes_of[file] if lanes > 1 else 0
                batch = tally.batch_of(number[slot], per_request)
                segment = segments[batch]
                for i in range(row_start[row + 1] - row_start[row]):
                    access = base + (slot << shift) + i
                    if status[access] & STATUS == NONE or status[access] == DONE:
                        continue
                    node = entry_node[row_start[row] + i]
                    load[node] -= 1
                    if status[access] & STATUS == WAITING:
                        remove(after, before, access)
                        continue
                    server = node * lanes + lane
                    if shared:
                        advance(clock, update_s, active, node, now)
                    remainder = (tags[server] - (clock[node] if shared else now)) * speeds[node, lane]
                    busy[segment, node] += works[server] - max(remainder, 0.0)
                    if remainder <= 0.0 and groups[file] >= 0:  # ends at this very time
                        sojourn = now - arrived[slot]
                        if status[access] & HEDGE:
                            sojourn -= hedge_delay
                        tally.count(sums, bins, batches, segment, batch, reported + node, sojourn)
                    serving[server] = -1
                    tags[server] = np.inf
                    start_node[starts], start_lane[starts] = node, lane
                    starts += 1
                opened[slot] = 0
            leaving = opened[slot] == 0

        if closing or (leaving and not watched):
            file = slot_file[slot]
            batch = tally.batch_of(number[slot], per_request)
            segment, group = segments[batch], groups[file]
            latency = complete[slot] - arrived[slot] + extra_s[file]
            if paths.size:
                paths[number[slot]] = latency
            if group >= 0:
                tally.count(sums, bins, batches, segment, batch, group, latency)
                tally.count_file(sums, file_bins, segment, reported + nodes, file, latency)

        if leaving:
            number[slot] = -1
            free[counters[FREE]] = slot
            counters[FREE] += 1

        for i in range(starts):
            node, lane = start_node[i], start_lane[i]
            server = node * lanes + lane
            if shared:
                advance(clock, update_s, active, node, now)
            if serving[server] < 0 and not down[node]:
                place = node * queues + lane
                if lanes == 1:
                    for _ in range(queues - 1):
                        if after[place] == place:
                            place += 1
                access = after[place]
                if access != place:
                    remove(after, before, access)
                    taker = (access - base) >> shift
                    file = slot_file[taker]
                    row = rows[file]
                    entry = row_start[row] + access - base - (taker << shift)
                    law, chunks, size = entry_law[entry], entry_chunks[entry], chunk_bytes[file]
                    drawn = streams.stream(service_key, number[taker] * nodes + node)
                    kind = int(table[law, laws.KIND])
                    if kind >= laws.EMPIRICAL or chunks > 1:
                        work = _service(table, samples, law, size, chunks, drawn)
                    else:  # in line without arrays as arguments, which would be counted as referred to: 25 ns
                        work = table[law, laws.OFFSET] + table[law, laws.OFFSET_PER_BYTE] * size
                        work += (
                            table[law, laws.SCALE] + table[law, laws.SCALE_PER_BYTE] * size
                        ) * laws._unit(kind, table[law, laws.A], table[law, laws.B], drawn)
                    serving[server] = access
                    works[server] = work
                    status[access] += SERVING - WAITING
                    if apart:
                        work /= speeds[node, lane]
                    tags[server] = (clock[node] if shared else now) + work
                    if late:
                        begun[taker] += 1
                        if begun[taker] == needs[file]:
                            accesses = base + (taker << shift)
                            for other in range(accesses, accesses + row_start[row + 1] - row_start[row]):
                                if status[other] == WAITING:
                                    remove(after, before, other)
                                    status[other] = NONE
            soonest = tags[node * lanes]
            for other in range(1, lanes):
                soonest = min(soonest, tags[node * lanes + other])
            if shared:
                weight = 0.0
                for other in range(lanes):
                    if serving[node * lanes + other] >= 0:
                        weight += speeds[node, other]
                active[node] = weight
                if weight == 0.0:
                    clock[node] = 0.0
                else:
                    soonest = now + (soonest - clock[node]) * weight
            set_time(tree, node, soonest)
