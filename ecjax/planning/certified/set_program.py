"""How many nodes of a kind keep which set of rows, for z in an interval: an integer program, by branch and bound.

``node_sets`` knows what a node with a set costs at prices, not how that changes with its loads. Prices mu tell a
tangent plane of it: y nodes with set s, and loads l of them together, cost at least N_js(mu; z) y + mu l. The linear
program of these planes, of loads up to y times the reads of the set and of as many sets as nodes, lacks the planes that
no price has told yet: its multipliers are the next prices, and its loads have slopes. Nodes that are alike are one
kind: branches, which say how many nodes of a kind have a set, would search all their permutations otherwise.

Bounds are not those of the linear programs, which are rounded, but what the prices prove: the least of N_js less what
the chunks are worth, summed over the nodes of all kinds, of the numbers that a branch allows. For z in an interval the
latency of a node is replaced by its tangent in z at the middle, and the prices are affine in z: what they prove is
concave in z then (``node_levels``), least at an end, and off by the square of the interval.
"""

import heapq
from itertools import count

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ecjax.planning.certified.data import Rows
from ecjax.planning.certified.node_sets import (
    Between,
    States,
    minima_between,
    minima_of_sets,
    net_price,
    some_of,
)
from ecjax.planning.certified.set_branches import WHOLE, Numbers, Outcome, Prices, Proof, branches_of
from ecjax.planning.certified.waits import slopes

_AGAIN = 4  # times that a branch is solved anew because there are better planes
_AT_FIRST = 20  # times that the first one is, and those where all nodes are whole
_STEEPEST = 1e4  # times what a plan costs, for all reads of a set
_INFEASIBLE = 2  # status of SciPy's linear programs; of HiGHS's errors, too
_BENT = 0.5  # of what is lacking, that tangents lack: with more, a shorter interval proves more
_REFINED = 0.3  # of what a branch lacks, that planes may leave open


