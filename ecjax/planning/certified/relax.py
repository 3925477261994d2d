"""The convex relaxation: every row mixes choices, prices decide which (Dantzig-Wolfe, rows in groups).

Each pass asks every row for its cheapest choice at the prices of the current mixture, adds up the choices of each group
of similar rows, and lets the master problem mix those sums. As prices are few (one per node and chunk size) and groups
give the mixture freedom, some ten passes are enough whatever the number of files. The prices of every pass, with the
sum of the cheapest costs at them, are what the lower bound is made of.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from ecjax.planning.certified import loops
from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.certified.collapse import Collapsed, Gathered, Steps, ends_of
from ecjax.planning.certified.data import Rows, Service, rates_of, sites_of
from ecjax.planning.certified.least_cost import least_costs
from ecjax.planning.certified.master import Columns, Mixture, mix
from ecjax.planning.certified.waits import best_z, slopes, work_of
from ecjax.progress import detail

_ROWS_PER_TASK = 4096
_MOST_TASKS = 32
_BINS_PER_TASK = 128
_MOST_BIN_TASKS = 8
_LEAST_WEIGHT = 1e-9
_REMEMBERED = 10  # passes
# With many nodes prices swing: most passes ask at prices that follow those of the mixture slowly.
_MANY_NODES = 24
_INERTIA = 0.7
_EXACT_EVERY = 4
_OVERLOAD = 1e-4  # of the dearest plan's dollars: what a load of 1 is charged at least


T = TypeVar("T")


@dataclass(frozen=True)
class Prices:
    """Prices of node work, and the sum over rows of the cheapest choices at them."""

    read: np.ndarray  # (m, C) s per 1/s
    write: np.ndarray  # (m, C)
    chunk: np.ndarray  # (m,) s
    cheapest: float  # s
    z: float  # where they come from


@dataclass(frozen=True)
class Relaxed:
    """A mixture of choices close to the best."""

    columns: Columns
    mixture: Mixture
    prices: list[Prices]  # of every pass; the mixture's last
    group: np.ndarray  # (R,)
    kinds: np.ndarray  # (R, m) the choices of columns with price -1
    z: float
    objective: float  # s
    open: float  # s, what the first-order optimality leaves open
    passes: int


class Passes:
    """Passes over the rows, shared out to threads.

    Args:
        service: nodes.
        rows: placement rows.
        threads: at most.
        gathered: the rows by their rates, where passes for another theta share it.
    """

    def __init__(self, service: Service, rows: Rows, threads: int, gathered: Gathered | None = None) -> None:
        self.service, self.rows, self._penalty = service, rows, service.penalty
        self._most = 0.0  # s, what the dollars of any plan are worth at most
        self._gathered = Gathered(rows) if gathered is None else gathered
        # the same parts for any number of threads: sums must not depend on it
        edges = list(range(0, rows.number, max(_ROWS_PER_TASK, -(-rows.number // _MOST_TASKS))))
        self._parts = list(zip(edges, [*edges[1:], rows.number], strict=True))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._count = 0

    def close(self) -> None:
        """End the threads."""
        if self._pool:
            self._pool.shutdown()

    @property
    def steps(self) -> Steps:
        """The rows by class and step of their rate, whatever theta is."""
        return self._gathered.steps

    def with_theta(self, per_dollar: float) -> None:
        """Let a dollar of total cost be worth so many seconds, and no dollars worth an overload."""
        self.rows = self.rows._replace(per_dollar=per_dollar)
        self._most = per_dollar * self.most_dollars()
        penalty = max(self._penalty, _OVERLOAD * self._most)
        self.service = self.service._replace(penalty=penalty)

    def most_dollars(self) -> float:
        """Dollars of any plan, at most."""
        return most_dollars(self.rows)

    def full_price(self, objective: float) -> float:
        """Price of a chunk beyond a node's capacity, s: no node with room is so dear or so slow.

        Args:
            objective: s, of the plan whose chunks are to move. It may be next to nothing where a capacity is broken,
                so that the dollars of any plan count, too, and what a load of 1 is charged.
        """
        return abs(objective) + self._most + self.service.penalty

    def cheapest(
        self, read, write, chunk, group: np.ndarray, groups: int
    ) -> tuple[float, tuple[np.ndarray, ...]]:
        """Sum of the cheapest costs at prices, and loads, chunks, dollars of the choices by group."""

        def part(first, last, out):
            return loops.cheapest(first, last, self.rows, group, read, write, chunk, *out)

        return self._all(part, groups)

    def least(self, read: np.ndarray, chunk: np.ndarray) -> float:
        """Sum of the cheapest costs at prices of reads (m,) and places (m,), where all chunks have one size; s.

        Of many rows no more than that sum: from the ends of the steps of their rates.
        """
        self._count += 1
        detail(f"pass {self._count} over {self.rows.number:,} rows")

        rows, rate, weight = self.ends() or (self.rows, rates_of(self.rows), np.ones(self.rows.number))
        sites, costs = sites_of(self.rows), np.empty(len(rate))

        def part(first: int, last: int) -> None:
            least_costs(first, last, rows, rate, read, chunk, sites, costs)

        self.share_out_bins(len(rate), part)
        return float(weight @ costs)

    def ends(self) -> tuple[Rows, np.ndarray, np.ndarray] | None:
        """Rows that stand for all in the lower bound, their rates and weights; None where all rows do themselves."""
        return ends_of(self.rows, self.steps)

    def collapsed(self, most: int) -> Collapsed:
        """The rows gathered into so many bins, about."""
        return self._gathered.bins(most)

    def share_out(self, part: Callable[[int, int], T]) -> list[T]:
        """What ``part`` returns for all rows, in parts (first, last + 1), in their order for any number of threads."""

        def run(bounds: tuple[int, int]) -> T:
            return part(*bounds)

        return list(self._pool.map(run, self._parts) if self._pool else map(run, self._parts))

    def share_out_bins(
        self, number: int, part: Callable[[int, int], T], least: int = _BINS_PER_TASK
    ) -> list[T]:
        """The same for ``number`` bins, or nodes, in parts of ``least`` at least, which no threads change either."""
        step = max(least, -(-number // _MOST_BIN_TASKS))
        edges = [*range(0, number, step), number]
        bounds = list(zip(edges[:-1], edges[1:], strict=True))

        def run(ends: tuple[int, int]) -> T:
            return part(*ends)

        return list(self._pool.map(run, bounds) if self._pool and len(bounds) > 1 else map(run, bounds))

    def totals(self, kinds: np.ndarray, group: np.ndarray, groups: int) -> tuple[np.ndarray, ...]:
        """Loads, chunks and dollars of given choices by group."""
        sizes = len(self.service.size)

        def part(first, last, out):
            loops.totals(first, last, self.rows, kinds, group, sizes, *out)
            return 0.0

        return self._all(part, groups)[1]

    def _all(self, part, groups: int):
        m = len(self.rows.chunk_price)
        width = len(self.service.size) * (2 if self.rows.written else 1)
        self._count += 1
        detail(f"pass {self._count} over {self.rows.number:,} rows")

        def run(first, last):
            out = np.zeros((groups, m, width)), np.zeros((groups, m)), np.zeros(groups)
            return part(first, last, out), out

        # in the order of the parts, so that rounding does not depend on the threads
        results = self.share_out(run)
        sums = tuple(sum(out[index] for _, out in results) for index in range(3))
        return float(sum(value for value, _ in results)), sums


def groups_of(service: Service, rows: Rows) -> np.ndarray:
    """Group of every row: rows whose reads weigh alike against their storage cost think alike of prices."""
    groups = min(rows.number, max(16, len(rows.chunk_price) // 3))
    return ranks_of(service, rows) * groups // rows.number


def ranks_of(service: Service, rows: Rows) -> np.ndarray:
    """Rank of every row by how its reads weigh against its storage cost, (R,)."""
    work = np.add.reduceat(np.append(rows.read * service.size[rows.grid], 0.0), rows.start[:-1])
    work = np.where(np.diff(rows.start) > 0, work, 0.0)
    dollars = rows.chunks * rows.chunk_price.mean() + rows.bytes * rows.byte_price.mean()
    weight = work / np.where(dollars > 0, dollars, 1.0)
    rank = np.empty(rows.number, np.int64)
    rank[np.argsort(weight, kind="stable")] = np.arange(rows.number)
    return rank


def relax(
    passes: Passes,
    group: np.ndarray,
    kinds: np.ndarray,
    z: float,
    tol: float,
    most: int,
    fixed_z: bool = False,
) -> Relaxed:
    """Mix choices until first order promises a relative gain below ``tol``, or for ``most`` passes.

    Args:
        passes: the rows.
        group: (R,) groups.
        kinds: (R, m) choices to start from.
        z: s, to start from, or to stay at.
        tol: relative.
        most: passes.
        fixed_z: whether z stays.
    """
    *_, last = mixtures(passes, group, kinds, z, tol, most, fixed_z)
    return last


def mixtures(
    passes: Passes, group: np.ndarray, kinds: np.ndarray, z: float, tol: float, most: int, fixed_z: bool
) -> Iterator[Relaxed]:
    """The mixture after every pass."""
    service, rows = passes.service, passes.rows
    groups = int(group.max()) + 1
    loads, chunks, dollars = passes.totals(kinds, group, groups)
    columns = Columns(loads, chunks, dollars, np.arange(groups), np.full(groups, -1))
    weight = np.ones(groups)
    point = slopes(service, loads.sum(0), z)
    full = passes.full_price(point.value + dollars.sum() + abs(z))
    current = Mixture(
        weight, loads.sum(0), point, np.zeros(len(chunks[0])), point.value, float(dollars.sum())
    )
    prices: list[Prices] = []
    many = len(service.mean) > _MANY_NODES
    for number in range(most):
        slope, chunk = current.slopes, current.chunk_price
        exact = not many or number % _EXACT_EVERY == 0 or number == most - 1
        price_set = Prices(slope.read, slope.write, chunk, 0.0, z)
        if not exact:
            price_set = _between(prices[-1], price_set)
        cheapest, sums = passes.cheapest(price_set.read, price_set.write, price_set.chunk, group, groups)
        prices.append(replace(price_set, cheapest=cheapest))
        limited = np.isfinite(rows.capacity)
        over = np.maximum((current.weight @ columns.chunks - rows.capacity)[limited], 0).sum() * full
        upper = current.dollars + float((_joined(slope, current.loads) * current.loads).sum())
        upper += float(chunk[limited] @ rows.capacity[limited]) + over
        objective = z * (not service.alone) + current.latency + current.dollars + over
        relaxed = Relaxed(
            columns, current, prices, group, kinds, z, objective, max(upper - cheapest, 0.0), number + 1
        )
        if exact:
            yield relaxed
            if relaxed.open <= tol * abs(objective):
                return
        keep = current.weight > _LEAST_WEIGHT
        if limited.any():
            # prices of places may jump between two ends: only together do the columns of both show what is between
            keep |= columns.price > number - _REMEMBERED
        loads, chunks, dollars = sums
        more = Columns(loads, chunks, dollars, np.arange(groups), np.full(groups, number))
        columns = columns.take(keep).plus(more)
        weight = np.concatenate([current.weight[keep], np.zeros(groups)])
        weight /= np.bincount(columns.group, weight, groups)[columns.group]
        current = mix(service, columns, weight, z, rows.capacity, full, 0.05 * tol)
        if not fixed_z:
            z = best_z(service, current.loads)
            point = slopes(service, current.loads, z)
            current = Mixture(
                current.weight, current.loads, point, current.chunk_price, point.value, current.dollars
            )


def _between(past: Prices, new: Prices) -> Prices:
    read, write, chunk = (
        _INERTIA * getattr(past, name) + (1 - _INERTIA) * getattr(new, name)
        for name in ("read", "write", "chunk")
    )
    return Prices(read, write, chunk, 0.0, new.z)


def _joined(point, loads: np.ndarray) -> np.ndarray:
    return point.read if loads.shape[1] == point.read.shape[1] else np.hstack([point.read, point.write])


def most_dollars(rows: Rows) -> float:
    """Dollars of all rows, each chunk at the dearest node."""
    each = rows.chunks * rows.chunk_price.max() + rows.bytes * rows.byte_price.max()
    if len(rows.surcharge):
        each = each + rows.surcharge.max(axis=1)
    dollars = float(np.maximum(rows.length, rows.hot) @ each)
    return dollars + (float(rows.hot @ rows.reading.max(axis=1)) if len(rows.reading) else 0.0)


def loads_of(passes: Passes, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Loads (m, X), chunks (m,) and dollars in s of whole choices."""
    loads, chunks, dollars = passes.totals(kinds, np.zeros(len(kinds), np.int64), 1)
    return loads[0], chunks[0], float(dollars[0])


