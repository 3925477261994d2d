"""The best assignment of items to the slots of one partition, by market clearing prices.

A partition has x_k slots for items that keep k chunks. Items are sold, slots buy: a slot for k chunks values item m at
tau_{m,k}. Prices p_m >= 0 clear the market when every slot buys an item of largest tau_{m,k} - p_m, no item is
bought twice and unsold items cost nothing; then the assignment has the largest sum of tau. (Demange, Gale, Sotomayor,
"Multi-item auctions", J. Political Economy 94, 1986, is what the SampleX paper's market clearing price goes back to.)

Raising prices by one unit at a time takes as many rounds as prices have units. Here they rise at once to where a slot
changes its mind, and slots of the same k, which always value items alike, are one buyer: all that is known of them is
the utility u_k = max_m (tau_{m,k} - p_m), and p_m = max(0, max_k (tau_{m,k} - u_k)). Moving an item from kind a to kind
b gains at most g_ab = max_{m in a} (tau_{m,b} - tau_{m,a}) <= u_b - u_a, kind 0 being the unsold with u_0 = 0. One more
slot of kind b is filled along the path from 0 to b that loses least of the u_b - u_a - g_ab (Dijkstra's algorithm on
K + 1 kinds; successive shortest paths of a transportation problem: Ahuja, Magnanti, Orlin, "Network Flows", chapter 9).
A slot of kind a that becomes one of kind b is a path from a to b, so that the next partition of chi costs few paths.

Assignments are exact where sums of tau are (whole numbers below 2^53); otherwise within rounding.
"""

from collections.abc import Sequence

import numpy as np

from ecjax.caching.partitions import Partitions
from ecjax.caching.valuation import checked_valuation
from ecjax.errors import UserError
from ecjax.machine_code import njit


