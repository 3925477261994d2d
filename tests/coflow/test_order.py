"""Algorithm 1 against every order, its linear program, and the steps of the paper written down plainly."""

from itertools import combinations, permutations

import numpy as np
import pytest
from dense_order import ordered
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ecjax.coflow.order import bssi_order


@st.composite
def loads(draw, coflows=5, ports=3):
    """Few values: ties and coflows without load at some or all ports are common."""
    shape = draw(st.integers(1, coflows)), draw(st.integers(1, ports))
    values = st.sampled_from([0.0, 0.0, 1.0, 2.0, 2.5, 7.0])
    return np.array(
        draw(st.lists(values, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    ).reshape(shape)


def sum_of_completions(load, order):
    """Every port serves in this order without gaps."""
    return np.cumsum(load[list(order)], axis=0).max(axis=1).sum()


def linear_program(load):
    """min sum C with sum_S L_p C >= f_p(S) for all sets S and ports p."""
    coflows, ports = load.shape
    rows, least = [], []
    for size in range(1, coflows + 1):
        for some in combinations(range(coflows), size):
            for p in range(ports):
                part = np.zeros(coflows)
                part[list(some)] = load[list(some), p]
                rows.append(-part)
                least.append(-(part.sum() ** 2 + (part**2).sum()) / 2)
    return linprog(np.ones(coflows), rows, least).fun


def plain(load):
    """The lines of Algorithm 1."""
    weight, left, order = np.ones(len(load)), set(range(len(load))), []
    while left:
        total = load[sorted(left)].sum(axis=0)
        u = int(total.argmax())
        with_load = [c for c in left if load[c, u] > 0]
        if not with_load:
            last = max(left)
        else:
            last = min(with_load, key=lambda c: (weight[c] / load[c, u], -c))
            theta = weight[last] / load[last, u]
            for c in left:
                weight[c] -= theta * load[c, u]
        order.append(last)
        left.remove(last)
    return order[::-1]


@given(loads())
def test_between_the_dual_and_twice_the_dual(load):
    order, dual = ordered(load)
    best = min(sum_of_completions(load, other) for other in permutations(range(len(load))))
    assert sorted(order) == list(range(len(load)))
    reached = sum_of_completions(load, order)
    tolerance = 1e-9 * (1 + best)
    assert dual <= linear_program(load) + tolerance
    assert linear_program(load) <= best + tolerance
    assert best - tolerance <= reached <= 2 * dual + tolerance


@given(loads(coflows=8, ports=4))
def test_the_steps_of_the_paper(load):
    assert ordered(load)[0].tolist() == plain(load)


@pytest.mark.parametrize("size", [30, 200])
def test_the_steps_of_the_paper_on_many(size):
    load = np.random.default_rng(size).integers(0, 1000, (size, 20)) / 8.0  # sums are exact
    assert ordered(load)[0].tolist() == plain(load)


def test_one_port_is_shortest_first_and_the_dual_is_exact():
    load = np.random.default_rng(0).exponential(1, (50, 1))
    order, dual = ordered(load)
    assert order.tolist() == np.argsort(load[:, 0]).tolist()
    assert dual == pytest.approx(np.cumsum(np.sort(load[:, 0])).sum(), rel=1e-12)


def test_ties_go_to_the_earlier_one():
    assert ordered(np.ones((4, 3)))[0].tolist() == [0, 1, 2, 3]
    assert ordered(np.zeros((3, 2)))[0].tolist() == [0, 1, 2]


def test_some_coflows_with_entries_in_parts():
    """As the replay calls it: active coflows of many, a port more than once."""
    first = np.array([0, 2, 5, 6, 8])
    port = np.array([0, 1, 1, 0, 1, 0, 1, 1])
    load = np.array([1.0, 4.0, 1.0, 2.0, 1.5, 9.0, 0.5, 0.25])
    active = np.array([3, 1, 0])
    order = np.empty(3, dtype=np.int64)
    dual = bssi_order(active, first, port, load, 2, order)
    dense_order, dense_dual = ordered(np.array([[0.0, 0.75], [2.0, 2.5], [1.0, 4.0]]))
    assert order.tolist() == active[dense_order].tolist()
    assert dual == dense_dual
