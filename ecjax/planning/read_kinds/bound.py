"""A lower bound on the mean latency bound of every choice of read kinds and spread, by prices of node work.

A kind of reads is a column of the price decomposition. For prices p of a full, direct or degraded chunk at every node
any plan's latency, summed over the reads of a second, is at least

    sum over nodes of [min over loads of the node's latency - p . loads]
      + sum over rows of the least prices of a full read, and lambda_full z_full
      + sum over small reads of rate min(p_d, z_degraded + the k least p_g of the other nodes).

The latency of a node is not convex in the loads of its kinds, so that slopes at a plan's loads are not the best prices:
these are improved by subgradients. The bound holds for the z that prices are used with: z is searched by rectangles (of
z of full and of degraded reads), where the latency of a node is replaced by its tangent in z, so that the least is at a
corner. All rectangles are proved to a coarse target before any to a finer one, until the work that is allowed is done.
Full reads have one chunk size here and small reads one size; with more, or where so few evaluations are allowed that
they prove nothing, there is no bound.
"""

import heapq
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.read_kinds.model import KindModel, Loads, Moments, node_work, sojourn
from ecjax.planning.read_kinds.node_minimum import node_minima
from ecjax.planning.read_kinds.spread import KindPlan
from ecjax.queueing import waiting

_FAR = 1e9  # s: z of degraded reads beyond which nothing is known but that it is large
# evaluations times nodes, and times what reads look at; fewer evaluations than so many prove nothing
_MOST_NODES, _MOST_ENTRIES, _FEWEST = 600_000, 400_000_000, 400
_MOST_CELLS = 60_000_000  # of nodes' loads, over all evaluations
_LEVELS = (256, 64, 16, 4, 1)  # times the tolerance: all z are proved to the first before any to the second
_NARROW = 1e-4  # width of a rectangle, against the latency, that is not split
_ROUNDS = 100  # of better prices
_HALVING = 15  # rounds without gain after which steps are halved


class Range(NamedTuple):
    """Values of a z: s, s."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Its middle; of one without an end that end."""
        return _FAR if self.high == _FAR else 0.5 * (self.low + self.high)


class ReadTerm(Protocol):
    """What reads pay at least, given prices of chunks."""

    most: np.ndarray  # (m, 3) full, direct and degraded chunks that a node may have to serve, 1/s
    beside: np.ndarray  # (3, m) load, A_2, A_3 of other work that nodes have at least
    entries: int  # prices that a call compares

    def __call__(self, prices: np.ndarray, z_full: float, z_degraded: float) -> tuple[float, np.ndarray]:
        """S/s; and the loads (m, 3), 1/s, of these answers.

        Args:
            prices: (m, 3) s, of full, direct and degraded chunks.
            z_full: s.
            z_degraded: s.
        """
        ...


