"""The cheapest nodes for one placement row at given prices: k hot chunks, f cold ones, at most q of them per site.

A node costs ``cold[j]`` when it keeps a chunk and ``hot[j] >= cold[j]`` when reads use it as well. The choice is exact:
it is a minimum-cost flow whose polytope has whole corners, so that a fractional choice is never cheaper.
"""

import numpy as np

from ecjax.machine_code import njit

HOT, COLD, NONE = 2, 1, 0


@njit()
def choose(hot, cold, usable, count, k, extra, site, per_site, kind, scratch, numbers):
    """Write the choice to ``kind`` and return its cost; infinite where there is none.

    Args:
        hot: (m,) cost of a chunk that reads use.
        cold: (m,) cost of a chunk that they do not.
        usable: (m,) nodes that may be chosen, the first ``count`` of it.
        count: how many those are.
        k: hot chunks.
        extra: cold chunks.
        site: (m,) failure domain of every node: 0, 1, ..., all below m.
        per_site: most chunks per site; 0 where there is no limit.
        kind: (m,) result: 2 hot, 1 cold, 0 none.
        scratch: (2, m + 2) floats to work in.
        numbers: (3, m + 2) whole numbers to work in.
    """
    kind[:] = NONE
    if count < k + extra:
        return np.inf
    if per_site > 0:
        return _by_site(hot, cold, usable, count, k, extra, site, per_site, kind, scratch, numbers)
    if extra == 0:
        return _hot_only(hot, usable, count, k, kind, numbers[0])
    return _hot_and_cold(hot, cold, usable, count, k, extra, kind, scratch, numbers[0])


