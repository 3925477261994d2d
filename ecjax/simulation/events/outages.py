"""What happens to the accesses of a node that goes down; rare, so that functions take the state whole."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import tally
from ecjax.simulation.events.queues import insert, remove
from ecjax.simulation.events.state import HEDGE, NONE, SERVING, STATUS, WAITING


@njit(inner=True)
def lose(state, system, counts, speeds, clock, node, late):
    """Stop the services of a node, and return the accesses that are lost, those in service first.

    Until they are moved they wait, those that were in service before the others of their class; under late binding only
    those in service are lost and keep their status.

    Args:
        state: State.
        system: System.
        counts: Tally; the service given so far is counted.
        speeds: (m, Q) of the classes.
        clock: of the node, now.
        node: which.
        late: bool, LATE_BINDING.
    """
    queues = speeds.shape[1]
    base = state.down.size * queues
    lanes = state.serving.size // state.down.size
    lost = np.empty(max(state.load[node], lanes), np.int64)
    count = 0
    for lane in range(lanes):
        server = node * lanes + lane
        access = state.serving[server]
        if access >= 0:
            slot = (access - base) >> state.shift
            remainder = max((state.tag[server] - clock) * speeds[node, lane], 0.0)
            segment = counts.segment[tally.batch_of(state.number[slot], counts.per_request[0])]
            counts.busy[segment, node] += state.work[server] - remainder
            state.serving[server] = -1
            state.tag[server] = np.inf
            lost[count] = access
            count += 1
    if late:
        return lost[:count]
    served = count
    for place in range(node * queues, (node + 1) * queues):
        access = state.after[place]
        while access != place:
            lost[count] = access
            count += 1
            access = state.after[access]
    for i in range(served):
        access = lost[i]
        state.status[access] += WAITING - SERVING
        queue = system.queue[state.file[(access - base) >> state.shift]] if queues > 1 else 0
        insert(state.after, state.before, state.after[node * queues + queue], access)
    return lost[:count]


@njit(inner=True)
def move(state, system, queues, node, access, started):
    """Send an access that was lost to the least loaded up node without one of its request, or let it wait.

    Returns how many nodes may have something to begin, into ``started``.
    """
    base = state.down.size * queues
    slot = (access - base) >> state.shift
    first = base + (slot << state.shift)
    file = state.file[slot]
    begin, end = system.start[system.row[file]], system.start[system.row[file] + 1]
    best = -1
    for place in range(end - begin):
        other = system.node[begin + place]
        if state.status[first + place] == NONE and not state.down[other]:
            if best < 0 or state.load[other] < state.load[system.node[begin + best]]:
                best = place
    if best < 0:
        return 0
    to = system.node[begin + best]
    remove(state.after, state.before, access)
    state.status[first + best] = WAITING | (state.status[access] & HEDGE)
    state.status[access] = NONE
    state.load[node] -= 1
    state.load[to] += 1
    queue = system.queue[file] if queues > 1 else 0
    insert(state.after, state.before, to * queues + queue, first + best)
    started[0] = to
    return 1


@njit(inner=True)
def give_back(state, system, queues, access, started):
    """Late binding: a request gets back the access that was lost, and waits in its old place at all other nodes.

    Returns how many nodes may have something to begin, into ``started``.
    """
    base = state.down.size * queues
    slot = (access - base) >> state.shift
    first = base + (slot << state.shift)
    file = state.file[slot]
    begin, end = system.start[system.row[file]], system.start[system.row[file] + 1]
    queue = system.queue[file] if queues > 1 else 0
    lanes = state.serving.size // state.down.size
    state.status[access] = NONE
    state.begun[slot] -= 1
    count = 0
    for place in range(end - begin):
        node = system.node[begin + place]
        if state.status[first + place] & STATUS == NONE:
            behind = state.after[node * queues + queue]
            while behind >= base and state.number[(behind - base) >> state.shift] < state.number[slot]:
                behind = state.after[behind]
            insert(state.after, state.before, behind, first + place)
            state.status[first + place] = WAITING
        lane = queue if lanes > 1 else 0
        if not state.down[node] and state.serving[node * lanes + lane] < 0:
            started[count] = node
            count += 1
    return count
