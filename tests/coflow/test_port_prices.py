"""Bounds by weights and prices: every evaluation against a plain one and against optimal schedules of one port."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ecjax.coflow.port_prices import (
    Pieces,
    averages,
    cells,
    prices_of_weights,
    raise_prices,
    split_cells,
)
from ecjax.coflow.port_weights import by_port, weigh
from ecjax.coflow.price_response import one_bound
from ecjax.coflow.single_port import shortest_remaining


class Case:
    """Coflows by port and coflow, and cells of random length that hold them."""

    def __init__(self, seed, coflows=6, ports=3):
        rng = np.random.default_rng(seed)
        self.load = rng.exponential(1, (coflows, ports)) * (rng.uniform(size=(coflows, ports)) < 0.7)
        self.load[:, 0] += 0.01
        self.arrival = np.sort(rng.integers(0, 6, coflows) / 2.0)
        self.arrival -= self.arrival[0]
        self.isolation = self.load.max(axis=1) * rng.choice([1.0, 1.5], coflows)
        self.coflow, self.port = np.nonzero(self.load)
        self.first = np.searchsorted(self.coflow, np.arange(coflows + 1))
        self.flat = self.load[self.coflow, self.port]
        self.entries = by_port(self.arrival, self.coflow, self.port, self.flat, ports)
        self.end = 3.0 + self.load.sum()
        inner = np.sort(rng.uniform(0, self.end, 8))
        last = self.end + 2 * self.isolation.max()
        self.edges = np.concatenate([[0.0], inner, [self.end, last]])
        self.price = rng.exponential(2, (ports, 10)) * (rng.uniform(size=(ports, 10)) < 0.8)
        self.price[:, -1] = 0

    def bound(self, price, edges):
        use = np.empty_like(price)
        total, _ = one_bound(
            self.arrival, self.isolation, self.first, self.port, self.flat, price, edges, use
        )
        return total, use

    def cheapest(self, c, until, price, edges):
        """For every one of these moments: cells by price until the load is reached."""
        length = np.minimum(edges[1:], until[:, None]) - np.maximum(edges[:-1], self.arrival[c])
        cost = np.zeros(len(until))
        for p in np.flatnonzero(self.load[c]):
            order = np.argsort(price[p], kind="stable")
            amount = np.maximum(length, 0)[:, order]
            before = np.cumsum(amount, axis=1) - amount
            cost += np.clip(self.load[c, p] - before, 0, amount) @ price[p][order]
        return cost


@given(st.integers(0, 10_000))
def test_what_coflows_pay_against_a_fine_search(seed):
    case = Case(seed, coflows=4)
    found, use = case.bound(case.price, case.edges)
    total, slack = 0.0, 0.0
    for c in range(4):
        moments = np.linspace(case.arrival[c] + case.isolation[c], case.edges[-1], 3000)
        moments = np.union1d(moments, case.edges[case.edges > moments[0]])
        value = moments - case.arrival[c] + case.cheapest(c, moments, case.price, case.edges)
        total += value.min()
        # two tangents of a convex function leave a gap that only a cell's length limits
        slack += np.diff(case.edges[:-1]).max()
    total -= (case.price * np.diff(case.edges)).sum()
    assert total - slack <= found <= total + 1e-9
    np.testing.assert_allclose(
        use.sum(axis=1), case.load.sum(axis=0), rtol=1e-9
    )  # everyone buys all it needs


@given(st.integers(0, 10_000))
def test_no_prices_prove_more_than_the_best_schedule_of_one_port(seed):
    """However wild the prices."""
    case = Case(seed, ports=1)
    best = shortest_remaining(case.arrival, case.load[:, 0], np.empty(6))
    case.isolation = case.load[:, 0].copy()
    wild = case.bound(case.price, case.edges)[0]
    assert wild <= best + 1e-9
    raised = raise_prices(
        case.arrival, case.isolation, case.first, case.port, case.flat, case.price, case.edges, 300, 10**9, 0.05
    )  # fmt: skip
    assert wild <= raised <= best + 1e-9


def test_prices_get_near_the_optimum_of_one_port():
    case = Case(5, coflows=12, ports=1)
    case.isolation = case.load[:, 0].copy()
    best = shortest_remaining(case.arrival, case.load[:, 0], np.empty(12))
    edges = np.append(np.linspace(0, case.end, 400), case.end + 10)
    price = np.zeros((1, 400))
    raised = raise_prices(
        case.arrival, case.isolation, case.first, case.port, case.flat, price, edges, 2000, 10**9, 0.05
    )  # fmt: skip
    assert 0.96 * best <= raised <= best  # what is left is what preemption leaves


def test_supergradient():
    """The bound of other prices is not above the tangent at these (where moments are ends of cells)."""
    case = Case(1)
    edges = np.append(np.linspace(0, case.end, 2000), case.end + 2 * case.isolation.max())
    width = np.diff(edges)
    rng = np.random.default_rng(0)
    price = np.append(np.sort(rng.exponential(1, (3, 1999)))[:, ::-1], np.zeros((3, 1)), axis=1)
    here, use = case.bound(price, edges)
    for _ in range(5):
        change = np.append(rng.uniform(-0.1, 0.1, (3, 1999)), np.zeros((3, 1)), axis=1)
        other = np.maximum(price + change, 0)
        there, _ = case.bound(other, edges)
        assert there <= here + ((use - width) * (other - price)).sum() + 6 * 2 * width[:-1].max()


@given(st.integers(0, 10_000))
def test_weights_against_the_linear_program(seed):
    """Three ports, slots of one second: max over weights = min over service of sum_c max_p (mean busy time + L / 2)."""
    rng = np.random.default_rng(seed)
    coflows, ports = 4, 3
    load = rng.integers(0, 4, (coflows, ports)).astype(float)
    load[:, 0] += 1
    arrival = np.sort(rng.integers(0, 4, coflows)).astype(float)
    arrival -= arrival[0]
    isolation = load.max(axis=1)
    coflow, port = np.nonzero(load)
    entries = by_port(arrival, coflow, port, load[coflow, port], ports)
    bound, weight, gain = weigh(isolation, *entries, 300)
    slots = int(arrival[-1] + load.sum(axis=0).max())
    pairs = list(zip(coflow, port, strict=True))
    middle = np.arange(slots) + 0.5
    rows, most = [], []
    for i, (c, p) in enumerate(pairs):  # F_c is not below what it is at p
        row = np.zeros(coflows + len(pairs) * slots)
        row[c] = -1
        row[coflows + i * slots : coflows + (i + 1) * slots] = (middle - arrival[c]) / load[c, p]
        rows.append(row)
        most.append(-load[c, p] / 2)
    for p in range(ports):
        for slot in range(slots):
            row = np.zeros(coflows + len(pairs) * slots)
            row[[coflows + i * slots + slot for i, pair in enumerate(pairs) if pair[1] == p]] = 1
            rows.append(row)
            most.append(1)
    served = np.zeros((len(pairs), coflows + len(pairs) * slots))
    for i in range(len(pairs)):
        served[i, coflows + i * slots : coflows + (i + 1) * slots] = 1
    limits = [(t, None) for t in isolation] + [
        (0, 0 if m < arrival[c] else 1) for c, _ in pairs for m in middle
    ]
    best = linprog(
        np.append(np.ones(coflows), np.zeros(len(pairs) * slots)),
        rows, most, served, load[coflow, port], limits,
    ).fun  # fmt: skip
    assert 0.97 * best <= bound <= best + 1e-7
    total = np.bincount(entries.coflow, weight, coflows)
    assert (weight >= 0).all() and (total <= 1 + 1e-12).all()
    assert (gain >= 0).all()


@given(st.integers(0, 10_000))
def test_prices_of_weights_prove_as_much_as_the_weights(seed):
    """On fine cells, though parts of the weight belong to isolation."""
    case = Case(seed)
    bound, weight, _ = weigh(case.isolation, *case.entries, 50)
    pieces = Pieces(*prices_of_weights(case.entries.first, case.entries.release, case.entries.load, weight))
    edges = np.append(np.linspace(0, case.end, 3000), case.end + 2 * case.isolation.max())
    assert case.bound(averages(*pieces, 3, edges), edges)[0] >= bound * (1 - 5e-3)


@given(st.integers(0, 10_000), st.sampled_from([2, 10, 40]))
def test_cells(seed, count):
    case = Case(seed)
    weight = weigh(case.isolation, *case.entries, 20)[1]
    pieces = Pieces(*prices_of_weights(case.entries.first, case.entries.release, case.entries.load, weight))
    edges = cells(pieces, 0.0, case.end, count)
    assert edges[0] == 0 and edges[-1] == case.end and (np.diff(edges) > 0).all()
    assert len(edges) <= count + 4
    price = averages(*pieces, 3, edges)
    held = (pieces.high + pieces.low) / 2 * (pieces.end - pieces.start)
    np.testing.assert_allclose(
        price @ np.diff(edges), np.bincount(pieces.port, held, 3), rtol=1e-9, atol=1e-12
    )
    finer, same = split_cells(edges, price, 3 * count)
    assert len(finer) - 1 >= 3 * count and np.isin(edges, finer).all()
    np.testing.assert_allclose(same @ np.diff(finer), price @ np.diff(edges), rtol=1e-9, atol=1e-12)


def test_three_coflows_that_conflict_in_pairs():
    """Half of each at both of its ports: 3 x (1 + 2) / 2."""
    load = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 1]])
    coflow, port = np.nonzero(load)
    bound, _, _ = weigh(np.ones(3), *by_port(np.zeros(3), coflow, port, np.ones(6), 3), 300)
    assert bound == pytest.approx(4.5, rel=1e-3)