@njit(inner=True)
def _hot_only(hot, usable, count, k, kind, order):
    held = 0
    for position in range(count):
        j = usable[position]
        if held < k:
            place = held
            held += 1
        elif hot[j] < hot[order[k - 1]]:
            place = k - 1
        else:
            continue
        while place > 0 and hot[order[place - 1]] > hot[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    total = 0.0
    for place in range(k):
        kind[order[place]] = HOT
        total += hot[order[place]]
    return total


@njit(inner=True)
def _hot_and_cold(hot, cold, usable, count, k, extra, kind, scratch, order):
    """Hot nodes have the least hot - cold of all chosen ones: cut the nodes in that order at the best place."""
    for position in range(count):
        j = usable[position]
        difference = hot[j] - cold[j]
        place = position
        while place > 0 and hot[order[place - 1]] - cold[order[place - 1]] > difference:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    rest, best = scratch[0], scratch[1]
    rest[: count + 1] = np.inf
    total, held = 0.0, 0
    for position in range(count - 1, k - 1, -1):
        total, held = _keep_least(best, held, extra, cold[order[position]], total)
        if held == extra:
            rest[position] = total
    total, held, least, cut = 0.0, 0, np.inf, -1
    for position in range(count - extra):
        total, held = _keep_least(best, held, k, hot[order[position]], total)
        if held == k and total + rest[position + 1] < least:
            least, cut = total + rest[position + 1], position
    value = 0.0
    for _ in range(k):
        node = -1
        for position in range(cut + 1):
            j = order[position]
            if kind[j] == NONE and (node < 0 or hot[j] < hot[node]):
                node = j
        kind[node] = HOT
        value += hot[node]
    for _ in range(extra):
        node = -1
        for position in range(cut + 1, count):
            j = order[position]
            if kind[j] == NONE and (node < 0 or cold[j] < cold[node]):
                node = j
        kind[node] = COLD
        value += cold[node]
    return value


@njit(inner=True)
def _keep_least(best, held, most, value, total):
    """Insert into the ``most`` least values seen, kept in order with their sum."""
    if held < most:
        place = held
        held += 1
        total += value
    elif value < best[most - 1]:
        place = most - 1
        total += value - best[most - 1]
    else:
        return total, held
    while place > 0 and best[place - 1] > value:
        best[place] = best[place - 1]
        place -= 1
    best[place] = value
    return total, held


@njit(inner=True)
def _by_site(hot, cold, usable, count, k, extra, site, per_site, kind, scratch, numbers):
    """Successive shortest paths over the sites and two places to need a node from: 0 for hot, 1 for cold chunks."""
    distance, before, by_node, used = scratch[0], numbers[0], numbers[1], numbers[2]
    sites, largest = 0, 0.0
    for position in range(count):
        j = usable[position]
        sites = max(sites, site[j] + 1)
        largest = max(largest, abs(hot[j]), abs(cold[j]))
    used[:sites] = 0
    need = np.array([k, extra])
    total = 0.0
    # cheapest unused, dearest hot and dearest cold node of a site; cheapest node to turn hot, and to turn cold
    free = np.empty((2, sites), np.int64)
    dearest = np.empty((2, sites), np.int64)
    for _ in range(k + extra):
        free[:] = -1
        dearest[:] = -1
        turn_hot = turn_cold = -1
        for position in range(count):
            j = usable[position]
            s = site[j]
            if kind[j] == NONE:
                if free[0, s] < 0 or hot[j] < hot[free[0, s]]:
                    free[0, s] = j
                if free[1, s] < 0 or cold[j] < cold[free[1, s]]:
                    free[1, s] = j
            elif kind[j] == HOT:
                if dearest[0, s] < 0 or hot[j] > hot[dearest[0, s]]:
                    dearest[0, s] = j
                if turn_cold < 0 or hot[j] - cold[j] > hot[turn_cold] - cold[turn_cold]:
                    turn_cold = j
            else:
                if dearest[1, s] < 0 or cold[j] > cold[dearest[1, s]]:
                    dearest[1, s] = j
                if turn_hot < 0 or hot[j] - cold[j] < hot[turn_hot] - cold[turn_hot]:
                    turn_hot = j
        end = -1
        slack = 0.0
        while True:
            distance[: sites + 2] = np.inf
            before[: sites + 2] = -1
            for kind_needed in range(2):
                if need[kind_needed] > 0:
                    distance[kind_needed] = 0.0
            changed, rounds = True, 0
            while changed and rounds < sites + 2:
                changed = False
                rounds += 1
                if turn_hot >= 0:
                    changed |= _relax(
                        0, 1, hot[turn_hot] - cold[turn_hot], turn_hot, slack, distance, before, by_node
                    )
                if turn_cold >= 0:
                    step = cold[turn_cold] - hot[turn_cold]
                    changed |= _relax(1, 0, step, turn_cold, slack, distance, before, by_node)
                for s in range(sites):
                    for kind_needed in range(2):
                        cost = hot if kind_needed == 0 else cold
                        j = free[kind_needed, s]
                        if j >= 0:
                            changed |= _relax(
                                kind_needed, 2 + s, cost[j], j, slack, distance, before, by_node
                            )
                        j = dearest[kind_needed, s]
                        if j >= 0:
                            changed |= _relax(
                                2 + s, kind_needed, -cost[j], j, slack, distance, before, by_node
                            )
            end = -1
            for s in range(sites):
                if used[s] < per_site and (end < 0 or distance[2 + s] < distance[end]):
                    end = 2 + s
            if end < 0 or not np.isfinite(distance[end]):
                return np.inf
            steps, vertex = 0, end
            while before[vertex] >= 0 and steps <= sites + 2:
                vertex = before[vertex]
                steps += 1
            if steps <= sites + 2:
                break
            # a cycle of length zero that rounding closed
            slack = max(10 * slack, 1e-15 * largest)
        total += distance[end]
        used[end - 2] += 1
        vertex = end
        while before[vertex] >= 0:
            last, j = before[vertex], by_node[vertex]
            if vertex >= 2:
                kind[j] = HOT if last == 0 else COLD
            elif last < 2:
                kind[j] = HOT if last == 0 else COLD
            else:
                kind[j] = NONE
            vertex = last
        need[vertex] -= 1
    return total


@njit(inner=True)
def _relax(start, end, length, node, slack, distance, before, by_node):
    if not np.isfinite(distance[start]):
        return False
    # rounding should not close a cycle of length zero
    least = 1e-13 * (abs(distance[start]) + abs(length)) + slack
    if distance[start] + length < distance[end] - least:
        distance[end] = distance[start] + length
        before[end] = start
        by_node[end] = node
        return True
    return False
