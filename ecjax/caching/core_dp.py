"""The best numbers of chunks by a dynamic programme over what may differ from the linear relaxation. Compiled.

Let x be the plan of ``relaxed``: every x_m maximises tau_{m,j} - p j, and d = C - sum x < K chunks are left. Take a
best plan y with fewest chunks, so that 0 <= sum (y - x) <= d, nearest to x. No group of its changes y_m - x_m sums to
zero: undoing them would keep the size and not lower the value. Ordered so that a negative change follows a positive sum
and a positive change any other, n changes have 1 + n partial sums in -K + 1, ..., K, all different: between two equal
ones is such a group. Hence (Eisenbrand and Weismantel, "Proximity results and faster algorithms for integer programming
using the Steinitz lemma", ACM Transactions on Algorithms 16, 2020, with one choice per item)

- at most 2 K - 1 items change, by less than K^2 chunks upwards in sum and less than K^2 downwards;
- of all items that can change by the same number, the 2 K - 1 with the largest gain are enough: any other could be
  replaced by one of these that does not change.

So a table of at most 2 K (2 K - 1) options by 2 K^2 sums is enough, whatever M and C are: O(M K) steps to find them and
O(K^4) to choose. Most often far less is left, since an option whose loss at price p exceeds what x and the best single
change leave below the bound is in no best plan (Pisinger, "A minimal algorithm for the multiple-choice knapsack
problem", European J. Operational Research 83, 1995).

Values add up exactly if they are integers below 2^53 / K^2 in sum: distinct slopes are distinct floats then. With other
values plans count as equal within rounding of the sum.
"""

import numpy as np

from ecjax.caching.relaxation import relaxed
from ecjax.machine_code import njit

_ROUNDING = 8 * 2.0**-52


@njit(inner=True)
def _largest_gains(tau, chunks, price, spare):
    """What a change must gain to be one of the 2 K - 1 best of its size, and how many that just do are among these.

    Returns:
        By change + K, (2 K + 1,) each, and the largest loss, at price p, that a best plan may have in all.
    """
    items, most = tau.shape[0], tau.shape[1] - 1
    enough = 2 * most - 1
    gains = np.empty((2 * most + 1, enough))  # descending
    count = np.zeros(2 * most + 1, np.int64)
    gap = price * spare
    for m in range(items):
        now = chunks[m]
        rounding = _ROUNDING * (tau[m, most] + price * most)
        for j in range(most + 1):
            gain = tau[m, j] - tau[m, now]
            loss = price * (j - now) - gain
            if j == now or loss > gap + rounding:
                continue
            if now < j <= now + spare:
                gap = min(gap, loss + price * (spare - (j - now)))
            change = j - now + most
            place = count[change]
            if place < enough:
                count[change] += 1
            elif gain > gains[change, enough - 1]:
                place -= 1
            else:
                continue
            while place > 0 and gains[change, place - 1] < gain:
                gains[change, place] = gains[change, place - 1]
                place -= 1
            gains[change, place] = gain
    least, at_least = np.zeros(2 * most + 1), np.zeros(2 * most + 1, np.int64)
    for change in range(2 * most + 1):
        if count[change] > 0:
            least[change] = gains[change, count[change] - 1]
        for place in range(count[change]):
            if gains[change, place] == least[change]:
                at_least[change] += 1
    return least, at_least, gap


@njit(inner=True)
def _options(tau, chunks, price, spare):
    """Changes of items that a best plan may contain: items, ascending, and their chunks then, (n,) int64 each."""
    items, most = tau.shape[0], tau.shape[1] - 1
    least, at_least, gap = _largest_gains(tau, chunks, price, spare)
    who, then = np.empty(4 * most * most, np.int64), np.empty(4 * most * most, np.int64)
    size = 0
    for m in range(items):
        now = chunks[m]
        rounding = _ROUNDING * (tau[m, most] + price * most)
        for j in range(most + 1):
            gain = tau[m, j] - tau[m, now]
            change = j - now + most
            if j == now or price * (j - now) - gain > gap + rounding or gain < least[change]:
                continue
            if gain == least[change]:
                if at_least[change] == 0:
                    continue
                at_least[change] -= 1
            who[size], then[size] = m, j
            size += 1
    return who[:size], then[:size]


@njit(inner=True)
def _reach(who, then, chunks, most, spare):
    """How far partial sums of the changes of a best plan can go down and up, and how many items have options."""
    up = down = groups = 0
    for i in range(len(who)):
        if i == 0 or who[i] != who[i - 1]:
            groups += 1
            lowest = highest = 0
        change = then[i] - chunks[who[i]]  # ascending for each item
        if change < lowest:
            down, lowest = down - change, change
        if change > highest:
            up, highest = up + change - highest, change
    # what goes up in sum comes down again but for what is left
    up = min(up, most * most, down + spare)
    return min(down, up), up, groups


@njit(inner=True)
def _choose(tau, chunks, who, then, spare):
    """Change ``chunks`` by the options that gain most with at most ``spare`` chunks more, fewest chunks first."""
    down, up, groups = _reach(who, then, chunks, tau.shape[1] - 1, spare)
    width = down + up + 1
    before, best = np.empty(width), np.empty(width)
    for at in range(width):
        best[at] = -np.inf
    best[down] = 0.0
    choice = np.empty((groups, width), np.uint8)
    i = 0
    for group in range(groups):
        m = who[i]
        now = chunks[m]
        for at in range(width):
            before[at], choice[group, at] = best[at], now
        while i < len(who) and who[i] == m:
            j = then[i]
            change, gain = j - now, tau[m, j] - tau[m, now]
            for at in range(max(0, change), min(width, width + change)):
                if before[at - change] + gain > best[at]:
                    best[at], choice[group, at] = before[at - change] + gain, j
            i += 1
    at = down
    for more in range(down, min(width, down + spare + 1)):
        if best[more] > best[at]:
            at = more
    group = groups
    for i in range(len(who) - 1, -1, -1):
        if i == 0 or who[i] != who[i - 1]:
            group -= 1
            m = who[i]
            now = chunks[m]
            chunks[m] = choice[group, at]
            at -= chunks[m] - now


@njit()
def core_dp(tau, capacity, chunks):
    """Fill ``chunks`` with the fewest chunks of largest value.

    Args:
        tau: values, nondecreasing in each row, 0 first, (M, K + 1) float64.
        capacity: C >= 0.
        chunks: filled, (M,) int64.

    Returns:
        The value, and the upper bound of the linear relaxation.
    """
    price, spare = relaxed(tau, capacity, chunks)
    bound = 0.0
    for m in range(len(chunks)):
        bound += tau[m, chunks[m]]
    if price * spare == 0.0:
        return bound, bound
    who, then = _options(tau, chunks, price, spare)
    _choose(tau, chunks, who, then, spare)
    value = 0.0
    for m in range(len(chunks)):
        value += tau[m, chunks[m]]
    return value, max(value, bound + price * spare)
