"""The optimum of a tiny planning problem, by branch and bound over single chunks with SciPy inside.

The plan returned is feasible and its objective exact. That no plan is better rests on SLSQP finding, from several
starts, the least value over probabilities and z for every branch of the search. For one chunk size and a fixed z these
are convex problems. Mixed sizes have local minima: small files gather on a node that large ones leave to them.
"""

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np
from planning.brute_model import Model, least_z, model_of
from scipy.optimize import linprog, minimize

MOST_LOAD = 1 - 1e-7  # rho < 1 as a closed set; no optimum is nearer to 1, where the latency has a pole
TIE = 3e-8  # relative: branches that can gain less than this are not opened
UNDECIDED, OUT, KEPT = 0, 1, 2  # what a branch says of a chunk


@dataclass(frozen=True)
class Optimum:
    """The best plan; r files, m nodes."""

    objective: float  # s, latency + theta cost / r
    stored: np.ndarray  # (r, m) bool
    probabilities: np.ndarray  # (r, m)
    z: float  # s, minus infinity where every file that is read has k = 1
    latency: float  # s, with one z for all files
    cost: float  # dollars per period


@dataclass(frozen=True)
class Limits:
    """What a placement must keep to, beyond the floor."""

    allowed: np.ndarray  # (r, m) bool
    sites: list[np.ndarray]  # nodes (m,) bool of every site
    per_site: float
    capacity: np.ndarray  # (m,) infinite without a limit


@dataclass(frozen=True)
class Point:
    """A solution of a relaxation: stored is between 0 and 1."""

    value: float
    reads: np.ndarray
    stored: np.ndarray
    z: float