class SetProgram:
    """The program for an interval of z, or one z.

    Args:
        states: sets of rows at every node.
        rows: of the placement.
        between: the z.
        tol: s, that the minima of all nodes together may leave open.
        unit: s, about what a plan costs.
    """

    def __init__(self, states: States, rows: Rows, between: Between, tol: float, unit: float) -> None:
        """Lay out the variables: nodes with a set, their reads in those that one may have, what they cost."""
        self.between = between
        self._states, self._tol, self._unit = states, tol, unit
        self._dollars = states.dollars[states.first]
        sets = self._dollars.shape[1]
        self._kind, self._set = np.nonzero(np.isfinite(self._dollars))
        self._state = states.first[self._kind] * sets + self._set
        most = states.most[self._state]
        self._pair, self._entry = np.nonzero(most > 0)
        self._most = most[self._pair, self._entry]
        self._number = np.bincount(states.kind).astype(float)
        self._site, self._per_site = rows.site[states.first], rows.per_site
        self._planes: list[list[sparse.csr_matrix]] = [[] for _ in between.ends]
        self.proofs: list[Proof] = []
        self._limits, self._right = self._rows_of_limits()
        nodes = np.ones(len(self._kind)), (self._kind, np.arange(len(self._kind)))
        self._all_nodes = sparse.csr_matrix(nodes, (len(self._number), 2 * len(self._kind) + len(self._pair)))
        self._tried: set[bytes] = set()

    def _rows_of_limits(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Rows A x <= b beside planes: reads of a set, all reads, chunks, chunks per site."""
        states, chosen, pairs = self._states, len(self._kind), len(self._pair)
        take = sparse.csr_matrix((np.ones(pairs), (np.arange(pairs), self._pair)), (pairs, chosen))
        within = sparse.hstack([-take, sparse.eye(pairs), sparse.csr_matrix((pairs, chosen))])
        asked = states.asked[self._entry]
        part = np.where(asked > 0, self._most / np.where(asked > 0, asked, 1.0), 0.0)
        entries = len(states.asked)
        all_reads = sparse.csr_matrix((-part, (self._entry, np.arange(pairs))), (entries, pairs))
        nothing = sparse.csr_matrix((entries, chosen))
        kept = states.kept[self._set].T
        lengths = self._of_nodes(np.concatenate([-kept, kept]))
        blocks = [within, sparse.hstack([nothing, all_reads, nothing]), lengths]
        right = [np.zeros(pairs), -np.where(states.asked > 0, 1.0, 0.0), -states.least, states.longest]
        if self._per_site:
            here = self._site[self._kind] == np.arange(self._site.max() + 1)[:, None]
            by_site = (kept[:, None, :] * here[None]).reshape(-1, chosen)
            blocks.append(self._of_nodes(by_site))
            right.append(np.full(len(by_site), float(self._per_site)))
        return sparse.csr_matrix(sparse.vstack(blocks)), np.concatenate(right)

    def _of_nodes(self, weights: np.ndarray) -> sparse.csr_matrix:
        """Rows that have weights of nodes only."""
        rest = sparse.csr_matrix((len(weights), len(self._pair) + len(self._kind)))
        return sparse.hstack([sparse.csr_matrix(weights), rest])

    def learn(self, prices: Prices) -> Proof:
        """What prices prove; the programs get their planes."""
        states = self._states
        low = minima_of_sets(states, prices.reads, self.between, self._tol / len(states.kind))
        proof = Proof(prices, low)
        self.proofs.append(proof)
        everything = np.arange(len(self._kind))
        for end, (reads, each) in enumerate(zip(prices.reads, low, strict=True)):
            price = net_price(states, reads)[self._state]
            self._add_planes(end, everything, each[self._kind, self._set], price)
        return proof

    def alike(self, reads: np.ndarray, chunks: np.ndarray) -> Prices:
        """Prices at the ends where all sites have the same: of reads (Q, E), of the chunks of a row (Q, R)."""
        return Prices(reads, chunks, np.zeros((*chunks.shape, len(self._number))), np.zeros(len(reads)))

    def proven(self, proof: Proof, numbers: Numbers | None = None) -> float:
        """Bound of a branch by prices, s; of all plans without one."""
        states, prices = self._states, proof.prices
        kept = prices.chunks[:, :, None] - prices.site
        cost = proof.low + self._dollars - np.einsum("sr,qrk->qks", states.kept, kept)
        shortest, longest = (
            (states.least, states.longest) if numbers is None else (numbers.shortest, numbers.longest)
        )
        lengths = np.minimum(prices.chunks * shortest, prices.chunks * longest).sum(axis=1)
        value = self.between.ends + prices.reads @ states.asked + lengths - prices.sites
        if numbers is None:
            return float((value + cost.min(axis=2) @ self._number).min())
        order = np.argsort(cost, axis=2)
        # those that must be, then the cheapest up to their number
        room = np.take_along_axis((numbers.most - numbers.least)[None], order, axis=2)
        left = (self._number - numbers.least.sum(axis=1))[None, :, None]
        taken = np.clip(left - (np.cumsum(room, axis=2) - room), 0.0, room)
        dear = np.where(taken > 0, np.take_along_axis(cost, order, axis=2), 0.0)
        must = numbers.least * np.where(numbers.least > 0, cost, 0.0)
        return float((value + (taken * dear + must).sum(axis=(1, 2))).min())

    def _touch(self, x: np.ndarray, end: int) -> float:
        """Planes that touch the costs of the sets of a solution at its loads; s, by how much these are above it."""
        states, chosen = self._states, len(self._kind)
        nodes, part, _ = np.split(x, [chosen, chosen + len(self._pair)])
        used = np.flatnonzero(nodes > WHOLE)
        loads = np.zeros((chosen, len(states.asked)))
        loads[self._pair, self._entry] = part * self._most / np.maximum(nodes[self._pair], WHOLE)
        service, most = some_of(states, self._state[used])
        slope = np.maximum(slopes(service, np.minimum(loads[used], most), self.between.ends[end]).read, 0.0)
        # those of nodes that are overloaded would be beyond what programs can count with
        steep = np.max(slope * most, axis=1, keepdims=True) / (_STEEPEST * self._unit)
        price = np.repeat((slope / np.maximum(steep, 1.0))[None], len(self._planes), axis=0)
        low = minima_between(service, most, price, self.between, self._tol / len(states.kind), loads[used])
        for each, planes in enumerate(low):
            self._add_planes(each, used, planes, price[each])
        return self._unit * float(np.maximum(self._planes[end][-1] @ x, 0.0).sum())

    def _add_planes(self, end: int, which: np.ndarray, low: np.ndarray, price: np.ndarray) -> None:
        """Planes of some sets, from their minima at prices of latency (count, E)."""
        number, chosen, pairs = len(which), len(self._kind), len(self._pair)
        place = np.full(chosen, -1)
        place[which] = np.arange(number)
        here = np.flatnonzero(place[self._pair] >= 0)
        row, entry = place[self._pair[here]], self._entry[here]
        node = self._states.first[self._kind[which]]
        paid = price[row, entry] + self._states.discount[node][row, entry]
        by_pair = sparse.csr_matrix((paid * self._most[here] / self._unit, (row, here)), (number, pairs))
        by_node = sparse.csr_matrix((low / self._unit, (np.arange(number), which)), (number, chosen))
        cost = sparse.csr_matrix((np.full(number, -1.0), (np.arange(number), which)), (number, chosen))
        self._planes[end].append(sparse.csr_matrix(sparse.hstack([by_node, by_pair, cost])))

    def _solved(self, numbers: Numbers, end: int) -> tuple[float, np.ndarray, Prices] | None:
        """Value and solution of a branch's linear program at an end, and its multipliers; None: there is none.

        Raises:
            ArithmeticError: it was not solved.
        """
        states, chosen, pairs = self._states, len(self._kind), len(self._pair)
        rows = sparse.vstack([*self._planes[end], self._limits])
        known = rows.shape[0] - len(self._right)
        dollars = self._dollars[self._kind, self._set] / self._unit
        cost = np.concatenate([dollars, np.zeros(pairs), np.ones(chosen)])
        bounds = np.zeros((len(cost), 2))
        bounds[:chosen, 0] = numbers.least[self._kind, self._set]
        bounds[:chosen, 1] = numbers.most[self._kind, self._set]
        bounds[chosen : chosen + pairs, 1] = np.inf
        bounds[chosen + pairs :] = -np.inf, np.inf
        entries, number = len(states.asked), len(states.least)
        right = np.concatenate([np.zeros(known), self._right])
        lengths = known + pairs + entries
        right[lengths : lengths + 2 * number] = np.concatenate([-numbers.shortest, numbers.longest])
        solution = linprog(cost, rows, right, self._all_nodes, self._number, bounds, method="highs")
        if solution.status == _INFEASIBLE and "nfeasible" in solution.message:
            return None
        if solution.status != 0:
            raise ArithmeticError(solution.message)
        price = np.maximum(-self._unit * solution.ineqlin.marginals[known + pairs :], 0.0)
        reads = price[:entries] / np.where(states.asked > 0, states.asked, 1.0)
        longer, shorter = price[entries:].reshape(-1, number)[:2]
        prices = self.alike(reads[None], (longer - shorter)[None])
        if self._per_site:
            by_site = price[entries + 2 * number :].reshape(number, -1)
            sites = np.array([float(by_site.sum()) * self._per_site])
            prices = prices._replace(site=by_site[None, :, self._site], sites=sites)
        return self.between.ends[end] + self._unit * float(solution.fun), solution.x, prices

    def _at_ends(self, numbers: Numbers) -> tuple[list[tuple[float, np.ndarray, Prices]], Proof] | None:
        """Solutions of a branch at all ends, and what their multipliers prove together; None: there are none."""
        solved = [self._solved(numbers, end) for end in range(len(self._planes))]
        each = [one for one in solved if one is not None]
        if len(each) < len(solved):
            return None
        return each, self.learn(
            Prices(*(np.concatenate(parts) for parts in zip(*(one[2] for one in each), strict=True)))
        )

    def least(self, goal: float, tol: float, work: int) -> Outcome:
        """The best plan at one z, or a proof that none of an interval costs less than the goal.

        Args:
            goal: s.
            tol: s, that may stay open between the bound and the best plan.
            work: most linear programs.
        """
        tie = count()
        best = Outcome(np.inf)
        open_: list[tuple[float, int, Numbers, int]] = []
        closed = np.inf

        def push(value: float, numbers: Numbers, again: int) -> None:
            value = max([value, *(self.proven(proof, numbers) for proof in self.proofs)])
            heapq.heappush(open_, (value, next(tie), numbers, again))

        shape = self._dollars.shape
        most = np.where(np.isfinite(self._dollars), self._number[:, None], 0.0)
        push(-np.inf, Numbers(np.zeros(shape), most, self._states.least, self._states.longest), 0)
        while open_:
            value, _, numbers, again = open_[0]
            if value >= min(goal, best.cost - tol) or work <= 0:
                break
            heapq.heappop(open_)
            work -= 1
            try:
                solved = self._at_ends(numbers)
            except ArithmeticError:
                closed = min(closed, value)
                continue
            if solved is None:
                continue
            value = max(value, self.proven(solved[1], numbers))
            end = int(np.argmin([one[0] for one in solved[0]]))
            certain, x, _ = solved[0][end]
            nodes = np.zeros(shape)
            nodes[self._kind, self._set] = x[: len(self._kind)]
            branches = branches_of(numbers, nodes, nodes.sum(axis=0) @ self._states.kept)
            # better planes are worth more where there is nothing to branch on
            left, often = tol, _AT_FIRST
            if branches and len(self.proofs) > _AT_FIRST:
                often = _AGAIN
            if branches and min(goal, best.cost) < np.inf:
                left = max(tol, _REFINED * (min(goal, best.cost) - value))
            if value < goal and max(self._touch(x, end), value - certain) > left and again < often:
                push(value, numbers, again + 1)
                continue
            if len(self._planes) == 1:
                best = min(best, self._rounded(nodes), key=lambda each: each.cost)
            if not branches:
                # what planes leave open of it is no more than the tolerance, or they were too many
                closed = min(closed, value)
                if len(self._planes) > 1 and value < goal:
                    sets, loads = self._by_node(np.round(nodes), x)
                    bent = self._bend(sets, loads) > _BENT * (goal - value)
                    best = Outcome(np.inf, max(value, certain), sets, loads, bent)
                    goal = value
            if best.bent:
                break
            for branch in branches:
                push(value, branch, 0)
        return best._replace(bound=min(closed, open_[0][0] if open_ else np.inf))

    def _bend(self, sets: np.ndarray, loads: np.ndarray) -> float:
        """By how much the latency of a plan is above its tangent in z at the ends of the interval, s."""
        service, _ = some_of(self._states, np.arange(len(sets)) * self._dollars.shape[1] + sets)
        low, middle, high = (
            slopes(service, loads, z).value
            for z in (self.between.ends[0], self.between.middle, self.between.ends[-1])
        )
        return low + high - 2 * middle

    def _rounded(self, nodes: np.ndarray) -> Outcome:
        """A plan near numbers of nodes (K, S), and about what it costs; infinite where it is none, or an old one."""
        kept = self._states.kept
        whole = np.floor(nodes + WHOLE)
        for kind, number in enumerate(self._number):
            more = np.argsort(whole[kind] - nodes[kind], kind="stable")[: int(number - whole[kind].sum())]
            whole[kind, more] += 1
        for row, least in enumerate(self._states.least):
            without = (kept[:, row] == 0) & np.isfinite(self._dollars)
            with_row = np.array(
                [
                    int(np.flatnonzero(np.all(kept == np.maximum(one, np.eye(len(one))[row]), axis=1))[0])
                    for one in kept
                ]
            )
            while float(whole.sum(axis=0) @ kept[:, row]) < least:
                may = without & (whole > 0) & np.isfinite(self._dollars[:, with_row])
                if not may.any():
                    return Outcome(np.inf)
                wanted = np.where(may, nodes[:, with_row], -np.inf)
                at = np.unravel_index(np.argmax(wanted), wanted.shape)
                whole[at] -= 1
                whole[at[0], with_row[at[1]]] += 1
        if whole.tobytes() in self._tried:
            return Outcome(np.inf)
        self._tried.add(whole.tobytes())
        cost, x = np.inf, np.zeros(0)
        for _ in range(_AGAIN):
            try:
                solved = self._solved(Numbers(whole, whole, self._states.least, self._states.longest), 0)
            except ArithmeticError:
                solved = None
            if solved is None:
                return Outcome(np.inf)
            x = solved[1]
            above = self._touch(x, 0)
            cost = solved[0] + above
            if above <= WHOLE * self._unit:
                break
        return Outcome(np.inf, cost, *self._by_node(whole, x))

    def _by_node(self, whole: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sets (m,) and loads (m, E), 1/s, of every node, by whole numbers of them (K, S) and a solution."""
        chosen = len(self._kind)
        states = self._states
        sets = np.zeros(len(states.kind), np.int64)
        for kind, number in enumerate(whole.astype(int)):
            sets[states.kind == kind] = np.repeat(np.arange(len(number)), number)
        loads = np.zeros((*whole.shape, len(states.asked)))
        here = self._kind[self._pair], self._set[self._pair]
        loads[*here, self._entry] = (
            x[chosen : chosen + len(self._pair)] * self._most / np.maximum(whole[here], 1)
        )
        return sets, loads[states.kind, sets]
