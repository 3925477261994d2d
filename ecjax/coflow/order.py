"""Algorithm 1 of the D-Target paper: an order of coflows, and a lower bound that certifies it."""

import numpy as np

from ecjax.machine_code import njit


@njit()
def bssi_order(active, first, port, load, ports, order):
    """Order coflows that are all present at time 0, with a lower bound on the sum of their completion times.

    Bottleneck - select - scale - iterate: of the coflows S that have no place yet, the last place goes to the one with
    the smallest weight per load at the port p with the largest total load; all weights in S then fall by theta times
    their loads at p, so that the weight of the chosen one becomes 0. All weights start at 1. Ties between coflows: the
    later one goes last; between ports: the first.

    The bound is sum theta f_p(S) over the rounds, with f_p(S) = ((sum_S L_p)^2 + sum_S L_p^2) / 2. Proof: any schedule
    has sum_S L_p C >= f_p(S), with equality if p serves S one by one without gaps, in any order. Weights stay >= 0, so
    that the theta L_p(c) of the rounds with c in S add up to at most 1 for every c. Hence sum C >= sum_c C_c sum theta
    L_p(c) = sum theta sum_S L_p C >= sum theta f_p(S).

    O((active + ports) active + entries).

    Args:
        active: coflows to order, (A,), distinct; ties between them go by their place here.
        first: the entries of coflow c are first[c] to first[c + 1] - 1, (C + 1,).
        port: port of each entry, (N,); a port may occur more than once for a coflow.
        load: seconds of each entry, (N,), not negative.
        ports: number of ports.
        order: filled with the order, first to last, (A,): within a factor 2 of the best for concurrent open shop.

    Returns:
        The lower bound on the sum of completion times, s.

    References:
        Mastrolilli, Queyranne, Schulz, Svensson, Uhan, "Minimizing the sum of weighted completion times in a
        concurrent open shop", Operations Research Letters 38 (2010); D-Target paper, Algorithm 1.
    """
    count = len(active)
    total = np.zeros(ports)
    begin = np.zeros(ports + 1, np.int64)
    for place in range(count):
        for entry in range(first[active[place]], first[active[place] + 1]):
            total[port[entry]] += load[entry]
            begin[port[entry] + 1] += 1
    for p in range(ports):
        begin[p + 1] += begin[p]
    # the same entries by port, each port's coflows ascending
    end = begin[:-1].copy()
    member = np.empty(begin[ports], np.int64)
    amount = np.empty(begin[ports])
    for place in range(count):
        for entry in range(first[active[place]], first[active[place] + 1]):
            p = port[entry]
            if end[p] > begin[p] and member[end[p] - 1] == place:
                amount[end[p] - 1] += load[entry]
            else:
                member[end[p]] = place
                amount[end[p]] = load[entry]
                end[p] += 1
    weight = np.ones(count)
    placed = np.zeros(count, np.bool_)
    dual = 0.0
    last_free = count - 1
    position = count - 1
    while position >= 0:
        heaviest = 0
        for p in range(1, ports):
            if total[p] > total[heaviest]:
                heaviest = p
        last, theta, linear, squares = -1, np.inf, 0.0, 0.0
        free = begin[heaviest]
        for slot in range(begin[heaviest], end[heaviest]):
            place = member[slot]
            if placed[place] or amount[slot] == 0:
                continue
            member[free] = place
            amount[free] = amount[slot]
            free += 1
            linear += amount[slot]
            squares += amount[slot] * amount[slot]
            ratio = weight[place] / amount[slot]
            if ratio <= theta:
                last, theta = place, ratio
        end[heaviest] = free
        if last < 0:
            if total[heaviest] != 0:  # rounding: no coflow is left here
                total[heaviest] = 0.0
                continue
            while placed[last_free]:  # only coflows without load are left
                last_free -= 1
            last = last_free
        else:
            dual += theta * (linear * linear + squares) / 2
            for slot in range(begin[heaviest], free):
                # rounding must not make a weight negative: the bound rests on it
                weight[member[slot]] = max(weight[member[slot]] - theta * amount[slot], 0.0)
        placed[last] = True
        order[position] = active[last]
        position -= 1
        for entry in range(first[active[last]], first[active[last] + 1]):
            total[port[entry]] -= load[entry]
    return dual
