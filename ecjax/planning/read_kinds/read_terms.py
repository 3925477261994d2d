"""What reads pay at least, given prices of chunks: on a placement here, wherever chunks are in ``everywhere``."""

from typing import NamedTuple, Protocol

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.read_kinds.model import KindModel


class Answer(NamedTuple):
    """What reads do, given prices of chunks.

    Attributes:
        paid: s/s.
        loads: (m, C) 1/s, of the chunks that they take.
        joined_rate: 1/s, reads that pay z of joined ones.
    """

    paid: float
    loads: np.ndarray
    joined_rate: float


class ReadTerm(Protocol):
    """What reads pay at least, given prices of chunks."""

    most: np.ndarray  # (m, C) chunks that a node may have to serve, 1/s, as in ``PricedChunks``
    beside: np.ndarray  # (3, m) load, A_2, A_3 of other work that nodes have at least
    entries: int  # prices that a call compares

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> Answer:
        """The cheapest answer.

        Args:
            prices: (m, C) s, as in ``PricedChunks``.
            z_full: s.
            z_joined: s.
        """
        ...


class PlacementTerm:
    """What reads pay at least on the placement of a model."""

    def __init__(self, model: KindModel) -> None:
        self.model, self.beside = model, np.asarray(model.moments.beside)
        self.entries = model.full_nodes.size * model.full_rate.shape[1] + model.small.others.size
        self.rate = model.full_rate
        small, priced, m = model.small, model.priced, model.problem.nodes.count
        there = small.others >= 0
        possible = there.sum(axis=1) >= small.k
        self.alone = small.width == 1
        self.several = np.where(self.alone[:, None], -1, small.nodes)
        self.most = np.zeros((m, priced.number))
        stored = np.zeros((m, len(self.rate)))
        row, place = np.nonzero(model.full_nodes >= 0)
        stored[model.full_nodes[row, place], row] = 1.0
        self.most[:, priced.full] = stored @ self.rate
        self.most[:, priced.direct] = self._by_size(small.nodes[:, :1], self.alone[:, None], small.rate)
        self.most[:, priced.joined] = self._by_size(small.others, there & possible[:, None], small.rate)
        self.most[:, priced.joined] += self._by_size(self.several, self.several >= 0, small.rate)

    def _by_size(self, nodes: np.ndarray, chosen: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Chunks that nodes serve for small reads of each size, (m, S) 1/s."""
        model = self.model
        count, sizes = model.problem.nodes.count, len(model.small_sizes)
        if sizes == 1:
            return counted(nodes, chosen, rate, count)[:, None]
        # a node and a size as one number
        of = np.where(nodes >= 0, nodes * sizes + model.small_class[:, None], -1)
        return counted(of, chosen, rate, count * sizes).reshape(count, sizes)

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> Answer:
        """See ``ReadTerm``."""
        model, small, priced = self.model, self.model.small, self.model.priced
        asked = np.zeros_like(prices)
        paid = float(self.rate.sum()) * z_full
        if self.rate.any():
            # what all full reads of a row pay for a node: they use the same ones
            nodes = model.full_nodes
            each = np.einsum("rnf,rf->rn", prices[:, priced.full][nodes], self.rate)
            costs, places = least_sums(np.where(nodes >= 0, each, np.inf), model.full_k)
            paid += float(costs.sum())
            for column in range(priced.full.stop):
                asked[:, column] = counted(nodes, places, self.rate[:, column], len(prices))
        size = model.small_class
        alone_price, joined_price = prices[:, priced.direct], prices[:, priced.joined]
        others = np.where(small.others >= 0, joined_price[small.others, size[:, None]], np.inf)
        costs, places = least_sums(others, small.k)
        several = np.sum(np.where(self.several >= 0, joined_price[self.several, size[:, None]], 0.0), axis=1)
        direct = np.where(self.alone, alone_price[small.node, size], z_joined + several)
        coded = z_joined + costs
        cheaper = coded < direct
        asked[:, priced.direct] = self._by_size(
            small.nodes[:, :1], (~cheaper & self.alone)[:, None], small.rate
        )
        asked[:, priced.joined] = self._by_size(small.others, places, small.rate * cheaper)
        asked[:, priced.joined] += self._by_size(self.several, self.several >= 0, small.rate * ~cheaper)
        joined_rate = float(small.rate @ (cheaper | ~self.alone))
        return Answer(paid + float(small.rate @ np.minimum(direct, coded)), asked, joined_rate)


def least_sums(costs: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the k least of each row, (B,), infinite where fewer are finite; and which they are, (B, N) bool."""
    return least_of_rows(np.ascontiguousarray(costs, float), np.ascontiguousarray(k, np.int64))


@njit(inner=True)
def least_places(costs, count, places):
    """Places of the ``count`` least, if there are so many, least first, of equal ones the first; and their number.

    Numba's sort takes seconds to compile, and sorts what nobody asks for.
    """
    found = 0
    for place in range(len(costs)):
        if found < count:
            found += 1
        elif not costs[place] < costs[places[found - 1]]:
            continue
        at = found - 1
        while at > 0 and costs[place] < costs[places[at - 1]]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place
    return found


@njit()
def least_of_rows(costs, k):
    """As ``least_sums``; of equal ones the first. Arrays in C order, k (B,) int64."""
    rows, width = costs.shape
    total, chosen = np.zeros(rows), np.zeros((rows, width), np.bool_)
    places = np.empty(width, np.int64)
    for row in range(rows):
        if k[row] <= 0:
            continue
        for place in places[: least_places(costs[row], k[row], places)]:
            chosen[row, place] = True
        # in the order of the columns
        for place in range(width):
            if chosen[row, place]:
                total[row] += costs[row, place]
        if k[row] > width:
            total[row] = np.inf
    return total, chosen


def counted(nodes: np.ndarray, chosen: np.ndarray, rate: np.ndarray, count: int) -> np.ndarray:
    """Sum of the rates of the rows that chose each of ``count`` nodes, (count,); -1 stands for none."""
    there = chosen & (nodes >= 0) & (rate > 0)[:, None]
    return np.bincount(nodes[there], np.broadcast_to(rate[:, None], nodes.shape)[there], count)
