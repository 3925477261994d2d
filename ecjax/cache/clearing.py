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

from collections.abc import Iterable
from typing import NamedTuple

import numba
import numpy as np

from ecjax.cache.partitions import first_partition, next_partition
from ecjax.cache.valuation import checked_valuation
from ecjax.errors import UserError


class Cleared(NamedTuple):
    """The best assignment of the items to a partition, and prices that clear its market."""

    chunks: np.ndarray  # (M,) int64, chunks of each item
    value: float  # sum of tau, s/s
    price: np.ndarray  # (M,) p, s/s; 0 for items without chunks
    utility: (
        np.ndarray
    )  # (K,) u, s/s, what a slot of each kind has above its price; inf where there is no slot


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
        tau = checked_valuation(tau)
        self.items, self.k = tau.shape[0], tau.shape[1] - 1
        width = min(self.items, slots + 1)  # the best unsold item is known even when all slots are filled
        self._tau_all = tau
        ranked = np.empty((self.k + 1, width), dtype=np.int64)
        for k, column in enumerate(np.ascontiguousarray(tau.T)):
            most = np.arange(self.items)
            if width < self.items:
                most = np.sort(np.argpartition(column, self.items - width)[self.items - width :])
            ranked[k] = most[np.argsort(-column[most], kind="stable")]
        ranked[0] = ranked[-1]  # nobody buys for no chunk
        self._pool = np.unique(ranked)
        self._tau = tau[self._pool]
        self._order = np.searchsorted(self._pool, ranked)

    def clear(self, partition) -> Cleared:
        """The best assignment to one partition and its prices.

        Raises:
            UserError: the partition has more slots than there are items, or than was said, or is not (K,).
        """
        target = self._checked(partition)
        kind = np.empty(self._pool.size, dtype=np.int64)
        utility = np.empty(self.k + 1)
        value = _clear(self._tau, self._order, target, kind, utility)
        chunks = np.zeros(self.items, dtype=np.int64)
        chunks[self._pool] = kind
        utility[target == 0] = np.inf
        utility[0] = 0.0
        price = (self._tau_all - utility).max(axis=1, initial=0.0)
        return Cleared(chunks, value, price, utility[1:])

    def values(self, partitions: Iterable) -> np.ndarray:
        """The largest sum of tau of each partition, (S,), s/s."""
        kind = np.empty(self._pool.size, dtype=np.int64)
        utility = np.empty(self.k + 1)
        return np.array(
            [_clear(self._tau, self._order, self._checked(one), kind, utility) for one in partitions]
        )

    def all_values(self, capacity: int, count: int) -> np.ndarray:
        """The largest sum of tau of every partition of ``capacity``, in order; ``count`` is how many there are."""
        values = np.empty(count)
        if count:
            _clear_all(self._tau, self._order, capacity, self.items, values)
        return values

    def _checked(self, partition) -> np.ndarray:
        given = np.asarray(partition)
        if given.shape != (self.k,) or not np.issubdtype(given.dtype, np.integer) or given.min() < 0:
            raise UserError(f"partition: found {partition}; allowed: {self.k} whole numbers of at least 0")
        most = min(self.items, self._order.shape[1])
        if given.sum() > most:
            raise UserError(f"partition: found {given.sum()} slots; allowed: {most}, one item for each")
        target = np.zeros(self.k + 1, dtype=np.int64)
        target[1:] = given
        return target


def clear(tau, partition) -> Cleared:
    """The best assignment of items to the slots of a partition, and market clearing prices.

    Args:
        tau: (M, K + 1), s/s, rows begin with 0 and do not descend.
        partition: x, (K,), items with 1, ..., K chunks.

    Raises:
        UserError: ``tau`` or the partition is not as said, or has more slots than there are items.
    """
    slots = np.asarray(partition)
    return Market(tau, int(slots.sum()) if np.issubdtype(slots.dtype, np.integer) else 0).clear(partition)


class _State(NamedTuple):
    """Who has which item, and the prices; kind 0 are the unsold."""

    tau: np.ndarray  # (n, K + 1)
    order: np.ndarray  # (K + 1, w) items by value for each kind, descending
    place: np.ndarray  # (K + 1, n) place of an item in ``order``; w: not there
    unsold: np.ndarray  # (K + 1,) place of the first unsold item in ``order``
    kind: np.ndarray  # (n,) who has the item
    head: np.ndarray  # (K + 1,) first item of a kind from 1; -1: none
    after: np.ndarray  # (n,) the kind's next item
    before: np.ndarray  # (n,)
    size: np.ndarray  # (K + 1,) slots of a kind from 1
    best: np.ndarray  # (K + 1, K + 1) the item of kind a that gains most by going to kind b
    gain: np.ndarray  # (K + 1, K + 1) g_ab, -inf where kind a has none
    utility: np.ndarray  # (K + 1,) u


