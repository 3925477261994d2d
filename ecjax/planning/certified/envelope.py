"""Better prices where a node's latency is not convex in its loads: those of its convex envelope.

At a fixed z the lower bound by prices y, D(y) = sum over nodes of the least Lagrangian + sum over rows of the cheapest
choice, is concave, and its maximum is the optimum of the linear program that mixes the choices of rows (by group) and
the loads, or states, of every node:

    minimise    sum of weight x dollars of choices + sum of weight x latency of states
    subject to  at every node the loads of the choices equal those of the states,
                the weights of every group, and of every node, are 1 in sum.

Its columns are the answers to the prices asked so far, its multipliers the next prices. The slope of the latency, from
which it starts, is right but for what the sizes do to each other: prices are that slope times 1 + u, with u piecewise
linear over few sizes at every node, and stay in a box around the best prices known, which grows when they get better
and shrinks when they do not.
"""

from dataclasses import replace

import numpy as np
from scipy import linalg

from ecjax.cores import one_blas_thread
from ecjax.planning.certified.envelope_master import LinearMaster
from ecjax.planning.certified.master import Columns
from ecjax.planning.certified.nodes import NodeMinima
from ecjax.planning.certified.relax import Passes, Prices, Relaxed
from ecjax.planning.certified.waits import node_value, work_of

_KNOTS = 6  # sizes between which u is linear
_FIRST_BOX = 0.1
_GROWTH, _SHRINKAGE = 1.5, 0.5
_CENTRED = 0.1  # gap of the master's point against what is open between master and prices
_PART = 0.1  # of the gap between relaxation and bound, that need not be closed
_NODE_TOL = 0.1  # of what need not be closed, for the minima of all nodes
_PATIENCE = 6  # rounds in which the best prices must gain half of that


def improve(passes: Passes, relaxed: Relaxed, minima: NodeMinima, tol: float, most: int) -> Prices:
    """Prices with a better lower bound at ``relaxed.z``, or those of the relaxation's last pass.

    Args:
        passes: the rows.
        relaxed: mixture close to the best.
        minima: of the nodes.
        tol: relative; what the best prices may still gain, or a tenth of what the bound leaves open if that is more.
        most: rounds, each one pass over the rows.
    """
    with one_blas_thread():
        return _improve(passes, relaxed, minima, tol, most)


def _improve(passes: Passes, relaxed: Relaxed, minima: NodeMinima, tol: float, most: int) -> Prices:
    last, groups = relaxed.prices[-1], int(relaxed.group.max()) + 1
    program = _Program(passes, relaxed)
    least = tol * abs(relaxed.objective)  # s
    fine = max(least, _PART * program.latency_and_dollars)
    best, value, box = last, -np.inf, _FIRST_BOX
    point, centre = program.nothing, program.nothing
    above = np.inf
    reached: list[float] = []
    for _ in range(most):
        read, write = program.prices(point)
        proposal = Prices(read, write, last.chunk, 0.0, relaxed.z)
        low, latency, states = minima.states(proposal, relaxed.z, _NODE_TOL * fine / len(read))
        cheapest, sums = passes.cheapest(read, write, last.chunk, relaxed.group, groups)
        bound = float(low.sum()) + cheapest
        if reached:
            box *= _GROWTH if bound > value else _SHRINKAGE
        if bound > value:
            value, centre = bound, point
            best = replace(proposal, cheapest=cheapest)
        # as fine as what stays open deserves
        fine = max(least, _PART * (program.latency_and_dollars - value))
        reached.append(value)
        slow = len(reached) > _PATIENCE and value - reached[-1 - _PATIENCE] <= 0.5 * fine
        if above - value <= fine or (slow and value > reached[0]):
            break
        loads, chunks, dollars = sums
        program.add_choices(Columns(loads, chunks, dollars, np.arange(groups), np.zeros(groups)))
        program.add_states(states, latency)
        gap = max(_CENTRED * min(above - value, program.latency_and_dollars - value), _NODE_TOL * fine)
        try:
            point, above = program.solve(centre, box, gap)
        except linalg.LinAlgError:
            break
        if not np.isfinite(point).all():
            break
    return best


