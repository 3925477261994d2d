"""Sources chosen anew, in the order in which coflows are served, for chunks that have not begun to be sent."""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.sorting import as_keys, stable_order
from ecjax.coflow.sources import ROUNDING
from ecjax.coflow.state import admit
from ecjax.machine_code import copy_into, njit


class Reads(NamedTuple):
    """Reads of files, whose sources are chosen."""

    first_candidate: np.ndarray  # (C + 1,)
    candidate: np.ndarray  # (N,) servers that keep a chunk, those of a coflow in random order
    flow: np.ndarray  # (F,) which flow of the workload each flow of the state is
    ahead: np.ndarray  # (S,) work array
    moved: np.ndarray  # (1,) chunks that were given another server before they began


@njit(inner=True)
def least_work_ahead(state, count, reads):
    """Every read in turn takes its unsent chunks from the servers with the least work of coflows before it.

    Chunks of which something was sent stay where they are. Ties: the present server, then the random order.

    Args:
        state: the state, its active coflows in order.
        count: how many are active.
        reads: candidates of the coflows.

    Returns:
        Chunks that changed their server.
    """
    ahead = reads.ahead
    ahead[:] = 0.0
    moved = 0
    for i in range(count):
        c = state.active[i]
        begin, end = reads.first_candidate[c], reads.first_candidate[c + 1]
        if end > begin:
            moved += _choose_again(state, c, reads.candidate[begin:end], reads.flow, ahead)
        use = state.first_use[c]
        for q in range(use, use + state.sources[c]):
            p = state.port[q]
            ahead[p] += state.load[q] * state.scale[c] / state.capacity[p]
    return moved


@njit(inner=True)
def _choose_again(state, c, candidates, flow, ahead):
    first, last = state.first[c], state.first[c + 1]
    source, rest, size = state.source, state.rest, state.size
    unavailable = np.zeros(len(candidates), dtype=np.bool_)
    present = np.zeros(len(candidates), dtype=np.bool_)
    open_places = 0
    for x in range(first, last):
        begun = rest[x] * state.scale[c] < size[x] * (1 - 1e-12)
        for i in range(len(candidates)):
            if candidates[i] == source[x]:
                unavailable[i] = begun
                present[i] = not begun
        if not begun:
            open_places += 1
    if open_places == 0:
        return 0
    chunk = size[first]
    moved = 0
    selection = np.empty(open_places, dtype=np.int64)
    for place in range(open_places):
        best, least = -1, np.inf
        for i in range(len(candidates)):
            if unavailable[i]:
                continue
            p = candidates[i]
            time = ahead[p] + chunk / state.capacity[p]
            margin = ROUNDING * time
            if (
                best < 0
                or time < least - margin
                or (time <= least + margin and present[i] and not present[best])
            ):
                best, least = i, time
        unavailable[best] = True
        selection[place] = candidates[best]
        moved += not present[best]
    if moved == 0:
        return 0
    place = 0
    for x in range(first, last):
        if rest[x] * state.scale[c] >= size[x] * (1 - 1e-12):
            source[x] = selection[place]
            place += 1
    order = stable_order(as_keys(source[first:last])) + first
    copy_into(source[first:last], source[order])
    copy_into(rest[first:last], rest[order])
    copy_into(flow[first:last], flow[order])
    admit(state, c)
    return moved
