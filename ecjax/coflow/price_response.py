"""Lower bound on flow times by prices: port time has a price, and every coflow buys what it needs as it likes best.

With prices lambda_p(u) >= 0 of the time u of port p, any schedule whose coflows complete at T_c has

    sum_c (T_c - r_c) >= sum_c [T_c - r_c + cost of what c uses] - sum_p integral of lambda_p,

since no port is used above its capacity. For given T what c uses costs at least the sum over p of the cheapest L_p(c)
seconds of port p in [r_c, T]; the bound takes the least over T >= r_c + isolation_c. Prices are constant in cells of
time. Within a cell that cost is convex in T (a linear program whose right-hand side is linear in T), so the two
tangents at its ends bound it from below.

The bound is concave in the prices, and the use of a port minus its capacity is a supergradient. Up to the cells it
is not below the bound by weights (``port_weights``): there a coflow is served at every port by itself and pays for its
mean busy time; here it completes everywhere at one moment, and no sooner than if it were alone.
"""

import numpy as np

from ecjax.machine_code import njit


@njit(inner=True)
def cell_of(edges, moment):
    """The last cell that begins at this moment or before."""
    low, high = 0, len(edges) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= moment:
            low = middle
        else:
            high = middle
    return low


@njit(inner=True)
def _dearest_first_push(price, amount, cell, size, new_price, new_amount, new_cell):
    at = size
    while at > 0 and price[(at - 1) // 2] < new_price:
        up = (at - 1) // 2
        price[at], amount[at], cell[at] = price[up], amount[up], cell[up]
        at = up
    price[at], amount[at], cell[at] = new_price, new_amount, new_cell


@njit(inner=True)
def _dearest_first_pop(price, amount, cell, size):
    last_price, last_amount, last_cell = price[size - 1], amount[size - 1], cell[size - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and price[child + 1] > price[child]:
            child += 1
        if price[child] <= last_price:
            break
        price[at], amount[at], cell[at] = price[child], amount[child], cell[child]
        at = child
    price[at], amount[at], cell[at] = last_price, last_amount, last_cell


@njit(inner=True)
def _buy(price, edges, begin, moments, need, heap_price, heap_amount, heap_cell, cost, dearest):
    """The cheapest ``need`` seconds between begin and each moment: cost and dearest price, as moments pass.

    Args:
        price: of a port, (K,).
        edges: (K + 1,).
        begin: seconds.
        moments: ascending, above begin, (M,); all edges between the first and the last are among them.
        need: seconds.
        heap_price: work, (K + M,).
        heap_amount: work, what is bought, seconds.
        heap_cell: work, where.
        cost: added to, (M,).
        dearest: filled, (M,).

    Returns:
        The size of the heap after the last moment, and the number of steps done.
    """
    size, bought, paid, at, steps = 0, 0.0, 0.0, begin, 0
    k = cell_of(edges, begin)
    for m in range(len(moments)):
        while at < moments[m]:
            until = min(edges[k + 1], moments[m])
            amount = until - at
            steps += 1
            if bought < need or price[k] < heap_price[0]:
                _dearest_first_push(heap_price, heap_amount, heap_cell, size, price[k], amount, k)
                size += 1
                bought += amount
                paid += price[k] * amount
                while bought - heap_amount[0] >= need:
                    bought -= heap_amount[0]
                    paid -= heap_price[0] * heap_amount[0]
                    _dearest_first_pop(heap_price, heap_amount, heap_cell, size)
                    size -= 1
                if bought > need:
                    heap_amount[0] -= bought - need
                    paid -= heap_price[0] * (bought - need)
                    bought = need
            at = until
            if at == edges[k + 1]:
                k += 1
        cost[m] += paid
        dearest[m] = heap_price[0] if size else 0.0
    return size, steps


@njit()
def one_bound(arrival, isolation, first, port, load, price, edges, use):
    """The bound on the sum of flow times for given prices.

    Args:
        arrival: seconds, (C,), within the cells.
        isolation: seconds, (C,).
        first: the entries of coflow c are first[c] to first[c + 1] - 1, (C + 1,).
        port: of each entry, (N,).
        load: seconds, (N,), not above the coflow's isolation.
        price: not negative, (P, K); nothing in the last cell.
        edges: seconds, ascending, (K + 1,); the last cell holds what any coflow needs of any port.
        use: filled with the seconds that coflows use of each cell if every one does what is best for it, (P, K).

    Returns:
        The bound, and the number of steps done.
    """
    cells = len(edges) - 1
    moment = np.empty(cells + 2)
    cost, fall_before, fall_after = np.empty(cells + 2), np.empty(cells + 2), np.empty(cells + 2)
    dearest, scratch = np.empty(cells + 2), np.empty(cells + 2)
    heap_price, heap_amount = np.empty(2 * cells + 3), np.empty(2 * cells + 3)
    heap_cell = np.empty(2 * cells + 3, np.int64)
    for p in range(len(price)):
        for k in range(cells):
            use[p, k] = 0.0
    total, steps = 0.0, 0
    for c in range(len(arrival)):
        r, a, b = arrival[c], first[c], first[c + 1]
        moment[0] = r + isolation[c]
        cost[0] = 0.0
        for n in range(a, b):
            _, work = _buy(
                price[port[n]], edges, r, moment[:1], load[n],
                heap_price, heap_amount, heap_cell, cost, dearest,
            )  # fmt: skip
            steps += work
        # no moment that is later by more than what could be saved is of use
        horizon = moment[0] + cost[0]
        begin_cell = cell_of(edges, moment[0])
        count = 1
        for k in range(begin_cell, cells):
            if edges[k] >= horizon or cost[0] == 0.0:
                break
            moment[count] = edges[k + 1]
            count += 1
        for m in range(count):
            fall_before[m] = fall_after[m] = 0.0
        if count > 1:
            for m in range(count):
                cost[m] = 0.0
            for n in range(a, b):
                prices = price[port[n]]
                _, work = _buy(
                    prices, edges, r, moment[:count], load[n],
                    heap_price, heap_amount, heap_cell, cost, dearest,
                )  # fmt: skip
                steps += work
                for m in range(count):
                    cell = begin_cell + m
                    if m > 0:
                        fall_before[m] += max(dearest[m] - prices[cell - 1], 0.0)
                    if m < count - 1:
                        fall_after[m] += max(dearest[m] - prices[cell], 0.0)
        best, best_moment = np.inf, 0
        for m in range(count):
            value = moment[m] - r + cost[m]
            if value < best:
                best, best_moment = value, m
            if m < count - 1:
                slope, next_slope = 1.0 - fall_after[m], 1.0 - fall_before[m + 1]
                if slope < 0.0 < next_slope:
                    next_value = moment[m + 1] - r + cost[m + 1]
                    width = moment[m + 1] - moment[m]
                    step = (next_value - value - next_slope * width) / (slope - next_slope)
                    if 0.0 < step < width and value + slope * step < best:
                        best = value + slope * step
                        best_moment = m if step < width / 2 else m + 1
        total += best
        for n in range(a, b):
            scratch[0] = 0.0
            size, work = _buy(
                price[port[n]], edges, r, moment[best_moment : best_moment + 1], load[n],
                heap_price, heap_amount, heap_cell, scratch, dearest,
            )  # fmt: skip
            steps += work
            for i in range(size):
                use[port[n], heap_cell[i]] += heap_amount[i]
    for k in range(cells):
        width = edges[k + 1] - edges[k]
        for p in range(len(price)):
            total -= price[p, k] * width
    return total, steps