@numba.njit(cache=True, nogil=True)
def empty_market(tau, order):
    """A market in which nothing is sold yet."""
    n, kinds = tau.shape
    width = order.shape[1]
    place = np.full((kinds, n), width)
    for k in range(kinds):
        for i in range(width):
            place[k, order[k, i]] = i
    state = _State(
        tau,
        order,
        place,
        np.zeros(kinds, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.full(kinds, -1),
        np.full(n, -1),
        np.full(n, -1),
        np.zeros(kinds, dtype=np.int64),
        np.zeros((kinds, kinds), dtype=np.int64),
        np.full((kinds, kinds), -np.inf),
        np.zeros(kinds),
    )
    _look(state, 0)
    for k in range(1, kinds):
        state.utility[k] = state.gain[0, k]
    return state


@numba.njit(cache=True, nogil=True)
def _fill_first(state, k, slots):
    """In an empty market, sell the items that kind k values most to all its slots."""
    tau, order, utility, gain = state.tau, state.order, state.utility, state.gain
    for i in range(slots):
        _give(state, order[k, i], k)
    _look(state, 0)
    _look(state, k)
    if slots > 0:
        utility[k] = tau[order[k, slots - 1], k]  # the price of the last one is 0
        for b in range(1, tau.shape[1]):
            if b != k:
                utility[b] = max(gain[0, b], utility[k] + gain[k, b])


@numba.njit(cache=True, nogil=True)
def _give(state, item, k):
    """Take an item from its kind and give it to kind k."""
    kind, head, after, before = state.kind, state.head, state.after, state.before
    old = kind[item]
    if old > 0:
        state.size[old] -= 1
        if before[item] >= 0:
            after[before[item]] = after[item]
        else:
            head[old] = after[item]
        if after[item] >= 0:
            before[after[item]] = before[item]
    kind[item] = k
    if k > 0:
        state.size[k] += 1
        first = head[k]
        after[item], before[item] = first, -1
        if first >= 0:
            before[first] = item
        head[k] = item
    else:
        unsold, place = state.unsold, state.place
        for b in range(1, unsold.size):
            unsold[b] = min(unsold[b], place[b, item])


@numba.njit(cache=True, nogil=True)
def _look(state, a):
    """Find anew what the items of kind a gain by going to other kinds."""
    tau, best, gain = state.tau, state.best, state.gain
    kinds = tau.shape[1]
    for b in range(kinds):
        gain[a, b] = -np.inf
    if a > 0:
        item, after = state.head[a], state.after
        while item >= 0:
            for b in range(kinds):
                more = tau[item, b] - tau[item, a]
                if more > gain[a, b]:
                    gain[a, b], best[a, b] = more, item
            item = after[item]
        return
    order, unsold, kind = state.order, state.unsold, state.kind
    width = order.shape[1]
    for b in range(1, kinds):
        i = unsold[b]
        while i < width and kind[order[b, i]] != 0:
            i += 1
        unsold[b] = i
        if i < width:
            best[0, b] = order[b, i]
            gain[0, b] = tau[order[b, i], b]


@numba.njit(cache=True, nogil=True)
def _shift(state, start, end, distance, previous, done):
    """Give one item more to kind ``end`` and one less to kind ``start``, which has one, along the best path."""
    gain, utility = state.gain, state.utility
    kinds = utility.size
    for k in range(kinds):
        distance[k], previous[k], done[k] = np.inf, -1, False
    distance[start] = 0.0
    while True:
        a = -1
        for k in range(kinds):
            if not done[k] and (a < 0 or distance[k] < distance[a]):
                a = k
        done[a] = True
        if a == end:
            break
        for b in range(kinds):
            if not done[b]:
                # below 0 by rounding only
                longer = distance[a] + max(0.0, utility[b] - utility[a] - gain[a, b])
                if longer < distance[b]:
                    distance[b], previous[b] = longer, a
    whole = distance[end]
    for k in range(kinds):
        utility[k] -= min(distance[k], whole)
    unsold = utility[0]
    for k in range(kinds):
        utility[k] -= unsold
    b = end
    while b != start:  # each kind gives its own item away before it gets another
        a = previous[b]
        _give(state, state.best[a, b], b)
        b = a
    b = end
    while b >= 0:
        _look(state, b)
        b = previous[b]


@numba.njit(cache=True, nogil=True)
def shift_market(state, target, distance, previous, done):
    """Shift items until kind k has ``target[k]`` of them, for every k from 1."""
    size = state.size
    surplus = 1
    for b in range(1, target.size):
        while size[b] < target[b]:
            while surplus < target.size and size[surplus] <= target[surplus]:
                surplus += 1
            _shift(state, surplus if surplus < target.size else 0, b, distance, previous, done)
    for a in range(1, target.size):
        while size[a] > target[a]:
            _shift(state, a, 0, distance, previous, done)


@numba.njit(cache=True, nogil=True)
def market_value(state):
    """Sum of tau."""
    tau, head, after = state.tau, state.head, state.after
    value = 0.0
    for k in range(1, head.size):
        item = head[k]
        while item >= 0:
            value += tau[item, k]
            item = after[item]
    return value


@numba.njit(cache=True, nogil=True)
def _clear(tau, order, target, kind, utility):
    """Clear the market of one partition, ``target[1:]``; returns its value."""
    state = empty_market(tau, order)
    largest = np.argmax(target)
    _fill_first(state, largest, target[largest])
    kinds = target.size
    shift_market(state, target, np.empty(kinds), np.empty(kinds, np.int64), np.empty(kinds, np.bool_))
    kind[:] = state.kind
    utility[:] = state.utility
    return market_value(state)


@numba.njit(cache=True, nogil=True)
def _clear_all(tau, order, capacity, items, values):
    """Values of all partitions, each from the one before it."""
    kinds = tau.shape[1]
    distance, previous, done = np.empty(kinds), np.empty(kinds, np.int64), np.empty(kinds, np.bool_)
    target = np.zeros(kinds, dtype=np.int64)
    first_partition(target[1:], capacity, items)
    state = empty_market(tau, order)
    for i in range(values.size):
        shift_market(state, target, distance, previous, done)
        values[i] = market_value(state)
        next_partition(target[1:], items)
