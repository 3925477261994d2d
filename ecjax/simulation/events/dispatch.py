"""Which nodes a request is sent to: the least loaded, and up ones instead of those that are down."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation.events.settings import FORK_JOIN, LEAST_LOADED, POWER_OF_D, ROUND_ROBIN

_PLACE_BITS = (
    20  # of a key (accesses at the node, place in the random order); a row has fewer nodes than 2^20
)
_PLACES = (1 << _PLACE_BITS) - 1
_MOST = np.iinfo(np.int64).max


@njit(inline="always")
def least_loaded(entry_node, load, begin, probed, count, order, selection):
    """The ``count`` least loaded of the first ``probed`` entries of an order, into ``selection``; ties: in order."""
    for i in range(count):
        selection[i] = _MOST
    for i in range(probed):
        value = (load[entry_node[begin + order[i]]] << _PLACE_BITS) | i
        for place in range(count):
            least = min(selection[place], value)
            value = max(selection[place], value)
            selection[place] = least
    for i in range(count):
        selection[i] = begin + order[selection[i] & _PLACES]


@njit(inner=True)
def to_up_nodes(policy, probes, entry_node, load, down, first, begin, end, need, order, selection, count):
    """Change the choice of a request's entries while nodes are down; returns how many there are.

    Down nodes among those drawn, or whose turn it is, are replaced by up nodes of the row in the order of the draw, or
    of the turns; the other policies look at up nodes only. Where fewer than ``need`` are up, the rest is sent to the
    down nodes with the fewest accesses, those of the lowest entry first.

    Args:
        policy: any but LATE_BINDING.
        probes: nodes probed per node needed, under POWER_OF_D.
        entry_node: of System.
        load: (m,) accesses waiting or in service.
        down: (m,) bool.
        first: whose turn it was, under ROUND_ROBIN.
        begin: first entry of the row.
        end: after the last.
        need: chunks needed.
        order: random order of the row; not used where all nodes are needed, nor under ROUND_ROBIN and FORK_JOIN.
        selection: the entries; changed.
        count: how many.
    """
    width = end - begin
    used = np.zeros(width, np.bool_)
    size = 0
    if need < width and (policy == LEAST_LOADED or policy == POWER_OF_D):
        up = 0
        for i in range(width):
            if not down[entry_node[begin + order[i]]]:
                order[up] = order[i]
                up += 1
        probed = min(up, probes * need) if policy == POWER_OF_D else up
        size = min(up, need)
        least_loaded(entry_node, load, begin, probed, size, order, selection)
    else:
        for i in range(count):
            if not down[entry_node[selection[i]]]:
                selection[size] = selection[i]
                size += 1
                used[selection[i] - begin] = True
        if policy != FORK_JOIN and need < width:
            for i in range(width):
                place = (first + i) % width if policy == ROUND_ROBIN else order[i]
                if size < need and not used[place] and not down[entry_node[begin + place]]:
                    selection[size] = begin + place
                    size += 1
    while size < need:
        least = -1
        for place in range(width):
            node = entry_node[begin + place]
            if down[node] and not used[place]:
                if least < 0 or load[node] < load[entry_node[begin + least]]:
                    least = place
        used[least] = True
        selection[size] = begin + least
        size += 1
    return size
