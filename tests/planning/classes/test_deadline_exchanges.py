"""Exchanges of two chunks: those that save most, against all pairs, and without a list of them all."""

import tracemalloc
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from ecjax.planning.classes import deadlines_exchange


def nearby(prices, stored):
    """Placements a chunk or two away from one that is read evenly."""
    reads = stored / stored.sum(axis=1, keepdims=True)
    search = SimpleNamespace(goal=SimpleNamespace(storing=prices))
    return deadlines_exchange._nearby(search, SimpleNamespace(stored=stored, probabilities=reads))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [7, 10_000])
def test_pairs_are_the_cheapest_of_all(seed, most, monkeypatch):
    monkeypatch.setattr(deadlines_exchange, "_PAIRS", most)
    random = np.random.default_rng(seed)
    prices = random.uniform(1.0, 5.0, (3, 6))
    stored = np.array([random.permutation(6) < 3 for _ in range(3)])
    changes = [(row, out, into) for row in range(3) for out in range(6) for into in range(6)]
    changes = [each for each in changes if stored[each[0], each[1]] and not stored[each[0], each[2]]]
    saved = {each: prices[each[0], each[2]] - prices[each[0], each[1]] for each in changes}
    expected = []
    for one, other in combinations(changes, 2):
        same_chunk = one[0] == other[0] and (one[1] == other[1] or one[2] == other[2])
        if not same_chunk and saved[one] + saved[other] < 0 and max(saved[one], saved[other]) >= 0:
            expected.append(saved[one] + saved[other])
    found = [
        float(np.sum(prices * chunks) - np.sum(prices * stored))
        for _, chunks in nearby(prices, stored)
        if np.sum(chunks & ~stored) == 2
    ]
    assert len(expected) > 7
    np.testing.assert_allclose(found, sorted(expected)[:most], rtol=0, atol=1e-12)


def test_millions_of_pairs_are_not_kept():
    """Two files of 50 chunks on 100 nodes: 5000 exchanges, six million pairs of which save."""
    random = np.random.default_rng(0)
    prices = random.uniform(1.0, 5.0, (2, 100))
    stored = np.array([random.permutation(100) < 50 for _ in range(2)])
    tracemalloc.start()
    count = sum(1 for _ in nearby(prices, stored))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 10_000
    assert peak < 30e6
