"""Which nodes a request is sent to when it arrives."""

import numba
import numpy as np

from ecjax.replay import subset
from ecjax.replay.events.settings import FORK_JOIN, LEAST_LOADED, POWER_OF_D, ROUND_ROBIN

_PLACE_BITS = (
    20  # of a key (accesses at the node, place in the random order); a row has fewer nodes than 2^20
)
_PLACES = (1 << _PLACE_BITS) - 1
_MOST = np.iinfo(np.int64).max


@numba.njit(cache=True, nogil=True, inline="always")
def choose(policy, probes, units, entry_node, load, turn, row, begin, end, need, order, chosen, state):
    """Entries that a request is sent to while all nodes are up, into ``chosen``; returns how many.

    Args:
        policy: any but LATE_BINDING.
        probes: nodes probed per node needed, under POWER_OF_D.
        units: of System.
        entry_node: of System.
        load: (m,) accesses waiting or in service.
        turn: (R,) whose turn it is; advanced under ROUND_ROBIN.
        row: of the request.
        begin: first entry of the row.
        end: after the last.
        need: chunks needed.
        order: room for a row; the order of the draw afterwards, where there is one.
        chosen: room for a row.
        state: stream of the request.
    """
    count = need
    width = end - begin
    if policy == FORK_JOIN or need == width:
        for i in range(width):
            chosen[i] = begin + i
        count = width
    elif policy == ROUND_ROBIN:
        for i in range(count):
            chosen[i] = begin + (turn[row] + i) % width
        turn[row] = (turn[row] + count) % width
    elif policy == LEAST_LOADED or policy == POWER_OF_D:
        subset.shuffle(order, width, state)
        probed = min(width, probes * need) if policy == POWER_OF_D else width
        least_loaded(entry_node, load, begin, probed, need, order, chosen)
    else:
        count = subset.draw(units, begin, end, order, chosen, state)
    return count


@numba.njit(cache=True, nogil=True, inline="always")
def least_loaded(entry_node, load, begin, probed, count, order, chosen):
    """The ``count`` least loaded of the first ``probed`` entries in an order, into ``chosen``; ties in that order."""
    for i in range(count):
        chosen[i] = _MOST
    for i in range(probed):
        value = (load[entry_node[begin + order[i]]] << _PLACE_BITS) | i
        for place in range(count):
            least = min(chosen[place], value)
            value = max(chosen[place], value)
            chosen[place] = least
    for i in range(count):
        chosen[i] = begin + order[chosen[i] & _PLACES]


@numba.njit(cache=True, nogil=True)
def choose_up(policy, probes, units, entry_node, load, down, turn, row, begin, end, need, state):
    """Entries that a request is sent to while nodes are down; as ``choose``, returns the entries.

    Down nodes among those drawn, or whose turn it is, are replaced by up nodes of the row in the order of the draw, or
    of the turns; the other policies look at up nodes only. Where fewer than ``need`` are up, the rest is sent to the
    down nodes with the fewest accesses, those of the lowest entry first.
    """
    width = end - begin
    order, chosen, kept = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    taken = np.zeros(width, np.bool_)
    count = 0
    if policy == LEAST_LOADED or policy == POWER_OF_D:
        subset.shuffle(order, width, state)
        up = 0
        for i in range(width):
            if not down[entry_node[begin + order[i]]]:
                order[up] = order[i]
                up += 1
        probed = min(up, probes * need) if policy == POWER_OF_D else up
        count = min(up, need)
        least_loaded(entry_node, load, begin, probed, count, order, kept)
    else:
        first = turn[row]
        drawn = choose(
            policy, probes, units, entry_node, load, turn, row, begin, end, need, order, chosen, state
        )
        for i in range(drawn):
            if not down[entry_node[chosen[i]]]:
                kept[count] = chosen[i]
                count += 1
                taken[chosen[i] - begin] = True
        if need < width and policy != FORK_JOIN:
            for i in range(width):
                place = (first + i) % width if policy == ROUND_ROBIN else order[i]
                if count < need and not taken[place] and not down[entry_node[begin + place]]:
                    kept[count] = begin + place
                    count += 1
    while count < need:
        least = -1
        for place in range(width):
            node = entry_node[begin + place]
            if down[node] and not taken[place]:
                if least < 0 or load[node] < load[entry_node[begin + least]]:
                    least = place
        taken[least] = True
        kept[count] = begin + least
        count += 1
    return kept[:count]