def fits(rows: Rows, chunks: np.ndarray) -> bool:
    """Whether no node holds more chunks (m,) than it can."""
    return bool(np.all(chunks <= rows.capacity))


class Worth(NamedTuple):
    """What whole choices come to."""

    z: float  # s, the best for them
    objective: float  # s, at high and finite prices where a node is overloaded
    kept: bool  # whether no node is overloaded or holds more chunks than it can


def worth(passes: Passes, kinds: np.ndarray) -> Worth:
    """Best z and objective of whole choices, and whether they keep the limits of all nodes."""
    service = passes.service
    loads, chunks, dollars = loads_of(passes, kinds)
    z = best_z(service, loads)
    objective = slopes(service, loads, z).value + dollars + (0.0 if service.alone else z)
    stable = bool(work_of(service, loads)[:, 0].max() < 1)
    return Worth(z, objective, stable and fits(passes.rows, chunks))


def respond(
    passes: Passes,
    kinds: np.ndarray,
    z: float | None,
    chunk_price: np.ndarray,
    sweeps: int,
    tol: float,
    seed: int,
    which: np.ndarray | None = None,
) -> Worth:
    """Best responses, sweep after sweep, until one gains relatively less than ``tol``; changes ``kinds``.

    Only the rows ``which`` respond, where given. Sweeps go on while a node holds more chunks than it can: the objective
    rises as they move.
    """
    service, rows = passes.service, passes.rows
    sizes = len(service.size)
    random = np.random.default_rng(seed)
    if z is None:
        z = float(service.mean.mean())
    last = np.inf
    for _ in range(sweeps):
        loads, chunks, dollars = loads_of(passes, kinds)
        reads = np.ascontiguousarray(loads[:, :sizes])
        if reads.any():
            z = best_z(service, loads)
        value = slopes(service, loads, z).value + dollars + (0.0 if service.alone else z)
        if not last - value > tol * abs(value) and kinds.any() and fits(rows, chunks):
            break
        last = value if kinds.any() else np.inf
        work = work_of(service, loads)
        full = passes.full_price(value)
        order = random.permutation(rows.number if which is None else which)
        if loops.respond(order, service, rows, kinds, work, reads, chunks, z, chunk_price, full) == 0:
            break
    return worth(passes, kinds)


def relieve(passes: Passes, kinds: np.ndarray, chunk_price: np.ndarray, seed: int) -> Worth:
    """Rows that load overloaded nodes respond as if dollars counted nothing, ever more until no node is overloaded.

    For plans at prices of a dollar at which the high price of an overload does not keep rows from cheap nodes; changes
    ``kinds``.

    Args:
        passes: the rows.
        kinds: (R, m) choices.
        chunk_price: (m,) s.
        seed: of the rows that respond.
    """
    per_dollar, random, count = passes.rows.per_dollar, np.random.default_rng(seed), 1
    reached, written = worth(passes, kinds), passes.rows.write.any()
    passes.with_theta(0.0)
    try:
        while not reached.kept and count <= 2 * passes.rows.number:
            load = work_of(passes.service, loads_of(passes, kinds)[0])[:, 0]
            full = kinds[:, load >= 1]
            there = np.flatnonzero((full != NONE if written else full == HOT).any(axis=1))
            if not len(there):
                break
            which = random.choice(there, min(count, len(there)), replace=False)
            reached = respond(passes, kinds, None, chunk_price, 1, 0.0, seed, which)
            count *= 2
    finally:
        passes.with_theta(per_dollar)
    return worth(passes, kinds)
