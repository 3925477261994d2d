"""What prices prove where z of full and of joined reads lie within ranges: a rectangle of the search of ``bound``.

The latency of a node is replaced by its tangent in z, so that the least is at a corner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.certified.node_levels import DIRECT, Chunks, Corners, node_minima
from ecjax.planning.read_kinds.model import KindModel, Loads, Moments, node_work, sojourn
from ecjax.planning.read_kinds.node_minimum import node_minima as one_size_minima
from ecjax.planning.read_kinds.price_model import PriceModel
from ecjax.planning.read_kinds.read_terms import Answer, ReadTerm
from ecjax.planning.read_kinds.spread import KindPlan
from ecjax.programs import program
from ecjax.queueing import waiting

FAR = 1e9  # s: z of joined reads beyond which nothing is known but that it is large
_MOST_PRICES = 1200  # that are found by linear programs
_LEVELS_PER_LOADS = 2  # work of a cell of levels, for every corner and column, against one of loads
_ROUNDS = 100  # of better prices
_WIDEST, _NARROWEST, _WIDTH = 4.0, 0.02, 0.5  # of the box of prices, relative to them
_HALVING = 15  # rounds without gain after which steps are halved


class Range(NamedTuple):
    """Values of a z: s, s."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Its middle; of one without an end that end."""
        return FAR if self.high == FAR else 0.5 * (self.low + self.high)


