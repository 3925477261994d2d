"""What full and small reads pay at least wherever the chunks of their files are, storage with them."""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit, writable
from ecjax.planning.problem import Problem, prices, usable
from ecjax.planning.read_kinds.model import KindModel
from ecjax.planning.read_kinds.read_terms import Answer, least_places, least_sums

MOST_ENTRIES = (
    600_000  # prices that one evaluation compares, where chunks have some or some nodes may hold none
)
_SPLITS = (0.0, 0.5, 1.0)  # of the price of storage between full and small reads


class _Small(NamedTuple):
    """Loads of small reads by row, node and size, (R, m, S) 1/s."""

    direct: np.ndarray
    joined: np.ndarray
    joined_rate: np.ndarray  # (R,) 1/s, reads


class AnyPlacementTerm:
    """Least prices of reads and chunks over all placements of a problem's rows.

    Full reads of a row take the k cheapest nodes, small ones of one size the cheapest k as data chunks, the most read
    chunk on the cheapest; those of several chunks take as many of the cheapest; degraded ones any k other nodes. That
    all share the chunks of one placement is left aside, but for the price of storage, which is divided between full and
    small reads. Limits per site and node are left aside too.
    """

    def __init__(self, model: KindModel, problem: Problem, theta: float) -> None:
        """From a model of some placement.

        Args:
            model: whose reads these are.
            problem: scaled, with prices.
            theta: s per dollar of mean cost per file.
        """
        small, priced, m = model.small, model.priced, model.problem.nodes.count
        self.columns = priced
        sizes, width = len(model.small_sizes), int(small.k.max())
        self.k, self.rate = model.full_k, model.full_rate
        self.small_k = np.zeros(problem.rows, np.int64)
        self.small_k[small.row] = small.k
        by_chunk = np.zeros((problem.rows, sizes, width))
        alone = small.width == 1
        of = small.row, model.small_class
        np.add.at(by_chunk, (of[0][alone], of[1][alone], small.chunk[alone]), small.rate[alone])
        self.by_chunk = -np.sort(-by_chunk, axis=2)
        self.by_width = np.zeros((problem.rows, sizes, width + 1))  # reads of several chunks
        np.add.at(self.by_width, (of[0][~alone], of[1][~alone], small.width[~alone]), small.rate[~alone])
        reads = self.rate.sum(axis=0), self.by_chunk.sum(axis=(0, 2)), self.by_width.sum(axis=(0, 2))
        self.most = np.tile(np.concatenate([reads[0], reads[1], reads[1] + reads[2]]), (m, 1))
        floor = np.rint(np.asarray(problem.floor)).astype(np.int64)
        total = float(model.moments.rates[1])
        cost = theta / problem.files.count * total * np.asarray(prices(problem))
        allowed = np.asarray(usable(problem))
        self.priced = bool(cost.any())
        if not self.priced and allowed.all():
            self._gather()
            floor, cost = np.zeros(1, np.int64), np.zeros((1, m))
            allowed = np.ones((1, m), bool)
        self.spare = np.maximum(floor - self.k, 0)
        self.placed = np.where(self.small_k > 0, floor, 0)
        self.cost, self.allowed = np.where(allowed, cost, np.inf), writable(allowed)
        rows = max(len(self.k), len(self.small_k))
        self.entries = rows * m * max(self.rate.shape[1], sizes) * (len(_SPLITS) if self.priced else 1)
        self.beside = np.asarray(problem.nodes.background)

    def _gather(self) -> None:
        """Rows with the same k together: what reads of one size pay is linear in their rates."""
        kinds, of = np.unique(self.k, return_inverse=True)
        sizes = self.rate.shape[1]
        rate = np.zeros((len(kinds), sizes, sizes))
        size = np.arange(sizes)
        np.add.at(rate, (of[:, None], size, size), self.rate)
        self.k, self.rate = np.repeat(kinds, sizes), rate.reshape(-1, sizes)
        kinds, of = np.unique(self.small_k, return_inverse=True)
        by_chunk, by_width = (
            np.zeros((len(kinds), *each.shape[1:])) for each in (self.by_chunk, self.by_width)
        )
        np.add.at(by_chunk, of, self.by_chunk)
        np.add.at(by_width, of, self.by_width)
        self.small_k, self.by_chunk, self.by_width = kinds, by_chunk, by_width

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> Answer:
        """See ``ReadTerm``."""
        asked = np.zeros_like(prices)
        columns, total = self.columns, float(self.rate.sum()) * z_full
        if not self.priced:
            paid, places = self._full(prices, 0.0)
            more, loads = self._small(prices, z_joined, 0.0)
            total += float(paid.sum() + more.sum())
            asked[:, columns.full] = places.T @ self.rate
            asked[:, columns.direct] = loads.direct.sum(axis=0)
            asked[:, columns.joined] = loads.joined.sum(axis=0)
            return Answer(total, asked, float(loads.joined_rate.sum()))
        full = [self._full(prices, split) for split in _SPLITS]
        small = [self._small(prices, z_joined, split) for split in _SPLITS]
        each = np.stack([one[0] + other[0] for one, other in zip(full, small, strict=True)])
        best, joined_rate = each.argmax(axis=0), 0.0
        for number in range(len(_SPLITS)):
            mine = best == number
            asked[:, columns.full] += full[number][1][mine].T @ self.rate[mine]
            asked[:, columns.direct] += small[number][1].direct[mine].sum(axis=0)
            asked[:, columns.joined] += small[number][1].joined[mine].sum(axis=0)
            joined_rate += float(small[number][1].joined_rate[mine].sum())
        return Answer(total + float(each.max(axis=0).sum()), asked, joined_rate)

    def _stored(self, part: float) -> np.ndarray:
        """A part of the price of storage at every node, (R, m) s/s."""
        return np.where(self.allowed, part * np.where(self.allowed, self.cost, 0.0), np.inf)

    def _full(self, prices: np.ndarray, split: float) -> tuple[np.ndarray, np.ndarray]:
        """What full reads of each row pay, (R,) s/s, and which nodes they use, (R, m)."""
        mine = self._stored(split)
        paid, places = least_sums(mine + self.rate @ prices[:, self.columns.full].T, self.k)
        return paid + least_sums(np.broadcast_to(mine, places.shape), self.spare)[0], places

    def _small(self, prices: np.ndarray, z_joined: float, split: float) -> tuple[np.ndarray, _Small]:
        """What small reads of each row pay, (R,) s/s, and their loads."""
        columns, rows = self.columns, len(self.small_k)
        stored = np.broadcast_to(self._stored(1 - split), (rows, len(prices)))
        paid = least_sums(stored, self.placed)[0]
        shape = rows, len(prices), self.by_chunk.shape[1]
        loads = _Small(np.zeros(shape), np.zeros(shape), np.zeros(rows))
        alone, joined = (np.ascontiguousarray(prices[:, each].T) for each in (columns.direct, columns.joined))
        reads = self.small_k, self.by_chunk, self.by_width, self.allowed
        _cheapest(*reads, alone, joined, z_joined, paid, loads)
        return paid, loads


