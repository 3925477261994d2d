"""What prices prove where z of full and of joined reads lie within ranges: a rectangle of the search of ``bound``.

The latency of a node is replaced by its tangent in z, so that the least is at a corner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.read_kinds.model import KindModel, Loads, Moments, node_work, sojourn
from ecjax.planning.read_kinds.node_minimum import node_minima
from ecjax.planning.read_kinds.read_terms import ReadTerm
from ecjax.planning.read_kinds.spread import KindPlan
from ecjax.queueing import waiting

FAR = 1e9  # s: z of joined reads beyond which nothing is known but that it is large
_ROUNDS = 100  # of better prices
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
    """The bound on a rectangle of z, by prices that are improved by subgradients."""

    def __init__(self, model: KindModel, plan: KindPlan, reads: ReadTerm, tol: float, goal: float) -> None:
        self.model, self.reads, self.latency = model, reads, goal
        moments = model.moments
        self.size = int(np.argmax(model.full_rate.sum(axis=0)))
        self.rates = np.asarray(moments.rates)
        self.total = float(moments.rates[1])
        connect = np.asarray(moments.connect)
        small, full = np.asarray(moments.small[0]), np.asarray(moments.full[self.size])
        steady = [np.maximum(each[1] - each[0] ** 2, 0.0) + connect[1] for each in (small, full)]
        other = reads.beside
        alone = [small[0] + connect[0], steady[0], full[0] + connect[0], steady[1]]
        self.nodes = np.ascontiguousarray(np.stack([*other, *small, *full, *alone]).T)
        self.most = np.ascontiguousarray(reads.most[:, [1, 2, 0]])
        self.aim(tol)
        self.evaluations = self.cells = 0
        # a kind without reads has no z
        self.z = (plan.z[0] if moments.rates[0] > 0 else 0.0), (plan.z[1] if np.isfinite(plan.z[1]) else 0.0)
        self.loads = Loads(*map(jnp.asarray, plan.loads))
        self.far = FAR
        self.least = np.zeros((len(self.nodes), 3))  # where nodes were met at their least, to begin there
        self.mended: list[tuple[tuple[float, float], np.ndarray]] = []

    def aim(self, tol: float) -> None:
        """Find the nodes' minima as finely as a bound to this relative tolerance deserves."""
        self.close = 0.1 * tol * self.latency * self.total / len(self.nodes)

    def prices(self, z: tuple[float, float], which: list[int]) -> list[np.ndarray]:
        """Prices for these z of full and joined reads, (m, 3) s each: slopes at the plan's loads, mended.

        Args:
            z: s.
            which: of ``mended``; as many prices come.
        """
        slopes = self.slopes(z)
        found = [np.maximum(slopes + self.mended[each][1], 0.0) for each in which]
        if z[1] == FAR:
            for prices in found:
                prices[:, 2] = 0.0
        return found

    def slopes(self, z: tuple[float, float]) -> np.ndarray:
        """Slopes of the latency at the plan's loads, (m, 3) s."""
        slope = _SLOPE(self.loads, self.model.moments, *z)
        at_loads = np.stack(
            [np.asarray(slope.full)[self.size], *(np.asarray(part)[0] for part in slope[1:3])], axis=1
        )
        if z[1] == FAR:
            at_loads[:, 2] = 0.0
        return at_loads

    def near(self, z: tuple[float, float]) -> list[int]:
        """Which three of ``mended`` are nearest to these z."""
        ends = [np.minimum(each, 2 * self.latency) for each in z]
        apart = [
            np.hypot(*(np.subtract(np.minimum(there, 2 * self.latency), ends))) for there, _ in self.mended
        ]
        return np.argsort(apart, kind="stable")[:3].tolist()

    def dual(
        self, prices: np.ndarray, z: np.ndarray, paid_z: tuple[float, float]
    ) -> tuple[float, np.ndarray]:
        """The bound at prices, s/s, and a subgradient, (m, 3) 1/s.

        Args:
            prices: (m, 3) s.
            z: (4,) as ``node_minimum`` takes it.
            paid_z: s, that full and joined reads pay.
        """
        nodes, cells = node_minima(
            self.nodes, self.most, np.ascontiguousarray(prices), z, self.close, self.least
        )
        paid, asked = self.reads(prices, *paid_z)
        self.evaluations += 1
        self.cells += cells
        return nodes + paid, asked - self.least

    def at(self, z: tuple[float, float]) -> float:
        """The bound at one z, s; at ``FAR`` that of joined reads which take no less than the others, at most."""
        fixed = np.array([z[0], 0.0, z[1], 0.0])
        paid = z[0], min(z[1], self.far)
        values = [self.dual(each, fixed, paid)[0] for each in self.prices(z, self.near(z))]
        return max(values) / self.total

    def ascend(self, z: tuple[float, float], goal: float, enough: float) -> float:
        """Better prices at one z, by Polyak's steps towards a goal, s; returns the bound there, s."""
        fixed = np.array([z[0], 0.0, z[1], 0.0])
        paid = z[0], min(z[1], self.far)
        plain = self.slopes(z)
        tries = [plain, *self.prices(z, self.near(z))]
        values = [self.dual(each, fixed, paid)[0] for each in tries]
        prices = best_prices = tries[int(np.argmax(values))]
        best, step, since, goal = -np.inf, 1.0, 0, goal * self.total
        for _ in range(_ROUNDS):
            value, slope = self.dual(prices, fixed, paid)
            since += 1
            if value > best + 1e-6 * goal:
                best, best_prices, since = value, prices, 0
            if best >= enough * self.total or not slope.any():
                break
            if since == _HALVING:
                prices, step, since = best_prices, 0.5 * step, 0
                if step < 1e-2:
                    break
                value, slope = self.dual(prices, fixed, paid)
            prices = np.maximum(prices + step * (goal - value) / float(np.sum(slope * slope)) * slope, 0.0)
            if z[1] == FAR:
                prices[:, 2] = 0.0
        self.mended.append((z, best_prices - plain))
        return best / self.total

    def __call__(self, full: Range, joined: Range, enough: float = np.inf) -> float:
        """No more than the latency of any plan with z within these ranges, s; looked for until it is ``enough``."""
        beyond = joined.high == FAR
        middle = full.middle, joined.middle
        best = -np.inf
        for prices in self.prices(middle, self.near(middle)):
            least = np.inf
            for z_full in {full.low, full.high}:
                # of z that may be as large as it will, h is not below 0, and that is all
                for z_joined in {joined.low, joined.low if beyond else joined.high}:
                    ahead = 0.0 if beyond else z_joined - middle[1]
                    z = np.array([middle[0], z_full - middle[0], middle[1], ahead])
                    least = min(least, self.dual(prices, z, (z_full, z_joined))[0])
            best = max(best, least)
            if best >= enough * self.total:
                break
        return float(best) / self.total


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


_SLOPE = jax.jit(jax.grad(_latency_at))