class RectangleBound:
    """The bound on a rectangle of z, by prices that are made better at single z."""

    def __init__(self, model: KindModel, plan: KindPlan, reads: ReadTerm, tol: float, goal: float) -> None:
        self.model, self.reads, self.latency = model, reads, goal
        moments, priced = model.moments, model.priced
        self.rates = np.asarray(moments.rates)
        self.total = float(moments.rates[1])
        connect = np.asarray(moments.connect)
        small, full = np.asarray(moments.small), np.asarray(moments.full)
        each = np.concatenate([full, small, small])  # (C, 3, m)
        kind = np.full(priced.number, DIRECT)
        kind[priced.full], kind[priced.joined] = 0, 1
        self.chunks = Chunks(
            np.ascontiguousarray(each.transpose(1, 2, 0)),
            np.ascontiguousarray((each[:, 0] + connect[0]).T),
            np.ascontiguousarray((np.maximum(each[:, 1] - each[:, 0] ** 2, 0.0) + connect[1]).T),
            kind,
            np.ascontiguousarray(np.asarray(reads.beside).T),
        )
        self.most = np.ascontiguousarray(reads.most)
        self.one_size = priced.number == 3
        mean, variance = self.chunks.mean, self.chunks.variance
        # as ``node_minimum`` takes them
        alone = [mean[:, 1], variance[:, 1], mean[:, 0], variance[:, 0]]
        self.nodes = np.ascontiguousarray(np.stack([*reads.beside, *small[0], *full[0], *alone]).T)
        # where loads have two dimensions steps along subgradients take less work than linear programs save
        self.cutting = not self.one_size and self.most.size <= _MOST_PRICES
        self.cuts = PriceModel(self.chunks, float(self.rates[0]))
        self.aim(tol)
        self.evaluations = self.cells = 0
        # a kind without reads has no z
        self.z = (plan.z[0] if moments.rates[0] > 0 else 0.0), (plan.z[1] if np.isfinite(plan.z[1]) else 0.0)
        self.loads = Loads(*map(jnp.asarray, plan.loads))
        self.far = FAR
        self.least = np.zeros(self.most.shape)  # where nodes were met at their least, to begin there
        self.mended: list[tuple[tuple[float, float], np.ndarray]] = []

    def aim(self, tol: float) -> None:
        """Find the nodes' minima as finely as a bound to this relative tolerance deserves."""
        self.close = 0.1 * tol * self.latency * self.total / len(self.nodes)

    def prices(self, z: tuple[float, float], which: list[int]) -> list[np.ndarray]:
        """Prices for these z of full and joined reads, (m, C) s each: slopes at the plan's loads, mended.

        Args:
            z: s.
            which: of ``mended``; as many prices come.
        """
        slopes = self.slopes(z)
        mended = [np.maximum(slopes + self.mended[each][1], 0.0) for each in which]
        if z[1] == FAR:
            for prices in mended:
                prices[:, self.model.priced.joined] = 0.0
        return mended

    def slopes(self, z: tuple[float, float]) -> np.ndarray:
        """Slopes of the latency at the plan's loads, (m, C) s."""
        slope = _SLOPE(self.loads, self.model.moments, *z)
        columns = slope.full, slope.direct, slope.joined
        at_loads = np.concatenate(list(map(np.asarray, columns))).T.copy()
        if z[1] == FAR:
            at_loads[:, self.model.priced.joined] = 0.0
        return at_loads

    def near(self, z: tuple[float, float]) -> list[int]:
        """Which three of ``mended`` are nearest to these z."""
        # those that are far apart beyond where z matters are alike
        most = 2 * max(self.latency, self.far if self.far < FAR else 0.0)
        ends = np.minimum(z, most)
        apart = [np.hypot(*np.subtract(np.minimum(there, most), ends)) for there, _ in self.mended]
        return np.argsort(apart, kind="stable")[:3].tolist()

    def dual(self, prices: np.ndarray, corners: Corners, paid_z: np.ndarray) -> tuple[np.ndarray, Answer]:
        """The bound at prices at every corner, (Q,) s/s, and what reads do at the first one.

        Args:
            prices: (m, C) s, at the centre.
            corners: of z.
            paid_z: (Q, 2) s, that full and joined reads pay.
        """
        prices = np.ascontiguousarray(prices)
        if self.one_size:
            nodes, cells = self._one_size(prices, corners)
        else:
            by_node, cells = node_minima(self.chunks, self.most, prices, corners, self.close, self.least)
            nodes = by_node.sum(axis=0)
            cells *= _LEVELS_PER_LOADS * len(corners.ahead) * prices.shape[1]
        answers = [
            self.reads(prices + more, *each)
            for more, each in zip(corners.dearer, paid_z.tolist(), strict=True)
        ]
        self.evaluations += len(paid_z)
        self.cells += cells
        return nodes + np.array([each.paid for each in answers]), answers[0]

    def _one_size(self, prices: np.ndarray, corners: Corners) -> tuple[np.ndarray, int]:
        """As ``node_minima``, where loads have two dimensions."""
        total, cells = np.empty(len(corners.ahead)), 0
        most = np.ascontiguousarray(self.most[:, [1, 2, 0]])
        for corner in reversed(range(len(total))):
            ahead = corners.ahead[corner]
            z = np.array([corners.centre[0], ahead[0], corners.centre[1], ahead[1]])
            there = prices + corners.dearer[corner]
            total[corner], steps = one_size_minima(self.nodes, most, there, z, self.close, self.least)
            cells += steps
        return total, cells

    def _at(self, z: tuple[float, float]) -> tuple[Corners, np.ndarray]:
        """One z as a rectangle, and what reads pay; at ``FAR`` joined ones take no less than the others, at most."""
        corners = Corners(np.array(z), np.zeros((1, 2)), np.zeros((1, *self.most.shape)))
        return corners, np.array([[z[0], min(z[1], self.far)]])

    def at(self, z: tuple[float, float]) -> float:
        """The bound at one z, s."""
        values = [self.dual(each, *self._at(z))[0][0] for each in self.prices(z, self.near(z))]
        return float(max(values)) / self.total

    def ascend(self, z: tuple[float, float], goal: float, enough: float) -> float:
        """Better prices at one z; returns the bound there, s.

        Args:
            z: s.
            goal: s, more than which cannot be proved.
            enough: s, what need not be bettered.
        """
        plain = self.slopes(z)
        tries = [plain, *self.prices(z, self.near(z))]
        values = [self.proved(each, z) for each in tries]
        start = tries[int(np.argmax(values))]
        if self.cutting:
            best, prices = self._cut(z, start, max(values), enough * self.total)
        else:
            best, prices = self._climb(z, start, goal * self.total, enough * self.total)
        self.mended.append((z, prices - plain))
        return best / self.total

    def proved(self, prices: np.ndarray, z: tuple[float, float]) -> float:
        """The bound at one z, s/s; answers are kept."""
        corners, paid_z = self._at(z)
        (value,), answer = self.dual(prices, corners, paid_z)
        if self.cutting:
            self.cuts.add(self.least.copy(), answer, prices, tuple(paid_z[0].tolist()))
        return float(value)

    def _cut(
        self, z: tuple[float, float], prices: np.ndarray, best: float, enough: float
    ) -> tuple[float, np.ndarray]:
        """Cutting planes, in a box around the best prices that grows where the model of them is right."""
        width, paid_z = _WIDTH, self._at(z)[1][0]
        settled = 2 * len(self.nodes) * self.close
        least_width = 0.1 * prices.mean(axis=0)
        for _ in range(_ROUNDS):
            if best >= enough:
                break
            around = width * np.maximum(prices, least_width)
            if z[1] == FAR:
                around[:, self.model.priced.joined] = 0.0
            model = self.cuts.best(
                z, tuple(paid_z.tolist()), np.maximum(prices - around, 0.0), prices + around
            )
            if model is None:
                break
            most, better = model
            if most - best <= settled:
                if width >= _WIDTH:
                    break
                width = _WIDTH
                continue
            value = self.proved(better, z)
            if value > best + 0.1 * (most - best):
                width = min(2 * width, _WIDEST) if value > best + 0.5 * (most - best) else width
                best, prices = value, better
            else:
                width = max(0.6 * width, _NARROWEST)
        return best, prices

    def _climb(
        self, z: tuple[float, float], prices: np.ndarray, goal: float, enough: float
    ) -> tuple[float, np.ndarray]:
        """Polyak's steps along subgradients towards a goal."""
        there = self._at(z)
        best_prices, best, step, since = prices, -np.inf, 1.0, 0
        for _ in range(_ROUNDS):
            (value,), answer = self.dual(prices, *there)
            slope = answer.loads - self.least
            since += 1
            if value > best + 1e-6 * goal:
                best, best_prices, since = float(value), prices, 0
            if best >= enough or not slope.any():
                break
            if since == _HALVING:
                prices, step, since = best_prices, 0.5 * step, 0
                if step < 1e-2:
                    break
                (value,), answer = self.dual(prices, *there)
                slope = answer.loads - self.least
            prices = np.maximum(prices + step * (goal - value) / float(np.sum(slope * slope)) * slope, 0.0)
            if z[1] == FAR:
                prices[:, self.model.priced.joined] = 0.0
        return best, best_prices

    def __call__(self, full: Range, joined: Range, enough: float = np.inf) -> float:
        """No more than the latency of any plan with z within these ranges, s; looked for until it is ``enough``."""
        beyond = joined.high == FAR
        middle = full.middle, joined.middle
        # of z that may be as large as it will, h is not below 0, and that is all
        ends = [sorted({full.low, full.high}), sorted({joined.low, joined.low if beyond else joined.high})]
        paid = np.array([(z_full, z_joined) for z_full in ends[0] for z_joined in ends[1]])
        ahead = paid - middle
        if beyond:
            ahead[:, 1] = 0.0
        same = np.zeros((len(ahead), *self.most.shape))
        change = same if self.one_size else self._change(middle, ahead)
        most = np.abs(change).max(axis=0)
        best = -np.inf
        for prices in self.prices(middle, self.near(middle)[: None if self.one_size else 2]):
            # of no price more than all of it: slopes say little about what is far
            part = np.minimum(1.0, prices / np.maximum(most, 1e-300))
            for dearer in (same,) if self.one_size else (part * change, same):
                value = self.dual(prices, Corners(np.array(middle), ahead, dearer), paid)[0].min()
                best = max(best, float(value))
                if best >= enough * self.total:
                    return best / self.total
        return best / self.total

    def _change(self, middle: tuple[float, float], ahead: np.ndarray) -> np.ndarray:
        """How prices change to the corners (Q, 2) of a rectangle of z, (Q, m, C) s: along a plane, as the slopes do."""
        change = np.zeros((len(ahead), *self.most.shape))
        for kind, far in enumerate(np.abs(ahead).max(axis=0).tolist()):
            if far > 0:
                low, high = list(middle), list(middle)
                low[kind], high[kind] = middle[kind] - far, middle[kind] + far
                rise = (self.slopes((high[0], high[1])) - self.slopes((low[0], low[1]))) / (2 * far)
                change += ahead[:, kind, None, None] * rise
        return change


def _latency_at(loads: Loads, moments: Moments, z_full: float, z_joined: float) -> jax.Array:
    """What reads of a second wait and are served for, s/s, with z fixed."""
    work = node_work(loads, moments)
    wait = waiting(work[0], work[1], work[2])
    full, small = (sojourn(each, moments.connect, wait) for each in (moments.full, moments.small))

    def above(delay: tuple[jax.Array, jax.Array], z: float) -> jax.Array:
        d = delay[0] - z
        return 0.5 * (d + jnp.sqrt(d * d + delay[1]))

    return (
        jnp.sum(loads.full * above(full, z_full))
        + jnp.sum(loads.direct * small[0])
        + jnp.sum(loads.joined * above(small, z_joined))
    )


_SLOPE = program(jax.grad(_latency_at))
