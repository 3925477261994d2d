"""Orders of coflows by local search in the concurrent open shop.

If ports worked independently of each other, coflows in the order 1, 2, ... would end at C_c = max over their ports
of the sum of the loads up to c there. Smallest bottleneck first makes no use of which ports coflows compete for;
exchanging neighbours as long as that lowers the sum of C_c does.
"""

import numpy as np

from ecjax.coflow.order import bssi_order
from ecjax.coflow.sorting import as_keys, stable_order
from ecjax.machine_code import njit

_LEAST_GAIN = 1e-12  # relative: less is rounding
_MOST_PASSES = 100


@njit()
def exchange_neighbours(load, order):
    """Exchange neighbours in an order while the sum of completion times falls.

    Args:
        load: seconds of each coflow at each port, (A, P).
        order: places in ``load``, first to last, (A,); improved in place.
    """
    coflows, ports = load.shape
    before = np.zeros(ports)
    improved, passes = True, 0
    while improved and passes < _MOST_PASSES:
        improved = False
        passes += 1
        before[:] = 0.0
        for i in range(coflows - 1):
            a, b = order[i], order[i + 1]
            first_a, second_b, first_b, second_a = 0.0, 0.0, 0.0, 0.0
            for p in range(ports):
                of_a, of_b = load[a, p], load[b, p]
                both = before[p] + of_a + of_b
                if of_a > 0.0:
                    first_a = max(first_a, before[p] + of_a)
                    second_a = max(second_a, both)
                if of_b > 0.0:
                    second_b = max(second_b, both)
                    first_b = max(first_b, before[p] + of_b)
            now = first_a + second_b
            if first_b + second_a < now - _LEAST_GAIN * now:
                order[i], order[i + 1] = b, a
                a = b
                improved = True
            for p in range(ports):
                before[p] += load[a, p]


@njit()
def sum_of_ends(load, order):
    """Sum of the completion times C_c in this order, s; arguments as of ``exchange_neighbours``."""
    coflows, ports = load.shape
    used = np.zeros(ports)
    total = 0.0
    for c in order:
        end = 0.0
        for p in range(ports):
            if load[c, p] > 0.0:
                used[p] += load[c, p]
                end = max(end, used[p])
        total += end
    return total


@njit(inner=True)
def _remaining(state, count):
    """The active coflows, ascending (A,), and their seconds at their ports: those of the i-th from first[i] on."""
    active = state.active[:count]
    members = active[stable_order(as_keys(active))]
    uses = 0
    for c in members:
        uses += state.sources[c] + state.targets[c]
    first, port, seconds = np.zeros(count + 1, np.int64), np.empty(uses, np.int64), np.empty(uses)
    at = 0
    for i in range(count):
        c = members[i]
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            port[at] = state.port[q]
            seconds[at] = state.load[q] * state.scale[c] / state.capacity[port[at]]
            at += 1
        first[i + 1] = at
    return members, first, port, seconds


@njit(inner=True)
def _by_algorithm_1(state, count, first, port, seconds):
    order = np.empty(count, np.int64)
    bssi_order(np.arange(count), first, port, seconds, len(state.capacity), order)
    return order


@njit(inner=True)
def rank_by_algorithm_1(state, count):
    """Keys of the active coflows by Algorithm 1 on their remaining loads."""
    members, first, port, seconds = _remaining(state, count)
    order = _by_algorithm_1(state, count, first, port, seconds)
    for i in range(count):
        state.key[members[order[i]]] = i


@njit(inner=True)
def rank_by_local_search(state, count):
    """Keys of the active coflows: the better of two orders after exchanges of neighbours.

    They start from smallest remaining bottleneck first and from Algorithm 1; ties go to the first.
    """
    members, first, port, seconds = _remaining(state, count)
    place = np.full(len(state.capacity), -1)
    ports = 0
    for p in port:
        if place[p] < 0:
            place[p] = ports
            ports += 1
    load, worst = np.zeros((count, ports)), np.zeros(count)
    for i in range(count):
        for entry in range(first[i], first[i + 1]):
            load[i, place[port[entry]]] = seconds[entry]
            worst[i] = max(worst[i], seconds[entry])
    order = stable_order(worst)
    exchange_neighbours(load, order)
    other = _by_algorithm_1(state, count, first, port, seconds)
    exchange_neighbours(load, other)
    least = sum_of_ends(load, order)
    if sum_of_ends(load, other) < least - _LEAST_GAIN * least:
        order = other
    for i in range(count):
        state.key[members[order[i]]] = i