class Market:
    """The items that slots may buy, in the order in which each kind of slot values them.

    With n slots in all, a slot of kind k needs no item but the n it values most: one of them is always left. So few
    of a million items are looked at.

    Args:
        tau: (M, K + 1), s/s, rows begin with 0 and do not descend.
        slots: most slots that a partition will have.

    Raises:
        UserError: ``tau`` is not as said.
    """

    def __init__(self, tau, slots: int):
        self._all = checked_valuation(tau)
        self.items, self.k = self._all.shape[0], self._all.shape[1] - 1
        width = min(self.items, slots + 1)  # the best unsold item is known even when all slots are filled
        ranked = np.empty((self.k + 1, width), dtype=np.int64)
        for k, column in enumerate(np.ascontiguousarray(self._all.T)):
            most = np.arange(self.items)
            if width < self.items:
                most = np.sort(np.argpartition(column, self.items - width)[self.items - width :])
            ranked[k] = most[np.argsort(-column[most], kind="stable")]
        ranked[0] = ranked[-1]  # nobody buys for no chunk
        self._pool = np.unique(ranked)
        self._tau = self._all[self._pool]
        self._order = np.searchsorted(self._pool, ranked)

    def best(self, partitions: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """The largest sum of tau of each partition, (S,), s/s, and the chunks of each item under the best, (M,).

        Raises:
            UserError: a partition has more slots than there are items, or than was said, or is not (K,).
        """
        values, chunks = self._in_turn(self._targets(partitions))
        return values, self._of_all(chunks)

    def best_of_all(self, chi: Partitions) -> tuple[np.ndarray, np.ndarray]:
        """As ``best``, of all partitions in their order."""
        values = np.empty(chi.count)
        chunks, start = np.zeros(self._pool.size, dtype=np.int64), 0
        for block in chi.blocks():
            targets = np.concatenate([np.zeros((len(block), 1), dtype=np.int64), block], axis=1)
            end = start + len(block)
            values[start:end], those = self._in_turn(targets)
            if start == 0 or values[start:end].max() > values[:start].max():
                chunks = those
            start = end
        return values, self._of_all(chunks)

    def _in_turn(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, utility = np.empty(len(targets)), np.empty(self.k + 1)
        chunks = np.empty(self._pool.size, dtype=np.int64)
        clear_in_turn(self._tau, self._order, targets, values, chunks, utility)
        return values, chunks

    def _of_all(self, chunks: np.ndarray) -> np.ndarray:
        every = np.zeros(self.items, dtype=np.int64)
        every[self._pool] = chunks
        return every

    def _targets(self, partitions: Sequence) -> np.ndarray:
        targets = np.zeros((len(partitions), self.k + 1), dtype=np.int64)
        most = min(self.items, self._order.shape[1])
        for row, partition in zip(targets, partitions, strict=True):
            slots = np.asarray(partition)
            if slots.shape != (self.k,) or not np.issubdtype(slots.dtype, np.integer) or slots.min() < 0:
                raise UserError(
                    f"partition: found {partition}; allowed: {self.k} whole numbers of at least 0"
                )
            if slots.sum() > most:
                raise UserError(f"partition: found {slots.sum()} slots; allowed: {most}, one item for each")
            row[1:] = slots
        return targets


# What the functions below share: who has which item, and the prices. Kind 0 are the unsold. They are handed on one by
# one and filled by loops: tuples of arrays cost time at every call, assignments to slices take Numba long to compile.
#   tau      (n, K + 1)
#   order    (K + 1, w) items by their value for each kind, descending
#   place    (K + 1, n) place of an item in ``order``, w where it is not there
#   unsold   (K + 1,) place of the first unsold item in ``order``
#   kind     (n,) who has the item
#   members  (K + 1, w) items of each kind from 1, in any order
#   spot     (n,) place of a sold item in ``members``
#   size     (K + 1,) items of each kind from 1
#   best     (K + 1, K + 1) the item of kind a that gains most by going to kind b
#   gain     (K + 1, K + 1) what it gains, g_ab; -inf where kind a has none
#   utility  (K + 1,) u


@njit(inner=True)
def _give(item, k, place, unsold, kind, members, spot, size):
    """Take an item from its kind and give it to kind k."""
    old = kind[item]
    if old > 0:
        size[old] -= 1
        last = members[old, size[old]]
        members[old, spot[item]] = last
        spot[last] = spot[item]
    kind[item] = k
    if k > 0:
        members[k, size[k]] = item
        spot[item] = size[k]
        size[k] += 1
    else:
        for b in range(1, unsold.size):
            unsold[b] = min(unsold[b], place[b, item])


@njit(inner=True)
def _look(a, tau, order, unsold, kind, members, size, best, gain):
    """Find anew what the items of kind a gain by going to other kinds."""
    kinds = tau.shape[1]
    for b in range(kinds):
        gain[a, b] = -np.inf
    if a == 0:
        width = order.shape[1]
        for b in range(1, kinds):
            i = unsold[b]
            while i < width and kind[order[b, i]] != 0:
                i += 1
            unsold[b] = i
            if i < width:
                best[0, b] = order[b, i]
                gain[0, b] = tau[order[b, i], b]
        return
    for i in range(size[a]):
        item = members[a, i]
        for b in range(kinds):
            more = tau[item, b] - tau[item, a]
            if more > gain[a, b]:
                gain[a, b], best[a, b] = more, item


@njit(inner=True)
def _shift(start, end, tau, order, place, unsold, kind, members, spot, size, best, gain, utility):
    """Give one item more to kind ``end`` and one less to kind ``start``, which has one, along the best path."""
    kinds = utility.size
    distance = np.empty(kinds)
    previous = np.empty(kinds, dtype=np.int64)
    for k in range(kinds):
        distance[k], previous[k] = np.inf, -1
    settled = np.zeros(kinds, dtype=np.bool_)
    distance[start] = 0.0
    a = start
    while a != end:
        settled[a] = True
        nearest = -1
        for b in range(kinds):
            if not settled[b]:
                # below 0 by rounding only
                longer = distance[a] + max(0.0, utility[b] - utility[a] - gain[a, b])
                if longer < distance[b]:
                    distance[b], previous[b] = longer, a
                if nearest < 0 or distance[b] < distance[nearest]:
                    nearest = b
        a = nearest
    whole, unsold_distance = distance[end], min(distance[0], distance[end])
    for k in range(kinds):
        utility[k] += unsold_distance - min(distance[k], whole)
    b = end
    while b != start:  # each kind gives its own item away before it gets another
        a = previous[b]
        _give(best[a, b], b, place, unsold, kind, members, spot, size)
        b = a
    b = end
    while b >= 0:
        _look(b, tau, order, unsold, kind, members, size, best, gain)
        b = previous[b]


@njit()
def clear_in_turn(tau, order, targets, values, chunks, utility):
    """Clear the markets of partitions, each from the one before; returns which has the largest value.

    Args:
        tau: (n, K + 1) float64, contiguous; rows begin with 0 and do not descend.
        order: (K + 1, w) int64, the items by their value for each kind (row 0 is not read), descending: all n, or one
            more than there are slots.
        targets: (S, K + 1) int64, slots of each kind; column 0 is not read.
        values: (S,), set to the largest sum of tau of each partition.
        chunks: (n,) int64, set to the chunks of each item under the best one (the first of them).
        utility: (K + 1,), set to the utilities there.
    """
    n, kinds = tau.shape
    width = order.shape[1]
    place = np.empty((kinds, n), dtype=np.int64)
    for k in range(1, kinds):
        for item in range(n):
            place[k, item] = width
        for i in range(width):
            place[k, order[k, i]] = i
    unsold, size = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    kind, spot = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    members = np.empty((kinds, width), dtype=np.int64)
    best, gain = np.zeros((kinds, kinds), dtype=np.int64), np.zeros((kinds, kinds))
    prices = np.zeros(kinds)

    # at first the most wanted kind takes what it values most
    most = 1
    for k in range(2, kinds):
        if targets[0, k] > targets[0, most]:
            most = k
    for i in range(targets[0, most]):
        _give(order[most, i], most, place, unsold, kind, members, spot, size)
        prices[most] = tau[order[most, i], most]  # so that the last one costs nothing
    for a in range(kinds):
        _look(a, tau, order, unsold, kind, members, size, best, gain)
    for b in range(1, kinds):
        if b != most or size[most] == 0:
            prices[b] = max(gain[0, b], prices[most] + gain[most, b])

    winner = 0
    for s in range(values.size):
        wanting, having = 1, 1  # kinds with too few items, and with too many; 0 where there are none left
        while True:
            while wanting < kinds and size[wanting] >= targets[s, wanting]:
                wanting += 1
            while having < kinds and size[having] <= targets[s, having]:
                having += 1
            start, end = having % kinds, wanting % kinds
            if start == end:
                break
            _shift(start, end, tau, order, place, unsold, kind, members, spot, size, best, gain, prices)
        values[s] = 0.0
        for k in range(1, kinds):
            for i in range(size[k]):
                values[s] += tau[members[k, i], k]
        if s == 0 or values[s] > values[winner]:
            winner = s
            for item in range(n):
                chunks[item] = kind[item]
            for k in range(kinds):
                utility[k] = prices[k]
    return winner
