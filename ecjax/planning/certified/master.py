"""The best mixture of known choices: a small convex problem, by a primal-dual interior-point method.

minimise over w >= 0:  latency(loads^T w, z) + dollars . w
with the columns of every group of rows summing to 1 and, where nodes have a capacity, chunks^T w <= capacity, which may
be broken at a high price per chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ecjax.planning.certified.data import Service
from ecjax.planning.certified.waits import NEARLY_FULL, Slopes, slopes, work_of

_CENTRING = 0.15
_TO_BOUNDARY = 0.99
_MOST_STEPS = 50
_POLISHING_STEPS = 4
_ROUNDING = 1e-14
_MIXED_IN = 0.05  # how much of the even mixture a start gets: the method starts inside


@dataclass(frozen=True)
class Columns:
    """Sums over a group's rows of known choices."""

    loads: np.ndarray  # (n, m, X) 1/s
    chunks: np.ndarray  # (n, m)
    dollars: np.ndarray  # (n,) s
    group: np.ndarray  # (n,)
    price: np.ndarray  # (n,) index of the prices they are cheapest at; -1 for a given choice

    def take(self, keep: np.ndarray) -> "Columns":
        """Some of the columns."""
        return Columns(
            *(getattr(self, name)[keep] for name in ("loads", "chunks", "dollars", "group", "price"))
        )

    def plus(self, other: "Columns") -> "Columns":
        """All columns of both."""
        names = ("loads", "chunks", "dollars", "group", "price")
        return Columns(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))


@dataclass(frozen=True)
class Mixture:
    """A mixture of columns and what it is worth."""

    weight: np.ndarray  # (n,)
    loads: np.ndarray  # (m, X)
    slopes: Slopes
    chunk_price: np.ndarray  # (m,) s, dual of the capacity
    latency: float  # s, without z
    dollars: float  # s


def mix(
    service: Service,
    columns: Columns,
    start: np.ndarray,
    z: float,
    capacity: np.ndarray,
    full: float,
    tol: float,
) -> Mixture:
    """Best mixture at a fixed z.

    Args:
        service: nodes.
        columns: known choices; every group has one or more.
        start: (n,) weights, 1 in sum for each group.
        z: s.
        capacity: (m,) chunks; infinite where there is no limit.
        full: s, price of a chunk beyond a capacity.
        tol: relative, on objective and optimality conditions.
    """
    groups = int(columns.group.max()) + 1
    n, limited = len(start), np.flatnonzero(np.isfinite(capacity))
    # variables: weights, then room left and chunks too many on every node with a limit
    equal, right, dollars = _equalities(columns, capacity, limited, groups, full)
    w = _inside(service, columns, start, groups)
    held = w @ columns.chunks[:, limited]
    # both a little above zero: the method starts inside
    least = 1e-3 * np.maximum(capacity[limited], 1)
    room, over = (np.maximum(sign * (capacity[limited] - held), 0) + least for sign in (1, -1))
    x = np.concatenate([w, room, over])
    point = slopes(service, np.tensordot(x[:n], columns.loads, 1), z)
    gradient = _gradient(point, columns, dollars, n)
    dual = np.concatenate([_group_least(gradient[:n], columns.group, groups), np.zeros(len(limited))])
    # without what is charged beyond capacities: the start is a little beyond, at a high price
    scale = abs(point.value + columns.dollars @ w) + np.finfo(float).tiny
    reduced = gradient - dual @ equal
    slack = np.maximum(reduced, max(x @ np.maximum(reduced, 0), 1e-10 * scale) / len(x))
    by_node = np.ascontiguousarray(columns.loads.transpose(1, 0, 2))
    closed = 0
    for step in range(_MOST_STEPS):
        gap, residual = x @ slack, gradient - dual @ equal - slack
        short = right - equal @ x
        closed = closed + 1 if gap < tol * scale else 0
        # where slopes are steep rounding leaves a residual that more steps do not mend
        if closed and (x @ np.abs(residual) < tol * scale or closed > _POLISHING_STEPS):
            break
        barrier = max(gap * (_CENTRING if step else 0.5), 0.2 * tol * scale) / len(x)
        ratio = x / slack
        bend = (by_node @ point.roots).transpose(1, 0, 2).reshape(n, -1)
        weighted = ratio[:n, None] * bend
        inverse = _inverse(np.eye(bend.shape[1]) + weighted.T @ bend)
        across = equal[:, :n] @ weighted
        drop = -(gradient - dual @ equal - barrier / x)
        # the inverse K of the second derivative with the barrier's is S - S B (I + B' S B)^-1 B' S
        moved = ratio * drop
        moved[:n] -= weighted @ inverse(weighted.T @ drop[:n])
        normal = (equal * ratio) @ equal.T - across @ inverse(across.T)
        turn = linalg.lstsq(normal, short - equal @ moved, lapack_driver="gelsy")[0]
        lift = turn @ equal
        move = moved + ratio * lift
        move[:n] -= weighted @ inverse(weighted.T @ lift[:n])
        ease = (barrier - slack * move) / x - slack
        primal = min(1.0, _TO_BOUNDARY / max(np.max(-move / x), 1e-300))
        dually = min(1.0, _TO_BOUNDARY / max(np.max(-ease / slack), 1e-300))
        worth = point.value + dollars @ x - barrier * np.log(x).sum()
        while True:
            trial = x + primal * move
            there = slopes(service, np.tensordot(trial[:n], columns.loads, 1), z)
            merit = there.value + dollars @ trial - barrier * np.log(trial).sum()
            # towards feasibility the merit may rise
            if (
                merit <= worth + 1e-9 * scale
                or np.abs(short).max() > 1e-6 * np.abs(right).max()
                or primal < 1e-6
            ):
                break
            primal *= 0.5
        x, point = trial, there
        slack, dual = slack + dually * ease, dual + dually * turn
        gradient = _gradient(point, columns, dollars, n)
    w = x[:n] / np.bincount(columns.group, x[:n], groups)[columns.group]
    loads = np.tensordot(w, columns.loads, 1)
    point = slopes(service, loads, z)
    price = np.zeros(len(capacity))
    price[limited] = np.maximum(-dual[groups:], 0)
    return Mixture(w, loads, point, price, point.value, float(columns.dollars @ w))