def lower_bound(
    model: KindModel, plan: KindPlan, tol: float, goal: float | None = None, reads: ReadTerm | None = None
) -> float | None:
    """Lower bound of the mean latency bound, s; None where there is none.

    Args:
        model: full and small reads on a placement.
        plan: a good one.
        tol: relative; how far below the plan the search may stop.
        goal: s, the plan's own value of what is bounded; None: its latency.
        reads: what reads pay at least, given prices; None: on the placement of the model.
    """
    sizes = len(model.small_sizes), int(np.sum(model.full_rate.sum(axis=0) > 0))
    widths = [*model.small.k, *model.full_k[model.full_rate.sum(axis=1) > 0]]
    reads = reads or PlacementTerm(model)
    most = min(_MOST_NODES // model.problem.nodes.count, _MOST_ENTRIES // reads.entries)
    if max(sizes) > 1 or min(widths) < 2 or not np.isfinite(plan.latency) or most < _FEWEST:
        return None
    goal = plan.latency if goal is None else goal
    bound = _Bound(model, plan, reads, tol, goal)
    bound.ascend(bound.z, goal, goal * (1 - 0.3 * tol))
    boxes = _Boxes(bound)
    for part in _LEVELS:
        if part * tol < 1:
            bound.aim(part * tol)
            _search(boxes, goal * (1 - part * tol), part * tol, most)
    return min(boxes.least, goal)


class _Boxes:
    """Rectangles that together are all z, the one with the least bound first."""

    def __init__(self, bound: "_Bound") -> None:
        self.bound, self.count = bound, 0
        self.heap = list[tuple[float, int, tuple[Range, Range]]]()
        full_rate = float(bound.rates[0])
        high_full = bound.latency * bound.total / full_rate if full_rate > 0 else 0.0
        bound.far = top = float(np.max(bound.prices(bound.z, [0])[0][:, 1]))
        for full_z in _around(high_full, bound.z[0]):
            for degraded_z in [*_around(top, bound.z[1]), Range(top, _FAR)]:
                self.add((full_z, degraded_z), 0.0)

    @property
    def least(self) -> float:
        """S, the bound on all z."""
        return self.heap[0][0]

    def add(self, box: tuple[Range, Range], least: float, enough: float = np.inf) -> None:
        """With the bound of a larger one, s; ``enough``: s, of which no more need be proved now."""
        heapq.heappush(self.heap, (max(least, self.bound(*box, enough)), self.count, box))
        self.count += 1

    def take(self) -> tuple[float, tuple[Range, Range]]:
        """The one with the least bound, which is no longer among them."""
        least, _, box = heapq.heappop(self.heap)
        return least, box


def _search(boxes: _Boxes, target: float, tol: float, most: int) -> None:
    """Divide those that stay below a target, s, or find better prices for them.

    Args:
        boxes: changed.
        target: s; lower where prices cannot prove it.
        tol: relative; how far below what prices prove the target may be.
        most: evaluations of the bound, over all calls.
    """
    bound = boxes.bound
    priced = set[tuple[float, float]]()
    while boxes.least < target and bound.evaluations < most and bound.cells < _MOST_CELLS:
        least, box = boxes.take()
        middle = box[0].middle, box[1].middle
        value = bound.at(middle)
        # what the width of the rectangle loses falls to a quarter in its halves
        if value - 0.25 * (value - least) < target and middle not in priced:
            # prices that were made for another z
            priced.add(middle)
            enough = target * (1 + 0.5 * tol) + value - least
            enough = max(min(bound.latency * (1 - 0.3 * tol), enough), target)
            value = bound.ascend(middle, target * (1 + 2 * tol), enough)
            if value < target:
                target = value * (1 - tol)
            boxes.add(box, least, target)
            continue
        full, degraded = box
        wide = degraded.high < _FAR and degraded.high - degraded.low > _NARROW * bound.latency
        long = full.high - full.low > _NARROW * bound.latency
        if not (wide or long):
            heapq.heappush(boxes.heap, (least, boxes.count, box))
            break
        here = Range(middle[0], middle[0]), Range(middle[1], middle[1])
        if long and (not wide or bound(here[0], degraded) > bound(full, here[1])):
            for part in (Range(full.low, middle[0]), Range(middle[0], full.high)):
                boxes.add((part, degraded), least, target)
        else:
            for part in (Range(degraded.low, middle[1]), Range(middle[1], degraded.high)):
                boxes.add((full, part), least, target)


def _around(high: float, z: float) -> list[Range]:
    """Parts of a range from 0, narrow around z."""
    if high <= 0:
        return [Range(0.0, 0.0)]
    width = 0.02 * high
    edges = np.unique(np.clip([0.0, z - 4 * width, z - width, z + width, z + 4 * width, high], 0.0, high))
    return [Range(*pair) for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


class _Bound:
    """The bound on a rectangle of z."""

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
        self.far = _FAR
        self.least = np.zeros((len(self.nodes), 3))  # where nodes were met at their least, to begin there
        self.mended: list[tuple[tuple[float, float], np.ndarray]] = []

    def aim(self, tol: float) -> None:
        """Find the nodes' minima as finely as a bound to this relative tolerance deserves."""
        self.close = 0.1 * tol * self.latency * self.total / len(self.nodes)

    def prices(self, z: tuple[float, float], which: list[int]) -> list[np.ndarray]:
        """Prices for these z of full and degraded reads, (m, 3) s each: slopes at the plan's loads, mended.

        Args:
            z: s.
            which: of ``mended``; as many prices come.
        """
        slopes = self.slopes(z)
        found = [np.maximum(slopes + self.mended[each][1], 0.0) for each in which]
        if z[1] == _FAR:
            for prices in found:
                prices[:, 2] = 0.0
        return found

    def slopes(self, z: tuple[float, float]) -> np.ndarray:
        """Slopes of the latency at the plan's loads, (m, 3) s."""
        slope = _SLOPE(self.loads, self.model.moments, *z)
        at_loads = np.stack(
            [np.asarray(slope.full)[self.size], *(np.asarray(part)[0] for part in slope[1:3])], axis=1
        )
        if z[1] == _FAR:
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
            paid_z: s, that full and degraded reads pay.
        """
        nodes, cells = node_minima(
            self.nodes, self.most, np.ascontiguousarray(prices), z, self.close, self.least
        )
        paid, asked = self.reads(prices, *paid_z)
        self.evaluations += 1
        self.cells += cells
        return nodes + paid, asked - self.least

    def at(self, z: tuple[float, float]) -> float:
        """The bound at one z, s; at ``_FAR`` that of degraded reads which take no less than the others, at most."""
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
            if z[1] == _FAR:
                prices[:, 2] = 0.0
        self.mended.append((z, best_prices - plain))
        return best / self.total

    def __call__(self, full: Range, degraded: Range, enough: float = np.inf) -> float:
        """No more than the latency of any plan with z within these ranges, s; looked for until it is ``enough``."""
        beyond = degraded.high == _FAR
        middle = full.middle, degraded.middle
        best = -np.inf
        for prices in self.prices(middle, self.near(middle)):
            least = np.inf
            for z_full in {full.low, full.high}:
                # of z that may be as large as it will, h is not below 0, and that is all
                for z_degraded in {degraded.low, degraded.low if beyond else degraded.high}:
                    ahead = 0.0 if beyond else z_degraded - middle[1]
                    z = np.array([middle[0], z_full - middle[0], middle[1], ahead])
                    least = min(least, self.dual(prices, z, (z_full, z_degraded))[0])
            best = max(best, least)
            if best >= enough * self.total:
                break
        return float(best) / self.total


class PlacementTerm:
    """What reads pay at least on the placement of a model."""

    def __init__(self, model: KindModel) -> None:
        self.model, self.beside = model, np.asarray(model.moments.beside)
        self.entries = model.full_nodes.size + model.small.others.size
        self.rate = model.full_rate.sum(axis=1)
        small, m = model.small, model.problem.nodes.count
        there = small.others >= 0
        possible = there.sum(axis=1) >= small.k
        stored = np.zeros((len(self.rate), m))
        row, place = np.nonzero(model.full_nodes >= 0)
        stored[row, model.full_nodes[row, place]] = 1.0
        coded = np.bincount(
            small.others[there & possible[:, None]],
            np.broadcast_to(small.rate[:, None], there.shape)[there & possible[:, None]],
            m,
        )
        self.most = np.stack([self.rate @ stored, np.bincount(small.node, small.rate, m), coded], axis=1)

    def __call__(self, prices: np.ndarray, z_full: float, z_degraded: float) -> tuple[float, np.ndarray]:
        """See ``ReadTerm``."""
        model, small = self.model, self.model.small
        asked = np.zeros_like(prices)
        paid = float(self.rate.sum()) * z_full
        if paid > 0 or self.rate.any():
            there = model.full_nodes >= 0
            costs, places = least_sums(np.where(there, prices[model.full_nodes, 0], np.inf), model.full_k)
            paid += float(self.rate @ costs)
            asked[:, 0] = counted(model.full_nodes, places, self.rate, len(prices))
        others = np.where(small.others >= 0, prices[small.others, 2], np.inf)
        costs, places = least_sums(others, small.k)
        direct, coded = prices[small.node, 1], z_degraded + costs
        cheaper = coded < direct
        asked[:, 1] = np.bincount(small.node, small.rate * ~cheaper, len(prices))
        asked[:, 2] = counted(small.others, places, small.rate * cheaper, len(prices))
        return paid + float(small.rate @ np.minimum(direct, coded)), asked


def least_sums(costs: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the k least of each row, (B,), infinite where fewer are finite; and which they are, (B, N) bool."""
    order = np.argsort(costs, axis=1, kind="stable")
    chosen = np.zeros(costs.shape, bool)
    np.put_along_axis(chosen, order, np.arange(costs.shape[1]) < k[:, None], axis=1)
    total = np.sum(np.where(chosen, costs, 0.0), axis=1)
    return np.where(k <= costs.shape[1], total, np.inf), chosen


def counted(nodes: np.ndarray, chosen: np.ndarray, rate: np.ndarray, count: int) -> np.ndarray:
    """Sum of the rates of the rows that chose each of ``count`` nodes, (count,); -1 stands for none."""
    there = chosen & (nodes >= 0) & (rate > 0)[:, None]
    return np.bincount(nodes[there], np.broadcast_to(rate[:, None], nodes.shape)[there], count)


def _latency_at(loads: Loads, moments: Moments, z_full: float, z_degraded: float) -> jax.Array:
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
        + jnp.sum(loads.degraded * above(small, z_degraded))
    )


_SLOPE = jax.jit(jax.grad(_latency_at))
