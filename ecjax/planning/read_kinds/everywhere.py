"""What full and small reads pay at least wherever the chunks of their files are, storage with them."""

import numpy as np

from ecjax.planning.problem import Problem, prices, usable
from ecjax.planning.read_kinds.model import KindModel
from ecjax.planning.read_kinds.read_terms import least_sums

MOST_ENTRIES = (
    600_000  # prices that one evaluation compares, where chunks have some or some nodes may hold none
)
_SPLITS = (0.0, 0.5, 1.0)  # of the price of storage between full and small reads


class AnyPlacementTerm:
    """Least prices of reads and chunks over all placements of a problem's rows.

    Full reads of a row take the k cheapest nodes, small ones the cheapest k as data chunks, the most read chunk on the
    cheapest; those of several chunks take as many of the cheapest; degraded ones any k other nodes. That all share the
    chunks of one placement is left aside, but for the price of storage, which is divided between full and small reads.
    Limits per site and node are left aside too.
    """

    def __init__(self, model: KindModel, problem: Problem, theta: float) -> None:
        """From a model of some placement.

        Args:
            model: whose reads these are.
            problem: scaled, with prices.
            theta: s per dollar of mean cost per file.
        """
        small, m = model.small, problem.nodes.count
        rate, k = model.full_rate.sum(axis=1), model.full_k
        width = int(small.k.max())
        small_k = np.zeros(problem.rows, np.int64)
        small_k[small.row] = small.k
        by_chunk = np.zeros((problem.rows, width))
        alone = small.width == 1
        np.add.at(by_chunk, (small.row[alone], small.chunk[alone]), small.rate[alone])
        by_chunk = -np.sort(-by_chunk, axis=1)
        by_width = np.zeros((problem.rows, width + 1))  # reads of several chunks
        np.add.at(by_width, (small.row[~alone], small.width[~alone]), small.rate[~alone])
        floor = np.rint(np.asarray(problem.floor)).astype(np.int64)
        total = float(model.moments.rates[1])
        cost = theta / problem.files.count * total * np.asarray(prices(problem))
        allowed = np.asarray(usable(problem))
        if not cost.any() and allowed.all():
            # what reads pay is linear in their rates
            kinds, first, of = np.unique(
                np.stack([k, small_k]), axis=1, return_index=True, return_inverse=True
            )
            of = of.ravel()
            count = kinds.shape[1]
            rate = np.bincount(of, rate, count)
            by_chunk = np.stack([np.bincount(of, column, count) for column in by_chunk.T], axis=1)
            by_width = np.stack([np.bincount(of, column, count) for column in by_width.T], axis=1)
            k, small_k, floor = k[first], small_k[first], floor[first]
            cost, allowed = cost[first], allowed[first]
        self.rate, self.k, self.small_k, self.floor, self.by_chunk = rate, k, small_k, floor, by_chunk
        self.by_width = by_width
        self.cost, self.priced = np.where(allowed, cost, np.inf), bool(cost.any())
        self.allowed = allowed
        self.entries = self.allowed.size * (len(_SPLITS) if self.priced else 1)
        self.beside = np.asarray(problem.nodes.background)
        self.most = np.tile([rate.sum(), by_chunk.sum(), by_chunk.sum() + by_width.sum()], (m, 1))

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> tuple[float, np.ndarray]:
        """See ``ReadTerm``."""
        answers = [self._answer(prices, z_joined, split) for split in (_SPLITS if self.priced else (0.0,))]
        paid = np.stack([each[0] for each in answers])
        best = paid.argmax(axis=0)
        asked = np.zeros_like(prices)
        for number, (_, full, direct, joined) in enumerate(answers):
            mine = best == number
            asked[:, 0] += full[mine].sum(axis=0)
            asked[:, 1] += direct[mine].sum(axis=0)
            asked[:, 2] += joined[mine].sum(axis=0)
        return float(paid.max(axis=0).sum()) + float(self.rate.sum()) * z_full, asked

    def _answer(
        self, prices: np.ndarray, z_joined: float, split: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What each row pays, (R,), and loads (R, m) of its full, direct and joined reads."""
        rows, m = self.allowed.shape
        mine = np.where(self.allowed, split * np.where(self.allowed, self.cost, 0.0), np.inf)
        rest = np.where(self.allowed, (1 - split) * np.where(self.allowed, self.cost, 0.0), np.inf)
        spare = np.maximum(self.floor - self.k, 0)
        paid, full = least_sums(mine + self.rate[:, None] * prices[None, :, 0], self.k)
        paid = paid + least_sums(mine, spare)[0]
        # degraded reads of a chunk on node j take the cheapest others
        coded = np.full((rows, m), np.inf)
        where: dict[int, np.ndarray] = {}
        for k in np.unique(self.small_k[self.small_k > 0]).tolist():
            some = self.small_k == k
            if m <= k:
                continue
            order = np.argsort(prices[:, 2], kind="stable")
            cheap, next_one = order[:k], order[k]
            least = np.full(m, prices[cheap, 2].sum())
            least[cheap] += prices[next_one, 2] - prices[cheap, 2]
            coded[some] = z_joined + least
            taken = np.zeros((m, m))
            taken[:, cheap] = 1.0
            taken[cheap, cheap] = 0.0
            taken[cheap, next_one] = 1.0
            where[k] = taken
        each = np.minimum(prices[None, :, 1], coded)
        order = np.argsort(np.where(self.allowed, each, np.inf), axis=1, kind="stable")[
            :, : self.by_chunk.shape[1]
        ]
        costs = np.take_along_axis(each, order, axis=1)
        with_rates = self.by_chunk > 0
        paid = paid + np.sum(
            np.where(with_rates, self.by_chunk * np.where(with_rates, costs, 0.0), 0.0), axis=1
        )
        placed = np.where(self.small_k > 0, self.floor, 0)
        paid = paid + least_sums(rest, placed)[0]
        at = np.zeros((rows, m))
        np.put_along_axis(at, order, self.by_chunk, axis=1)
        cheaper = coded < prices[None, :, 1]
        joined = np.zeros((rows, m))
        for k, taken in where.items():
            some = self.small_k == k
            joined[some] = (at[some] * cheaper[some]) @ taken
        for several in np.flatnonzero(self.by_width.any(axis=0)).tolist():
            some, rate = self.by_width[:, several] > 0, self.by_width[:, several]
            least, taken = least_sums(
                np.where(self.allowed[some], prices[:, 2], np.inf), np.full(some.sum(), several)
            )
            paid[some] += rate[some] * (z_joined + least)
            joined[some] += rate[some, None] * taken
        return paid, full * self.rate[:, None], at * ~cheaper, joined