class Relaxation:
    """The least objective where some chunks are kept, some are out and the others are kept by a share in [0, 1].

    Variables: reads of every chunk that is not out, the kept share of every undecided one, z.
    """

    def __init__(self, model: Model, limits: Limits, weight: float, decided: np.ndarray):
        self.model, self.weight = model, weight
        self.open, self.kept = decided == UNDECIDED, (decided == KEPT).astype(float)
        self.may_read = decided != OUT
        reads, shares = int(self.may_read.sum()), int(self.open.sum())
        self.size = reads + shares
        self.read_at = np.full(decided.shape, -1)
        self.read_at[self.may_read] = np.arange(reads)
        self.share_at = np.full(decided.shape, -1)
        self.share_at[self.open] = reads + np.arange(shares)
        self.most, self.bound, self.equal, self.total = self._constraints(limits)

    def _constraints(self, limits: Limits):
        """Rows of ``most x <= bound`` and ``equal x = total``; the first m rows of ``most`` are the node loads."""
        model, (files, nodes) = self.model, self.open.shape
        most, bound = [], []
        load = np.zeros((nodes, self.size))
        for i, j in np.argwhere(self.may_read):
            load[j, self.read_at[i, j]] = model.rate[i] * model.moments[0, i, j]
        for i, j in np.argwhere(self.open):
            load[j, self.share_at[i, j]] = model.write_rate[i] * model.moments[0, i, j]
        fixed = model.work(np.zeros_like(self.kept), self.kept)[0]
        most.extend(load)
        bound.extend(MOST_LOAD - fixed)
        for i, j in np.argwhere(self.open):
            row = np.zeros(self.size)
            row[self.read_at[i, j]], row[self.share_at[i, j]] = 1, -1
            most.append(row)
            bound.append(0.0)

        def at_most(chunks: np.ndarray, limit: float, sign: int = 1) -> None:
            row = np.zeros(self.size)
            row[self.share_at[chunks & self.open]] = sign
            if np.isfinite(limit):
                most.append(row)
                bound.append(sign * (limit - self.kept[chunks].sum()))

        for i in range(files):
            own = np.zeros(self.open.shape, bool)
            own[i] = True
            at_most(own, model.floor[i], sign=-1)
            for site in limits.sites:
                at_most(own & site, limits.per_site)
        for j in range(nodes):
            own = np.zeros(self.open.shape, bool)
            own[:, j] = True
            at_most(own, limits.capacity[j])
        equal = np.zeros((files, self.size))
        for i, j in np.argwhere(self.may_read):
            equal[i, self.read_at[i, j]] = 1
        return np.array(most), np.array(bound), equal, model.k

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reads, stored = np.zeros(self.open.shape), self.kept.copy()
        reads[self.may_read] = x[self.read_at[self.may_read]]
        stored[self.open] = x[self.share_at[self.open]]
        return reads, stored

    def value(self, x: np.ndarray, z: float) -> tuple[float, np.ndarray, float]:
        """The objective and its slopes by x and z."""
        reads, stored = self.unpack(x)
        model = self.model
        value, by_reads, by_stored, by_z = model.latency(reads, stored, z)
        value += self.weight * (np.vdot(stored, model.price) + np.vdot(reads, model.reading))
        slope = np.zeros(self.size)
        slope[self.read_at[self.may_read]] = (by_reads + self.weight * model.reading)[self.may_read]
        slope[self.share_at[self.open]] = (by_stored + self.weight * model.price)[self.open]
        return value, slope, by_z

    def linear(self, slope: np.ndarray) -> np.ndarray | None:
        """Minimiser of a linear function over the constraints; None where they contradict each other."""
        found = linprog(slope, self.most, self.bound, self.equal, self.total, bounds=(0, 1), method="highs")
        return found.x if found.status == 0 else None

    def least_load(self) -> np.ndarray | None:
        """The point with the smallest largest load; None where the constraints contradict each other."""
        nodes = self.open.shape[1]
        column = np.zeros(len(self.bound))
        column[:nodes] = -1
        bound = self.bound.copy()
        bound[:nodes] -= MOST_LOAD  # load - t <= 0 beside what is fixed
        found = linprog(
            np.append(np.zeros(self.size), 1.0),
            np.column_stack([self.most, column]),
            bound,
            np.column_stack([self.equal, np.zeros(len(self.total))]),
            self.total,
            bounds=[(0, 1)] * self.size + [(0, None)],
            method="highs",
        )
        return found.x[:-1] if found.status == 0 and found.x[-1] <= MOST_LOAD else None

    def solve(
        self, starts: int, random: np.random.Generator, known: list[Point]
    ) -> tuple[list[Point], float] | None:
        """The minima found, best first, and a lower bound; None where there is no point.

        Descents start at the point of the smallest largest load, near ``starts`` random vertices, and at the best of
        the minima ``known`` from other branches. The bound is the least value of the tangent at the best point:
        the value itself but for what SLSQP left.
        """
        least_load = self.least_load()
        if least_load is None:
            return None
        points = [least_load, *self._known(known)]
        for _ in range(starts):
            vertex = self.linear(random.normal(size=self.size))
            if vertex is not None:
                points.append((least_load + 2 * vertex) / 3)
        found: list[tuple[float, np.ndarray, float]] = []
        for value, x, z in (self._descend(point, 1e-10) for point in points):
            if all(abs(value - other) > 1e-6 * abs(value) for other, *_ in found):
                found.append((value, x, z))
        found.sort(key=lambda minimum: minimum[0])
        value, x, z = found[0] = self._descend(found[0][1], 1e-15)  # as far as rounding lets it
        minima = [Point(value, *self.unpack(x), z) for value, x, z in found]
        return minima, value - self._gap(x, z)

    def _known(self, known: list[Point]) -> list[np.ndarray]:
        """The best of the known minima that lies within the constraints, if one does."""
        found = []
        for point in known:
            x = np.zeros(self.size)
            x[self.read_at[self.may_read]] = point.reads[self.may_read]
            x[self.share_at[self.open]] = np.maximum(point.stored, point.reads)[self.open]
            if not np.any(point.reads[~self.may_read] > 1e-9) and np.all(self.most @ x <= self.bound + 1e-9):
                found.append((self.value(x, point.z)[0], len(found), x))
        return [x for *_, x in sorted(found, key=lambda each: each[:2])[:1]]

    def _gap(self, x: np.ndarray, z: float) -> float:
        """How far the tangent at x falls within the constraints."""
        slope = self.value(x, z)[1]
        vertex = self.linear(slope)
        return 0.0 if vertex is None else max(0.0, float(slope @ (x - vertex)))

    def _descend(self, x: np.ndarray, tolerance: float) -> tuple[float, np.ndarray, float]:
        z = least_z(self.model, *self.unpack(x))
        scale = abs(self.value(x, z)[0])

        def function(y: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope, by_z = self.value(y[:-1], y[-1] * scale)
            return value / scale, np.append(slope / scale, by_z)

        most = np.column_stack([self.most, np.zeros(len(self.most))])
        equal = np.column_stack([self.equal, np.zeros(len(self.equal))])
        found = minimize(
            function,
            np.append(x, z / scale),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * self.size + [(None, None)],
            constraints=[
                {"type": "eq", "fun": lambda y: equal @ y - self.total, "jac": lambda y: equal},
                {"type": "ineq", "fun": lambda y: self.bound - most @ y, "jac": lambda y: -most},
            ],
            options={"ftol": tolerance, "maxiter": 300},
        )
        end = np.clip(found.x[:-1], 0, 1)
        if np.all(self.most @ end <= self.bound + 1e-9) and np.allclose(
            self.equal @ end, self.total, 0, 1e-9
        ):
            x = end
        z = least_z(self.model, *self.unpack(x))
        return self.value(x, z)[0], x, z


def limits_of(problem, site=None, per_site=None, capacity=None, allowed=None) -> Limits:
    """Limits of a placement: those of the problem unless others are given."""
    shape = (len(problem.files.rate), len(problem.nodes.connect_mean))
    per_site = problem.per_site if per_site is None else per_site
    site = problem.site if site is None else site
    capacity = problem.capacity if capacity is None else capacity
    allowed = problem.allowed if allowed is None else allowed
    names = np.zeros(shape[1]) if per_site is None else np.asarray(site)
    return Limits(
        allowed=np.ones(shape, bool) if allowed is None else np.asarray(allowed, bool),
        sites=[names == name for name in np.unique(names)],
        per_site=np.inf if per_site is None else float(per_site),
        capacity=np.full(shape[1], np.inf) if capacity is None else np.asarray(capacity, float),
    )


def keeps(stored: np.ndarray, model: Model, limits: Limits) -> bool:
    """Whether a placement keeps to the floor and the limits."""
    return bool(
        np.all(stored.sum(axis=1) >= model.floor)
        and not np.any(stored & ~limits.allowed)
        and all(np.all(stored[:, site].sum(axis=1) <= limits.per_site) for site in limits.sites)
        and np.all(stored.sum(axis=0) <= limits.capacity)
    )


class Search:
    """Best-first branch and bound: the branch with the smallest bound is split by its most divided chunk."""

    def __init__(self, model: Model, limits: Limits, weight: float):
        self.model, self.limits, self.weight = model, limits, weight
        mixed = np.ptp(model.moments, axis=1).max() > 1e-12 * model.moments.max()
        self.starts = 6 if mixed else 0
        self.random = np.random.default_rng(0)
        self.known: list[Point] = []  # minima that differ from each other
        self.tried: set[bytes] = set()
        self.best: Point | None = None

    def relax(self, decided: np.ndarray) -> tuple[Point, float] | None:
        """The least point of a branch and a lower bound; None where the branch is empty."""
        relaxation = Relaxation(self.model, self.limits, self.weight, decided)
        found = relaxation.solve(self.starts, self.random, self.known)
        if found is None:
            return None
        minima, bound = found
        for point in minima:
            if all(np.abs(point.reads - other.reads).max() > 1e-3 for other in self.known):
                self.known.append(point)
        return minima[0], bound

    def attempt(self, stored: np.ndarray) -> None:
        """Try a placement, once; the best one is kept."""
        if stored.tobytes() in self.tried or not keeps(stored, self.model, self.limits):
            return
        self.tried.add(stored.tobytes())
        found = self.relax(np.where(stored, KEPT, OUT))
        if found is not None and (self.best is None or found[0].value < self.best.value):
            self.best = found[0]

    def round(self, point: Point) -> None:
        """Placements near a relaxed one: every chunk that is kept at all, and those kept for more than half."""
        for level in (1e-6, 0.5):
            self.attempt(point.stored > level)

    def run(self) -> Point | None:
        """The best point with every chunk kept or not; None where there is none."""
        start = np.where(self.limits.allowed, UNDECIDED, OUT)
        found = self.relax(start)
        if found is None:
            return None
        order = count()
        heap = [(found[1], next(order), start, found[0])]
        while heap:
            bound, _, decided, point = heapq.heappop(heap)
            if self.best is not None and bound >= self.best.value - TIE * abs(self.best.value):
                break
            self.round(point)
            divided = np.where(decided == UNDECIDED, np.minimum(point.stored, 1 - point.stored), -1)
            chunk = np.unravel_index(np.argmax(divided), divided.shape)
            if divided[chunk] < 0:
                continue
            for choice in (KEPT, OUT):
                branch = decided.copy()
                branch[chunk] = choice
                if np.all(branch != UNDECIDED):
                    self.attempt(branch == KEPT)
                    continue
                inner = self.relax(branch)
                if inner is not None:
                    heapq.heappush(heap, (max(bound, inner[1]), next(order), branch, inner[0]))
        return self.best


def optimum(
    problem, theta, *, site=None, per_site=None, capacity=None, allowed=None, surcharge=None, reading=None
) -> Optimum | None:
    """The best plan of a tiny problem without groups (about 4 files, 5 nodes), to 1e-7; None where there is none.

    Minimises min_z { z + sum_ij (lambda_i / lambda_hat) pi_ij / 2 [(E_ij - z) + sqrt((E_ij - z)^2 + V_ij)] }
    + (theta / r) [ sum_ij stored_ij (price_ij + surcharge_ij) + sum_ij pi_ij reading_ij ].

    Constraints and charges that are not given are those of the problem.

    Args:
        problem: an ``ecjax`` Problem.
        theta: s per dollar of mean cost per file.
        site: (m,) failure domain of every node, with ``per_site``, the most chunks of a file in one.
        per_site: see ``site``.
        capacity: (m,) most chunks on a node.
        allowed: (r, m) bool.
        surcharge: (r, m) dollars per period for keeping a chunk, beyond its price.
        reading: (r, m) dollars per period if every read of the file used the node.
    """
    model = model_of(problem, surcharge, reading)
    limits = limits_of(problem, site, per_site, capacity, allowed)
    weight = float(theta) / len(model.k)
    best = Search(model, limits, weight).run()
    if best is None:
        return None
    stored = best.stored > 0.5
    cost = float(model.price[stored].sum() + (best.reads * model.reading).sum())
    return Optimum(
        objective=best.value,
        stored=stored,
        probabilities=best.reads,
        z=best.z if model.has_z else -np.inf,
        latency=best.value - weight * cost,
        cost=cost,
    )