def _inside(service: Service, columns: Columns, start: np.ndarray, groups: int) -> np.ndarray:
    """``start`` with a little of every column mixed in, as much as leaves nodes half of their room."""
    even = 1 / np.bincount(columns.group, minlength=groups)[columns.group]
    loads, others = (np.tensordot(weight, columns.loads, 1) for weight in (start, even))
    room = np.maximum(1 - work_of(service, loads)[:, 0], NEARLY_FULL)
    rise = work_of(service, others - loads)[:, 0] - service.background[:, 0]
    share = min(_MIXED_IN, 0.5 * np.min(room / np.maximum(rise, 1e-300)))
    return (1 - share) * start + share * even


def _inverse(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Solver for a positive definite matrix, scaled and lifted by rounding so that the factors exist."""
    scale = np.sqrt(np.diag(matrix))
    factors = linalg.cho_factor(matrix / scale[:, None] / scale + _ROUNDING * np.eye(len(matrix)))

    def solve(right: np.ndarray) -> np.ndarray:
        by = scale[:, None] if right.ndim == 2 else scale
        return linalg.cho_solve(factors, right / by) / by

    return solve


def _equalities(columns: Columns, capacity: np.ndarray, limited: np.ndarray, groups: int, full: float):
    n, extra = len(columns.group), len(limited)
    equal = np.zeros((groups + extra, n + 2 * extra))
    equal[columns.group, np.arange(n)] = 1
    equal[groups:, :n] = columns.chunks[:, limited].T
    equal[groups:, n : n + extra] = np.eye(extra)
    equal[groups:, n + extra :] = -np.eye(extra)
    right = np.concatenate([np.ones(groups), capacity[limited]])
    dollars = np.concatenate([columns.dollars, np.zeros(extra), np.full(extra, full)])
    return equal, right, dollars


def _gradient(point: Slopes, columns: Columns, dollars: np.ndarray, n: int) -> np.ndarray:
    sizes = point.read.shape[1]
    by_load = np.tensordot(columns.loads[:, :, :sizes], point.read, 2)
    if columns.loads.shape[2] > sizes:
        by_load = by_load + np.tensordot(columns.loads[:, :, sizes:], point.write, 2)
    out = dollars.copy()
    out[:n] += by_load
    return out


def _group_least(values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    least = np.full(groups, np.inf)
    np.minimum.at(least, group, values)
    return least
