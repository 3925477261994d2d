"""Orders by local search: against all orders of tiny open shops; and sets as words of bits."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ecjax.coflow.bits import lowest
from ecjax.coflow.open_shop import exchange_neighbours, sum_of_ends
from ecjax.machine_code import njit


def ends(load, order):
    """Completion times by their definition."""
    at = np.cumsum(load[list(order)], axis=0)
    return np.where(load[list(order)] > 0, at, 0.0).max(axis=1)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), coflows=st.integers(1, 6), ports=st.integers(1, 4))
def test_no_exchange_of_neighbours_is_left_that_helps(seed, coflows, ports):
    random = np.random.default_rng(seed)
    load = random.exponential(size=(coflows, ports)) * (random.random((coflows, ports)) < 0.7)
    load[np.arange(coflows), random.integers(0, ports, coflows)] += 0.1
    start = random.permutation(coflows)
    order = start.copy()
    exchange_neighbours(load, order)
    assert sorted(order) == list(range(coflows))
    total = sum_of_ends(load, order)
    assert_allclose(total, ends(load, order).sum(), rtol=1e-12)
    assert total <= ends(load, start).sum() * (1 + 1e-12)
    for i in range(coflows - 1):
        other = order.copy()
        other[[i, i + 1]] = order[[i + 1, i]]
        assert ends(load, other).sum() >= total * (1 - 1e-9)
    best = min(ends(load, each).sum() for each in itertools.permutations(range(coflows)))
    assert total >= best * (1 - 1e-12)
    if ports == 1:  # shortest first is best there, and exchanges find it
        assert_allclose(total, best, rtol=1e-12)


def test_lowest_bit():
    @njit()
    def places(words, found):
        for i in range(len(words)):
            found[i] = lowest(words[i])

    words = [1 << i for i in range(64)] + [(1 << 63) | (1 << i) for i in range(64)] + [2**64 - 1]
    found = np.empty(len(words), dtype=np.int64)
    places(np.array(words, dtype=np.uint64), found)
    assert list(found) == [*range(64), *range(64), 0]