@njit()
def _cheapest(small_k, by_chunk, by_width, allowed, alone, joined, z_joined, paid, loads):
    """Small reads to the nodes where they pay least.

    Args:
        small_k: (R,) chunks that decode a file of the row, 0 where it has no small reads.
        by_chunk: (R, S, K) 1/s, reads of one chunk, the most read chunk first.
        by_width: (R, S, K + 1) 1/s, those of several chunks by their number.
        allowed: (R, m) or (1, m), which nodes hold chunks of the row.
        alone: (S, m) s, prices of direct chunks.
        joined: (S, m) s, those of joined ones.
        z_joined: s.
        paid: (R,) s/s; result: more by what these reads pay.
        loads: ``_Small`` of zeros; result: the reads.
    """
    rows, sizes, width = by_chunk.shape
    m = alone.shape[1]
    each, coded, wanted = np.empty(m), np.empty(m), np.empty(m)
    cheap, order, most = np.empty(m, np.int64), np.empty(m, np.int64), small_k.max()
    for size in range(sizes):
        least_places(joined[size], most + 1, cheap)
        for row in range(rows):
            of_row, k = allowed[min(row, len(allowed) - 1)], small_k[row]
            # the price of k chunks beside one on each node: where that is among the cheapest k the next one stands in
            coded[:] = np.inf
            if 0 < k < m:
                least = 0.0
                for place in cheap[:k]:
                    least += joined[size, place]
                coded[:] = least + z_joined
                for place in cheap[:k]:
                    coded[place] = least + (joined[size, cheap[k]] - joined[size, place]) + z_joined
            for j in range(m):
                each[j] = min(alone[size, j], coded[j])
                wanted[j] = each[j] if of_row[j] else np.inf
            for chunk in range(least_places(wanted, width, order)):
                rate, j = by_chunk[row, size, chunk], order[chunk]
                if rate <= 0:
                    continue
                paid[row] += rate * each[j]
                if not coded[j] < alone[size, j]:
                    loads.direct[row, j, size] += rate
                    continue
                loads.joined_rate[row] += rate
                for place in cheap[:k]:
                    loads.joined[row, cheap[k] if place == j else place, size] += rate
            for several in range(width + 1):
                rate = by_width[row, size, several]
                if rate <= 0:
                    continue
                loads.joined_rate[row] += rate
                paid[row] += rate * z_joined
                for j in range(m):
                    wanted[j] = joined[size, j] if of_row[j] else np.inf
                found = least_places(wanted, several, order)
                if found < several:
                    paid[row] = np.inf
                for j in order[:found]:
                    paid[row] += rate * wanted[j]
                    loads.joined[row, j, size] += rate