class _Program:
    """The linear program in the multipliers u of the prices; costs are counted at the first prices."""

    def __init__(self, passes: Passes, relaxed: Relaxed) -> None:
        service, mixture = passes.service, relaxed.mixture
        first = relaxed.prices[-1]
        self.sizes = len(service.size)
        self.written = mixture.loads.shape[1] > self.sizes
        self.write = first.write
        self.first = np.hstack([first.read, first.write]) if self.written else first.read
        self.chunk = first.chunk
        hats = _hats(self.sizes)
        if self.written:
            hats = np.block([[hats, np.zeros_like(hats)], [np.zeros_like(hats), hats]])
        m, knots = len(self.first), hats.shape[1]
        worth = (self.first * mixture.loads) @ hats  # s
        # multipliers count in s: u times what the loads at a knot are worth
        self.scale = np.maximum(worth, max(1e-3 * worth.max(), np.finfo(float).tiny))
        self.basis = self.first[:, :, None] * hats / self.scale[:, None, :]  # (m, X, K)
        self.nothing = np.zeros((m, knots))
        self.m, self.groups, self.box = m, int(relaxed.group.max()) + 1, m * knots
        self.master = LinearMaster(np.concatenate([np.zeros(self.box), np.ones(self.groups + m)]))
        edges = np.vstack([np.eye(self.box), np.zeros((self.groups + m, self.box))])
        # u within a box, whose sides are the costs of these columns
        self.master.add(np.hstack([edges, -edges]), np.zeros(2 * self.box))
        self.add_states(np.zeros_like(mixture.loads), np.zeros(m))
        work = work_of(service, mixture.loads)
        reads = mixture.loads[:, : self.sizes] / service.rate
        latency = [
            node_value(
                work[j],
                reads[j],
                service.mean[j],
                service.variance[j],
                relaxed.z,
                service.alone,
                service.penalty,
            )
            for j in range(m)
        ]
        self.add_states(mixture.loads, np.array(latency))
        self.add_choices(relaxed.columns)
        charged = float(mixture.weight @ (relaxed.columns.chunks @ self.chunk))
        self.latency_and_dollars = float(np.sum(latency)) + mixture.dollars + charged
        self.fresh = True

    def prices(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prices (m, C) of reads and writes at the multipliers (m, K)."""
        price = np.maximum(self.first + np.einsum("jxk,jk->jx", self.basis, point), 0)
        read = np.ascontiguousarray(price[:, : self.sizes])
        return read, np.ascontiguousarray(price[:, self.sizes :]) if self.written else self.write

    def add_choices(self, columns: Columns) -> None:
        """Sums over groups' rows of their choices."""
        n = len(columns.group)
        rows = np.zeros((len(self.master.right), n))
        rows[: self.box] = -np.einsum("njx,jxk->njk", columns.loads, self.basis).reshape(n, -1).T
        rows[self.box + columns.group, np.arange(n)] = 1
        cost = columns.dollars + columns.chunks @ self.chunk + np.tensordot(columns.loads, self.first, 2)
        self.master.add(rows, cost)

    def add_states(self, loads: np.ndarray, latency: np.ndarray) -> None:
        """One state (m, X) of every node with its latency (m,) s."""
        node = np.arange(self.m)
        rows = np.zeros((len(self.master.right), self.m))
        knots = rows[: self.box].reshape(self.m, -1, self.m)
        knots[node, :, node] = np.einsum("jx,jxk->jk", loads, self.basis)
        rows[self.box + self.groups + node, node] = 1
        self.master.add(rows, latency - (self.first * loads).sum(axis=1))

    def solve(self, centre: np.ndarray, box: float, gap: float) -> tuple[np.ndarray, float]:
        """Multipliers near the best in a box around ``centre``, and the program's value there with what a box twice as
        wide would add at most.
        """
        master = self.master
        at, width = centre.ravel(), box * self.scale.ravel()
        master.cost[: self.box] = at + width
        master.cost[self.box : 2 * self.box] = np.minimum(width - at, self.scale.ravel())  # no price below 0
        if self.fresh:
            self._start(at)
            self.fresh = False
        else:
            master.go_on(gap, 2 * self.box)
        above = master.centre(gap)
        above += float((master.x[: self.box] + master.x[self.box : 2 * self.box]) @ width)
        return np.maximum(master.multipliers[: self.box], -self.scale.ravel()).reshape(centre.shape), above

    def _start(self, at: np.ndarray) -> None:
        master = self.master
        multipliers = np.concatenate([at, np.zeros(self.groups + self.m)])
        reduced = master.cost - multipliers @ master.rows
        x = np.full(len(reduced), 0.05)
        for row in range(self.box, len(multipliers)):
            members = master.rows[row] > 0
            multipliers[row] = reduced[members].min()
            x[members] = 1 / members.sum()
        master.start(x, multipliers, 3e-3 * abs(self.latency_and_dollars) / len(x))


def _hats(sizes: int) -> np.ndarray:
    """(C, K) piecewise linear functions of the index of a size, 1 in sum."""
    if sizes <= _KNOTS:
        return np.eye(sizes)
    knots = np.linspace(0, sizes - 1, _KNOTS)
    return np.maximum(0, 1 - np.abs(np.arange(sizes)[:, None] - knots) / (knots[1] - knots[0]))
