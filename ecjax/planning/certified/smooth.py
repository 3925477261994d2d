"""The relaxation of rows whose chunks all have one size, by the smoothed dual: prices, loads, and marginals of bins."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.collapse import Collapsed
from ecjax.planning.certified.data import Rows, Service, rates_of, sites_of
from ecjax.planning.certified.nodes import NodeMinima
from ecjax.planning.certified.relax import Passes, Prices
from ecjax.planning.certified.solvers import HostSolver, Solver
from ecjax.planning.smoothed import latency, newton, response
from ecjax.planning.smoothed.backend import NUMPY
from ecjax.planning.smoothed.host_demand import host_demand
from ecjax.planning.smoothed.newton import Cluster, Demand, Settings, Solution
from ecjax.planning.smoothed.program import Request

_FIRST_LOAD = 0.95  # of the busiest node at the start, where the rows ask for more than there is
_ANEW = 1e-3  # temperature at which prices for another z start
_HANDED_OVER = 1e-3  # temperature at which more bins take over
_COLDER = (1e-6, 1e-7)  # temperatures after the usual last one, where that leaves a gap
_TURNS_COLDER = 200
_COARSE_BINS = 192
_LEAST_FINE_BINS = 512  # where there are so many rows
_MOST_FINE_BINS = 3000
_FINE = 60_000  # bins times nodes
_NODES_PER_TASK = 16


@dataclass(frozen=True)
class Relaxation:
    """A mixture of choices close to the best, and prices that prove it.

    Attributes:
        prices: with the sum of the cheapest choices of all rows at them.
        loads: (m, 1) 1/s, of the mixture.
        hot: (G, m) share of a bin's rows that read from each node.
        stored: (G, m) share that keep a chunk there.
        z: s.
        objective: s, of the mixture.
        turns: passes over the bins.
    """

    prices: Prices
    loads: np.ndarray
    hot: np.ndarray
    stored: np.ndarray
    z: float
    objective: float
    turns: int


class Level(NamedTuple):
    """Bins of one fineness, and what they answer to prices."""

    collapsed: Collapsed
    rows: response.Rows
    demand: Demand


def fine_bins(nodes: int) -> int:
    """Most bins of the relaxation on so many nodes."""
    return int(np.clip(_FINE // nodes, _LEAST_FINE_BINS, _MOST_FINE_BINS))


class Bins:
    """The bins of a problem, ready to be priced again and again: few to start with, more to end with.

    Args:
        passes: the rows, with theta set.
        tol: relative; what a relaxation may leave between its mixture and what its prices prove.
        solver: of the smoothed dual; default: this process.
    """

    def __init__(self, passes: Passes, tol: float = 1e-5, solver: Solver | None = None) -> None:
        service, rows = passes.service, passes.rows
        self._solver = HostSolver() if solver is None else solver
        m = len(service.mean)
        self.passes = passes
        self.tol = tol
        self.minima = NodeMinima(service, rows, None, partial(passes.share_out_bins, least=_NODES_PER_TASK))
        self.cluster = Cluster(_law(service), rows.capacity)
        self.sites = sites_of(rows)
        self.fine = self._level(passes.collapsed(fine_bins(m)))
        few = len(self.fine.rows.rate) <= 2 * _COARSE_BINS
        self.coarse = self.fine if few else self._level(passes.collapsed(_COARSE_BINS))

    def _level(self, collapsed: Collapsed) -> Level:
        rows = _bins(self.passes.rows, collapsed)
        limited = bool(np.isfinite(self.cluster.capacity).any())
        return Level(collapsed, rows, host_demand(rows, self.sites, limited, self.passes.share_out_bins))

    def relax(
        self, z: float | None = None, start: Relaxation | None = None, fixed_z: bool = False
    ) -> Relaxation:
        """The relaxation, for the best z nearby or for a given one.

        Args:
            z: s, to start from; None for that of equal loads.
            start: prices to start from.
            fixed_z: whether z stays.
        """
        law, settings = self.cluster.law, Settings(fixed_z=fixed_z)
        if start is None:
            z, read, place = self.start(z)
        else:
            assert z is not None
            settings = settings._replace(first=_ANEW)
            at_start, here = (latency.cost(np, law, start.loads[:, 0], each).slope for each in (start.z, z))
            read = np.maximum(start.prices.read[:, 0] + here - at_start, 0.2 * start.prices.read[:, 0])
            place = start.prices.chunk
        turns = 0
        if start is None and self.coarse is not self.fine:
            rough = self._solve(self.coarse, settings._replace(last=_HANDED_OVER), z, read, place)
            z, read, place, turns = float(rough.z), rough.read, rough.place, int(rough.turns)
            settings = settings._replace(first=_HANDED_OVER)
        relaxation = self._relaxation(self._solve(self.fine, settings, z, read, place), turns)
        return self._colder(relaxation, settings)

    def start(self, z: float | None = None) -> tuple[float, np.ndarray, np.ndarray]:
        """Where prices start: z, s, and prices of reads and of places (m,), those of nodes that are equally busy.

        Args:
            z: s; None for that of equal loads.
        """
        law, held = self.cluster.law, self.cluster.capacity
        loads = self._equal_loads()
        z = float(latency.best_z(NUMPY, law, loads)) if z is None else z
        read = latency.cost(np, law, loads, z).slope
        place = np.zeros(len(read))
        limited = np.isfinite(held)
        scale = self._reads() * read.mean() / len(read)
        place[limited] = scale / np.maximum(held[limited], 1.0)
        return z, read, place

    def _colder(self, relaxation: Relaxation, settings: Settings) -> Relaxation:
        """The same at lower temperatures, where it leaves a gap: rows that are many and alike keep a share in dearer
        choices until it is very cold. What closes most is taken.
        """
        proven = self.proven(relaxation)
        for temperature in _COLDER:
            left = relaxation.objective - proven
            if left <= self.tol * abs(relaxation.objective):
                break
            settings = settings._replace(
                first=newton.COOLING * settings.last, last=temperature, turns=_TURNS_COLDER
            )
            z, read, place = relaxation.z, relaxation.prices.read[:, 0], relaxation.prices.chunk
            other = self._relaxation(self._solve(self.fine, settings, z, read, place), relaxation.turns)
            more = self.proven(other)
            if not abs(other.objective - more) < left:
                return replace(relaxation, turns=other.turns)
            relaxation, proven = other, more
        return relaxation

    def proven(self, relaxation: Relaxation) -> float:
        """What the prices of a relaxation prove at its z, s."""
        prices, capacity = relaxation.prices, self.cluster.capacity
        minima = self.minima.sums(prices, np.array([relaxation.z]), 0.0)[0]
        held = float(prices.chunk @ np.where(np.isfinite(capacity), capacity, 0.0))
        z = 0.0 if self.passes.service.alone else relaxation.z
        return float(z + minima + prices.cheapest - held)

    def _solve(
        self, level: Level, settings: Settings, z: float, read: np.ndarray, place: np.ndarray
    ) -> Solution:
        request = Request(self.cluster, level.rows, self.sites, settings, z, read, place)
        return self._solver.solve(request, level.demand)

    def at_loads(self, loads: np.ndarray, z: float) -> Relaxation:
        """Prices that belong to the loads of a plan, (m,) 1/s; its marginals are left out."""
        law = self.cluster.law
        inside = np.minimum(loads, latency.most(law))
        nothing = np.zeros((0, len(loads)))
        prices = self._prices(latency.cost(np, law, inside, z).slope, np.zeros(len(loads)), z)
        return Relaxation(prices, inside[:, None], nothing, nothing, z, z, 0)

    def first_z(self) -> float:
        """The best z for equal loads, s."""
        return float(latency.best_z(NUMPY, self.cluster.law, self._equal_loads()))

    def priced(self, relaxation: Relaxation, z: float) -> Relaxation:
        """The same mixture with prices for another z: they move along with the slopes at its loads."""
        law, loads = self.cluster.law, relaxation.loads[:, 0]
        change = latency.cost(np, law, loads, z).slope - latency.cost(np, law, loads, relaxation.z).slope
        read = np.maximum(relaxation.prices.read[:, 0] + change, 0.0)
        return replace(relaxation, prices=self._prices(read, relaxation.prices.chunk, z))

    def _relaxation(self, solution: Solution, turns: int) -> Relaxation:
        hot, cold, _ = solution.answer.detail
        z = float(solution.z)
        return Relaxation(
            self._prices(solution.read, solution.place, z),
            solution.loads[:, None],
            hot,
            hot + cold,
            z,
            float(solution.objective),
            turns + int(solution.turns),
        )

    def _prices(self, read: np.ndarray, place: np.ndarray, z: float) -> Prices:
        passes = self.passes
        nothing = np.zeros((len(read), 1))
        cheapest = passes.least(read, place)
        return Prices(read[:, None], nothing, place, cheapest, z)

    def _reads(self) -> float:
        rows = self.coarse.rows
        return float(np.sum(rows.weight * rows.hot * rows.rate))

    def _equal_loads(self) -> np.ndarray:
        """Rates of reads that leave all nodes equally busy, as far as they are not busier already."""
        law = self.cluster.law
        total = self._reads()
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            room = np.maximum(middle - law.background[0], 0) / law.moments[0]
            low, high = (middle, high) if room.sum() < total else (low, middle)
        load = min(high, 0.5 * (_FIRST_LOAD + max(_FIRST_LOAD, float(law.background[0].max()))))
        return np.maximum(load - law.background[0], 0) / law.moments[0]


def _law(service: Service) -> latency.NodeLaw:
    return latency.NodeLaw(
        np.ascontiguousarray(service.moments[:, :, 0]),
        np.ascontiguousarray(service.mean[:, 0]),
        np.ascontiguousarray(service.variance[:, 0]),
        np.ascontiguousarray(service.background.T),
        service.rate,
        1.0 * service.alone,
    )


def _bins(rows: Rows, collapsed: Collapsed) -> response.Rows:
    at = collapsed.example
    dollars = rows.chunks[at, None] * rows.chunk_price + rows.bytes[at, None] * rows.byte_price
    if len(rows.surcharge):
        dollars = dollars + rows.surcharge[at]
    cost = rows.per_dollar * dollars
    if len(rows.allowed):
        cost = np.where(rows.allowed[at], cost, np.inf)
    reading = np.zeros((0, cost.shape[1]))
    if len(rows.reading):
        # those of the example, at the bin's mean rate
        example = rates_of(rows)[at]
        scale = np.where(example > 0, collapsed.rate / np.where(example > 0, example, 1.0), 0.0)
        reading = rows.per_dollar * rows.reading[at] * scale[:, None]
    return response.Rows(
        weight=collapsed.size,
        rate=collapsed.rate,
        hot=rows.hot[at],
        extra=np.maximum(rows.length[at] - rows.hot[at], 0),
        chunks=rows.chunks[at],
        cold_cost=cost,
        reading=reading,
        # terms of polynomials of more chunks than rows have would be cut off early
        per_site=max(min(rows.per_site, int(np.maximum(rows.hot, rows.length).max())), 1),
    )
